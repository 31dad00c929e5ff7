# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""What the run times of Ascend NPUs and Intel Gaudi print of their own failures, also where no exception carries it. In: an intake;
out: MESSAGE events of level ERROR, FATAL_SIGNAL events. Samples:

    EI0006: [PID: 71] 2026-11-29-20:15:45.100.200 Getting socket times out. Reason: Remote Rank did not send the data in time.
    [PID: 71] 2026-11-29-20:15:45.100.200 Get_Socket_Timeout(EI0006): Getting socket times out. …                (CANN >= 8.2)
    -> message "Getting socket times out. …", fields {"by": "cann", "code": "EI0006", "process": 71}
    [rank3]:[E1129 20:15:45.100 compiler_depend.ts:429] operator():…:128 NPU function error: call aclnnMatmul failed, error code is 207001
    -> message "NPU function error: call aclnnMatmul failed, error code is 207001", fields {"call": "aclnnMatmul", "code": 207001}
    [ERROR] HCCL(4711,python3):2026-11-29-20:15:45.100.200 [hccl_socket.cc:100] [4712][Wait][LinkEstablish]wait socket establish timeout
    -> message "[Wait][LinkEstablish]wait socket establish timeout", fields {"by": "plog", "module": "HCCL", "process": 4711}
    [ERROR] 2026-11-29-20:15:45 (PID:4711, Device:3, RankID:11) ERR02200 DIST call hccl api failed.            (torch_npu)
    -> message "ERR02200 DIST call hccl api failed.", rank 11, fields {"by": "torch_npu", "code": "ERR02200", "process": 4711, "device": 3}
    [20:15:45.100200][GC                    ][error][tid:44F8A] Failed to load tpc kernel for node: TPC634
    -> message "Failed to load tpc kernel for node: TPC634", fields {"by": "synapse", "module": "GC"}
    /src/hcl/credit_manager.cpp::44(allocNextCredit): The condition [ free > 0 ] failed. No available buffer    (HCL, Gaudi's collectives)
    -> message "The condition [ free > 0 ] failed. No available buffer", fields {"by": "hcl"}
    HCCL demo error: In function setup(): synDeviceAcquire(&id, nullptr) failed with synapse error: 20          (who calls Synapse or HCCL)
    -> message "In function setup(): synDeviceAcquire(…) failed with synapse error: 20", fields {"by": "hccl", "call": "synDeviceAcquire"}
    Internal Error: Received signal - Segmentation fault              (Synapse's signal handler, below the stack that it prints)
    -> FATAL_SIGNAL type "SIGSEGV", message "Received signal - Segmentation fault", fields {"by": "synapse"}

What a plog or Synapse says after its first error repeats it on its way up (call traces, tables of links, backtraces): those lines are
no failures of their own.
"""

from __future__ import annotations

from collections.abc import Mapping

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.model.record import replace
from forensics.model.source import LogLine, Rank
from forensics.parse.reading import Lazy
from forensics.parse.rows import Row, Table

_M = EventKind.MESSAGE
#: modules whose plogs speak of communication, memory and kernels
_PLOGS = ("HCCL", "HCCP", "RUNTIME", "ASCENDCL", "GE", "NNOPBASE", "DRV", "TDT", "ATB", "APP")
_ECHO = ("call trace", "____", "][tid:0] ", "]   |  ", "]   |-", "backtrace (up to", "the stack is:")
_SIGNALS = (("Segmentation fault", "SIGSEGV"), ("Bus error", "SIGBUS"), ("Floating point exception", "SIGFPE"), ("Aborted", "SIGABRT"))
_CODE = Lazy(r"\((?P<code>E[A-Z0-9]\d{4})\): ")


def _named(groups: Mapping[str, str | None], line: LogLine) -> Mapping[str, str]:
    """The error's code where it stands inside the message: `Get_Socket_Timeout(EI0006): …`."""
    found = _CODE.search(groups.get("message") or "")
    return {"code": found["code"]} if found else {}


def _of_rank_id(groups: Mapping[str, str | None], line: LogLine) -> Rank | None:
    """Who wrote it; a process of no group says -1."""
    number = int(groups["rank_id"] or -1)
    return Rank(f"rank {number}", number, pid=int(groups["process"] or 0)) if number >= 0 else None


_TABLE = Table(
    "accelerators",
    (
        Row(
            "[PID: ",
            _M,
            r"(?:(?P<code>E[A-Z0-9]\d{4}):? ?)?\[PID: (?P<process>\d{1,10})\] \d{4}-\d\d-\d\d-\d\d:\d\d:\d\d\.\d{3}\.\d{3} (?:\(E[A-Z0-9]\d{4}\): {1,4}|\w{1,80}\(E[A-Z0-9]\d{4}\): )?(?P<message>\S.*)$",
            level="ERROR",
            fields={"by": "cann"},
            fill=lambda groups, line: _named({"message": line.text}, line),
            after=8,
        ),
        Row(
            " function error: ",
            _M,
            r"(?P<message>\b[A-Z]{2,6} function error: (?:call )?(?P<call>\w{2,80})(?: failed)?, error code is (?P<code>\d{1,9}).*)$",
            level="ERROR",
            fields={"by": "torch_npu"},
            unless=("Error: ",),
            after=12,
        ),
        Row(
            ", RankID:",
            _M,
            r"\[ERROR\] \d{4}-\d\d-\d\d-\d\d:\d\d:\d\d \(PID:(?P<process>\d{1,10}), Device:(?P<device>-?\d{1,4}), RankID:(?P<rank_id>-?\d{1,6})\) (?P<message>(?P<code>ERR\d{5}) \S.*)$",
            level="ERROR",
            fields={"by": "torch_npu"},
            who=_of_rank_id,
        ),
        *(
            Row(
                f"[ERROR] {module}(",
                _M,
                r"\[ERROR\] (?P<module>[A-Z]{2,12})\((?P<process>\d{1,10}),[^)]{0,80}\):\d{4}-\d\d-\d\d-[\d:.]{8,20} ?\[[^\]]{1,120}\] ?(?:\[?\d{1,10}\]? ?)?(?P<message>\S.*)$",
                level="ERROR",
                fields={"by": "plog"},
                unless=_ECHO,
            )
            for module in _PLOGS
        ),
        *(
            Row(
                f"][{level}][tid:",
                _M,
                r"\[(?P<module>[A-Z][A-Z0-9_]{1,30}) *\]\[(?:error|critical)\]\[tid:\w{1,16}\] (?P<message>(?!/(?:usr|opt|lib)/\S{0,300}$|/\S{1,300}\.so[(. ]).*)$",
                level="ERROR",
                fields={"by": "synapse"},
                unless=_ECHO,
            )
            for level in ("error", "critical")
        ),
        Row(
            "): The condition [ ",
            _M,
            r"/\S{1,400}\.(?:cpp|cc|hpp|h)::?\d{1,6}\(\w{1,120}\): (?P<message>The condition \[ [^\n]{1,400} \] failed\..*)$",
            level="ERROR",
            fields={"by": "hcl"},
        ),
        *(
            Row(
                literal,
                _M,
                rf"\b(?P<message>In function \w{{1,120}}\(\): (?P<call>{call}\w{{1,80}})\([^\n]{{0,800}}\) {literal.strip()}.*)$",
                level="ERROR",
                fields={"by": "hccl"},
            )
            for literal, call in ((" failed with synapse error: ", "syn"), (" failed: ", "hccl"))
        ),
        *(
            Row(
                f"Internal Error: Received signal - {words}",
                EventKind.FATAL_SIGNAL,
                rf"Internal Error: (?P<message>Received signal - {words})",
                type=name,
                fields={"by": "synapse"},
                before=8,
            )
            for words, name in _SIGNALS
        ),
    ),
)

ANCHORS: tuple[Anchor, ...] = _TABLE.anchors()


def parse(intake: Intake) -> list[Event]:
    """Events of these run times, alike ones folded; those of a process whose rank another line of its file tells are that rank's."""
    events = _TABLE.read(intake)
    ranks: dict[tuple[int, object], Rank | None] = {}
    for event in events:
        if event.fields.get("by") == "torch_npu" and event.rank is not None and "process" in event.fields:
            key = (event.span.source, event.fields["process"])
            ranks[key] = event.rank if ranks.get(key, event.rank) == event.rank else None  # hosts of one file may share a number
    if not ranks:
        return events
    owners = [ranks.get((event.span.source, event.fields.get("process"))) for event in events]
    return [replace(event, rank=who) if who and event.rank is None else event for event, who in zip(events, owners, strict=True)]
