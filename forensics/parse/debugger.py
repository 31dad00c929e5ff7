# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""gdb and cuda-gdb sessions in a log (also the one that ggml starts on itself). In: an intake; out: FATAL_SIGNAL, DEVICE_ERROR
and STACK events. Samples:

    Thread 12 "python3" received signal SIGSEGV, Segmentation fault.
    0x00007f10 in ncclGroupEnd () from /opt/lib/libnccl.so.2
    #0  0x00007f10 in ncclGroupEnd () from /opt/lib/libnccl.so.2
    #1  0x00007f20 in main (argc=1) at main.cc:30
    -> FATAL_SIGNAL type "SIGSEGV", stack main > ncclGroupEnd

    CUDA Exception: Warp Illegal Address
    Thread 1 "python" received signal CUDA_EXCEPTION_14, Warp Illegal Address.
    [Switching focus to CUDA kernel 0, grid 7, block (0,0,0), thread (32,0,0), device 0, sm 0, warp 1, lane 0]
    -> DEVICE_ERROR type "CUDA_EXCEPTION_14", message "Warp Illegal Address", fields {"kernel_focus": "kernel 0, grid 7, …"}
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.model.stack import Frame
from forensics.parse.frames import coredump_frame, gdb_frame
from forensics.parse.reading import Lazy, following, hits, located, make, numbered_stacks, preceding, stack_of
from forensics.parse.signals import signal_in

_RECEIVED = "received signal "
_ENDED = "Program terminated with signal "
_FIRST = "#0  "
_DUMPED = " dumped core."
_THREAD_TRACE = "Stack trace of thread "
_DETACHED = "[Inferior 1 (process "
_FOCUS = "Switching focus to CUDA kernel"

ANCHORS: tuple[Anchor, ...] = (
    Anchor(b'" received signal ', 2, 60, "debugger"),
    Anchor(b"Program received signal ", 2, 60, "debugger"),
    Anchor(_ENDED.encode(), 2, 60, "debugger"),
    Anchor(b"CUDA Exception: ", 2, 12, "debugger"),
    Anchor(_FOCUS.encode(), 2, 12, "debugger"),
    Anchor(b"#0  0x", 6, 120, "debugger"),
    Anchor(b" (LWP ", 1, 80, "debugger"),
    Anchor(_DUMPED.encode(), 1, 100, "debugger"),
    Anchor(_THREAD_TRACE.encode(), 1, 80, "debugger"),
    Anchor(_DETACHED.encode(), 60, 2, "debugger"),
    Anchor(b"[Thread debugging using libthread_db enabled]", 60, 60, "debugger"),
)

_SIGNAL = Lazy(
    r'(?:Thread (?P<thread>[\d.]+)(?: "(?P<name>[^"]{0,80})")?|Program) (?:received|terminated with) signal (?P<type>\w+), (?P<message>[^.]{1,200})'
)
_THREAD = Lazy(r"^Thread (\d+) \((?:Thread|LWP|process) .{1,160}\):")
_SHELL = Lazy(r"^\s*(?P<words>(?:Aborted|Segmentation fault|Bus error|Illegal instruction|Floating point exception)(?: \(core dumped\))?)\s*$")
_PROCESS = Lazy(r"Process (?P<pid>\d+) \((?P<name>[^)]{1,60})\) of user \d+ dumped core\.")


