# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""NCCL's and RCCL's own log lines. In: an intake; out: COMMUNICATION events for warnings and for what INFO says of failures,
LIFECYCLE events for communicators that came up (they map rank, GPU, PCI address and pid). Samples:

    node7:4021:4390 [3] transport/net_ib.cc:1280 NCCL WARN NET/IB : Got completion from peer 10.0.0.4<51234> with status=12 opcode=0 len=0 vendor err 129 (Recv)
    -> COMMUNICATION level "WARN", message "NET/IB : Got completion …", fields {"host": "node7", "pid": 4021, "tid": 4390, "device": 3, "file": "transport/net_ib.cc", "line": 1280, "ib_status": 12, "peer": "10.0.0.4<51234>"}

    node7:343:1213 [5] NCCL INFO [Service thread] Connection closed by localRank 7
    -> COMMUNICATION fields {…, "closed_by_local_rank": 7}

    node7:343:900 [5] NCCL INFO ncclCommInitRank comm 0x55 rank 5 nranks 8 cudaDev 5 nvmlDev 5 busId b1000 commId 0x1 - Init COMPLETE
    -> LIFECYCLE fields {"phase": "nccl_init", "state": "end", "nccl_rank": 5, "nranks": 8, "cuda_device": 5, "bus_id": "b1000", "host": "node7", "pid": 343}
