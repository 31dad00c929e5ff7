# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""Reports that name the rank: NCCL desync reports, fingerprint mismatches (TORCH_DISTRIBUTED_DEBUG=DETAIL), monitored barriers.
In: an intake; out: COLLECTIVE_STATE events. Samples:

     - [0] Timeout at collective: ALLREDUCE, #3
     - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:
         [1] finished collective #6, but didn't join collective #7 (count from 1)
     - Snapshot of ranks' latest states:
       #2 finished ranks:
         [1] finished ALLREDUCE
    -> message "[1] finished collective #6, but didn't join collective #7 (count from 1)", rank 1,
       fields {"what": "desync", "culprits": [{"ranks": [1], "finished": 2, "missed": 3}], "timeouts": [{"rank": 0, "op": "ALLREDUCE", "sequence": 3}],
               "snapshot": [{"ranks": [1], "state": "finished", "op": "ALLREDUCE", "sequence": 2}], "collective": Collective(op="ALLREDUCE", sequence=3)}

    Detected mismatch between collectives on ranks. Rank 3 is running collective: CollectiveFingerPrint(SequenceNumber=6, OpType=ALLREDUCE, TensorShape=[1], …), but Rank 0 is running collective: CollectiveFingerPrint(…)
    -> fields {"what": "mismatch", "rows": [{"rank": 3, "op": "ALLREDUCE", "sequence": 6, "shape": "[1]", "dtype": …}, {"rank": 0, …}]}

    [Rank 0]: Ranks 1, 2 failed to pass monitoredBarrier in 30000 ms     -> fields {"what": "monitored_barrier", "missing": [1, 2], "timeout_ms": 30000}
