# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""Signal handlers that print their own stack: UCX and UCS, Open MPI, PMIx. In: an intake; out: FATAL_SIGNAL events with the
stack. Samples:

    [node7:345  :0:4945] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x455)
    ==== backtrace (tid:   4945) ====
     0  /opt/ucx/lib/libucs.so.0(ucs_handle_error+0x2cc) [0x40b151579e0e]
    -> FATAL_SIGNAL type "SIGSEGV", message "Caught signal 11 (Segmentation fault: …)", fields {"host": "node7", "pid": 345, "tid": 4945, "signal": 11, "address": "0x455"}

    [node7:345:2:4945]        rndv.c:943  Fatal: failed to unpack rendezvous remote key received from node8: Input/output error
    -> NATIVE, message "failed to unpack …", its backtrace with it; the abort that follows joins it

    [node7:12345] *** Process received signal ***
    [node7:12345] Signal: Segmentation fault (11)
    [node7:12345] Signal code: Address not mapped (1)
    [node7:12345] Failing at address: 0x10
    [node7:12345] [ 0] /lib/libc.so.6(+0x42520)[0x7f0e8c042520]
    -> FATAL_SIGNAL type "SIGSEGV", message "Segmentation fault (11), Address not mapped (1), at address 0x10"
"""

from __future__ import annotations

from typing import Any

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.model.source import Rank
from forensics.parse.frames import boost_frame, mpi_frame, ucx_frame
from forensics.parse.reading import Lazy, following, hits, make, numbered_stacks, same_writer, stack_of
from forensics.parse.signals import signal_name

_CAUGHT = "Caught signal "
_BACKTRACE = "backtrace (tid:"
_BACKTRACE_OLD = "==== backtrace ===="
_RECEIVED = "*** Process received signal ***"
_FATAL = "  Fatal: "
_TRITON = ") received."

ANCHORS: tuple[Anchor, ...] = (
    Anchor(_CAUGHT.encode(), 2, 80, "handlers"),
    Anchor(_BACKTRACE.encode(), 4, 80, "handlers"),
    Anchor(_BACKTRACE_OLD.encode(), 4, 80, "handlers"),
    Anchor(_RECEIVED.encode(), 2, 80, "handlers"),
    Anchor(_FATAL.encode(), 1, 80, "handlers"),
    Anchor(b"Signal (", 1, 60, "handlers"),
)

_UCX = Lazy(
    r"\[(?P<host>[\w.-]{1,200}?) ?: ?(?P<pid>\d+) *:(?P<worker>\d+)(?: *:(?P<tid>\d+))?\] (?P<message>Caught signal (?P<number>\d+) \((?P<what>[^)]{0,300})\)?.*)"
)
#: the same where a selection cut the process off
_UCX_CUT = Lazy(
    r"^(?P<host>)(?P<pid>)(?P<tid>)\s{0,4}(?P<message>Caught signal (?P<number>\d+) \((?P<what>(?:Segmentation fault|Bus error|Illegal instruction|Floating|Abort)[^)]{0,300})\))"
)
_UCX_FATAL = Lazy(
    r"\[(?P<host>[\w.-]{1,200}?) ?: ?(?P<pid>\d+) *:\d+(?: *:(?P<tid>\d+))?\]\s{1,20}[\w.-]{1,80}:\d+\s{1,4}Fatal: (?P<message>.*)"
)
_TID = Lazy(r"^(?:.{0,120}==== )?backtrace \(tid: *(\d+)\)(?: ====)?")
#: its own frame, which stands in what it prints
_HANDLER = Lazy(r"^(?:ucs|mxm)_(?:handle_error|error_signal_handler|debug_backtrace)")
_ADDRESS = Lazy(r"at address (0x[0-9a-f]+)")
_SERVER = Lazy(r"Signal \((\d+)\) received\.")
_MPI_LINE = Lazy(r"\[([\w.-]{1,200}):(\d+)\] ")
_MPI_SIGNAL = Lazy(r"Signal: (.{1,80}?) \((\d+)\)")
_MPI_CODE = Lazy(r"Signal code: (.{1,80})")
_MPI_AT = Lazy(r"Failing at address: (\S+)")


def parse(intake: Intake) -> list[Event]:
    """Events of UCX and Open MPI handlers; a UCX backtrace without its first line is a signal of unknown kind."""
    return _ucx(intake) + _openmpi(intake) + _triton_server(intake)


def _ucx(intake: Intake) -> list[Event]:
    lines = intake.lines
    tables = hits(intake, _BACKTRACE, _BACKTRACE_OLD)
    stacks = numbered_stacks(intake, tables, ucx_frame, 80)
    by_thread: dict[tuple[int, int], list[int]] = {}
    for table in tables:
        tid = _TID.search(lines[table].text)
        if tid:
            by_thread.setdefault((lines[table].source, int(tid[1])), []).append(table)
    events: list[Event] = []
    taken: set[int] = set()
    for index in hits(intake, _CAUGHT):
        found = _UCX.search(lines[index].text) or _UCX_CUT.search(lines[index].text)
        if not found:
            continue
        line = lines[index]
        thread = []
        if found["tid"]:
            thread = by_thread.get((line.source, int(found["tid"])), [])
        if not found["tid"] or not thread:  # MXM's handler and older UCX name no thread: it is the writer's next table
            thread = [t for t in tables if t - index <= 40 and same_writer(line, lines[t])]
        mine = [t for t in thread if 0 <= t - index <= 400 and t not in taken][:1]
        taken.update(mine)
        frames = stacks[mine[0]] if mine else []
        address = _ADDRESS.search(found["what"])
        fields: dict[str, Any] = {
            **({"host": found["host"], "pid": int(found["pid"])} if found["pid"] else {}),
            **({"tid": int(found["tid"])} if found["tid"] else {}),
            "signal": int(found["number"]),
            "handler": "ucx",
        }
        if address:
            fields["address"] = address[1]
        last = lines[frames[-1][0]] if frames else line
        rank = line.rank
        if rank is None and found["pid"]:
            rank = Rank(f"{found['host']}:{found['pid']}", None, node=found["host"], pid=int(found["pid"]))
        events.append(
            make(
                EventKind.FATAL_SIGNAL,
                line,
                last,
                parser="handlers",
                type=signal_name(int(found["number"])),
                message=found["message"],
                rank=rank,
                stacks=stack_of(intake, frames, found["tid"]),
                fields=fields,
            )
        )
    for index in hits(intake, _FATAL):
        found = _UCX_FATAL.search(lines[index].text)
        if not found:
            continue
        line = lines[index]
        mine = [t for t in tables if 0 <= t - index <= 4 and t not in taken and same_writer(line, lines[t])][:1]
        taken.update(mine)
        frames = stacks[mine[0]] if mine else []
        pid = int(found["pid"])
        events.append(
            make(
                EventKind.NATIVE,
                line,
                lines[frames[-1][0]] if frames else line,
                parser="handlers",
                message=found["message"],
                rank=line.rank or Rank(f"{found['host']}:{pid}", None, node=found["host"], pid=pid),
                stacks=stack_of(intake, frames, found["tid"]),
                fields={"host": found["host"], "pid": pid, "handler": "ucx"},
            )
        )
    alone = not events  # the line that names the signal stands above what is left of the log
    for table in tables:
        if table not in taken and stacks[table]:
            tid = _TID.search(lines[table].text)
            caught = alone and any(_HANDLER.match(frame.function or "") for _, frame in stacks[table])
            events.append(
                make(
                    EventKind.FATAL_SIGNAL if caught else EventKind.STACK,
                    lines[table],
                    lines[stacks[table][-1][0]],
                    parser="handlers",
                    message=lines[table].text.strip() if caught else "backtrace printed by UCX's signal handler",
                    stacks=stack_of(intake, stacks[table], tid[1] if tid else None),
                    fields={"handler": "ucx"},
                )
            )
    return events


def _triton_server(intake: Intake) -> list[Event]:
    """Triton server: `Signal (11) received.` and boost's ` 0# 0x… in tritonserver` frames. Asked-for signals are milestones."""
    events = []
    headers = [i for i in hits(intake, "Signal (") if _TRITON in intake.lines[i].text]
    stacks = numbered_stacks(intake, headers, boost_frame, 60)
    for header in headers:
        found = _SERVER.search(intake.lines[header].text)
        name = signal_name(int(found[1])) if found else None
        if name in ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE"):
            frames = stacks[header]
            events.append(
                make(
                    EventKind.FATAL_SIGNAL,
                    intake.lines[header],
                    intake.lines[frames[-1][0]] if frames else None,
                    parser="handlers",
                    type=name,
                    message=intake.lines[header].text,
                    stacks=stack_of(intake, frames),
                    fields={"handler": "triton"},
                )
            )
    return events


