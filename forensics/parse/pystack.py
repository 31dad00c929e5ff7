# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""pystack's stacks of a living process or of a core file. In: an intake; out: one STACK event a process. Sample:

    Traceback for thread 4711 (python3.11) [Has the GIL] (most recent call last):
        (Python) File "/srv/train.py", line 80, in main
            dist.all_reduce(total)
        (C) File "???", line 0, in c10d::Work::wait(std::chrono::duration<long>) (/usr/lib/libtorch_cpu.so)
    -> STACK fields {"tool": "pystack", "states": ("Has the GIL",)}, one stack a thread, outermost frame first
    The process died due receiving signal SIGABRT          (above the stacks of a core file)
    -> FATAL_SIGNAL type "SIGABRT" with them
"""

from __future__ import annotations

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.model.source import Span
from forensics.model.stack import Frame, StackTrace
from forensics.parse.reading import Lazy, following, hits, make, preceding
from forensics.parse.signals import signal_in

_HEAD = "Traceback for thread "
#: lines that one thread's stack may have, and threads of one process
_MOST_LINES, _MOST_THREADS = 400, 256
#: lines above the first thread in which pystack says of what a core file's process died
_ABOVE = 12

ANCHORS: tuple[Anchor, ...] = (Anchor(_HEAD.encode(), _ABOVE, _MOST_LINES, "pystack"),)

_DIED = Lazy(r"^\s*(?P<message>The process died due (?:receiving signal (?P<signal>SIG[A-Z]{2,6})|an? (?P<words>[\w ]{3,40}?))(?: (?:accessing|sent|at|by|from)\b.{0,120}|:.{0,120})?)\s*$")
_THREAD = Lazy(r"^\s{0,8}Traceback for thread (?P<id>\d{1,12})(?: \((?P<name>[^)\n]{1,80})\))? \[(?P<state>[^\]\n]{0,120})\] \(most recent call last\):\s*$")
_FRAME = Lazy(
    r'^\s{1,12}\((?P<language>Python|C)\) File "(?P<file>[^"\n]{1,1000})", line (?P<line>\d{1,8}), in (?P<function>.{1,600}?)'
    r"(?: \((?P<module>[^()\s]{1,600})\))?\s*$"
)


def parse(intake: Intake) -> list[Event]:
    """The dumps: threads that follow one another are of one process."""
    events: list[Event] = []
    stacks: list[StackTrace] = []
    states: list[str] = []
    first = last = -1
    for index in hits(intake, _HEAD):
        head = intake.lines[index]
        found = _THREAD.match(head.text)
        if found is None:
            continue
        frames, end = _frames(intake, index)
        if first >= 0 and (head.source != intake.lines[first].source or index - last > 3 or len(stacks) >= _MOST_THREADS):
            events.append(_dump(intake, first, last, stacks, states))
            first = -1
        if first < 0:
            first, stacks, states = index, [], []
        last = end
        if frames:
            lines = Span(head.source, head.number, intake.lines[end].number)
            native = any(frame.module for frame in frames)
            stacks.append(StackTrace(tuple(frames), lines, found["id"], "mixed" if native else "python"))
            states.append(found["state"])
    if first >= 0:
        events.append(_dump(intake, first, last, stacks, states))
    return [event for event in events if event.stacks]


def _frames(intake: Intake, index: int) -> tuple[list[Frame], int]:
    """The frames below a thread's heading as printed, outermost first, and the index of the stack's last line."""
    frames: list[Frame] = []
    end = index
    for at, line in following(intake, index, _MOST_LINES):
        found = _FRAME.match(line.text)
        if found is not None:
            native = found["language"] == "C"
            file = None if found["file"] == "???" else found["file"]
            frames.append(Frame(found["function"], file, int(found["line"]) or None, module=found["module"] if native else None, log_line=line.number))
            end = at
        elif line.text.startswith("        ") and frames:
            end = at  # a frame's source code
        else:
            break
    return frames, end


def _dump(intake: Intake, first: int, last: int, stacks: list[StackTrace], states: list[str]) -> Event:
    died = next((found for _, line in preceding(intake, first, _ABOVE) if (found := _DIED.match(line.text)) is not None), None)
    return make(
        EventKind.STACK if died is None else EventKind.FATAL_SIGNAL,
        intake.lines[first],
        intake.lines[last],
        parser="pystack",
        type=died["signal"] or signal_in((died["words"] or "").capitalize()) if died is not None else None,
        message=died["message"] if died is not None else intake.lines[first].text.strip(),
        stacks=tuple(stacks),
        fields={"tool": "pystack", "states": tuple(states)},
    )
