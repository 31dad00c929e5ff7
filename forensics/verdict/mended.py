"""A program whose source would not compile, and that runs further below: it was mended and started again. In: events; out: where the next
run begins. Sample:

      File "/srv/app/train.py", line 20, in <module>
        from model import Net
      File "/srv/app/model.py", line 63
    IndentationError: unindent does not match any outer indentation level
    Traceback (most recent call last):                                                 <- the next run
      File "/srv/app/train.py", line 210, in main

All ranks of a job load the same source, so no other rank of the same run can have come further in that file.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from forensics.model.event import Event, EventKind
from forensics.model.source import LogLine, Span

_SYNTAX = frozenset(("SyntaxError", "IndentationError", "TabError"))


def mended(events: Sequence[Event], lines: Sequence[LogLine]) -> list[Span]:
    """The first kept lines behind errors of compilation that a later stack in the same program proves mended."""
    broken = [event for event in events if event.kind is EventKind.PYTHON and event.type in _SYNTAX]
    if not broken:
        return []
    numbers = [line.number for line in lines]
    found = []
    for event in broken:
        programs = _files(event, "<module>")
        further = [
            other
            for other in events
            if other.kind is EventKind.PYTHON
            and other.span.source == event.span.source
            and other.span.first_line > event.span.last_line
            and other.type not in _SYNTAX
            and programs & _files(other)
        ]
        place = bisect_right(numbers, event.span.last_line)
        if further and place < len(lines):
            found.append(Span(event.span.source, lines[place].number, lines[place].number))
    return found


def _files(event: Event, function: str = "") -> set[str]:
    """Files of an event's frames, but Python's own and installed ones; function: only of frames in it."""
    frames = [frame for one in (event.chain.exceptions if event.chain else ()) for frame in one.frames]
    return {
        frame.path
        for frame in frames
        if frame.path and (not function or frame.function == function) and frame.path[0] != "<" and "site-packages" not in frame.path
    }