def parse(intake: Intake) -> list[Event]:
    """Signals with the stack below them, CUDA exceptions with their focus, and the stacks of other threads."""
    lines = intake.lines
    starts = _starts(intake)
    # the header of a gdb stack is its own first frame: the frame goes to the header of the same index
    stacks = numbered_stacks(intake, starts, gdb_frame, 120)
    events: list[Event] = []
    taken: set[int] = set()
    for index in hits(intake, '" received signal ', "Program received signal ", _ENDED):
        found = _SIGNAL.search(lines[index].text)
        if not found:
            continue
        mine = next(
            (s for s in starts if 0 < s - index <= 50 and s not in taken and lines[s].source == lines[index].source),
            None,
        )
        frames = stacks[mine] if mine is not None else []
        if mine is not None:
            taken.add(mine)
        device = found["type"].startswith("CUDA_EXCEPTION")
        fields: dict[str, str] = {"handler": "cuda-gdb" if device else "gdb"}
        if device:
            for _, near in following(intake, index, 6):
                if _FOCUS in near.text:
                    fields["kernel_focus"] = near.text[near.text.find("kernel") :].rstrip("]")[:300]
        events.append(
            make(
                EventKind.DEVICE_ERROR if device else EventKind.FATAL_SIGNAL,
                lines[index],
                lines[frames[-1][0]] if frames else None,
                parser="debugger",
                type=signal_in(found["type"]) or found["type"],
                message=found["message"],
                stacks=stack_of(intake, frames, found["name"] or found["thread"]),
                fields=fields,
            )
        )
    for start in starts:
        if start not in taken and len(stacks[start]) > 1:
            thread = next((m[1] for _, p in preceding(intake, start, 2) if (m := _THREAD.match(p.text))), None)
            events.append(_printed(intake, stacks[start], thread))
    return events + _cut(intake) + _coredumps(intake)


def _starts(intake: Intake) -> list[int]:
    """Indices of the `#0` lines: they start a stack, and only those with an address hold an anchor."""
    lines = intake.lines
    found = {i for i in hits(intake, "#0  0x") if lines[i].text.startswith(_FIRST) and " in " in lines[i].text}
    for index in hits(intake, " (LWP "):
        found.update(at for at, line in following(intake, index, 2) if line.text.startswith(_FIRST))
    return sorted(found)


def _cut(intake: Intake) -> list[Event]:
    """What is left of a stack whose first frames were cut off, above gdb's word that it lets the process go."""
    events = []
    for index in hits(intake, _DETACHED):
        above = [(at, line, found) for at, line in preceding(intake, index, 60) if (found := gdb_frame(line.text)) is not None][::-1]
        if len(above) < 2 or above[0][2][0] == 0 or any(line.text.startswith(_FIRST) for _, line, _ in above):
            continue
        frames = [(at, located(frame, line)) for at, line, (_, frame) in above]
        events.append(_printed(intake, frames, None))
    return events


def _printed(intake: Intake, frames: Sequence[tuple[int, Frame]], thread: str | None) -> Event:
    """A stack without a signal's line: where the shell says right below how the process ended, it is the stack of that end."""
    lines = intake.lines
    first, last = lines[frames[0][0]], lines[frames[-1][0]]
    # of several threads the last one printed need not be the one that ended the process
    ended = None if thread is not None else next(((line, m) for _, line in following(intake, frames[-1][0], 3) if (m := _SHELL.match(line.text))), None)
    return make(
        EventKind.FATAL_SIGNAL if ended else EventKind.STACK,
        first,
        ended[0] if ended else last,
        parser="debugger",
        type=signal_in(ended[1]["words"]) if ended else None,
        message=ended[1]["words"] if ended else "backtrace printed by gdb",
        stacks=stack_of(intake, list(frames), thread),
        fields={"handler": "gdb"},
    )


def _coredumps(intake: Intake) -> list[Event]:
    """systemd-coredump: the process, and the stack of the thread that it prints first (the one that died)."""
    lines = intake.lines
    threads = hits(intake, _THREAD_TRACE)
    stacks = numbered_stacks(intake, threads, coredump_frame, 80)
    events = []
    for index in hits(intake, _DUMPED):
        found = _PROCESS.search(lines[index].raw)
        if not found:
            continue
        mine = next((t for t in threads if 0 < t - index <= 60 and lines[t].source == lines[index].source), None)
        frames = stacks[mine] if mine is not None else []
        events.append(
            make(
                EventKind.FATAL_SIGNAL,
                lines[index],
                lines[frames[-1][0]] if frames else None,
                parser="debugger",
                message=found[0],
                stacks=stack_of(intake, frames),
                fields={"handler": "systemd-coredump", "pid": int(found["pid"]), "process": found["name"]},
            )
        )
    return events
