# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""mpirun of Open MPI, PRRTE, MPICH and Intel MPI. In: an intake; out: PROCESS_EXIT, LAUNCHER and COMMUNICATION events.

mpirun noticed that process rank 3 with PID 12345 on node node7 exited on signal 9 (Killed).      (prterun: "… exited on", line feed)
-> PROCESS_EXIT type "SIGKILL", rank 3, fields {"exit": ProcessExit(None, "SIGKILL", 12345, "mpirun"), "node": "node7"}

mpirun detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:
  Process name: [[49023,1],1]
  Exit code:    1
-> PROCESS_EXIT type "exit 1", rank 1

MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD
with errorcode 1.
MPICH ERROR [Rank 5] … - Abort(1234) (rank 5 in comm 0): Fatal error in PMPI_Send: Other MPI error, error stack:
MPIDI_OFI_send_normal(372): OFI tagged senddata failed (ofi_send.h:372:MPIDI_OFI_send_normal:No route to host)
-> COMMUNICATION rank 5, fields {"what": "mpi", "fatal": True}, the innermost line of MPICH's stack below its message
application called MPI_Abort(MPI_COMM_WORLD, 1) - process 3      (MPICH; the call is no signal, and its code may be 0)
-> PROCESS_EXIT rank 3
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 77 RUNNING AT node7
=   EXIT CODE: 139

ORTE has lost communication with a remote daemon. … Remote daemon: [[4301,0],2] on node node8
-> LAUNCHER fields {"what": "daemon_lost", "node": "node8"}

[node7:mpi_rank_3][error_sighandler] Caught error: Segmentation fault (signal 11)      (MVAPICH)
MPT ERROR: Rank 3(g:3) received signal SIGSEGV(11).                                     (HPE MPT)
-> FATAL_SIGNAL rank 3
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind, ProcessExit
from forensics.model.record import replace
from forensics.model.source import LogLine, Rank, Span
from forensics.parse.reading import Lazy, fold, following, hits, make
from forensics.parse.rows import Row, Table
from forensics.parse.signals import exited, signal_in, signal_name

_NOTICED = "noticed that process rank "
_DETECTED = "detected that one or more processes exited with non-zero status"
_ABORT = "MPI_ABORT was invoked on rank "
_LOST = "has lost communication with a remote daemon"
_BAD = "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES"


def _signal(groups: Mapping[str, str | None], line: LogLine) -> Mapping[str, Any]:
    return {"signal": signal_name(int(groups["number"] or 0))}


def _who(groups: Mapping[str, str | None], line: LogLine) -> Rank | None:
    """The rank of MPI_COMM_WORLD that a library's handler names."""
    number = int(groups["rank"] or 0)
    return Rank(f"rank {number}", number, node=groups.get("node"))


def _if_named(groups: Mapping[str, str | None], line: LogLine) -> Rank | None:
    """The rank that MPICH's error handler names; newer ones name it in front of the message, some not at all."""
    number = groups.get("rank")
    return Rank(f"rank {number}", int(number)) if number else None


def _aborts(groups: Mapping[str, str | None], line: LogLine) -> Rank | None:
    """MPICH's process number, which is the rank of MPI_COMM_WORLD."""
    number = int(groups.get("rank") or groups.get("process") or 0)
    return Rank(f"rank {number}", number)


