"""Several runs in one log told apart. In: events and lines of a source in order; out: runs. Sample:

    start, CUDA out of memory, exit · start, serving, asked to stop -> two runs

A new run begins where a writer that had begun before begins again after something had failed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache

from forensics.data import table
from forensics.ingest.needles import needles_of_list
from forensics.ingest.pattern import Pattern
from forensics.model.event import Event, EventKind
from forensics.model.record import draft, field
from forensics.model.source import LogLine, Span

_FAILS = frozenset(
    (
        EventKind.PYTHON,
        EventKind.NATIVE,
        EventKind.FATAL_SIGNAL,
        EventKind.PROCESS_EXIT,
        EventKind.LAUNCHER,
        EventKind.OOM_KILL,
        EventKind.COLLECTIVE_TIMEOUT,
    )
)


@draft
class Run:
    """One run of the job. begin: the line that began it, None for the first; events in log order."""

    begin: Span | None = None
    events: list[Event] = field(default_factory=list)


@lru_cache(maxsize=1)
def _begins() -> Pattern[str]:
    rows = table("verdict/progress")["began"]
    pattern = "|".join(f"(?P<b{place}>{row})" for place, row in enumerate(rows))
    return Pattern(pattern, needles=needles_of_list("verdict/progress", "began"))


def came_up(lines: Sequence[LogLine]) -> Span | None:
    """The first line that a process of the job printed when it began; a command that somebody typed is none."""
    pattern = _begins()
    for line in lines:
        if line.text.lstrip()[:1] not in ("$", "#") and pattern.search(line.text[:400]):
            return Span(line.source, line.number, line.number)
    return None


def split(events: Sequence[Event], lines: Sequence[LogLine]) -> list[Run]:
    """The runs, in the log's order; one where nothing begins twice. Only a log of one source is split: several files of one
    job begin at different lines."""
    fails = sorted(e.span.first_line for e in events if e.kind in _FAILS)
    if not fails or not lines or lines[0].source != lines[-1].source:
        return [Run(None, list(events))]
    begins = _boundaries(lines, fails)
    runs = [Run(), *(Run(span) for span in begins)]
    numbers = [span.first_line for span in begins]
    for event in events:
        runs[bisect_right(numbers, event.span.first_line) if event.span.source >= 0 else 0].events.append(event)
    return runs


def _boundaries(lines: Sequence[LogLine], fails: Sequence[int]) -> list[Span]:
    found: list[Span] = []
    begun: set[tuple[str | None, str]] = set()
    pattern = _begins()
    since = 0
    for line in lines:
        match = pattern.search(line.text[:400])
        if match is None:
            continue
        writer = (match.lastgroup, line.stream)
        failed = bisect_right(fails, line.number) > bisect_right(fails, since)
        if failed and writer in begun:
            found.append(Span(line.source, line.number, line.number))
            begun.clear()
            since = line.number
        begun.add(writer)
    return found