"""

from __future__ import annotations

from typing import Any

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.model.record import replace
from forensics.model.source import LogLine, Rank
from forensics.parse.reading import Lazy, clipped, fold, hits, make

_WARN = "NCCL WARN"
_ERROR = "NCCL ERROR"
_CLOSED = "Connection closed by localRank"
_INIT = "Init COMPLETE"

ANCHORS: tuple[Anchor, ...] = (
    Anchor(_WARN.encode(), 1, 2, "nccl"),
    Anchor(_ERROR.encode(), 0, 1, "nccl"),
    Anchor(_CLOSED.encode(), 0, 0, "nccl"),
    Anchor(_INIT.encode(), 0, 0, "nccl"),
    Anchor(b" - Init START", 0, 0, "nccl"),
    Anchor(b"Abort COMPLETE", 0, 0, "nccl"),
    Anchor(b"ncclCommAbort", 0, 0, "nccl"),
)

#: warnings that tell of no failure: most ask at start-up for a faster or safer setting
_ADVICE = (
    "which can lead to",
    "Could not find real path of",
    "NUMA auto balancing",
    'Missing "iommu=pt"',
    'Missing "HSA_FORCE',
    # the fabric was reconfigured and the connections stand
    "async event : client reregistration",
    "async event : port active",
    "async event : GID table change",
    "async event : P_Key table change",
    "async event : SM change",
    "async event : LID change",
)

_LINE = Lazy(
    r"(?P<host>[\w.-]{1,120}):(?P<pid>\d+):(?P<tid>\d+) (?:\[(?P<device>-?\d+)\] )?(?:(?P<file>[\w./-]{1,120})[: ](?P<line>\d+) ?(?:\([^)]{0,120}\) )?)?NCCL (?P<level>WARN|INFO|ERROR) ?(?P<message>.*)$"
)
_BARE = Lazy(r"NCCL (?P<level>WARN|ERROR) (?P<message>.*)$")
_IB = Lazy(r"(?:status=|with error )(\d+)")
_PEER = Lazy(r"(?:from peer|to|from|connection with|by remote peer|peer) ([\w.:\[\]-]{3,80}<\d+>)")
_COMPLETE = Lazy(
    r"comm (?P<comm>0x[0-9a-f]+) rank (?P<rank>\d+) nranks (?P<nranks>\d+)(?: cudaDev (?P<cuda>\d+))?(?: nvmlDev (?P<nvml>\d+))?(?: busId (?P<bus>[0-9a-f:.]+))?(?: commId (?P<id>0x[0-9a-f]+))?"
)
#: INFO lines by which a process tells its rank: the communicator it joins, the channels it opens
_TELLS = Lazy(
    r"(?P<host>[\w.-]{1,120}):(?P<pid>\d+):\d+ \[\d+\] NCCL INFO (?:\S{0,40} ?comm 0x[0-9a-f]+ rank (?P<rank>\d+) nranks"
    r"|Channel \d+(?:/\d+)? : (?P<sender>\d+)\[[0-9a-f]+\] -> \d+\[[0-9a-f]+\] (?:\[send\] )?via)"
)
#: lines that are asked for them
_MOST_LINES = 50_000
_LOCAL = Lazy(r"Connection closed by localRank (\d+)")
#: where an error passes by on its way up, which old releases print as a warning: "transport.cu:153 -> 2 [Proxy thread error]"
_TRACE = Lazy(r"^[\w./-]{1,120}\.(?:cu|cc|cpp|h):\d{1,6} ?-> ?-?\d{1,6}(?: \[[^\]]{1,60}\])?$")
_CUDA = Lazy(r"Cuda failure (?:(\d+) )?'([^']{1,200})'")


def parse(intake: Intake) -> list[Event]:
    """Warnings, closed connections, aborts and finished communicators."""
    events: list[Event] = []
    for index in hits(intake, _WARN, _ERROR, _CLOSED, _INIT, "Abort COMPLETE", "ncclCommAbort"):
        line = intake.lines[index]
        text = clipped(line.raw, "NCCL ")
        found = _LINE.search(text) or _BARE.search(text)
        if not found or any(words in text for words in _ADVICE):
            continue
        groups = found.groupdict()
        fields: dict[str, Any] = {k: groups[k] for k in ("host", "file") if groups.get(k)}
        fields.update({k: int(groups[k]) for k in ("pid", "tid", "device", "line") if groups.get(k)})
        event = _event(line, groups["message"].strip(), groups["level"], fields)
        if event:
            events.append(event)
    return fold(_ranked(intake, events))


def _ranked(intake: Intake, events: list[Event]) -> list[Event]:
    """The events of processes whose rank their own INFO lines tell: which communicator they join, which channels they open."""
    unknown = {e.fields["pid"] for e in events if "pid" in e.fields and (e.rank is None or e.rank.number is None)}
    if not unknown:
        return events
    told: dict[tuple[str, int], set[int]] = {}
    for line in intake.lines[:_MOST_LINES]:
        if "NCCL INFO" not in line.raw:
            continue
        found = _TELLS.search(clipped(line.raw, "NCCL "))
        if found and int(found["pid"]) in unknown:
            number = found["rank"] or found["sender"]
            told.setdefault((found["host"], int(found["pid"])), set()).add(int(number))
    sizes = {e.fields["nranks"] for e in events if "nranks" in e.fields}
    if len(sizes) > 1:  # ranks of groups of several sizes: which of them is the world's, nothing says
        return events
    ranked = []
    for event in events:
        numbers = told.get((event.fields.get("host", ""), event.fields.get("pid", -1)), set())
        if len(numbers) == 1 and event.kind is EventKind.COMMUNICATION and (event.rank is None or event.rank.number is None):
            number = next(iter(numbers))
            event = replace(event, rank=Rank(f"rank {number}", number, node=event.fields["host"], pid=event.fields["pid"]))
        ranked.append(event)
    return ranked


def _event(line: LogLine, message: str, level: str, fields: dict[str, Any]) -> Event | None:
    rank = line.rank or _process(fields)
    complete = _COMPLETE.search(message)
    if _INIT in message or "Abort COMPLETE" in message:
        if not complete:
            return None
        state = {
            "phase": "nccl_init" if _INIT in message else "nccl_abort",
            "state": "end",
            "nccl_rank": int(complete["rank"]),
            "nranks": int(complete["nranks"]),
            "comm": complete["comm"],
        }
        state.update(
            {
                k: v
                for k, v in (
                    ("cuda_device", complete["cuda"] and int(complete["cuda"])),
                    ("bus_id", complete["bus"]),
                    ("comm_id", complete["id"]),
                )
                if v is not None
            }
        )
        fields.pop("tid", None)
        return make(
            EventKind.LIFECYCLE,
            line,
            parser="nccl",
            message=message,
            rank=rank,
            fields={**fields, **state},
            level=level,
        )
    closed = _LOCAL.search(message)
    if (level == "INFO" and not closed) or _TRACE.match(message):
        return None
    if closed:
        fields["closed_by_local_rank"] = int(closed[1])
        fields.pop("tid", None)
    status, peer, cuda = _IB.search(message), _PEER.search(message), _CUDA.search(message)
    if status and "NET/IB" in message:
        fields["ib_status"] = int(status[1])
    if peer:
        fields["peer"] = peer[1]
    if cuda:
        fields["cuda_failure"] = cuda[2]
    return make(EventKind.COMMUNICATION, line, parser="nccl", message=message, rank=rank, fields=fields, level=level)


def _process(fields: dict[str, Any]) -> Rank | None:
    """The process that printed it, where the prefix names no rank: NCCL's bracket is the CUDA device, not the rank."""
    if "host" not in fields:
        return None
    return Rank(f"{fields['host']}:{fields['pid']}", None, node=fields["host"], pid=fields["pid"])