_TABLE = Table(
    "mpirun",
    (
        Row(
            "[error_sighandler] Caught error: ",
            EventKind.FATAL_SIGNAL,
            r"\[(?P<node>[\w.-]{1,100}):mpi_rank_(?P<rank>\d+)\]\[error_sighandler\] (?P<message>Caught error: .{1,80}? \(signal (?P<number>\d+)\))",
            fields={"handler": "mvapich"},
            fill=_signal,
            who=_who,
        ),
        Row(
            "MPT ERROR: Rank ",
            EventKind.FATAL_SIGNAL,
            r"MPT ERROR: (?P<message>Rank (?P<rank>\d+)\(g:\d+\) received signal (?P<type>SIG[A-Z]+)\(\d+\))",
            fields={"handler": "mpt"},
            who=_who,
        ),
        Row(
            "Primary job",
            EventKind.LAUNCHER,
            r"(?P<message>Primary job\s+terminated normally, but (?P<processes>\d+) process(?:es)? returned.*)$",
            fields={"what": "non_zero"},
        ),
        Row(
            "*** An error occurred in MPI_",
            EventKind.COMMUNICATION,
            r"\*\*\* (?P<message>An error occurred in (?P<operation>MPI_\w{1,60}).*)$",
            fields={"what": "mpi"},
            after=16,
        ),
        Row(
            "Fatal error in ",
            EventKind.COMMUNICATION,
            r"(?:\(rank (?P<rank>\d+) in comm \d+\): )?(?P<message>Fatal error in (?P<operation>(?:P?MPI_|internal_)\w{1,60}): .*)$",
            fields={"what": "mpi", "fatal": True},
            after=10,
            who=_if_named,
        ),
        Row(
            "*** MPI_ERR_",
            EventKind.COMMUNICATION,
            r"\*\*\* (?P<message>(?P<type>MPI_ERR_\w{1,40}): .*)$",
            fields={"what": "mpi"},
        ),
        Row(
            "There are not enough slots available in the system", EventKind.LAUNCHER, fields={"what": "slots"}, after=6
        ),
        Row("ORTE was unable to reliably start", EventKind.LAUNCHER, fields={"what": "daemon"}, after=12),
        Row("An ORTE daemon has unexpectedly failed", EventKind.LAUNCHER, fields={"what": "daemon"}, after=12),
        Row(
            _LOST,
            EventKind.LAUNCHER,
            r"^\s*(?P<message>(?:ORTE|PRTE|prte) has lost communication with a remote daemon)",
            fields={"what": "daemon_lost"},
            after=10,
        ),
        Row(
            "A daemon (pid ",
            EventKind.LAUNCHER,
            r"(?P<message>A daemon \(pid (?P<pid>\d+)\) (?:on node \S{1,100} )?died unexpectedly.*)$",
            fields={"what": "daemon"},
            after=4,
        ),
        Row(
            "execvp error on file ",
            EventKind.MESSAGE,
            r"HYD\w{1,40} \([^)\n]{1,200}\): (?P<message>execvp error on file (?P<program>.{1,400}) \((?P<reason>[^()\n]{1,120})\))",
            level="ERROR",
        ),
        Row("mpirun was unable to", EventKind.LAUNCHER, fields={"what": "launch"}, after=8),
        Row(
            "called MPI_Abort(",
            EventKind.PROCESS_EXIT,
            r"(?P<message>(?:Abort\(\d+\) on node \d+ \(rank (?P<rank>\d+) in comm \d+\): )?application called MPI_Abort\([\w=]{1,40}, (?P<code>-?\d+)\) - process (?P<process>\d+))",
            fields={"by": "mpirun"},
            fill=lambda g, line: {"exit": ProcessExit(int(g["code"] or 0) or None, None, None, "mpirun")},
            who=_aborts,
        ),
        Row(
            "internal ABORT - process ",
            EventKind.PROCESS_EXIT,
            r"(?P<message>internal ABORT - process (?P<process>\d+))",
            fields={"by": "mpirun", "exit": ProcessExit(None, None, None, "mpirun")},
            who=_aborts,
        ),
        Row(
            " has exited due to process rank",
            EventKind.LAUNCHER,
            r"(?P<message>(?:mpirun|mpiexec|prterun|prun) has exited due to process rank (?P<reported_rank>\d+) with PID (?P<pid>\d+) on.*)$",
            fields={"what": "exited"},
        ),
    ),
)

ANCHORS: tuple[Anchor, ...] = (
    Anchor(_NOTICED.encode(), 1, 2, "mpirun"),
    Anchor(_DETECTED.encode(), 1, 8, "mpirun"),
    Anchor(_ABORT.encode(), 1, 4, "mpirun"),
    Anchor(_BAD.encode(), 1, 8, "mpirun"),
    *_TABLE.anchors(),
)

