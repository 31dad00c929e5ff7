# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""Horovod's stall inspector and its elastic driver. In: an intake; out: one COLLECTIVE_TIMEOUT event a log, however often the warning
came, and a LAUNCHER event for each host that the driver goes on without. Sample:

    [2026-11-29 20:15:34.181: W horovod/common/stall_inspector.cc:105] One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for more than 60 seconds. This may …
    Missing ranks:
    1: [HorovodAllreduce_AddN_103_0, HorovodAllreduce_AddN_104_0 ...]
    HorovodBroadcast_dense_bias_0 [missing ranks: 1, 2]                    (before 0.19, a tensor in a line)
    -> fields {"what": "stalled", "missing": [1, 2], "collective": Collective(op="HorovodAllreduce", timeout_ms=60000)}

    WARNING:root:blacklist failing host: node-b            -> LAUNCHER fields {"what": "restart", "by": "horovod"}

It is a warning: the ranks that are missing may still come. Ranks are those of MPI_COMM_WORLD, hence global.
"""

from __future__ import annotations

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Collective, Event, EventKind
from forensics.model.record import replace
from forensics.parse.desync import ranks_of
from forensics.parse.reading import Lazy, following, hits, make

_STALLED = "One or more tensors were submitted to be reduced"
_LISTS = "Missing ranks:"
_TENSOR = "[missing ranks: "
_WITHOUT = "blacklist failing host: "

ANCHORS: tuple[Anchor, ...] = (
    Anchor(_STALLED.encode(), 0, 2, "horovod"),
    Anchor(_LISTS.encode(), 2, 24, "horovod"),
    Anchor(_TENSOR.encode(), 0, 0, "horovod"),
    Anchor(_WITHOUT.encode(), 0, 0, "horovod"),
)

_SENTENCE = Lazy(r"One or more tensors were submitted to be reduced.{0,160}? for more than (\d{1,7}) seconds\.")
_LISTED = Lazy(r"^(?:\[\d{1,6}\] ?)?(\d{1,6}): ?\[(\w[\w./:\-]{0,400})")
_MISSING = Lazy(r"(\w[\w./:\-]{0,400}) \[missing ranks: ([\d, ]{1,2000})")
_OPERATION = Lazy(r"Horovod(?:Allreduce|Broadcast|Allgather|Alltoall|Reducescatter)|^(?:allreduce|broadcast|allgather)\b")
_HOST = Lazy(r"\bblacklist failing host: (\S{1,120})\s*$")
#: lines after the sentence that may list the ranks
_LIST = 24


def parse(intake: Intake) -> list[Event]:
    """The stall of each log, with all ranks that were missing in it; the elastic driver's beginnings anew."""
    events: list[Event] = []
    for index in hits(intake, _WITHOUT):
        line = intake.lines[index]
        if host := _HOST.search(line.text):
            fields = {"what": "restart", "by": "horovod", "node": host[1]}
            events.append(make(EventKind.LAUNCHER, line, parser="horovod", message=host[0], fields=fields))
    by_source: dict[int, list[int]] = {}
    for index in hits(intake, _STALLED):
        if _SENTENCE.search(intake.lines[index].text):
            by_source.setdefault(intake.lines[index].source, []).append(index)
    for source, found in by_source.items():
        missing: set[int] = set()
        operations: list[str] = []
        for index in found:
            for _, line in following(intake, index, _LIST):
                listed = _LISTED.search(line.text)
                if listed:
                    missing.add(int(listed[1]))
                    operations.append(listed[2])
        for index in hits(intake, _TENSOR):
            tensor = _MISSING.search(intake.lines[index].text)
            if tensor and intake.lines[index].source == source:
                missing.update(ranks_of(tensor[2]))
                operations.append(tensor[1])
        named = next((match[0] for match in map(_OPERATION.search, operations) if match), None)
        first = intake.lines[found[0]]
        sentence = _SENTENCE.search(first.text)
        if sentence is None:
            continue
        told = {
            "what": "stalled",
            "missing": sorted(missing)[:1024],
            "collective": Collective(op=named, timeout_ms=int(sentence[1]) * 1000),
        }
        event = make(
            EventKind.COLLECTIVE_TIMEOUT,
            first,
            parser="horovod",
            message=sentence[0],
            fields=told,
            count=len(found),
        )
        # the coordinator speaks for all
        events.append(replace(event, rank=None))
    return events