"""

from __future__ import annotations

from typing import Any

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Collective, Event, EventKind
from forensics.model.source import LogLine, Rank
from forensics.parse.reading import Lazy, clipped, fold, following, hits, make, preceding

_BEST = "the lagging/dead/mismatched ranks that caused the desync are"
_DIDNT = "but didn't join collective #"
_MISMATCH = "Detected mismatch between collectives on ranks"
_BARRIER = "failed to pass monitoredBarrier"

ANCHORS: tuple[Anchor, ...] = (
    Anchor(_BEST.encode(), 8, 60, "desync"),
    Anchor(_DIDNT.encode(), 8, 20, "desync"),
    Anchor(b"Timeout at collective: ", 2, 20, "desync"),
    Anchor(_MISMATCH.encode(), 0, 2, "desync"),
    Anchor(_BARRIER.encode(), 0, 2, "desync"),
)

_TIMEOUT = Lazy(r"\[(\d+)\] Timeout at collective: (\w{1,60}), #(\d+)")
_MISSED = Lazy(r"\[([\d, -]{1,400})\] finished collective #(\d+), but didn't join collective #(\d+)")
_UNFINISHED = Lazy(r"\[([\d, -]{1,400})\] joined but didn't finish collective #(\d+)")
_NEVER = Lazy(r"\[([\d, -]{1,400})\] (?:never|didn't) join(?:ed)? any collective")
_LEVEL = Lazy(r"#(\d+) (started|finished) ranks")
_STATE = Lazy(r"\[([\d, -]{1,400})\] (started|finished) (\w{1,60})")
_PRINT = Lazy(
    r"Rank (\d+) is running (?:collective|inconsistent collective)?: ?(?:CollectiveFingerPrint\()?(?:SequenceNumber=(\d+),? ?)?OpType=(\w{1,60})(?:, TensorShape=(\[[^\]]{0,200}\]))?(?:, TensorDtypes=([^,)]{0,60}))?"
)
_PASSED = Lazy(r"Ranks? ([\d, ]{1,2000}) failed to pass monitoredBarrier in (\d+) ms")

_REPORT_LINES = 80


def ranks_of(text: str) -> list[int]:
    """ "0-3, 7" -> [0, 1, 2, 3, 7]; at most 100,000 ranks."""
    ranks: list[int] = []
    for part in text.replace(" ", "").split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            end = int(last) if last.isdigit() else int(first)
            ranks += range(int(first), min(end + 1, int(first) + 100_000 - len(ranks)))
    return ranks


def parse(intake: Intake) -> list[Event]:
    """Events of reports that compare ranks."""
    events: list[Event] = []
    done: set[int] = set()
    for index in hits(intake, _BEST, _DIDNT):
        if index not in done:
            event, read = _report(intake, index)
            done.update(read)
            if event is not None:
                events.append(event)
    for index in hits(intake, _MISMATCH):
        text = clipped(intake.lines[index].text, _MISMATCH)
        rows = [
            {
                "rank": int(r),
                "sequence": int(s) if s else None,
                "op": op,
                "shape": shape or None,
                "dtype": dtype.strip() or None,
            }
            for r, s, op, shape, dtype in _PRINT.findall(text)
        ]
        events.append(
            make(
                EventKind.COLLECTIVE_STATE,
                intake.lines[index],
                parser="desync",
                message=text[text.find(_MISMATCH) :],
                fields={"what": "mismatch", "rows": rows},
            )
        )
    for index in hits(intake, _BARRIER):
        text = clipped(intake.lines[index].text, _BARRIER)
        found = _PASSED.search(text)
        if found:
            fields = {
                "what": "monitored_barrier",
                "missing": ranks_of(found[1]),
                "timeout_ms": int(found[2]),
                "collective": Collective(op="monitoredBarrier", timeout_ms=int(found[2])),
            }
            events.append(
                make(EventKind.COLLECTIVE_STATE, intake.lines[index], parser="desync", message=found[0], fields=fields)
            )
    return fold(events)


def _report(intake: Intake, index: int) -> tuple[Event | None, set[int]]:
    """One desync report around the line at `index`, and the indices it took."""
    block: list[tuple[int, LogLine]] = [(index, intake.lines[index])]
    for at, line in preceding(intake, index, 8):
        if "Timeout at collective" not in line.text and "desync" not in line.text:
            break
        block.insert(0, (at, line))
    block += list(following(intake, index, _REPORT_LINES))
    timeouts: list[dict[str, Any]] = []
    culprits: list[dict[str, Any]] = []
    snapshot: list[dict[str, Any]] = []
    words: list[str] = []
    used = [index]
    level: int | None = None
    for at, line in block:
        text = line.text
        timeout, missed, unfinished, never = (
            _TIMEOUT.search(text),
            _MISSED.search(text),
            _UNFINISHED.search(text),
            _NEVER.search(text),
        )
        header, state = _LEVEL.search(text), _STATE.search(text)
        if timeout:
            timeouts.append({"rank": int(timeout[1]), "op": timeout[2], "sequence": int(timeout[3])})
        elif missed:
            culprits.append({"ranks": ranks_of(missed[1]), "finished": int(missed[2]), "missed": int(missed[3])})
            words.append(text.strip())
        elif unfinished:
            culprits.append({"ranks": ranks_of(unfinished[1]), "unfinished": int(unfinished[2])})
            words.append(text.strip())
        elif never:
            culprits.append({"ranks": ranks_of(never[1])})
            words.append(text.strip())
        elif header:
            level = int(header[1])
        elif state and level is not None:
            snapshot.append({"ranks": ranks_of(state[1]), "state": state[2], "op": state[3], "sequence": level})
        elif at > index and "Snapshot of ranks" not in text and text.strip() and _BEST not in text:
            if culprits:
                break
            continue
        used.append(at)
    if not culprits and not snapshot:
        return None, {index}
    blamed = sorted({r for c in culprits for r in c["ranks"]})
    made = (
        Collective(op=timeouts[0]["op"], sequence=timeouts[0]["sequence"])
        if timeouts
        else Collective(sequence=culprits[0].get("missed") if culprits else None)
    )
    event = make(
        EventKind.COLLECTIVE_STATE,
        intake.lines[min(used)],
        intake.lines[max(used)],
        parser="desync",
        message="\n".join(words),
        rank=Rank(f"rank {blamed[0]}", blamed[0]) if len(blamed) == 1 else None,
        fields={"what": "desync", "culprits": culprits, "timeouts": timeouts, "snapshot": snapshot, "collective": made},
    )
    return event, set(used)