_PROCESS = Lazy(
    r"noticed that process rank (?P<rank>\d+) with PID (?P<pid>\d+) on node (?P<node>\S{1,120}) exited on signal (?P<number>\d+)"
)
_NAME = Lazy(r"Process name: \[\[?\w{1,40}(?:,\d+)?(?:\]|-[\w@]{1,60}),(\d+)\]")
_EXIT_CODE = Lazy(r"Exit code: +(-?\d+)")
_INVOKED = Lazy(r"MPI_ABORT was invoked on rank (\d+)")
_ERRORCODE = Lazy(r"errorcode (-?\d+)")
_PLACE = Lazy(r"(?:RANK (\d+) )?PID (\d+) RUNNING AT (\S{1,120})")
_REMOTE = Lazy(r"^\s*Remote daemon: \S{1,120} on node (\S{1,200})")
#: what begins the report of an MPI call that failed
_CALLS = ("*** An error occurred in MPI_", "Fatal error in ")
_FATAL_ERRORS = "MPI_ERRORS_ARE_FATAL"
#: lines in which a block of Open MPI ends, other processes' among them
_BLOCK = 40
#: the name of a process: its job, and its rank in MPI_COMM_WORLD
_REPORTER = Lazy(r"reported by process \[\d{1,20},(\d{1,7})\]")
_ERROR = Lazy(r"(MPI_ERR_\w{1,40}): .{1,400}$")
#: `MPID_Send(499)................: ` of MPICH's error stack
_STACK_LINE = Lazy(r"^\s*(?:P?MPI|internal_|MPID)\w{0,80}\(\d+\)\.{0,60}:(?: |$)")
_STATUS = Lazy(r"EXIT CODE: (\d+)|KILLED BY SIGNAL: (\d+)|EXIT STRING: (.{1,80})")


def parse(intake: Intake) -> list[Event]:
    """Exits that mpirun names, aborts, and its own troubles."""
    events = []
    for index in hits(intake, _NOTICED):
        line = intake.lines[index]
        below = next((after for _, after in following(intake, index, 1)), None)
        said = line.text.strip()
        found = _PROCESS.search(said)
        if found is None and below is not None:  # PRRTE, which starts Open MPI 5's jobs, breaks the line
            said = f"{said} {below.text.strip()}"
            found = _PROCESS.search(said)
        else:
            below = None
        if found:
            made = ProcessExit(None, signal_name(int(found["number"])), int(found["pid"]), "mpirun")
            events.append(_exit(line, below, made, int(found["rank"]), found["node"], said))
    for index in hits(intake, _DETECTED):
        line = intake.lines[index]
        rank, code, last = None, None, line
        for _, after in following(intake, index, 8):
            name, exit_code = _NAME.search(after.text), _EXIT_CODE.search(after.text)
            rank = int(name[1]) if name else rank
            if exit_code:
                code, last = int(exit_code[1]), after
                break
        if code is not None:
            said = " ".join((line.text.strip(), *(l.text.strip() for _, l in following(intake, index, 1)))) if code else ""
            events.append(_exit(line, last, exited(code, "mpirun"), rank, None, said or line.text.strip()))
    for index in hits(intake, _ABORT):
        line = intake.lines[index]
        found = _INVOKED.search(line.raw)
        code = None
        for _, after in [(index, line), *following(intake, index, 4)]:
            error = _ERRORCODE.search(after.text)
            if error:
                code = int(error[1])
                break
        if found:
            events.append(
                _exit(
                    line,
                    None,
                    ProcessExit(code, None, None, "mpirun"),
                    int(found[1]),
                    None,
                    line.text[line.text.find(_ABORT) :],
                )
            )
    for index in hits(intake, _BAD):
        events += _bad(intake, index)
    told = {(intake.lines[i].source, intake.lines[i].number): i for i in hits(intake, *_CALLS, _LOST)}
    read = fold(_completed(intake, _named(event), told) for event in _TABLE.read(intake, folded=False))
    blocks = [event.span for event in read if event.fields.get("what") == "mpi" and event.span.last_line > event.span.first_line]
    inside = {(span.source, number) for span in blocks for number in range(span.first_line + 1, span.last_line + 1)}
    return events + [e for e in read if e.type is None or (e.span.source, e.span.first_line) not in inside or e.span in blocks]


