"""Python stacks as pybind11 prints them below an error. In: a `Lane`; out: events of kind python. Sample:

  what():  RuntimeError: cannot build the engine

At:
  /srv/engine/executor.py(123): __init__
  /srv/run.py(9): <module>
-> Event(PYTHON, type="RuntimeError", frames of run.py and executor.py, outermost first)
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.ingest.pattern import Pattern
from forensics.model.event import Event, EventKind
from forensics.model.source import LogLine, Span
from forensics.model.stack import ExceptionChain, Frame, RaisedException, StackTrace
from forensics.parse.python.lanes import Item, Lane
from forensics.parse.python.shapes import LOOK, looks_raised, raised

_PLACE = Pattern(
    r"^\s{1,8}(?P<file>[^\s()][^()\n]{0,600})\((?P<line>\d{1,8})\): (?P<function><[^>\n]{1,80}>|[\w.]{1,300})\s*$"
)
_SAID = Pattern(r"(?:^|[\s:])(?P<raised>(?:[A-Za-z_]\w{0,80}\.){0,8}[A-Z]\w{0,80}: \S.*)$")

#: lines above "At:" in which the error is looked for, and frames below it
ABOVE, MOST = 12, 400


def at_lists(lane: Lane, lines: Sequence[LogLine]) -> list[Event]:
    """The stacks of one lane. lines: of the whole intake, for the error may stand in a logger's line and what is below it in none."""
    events = []
    for at, item in enumerate(lane.items):
        if item.line.text.strip() == "At:":
            event = _event(lane.items, at, lines)
            if event is not None:
                events.append(event)
    return events


def _event(items: Sequence[Item], at: int, lines: Sequence[LogLine]) -> Event | None:
    frames: list[Frame] = []
    last = items[at]
    for item in items[at + 1 : at + 1 + MOST]:
        found = _PLACE.match(item.line.text[:LOOK])
        if not found:
            break
        last = item
        frames.append(Frame(found["function"], found["file"], int(found["line"]), log_line=item.line.number))
    if not frames:
        return None
    line, name, message = _error_above(items, at) or _logged_above(lines, items[at]) or (items[at].line, "", "")
    span = Span(line.source, line.number, max(line.number, last.line.number))
    stack = tuple(reversed(frames))
    if not name:
        return Event(
            EventKind.STACK,
            span,
            line.rank,
            line.time,
            stacks=(StackTrace(stack, span),),
            parser="python",
            stream=line.stream,
        )
    chain = ExceptionChain(
        (RaisedException(name, message, stack, None, span),), span, line.rank, line.time, stream=line.stream
    )
    return Event(
        EventKind.PYTHON,
        span,
        rank=line.rank,
        time=line.time,
        type=name,
        message=message,
        stacks=(StackTrace(stack, span),),
        chain=chain,
        level=line.level,
        parser="python",
        stream=line.stream,
        fields={"style": "pybind11"},
    )


def _error_above(items: Sequence[Item], at: int) -> tuple[LogLine, str, str] | None:
    """(line, type, message) of the nearest line above that names an exception, None where none does."""
    for n in range(at - 1, max(at - 1 - ABOVE, -1), -1):
        found = _said(items[n].line.text[:LOOK])
        if found:
            below = [item.line.text.strip() for item in items[n + 1 : at]]
            return items[n].line, found[0], "\n".join((found[1], *below)).strip()
    return None


def _logged_above(lines: Sequence[LogLine], item: Item) -> tuple[LogLine, str, str] | None:
    """The same for an error that a logger printed right above the list, blank lines between them: it has the prefix that the list lacks."""
    for line in reversed(lines[max(item.index - 3, 0) : item.index]):
        if line.source != item.line.source:
            return None
        if line.text.strip():
            found = _said(line.text[:LOOK])
            return (line, *found) if found else None
    return None


def _said(text: str) -> tuple[str, str] | None:
    """(type, message) of the first exception that a line names: "ERROR: cannot start: ValueError: no such name" names the last."""
    start = 0
    for _ in range(4):
        said = _SAID.search(text, start)
        if said is None:
            return None
        if looks_raised(said["raised"]):
            return raised(said["raised"])
        start = said.start("raised") + 1
    return None