def _openmpi(intake: Intake) -> list[Event]:
    lines = intake.lines
    headers = hits(intake, _RECEIVED)
    events: list[Event] = []
    for header in headers:
        line = lines[header]
        owner = _MPI_LINE.search(line.raw)
        key = owner[0] if owner else ""
        parts: list[str] = []
        frames = []
        number: int | None = None
        last = line
        for at, after in following(intake, header, 100):
            if (key and key not in after.raw) or not same_writer(line, after):
                continue
            text = after.raw
            if "*** End of error message ***" in text:
                last = after
                break
            if _RECEIVED in text:
                break
            signal, code, address = _MPI_SIGNAL.search(text), _MPI_CODE.search(text), _MPI_AT.search(text)
            frame = mpi_frame(text)
            if signal:
                number = int(signal[2])
                parts.append(f"{signal[1]} ({number})")
            elif code:
                parts.append(code[1].strip())
            elif address:
                parts.append(f"at address {address[1]}")
            elif frame:
                frames.append((at, frame[1]))
            elif not key:
                break
            last = after
        fields: dict[str, Any] = {"handler": "openmpi", "signal": number}
        rank = line.rank
        if owner:
            fields.update(host=owner[1], pid=int(owner[2]))
            # Open MPI pads a pid to five digits, UCX does not
            rank = rank or Rank(f"{owner[1]}:{int(owner[2])}", None, node=owner[1], pid=int(owner[2]))
        events.append(
            make(
                EventKind.FATAL_SIGNAL,
                line,
                last,
                parser="handlers",
                type=signal_name(number) if number else None,
                message=", ".join(parts),
                rank=rank,
                stacks=stack_of(intake, frames),
                fields=fields,
            )
        )
    return events