def _completed(intake: Intake, event: Event, told: Mapping[tuple[int, int], int]) -> Event:
    """An error of an MPI call with what stands below it: whether it ended the process, and the last line of MPICH's stack. A lost
    daemon with its node."""
    index = told.get((event.span.source, event.span.first_line))
    below = [after.text for _, after in following(intake, index, 10)] if index is not None else []
    if event.fields.get("what") == "daemon_lost":
        node = next((found[1] for text in below if (found := _REMOTE.search(text))), None)
        return replace(event, message=f"{event.message} on {node}", fields={**event.fields, "node": node}) if node else event
    if event.kind is not EventKind.COMMUNICATION:
        return event
    if index is not None and _CALLS[0] in intake.lines[index].raw:
        return _open_mpis(intake, index, event)
    if any(_FATAL_ERRORS in text for text in below[:6]):
        return replace(event, fields={**event.fields, "fatal": True})
    stack = []
    for text in below:
        if not _STACK_LINE.match(text):
            break
        stack.append(text.strip())
    return replace(event, message=f"{event.message}\n{stack[-1]}") if stack else event


def _open_mpis(intake: Intake, index: int, event: Event) -> Event:
    """Open MPI's block of `***` lines: who reports, which error, whether it ends the job. Other processes' blocks may be woven in."""
    line = intake.lines[index]
    writer = line.raw[: line.raw.find("***")]
    last, rank, error, fatal = line, event.rank, None, False
    for _, after in following(intake, index, _BLOCK):
        if not after.raw.startswith(writer) or not after.raw[len(writer) :].startswith("***"):
            continue
        text = after.raw[len(writer) + 3 :].strip()
        if text.startswith(_CALLS[0].strip("* ")):
            break
        last = after
        reporter, found = _REPORTER.match(text), _ERROR.match(text)
        if reporter:
            number = int(reporter[1])
            rank = Rank(f"rank {number}", number, node=event.rank.node if event.rank else None)
        error = error or found
        fatal = fatal or _FATAL_ERRORS in text
        if text.startswith("and potentially") or (fatal and writer == ""):
            break
    fields = {**event.fields, "fatal": True} if fatal else dict(event.fields)
    span = Span(event.span.source, event.span.first_line, last.number)
    if error is None:
        return replace(event, rank=rank, fields=fields, span=span)
    return replace(event, type=error[1], message=f"{error[0]}\n{event.message}", rank=rank, fields=fields, span=span)


def _named(event: Event) -> Event:
    """MVAPICH gives the signal's number beside its words."""
    name = event.fields.get("signal")
    return replace(event, type=str(name)) if name and event.kind is EventKind.FATAL_SIGNAL else event


def _bad(intake: Intake, index: int) -> list[Event]:
    """MPICH's box: process, node, code or signal."""
    line = intake.lines[index]
    place, made, last = None, None, line
    for _, after in following(intake, index, 8):
        place = place or _PLACE.search(after.text)
        status = _STATUS.search(after.text)
        if status:
            last = after
            if status[1]:
                made = exited(int(status[1]), "mpirun")
            else:
                made = ProcessExit(
                    None, signal_name(int(status[2])) if status[2] else signal_in(status[3]), None, "mpirun"
                )
            break
    if made is None:
        return []
    if place:
        made = ProcessExit(made.code, made.signal, int(place[2]), made.by)
    return [
        _exit(
            line,
            last,
            made,
            int(place[1]) if place and place[1] else None,
            place[3] if place else None,
            last.text.strip(" ="),
        )
    ]


def _exit(
    line: LogLine, last: LogLine | None, made: ProcessExit, rank: int | None, node: str | None, message: str
) -> Event:
    who = Rank(f"rank {rank}", rank, node=node, pid=made.pid) if rank is not None else None
    fields: dict[str, Any] = {"exit": made, "by": "mpirun"}
    if node:
        fields["node"] = node
    return make(
        EventKind.PROCESS_EXIT,
        line,
        last,
        parser="mpirun",
        type=made.signal or (f"exit {made.code}" if made.code is not None else None),
        message=message,
        rank=who,
        fields=fields,
    )
