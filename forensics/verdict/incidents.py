"""Several runs in one log told apart. In: events of a source in order; out: runs. Sample:

    start, CUDA out of memory, exit · start, serving, asked to stop -> two runs

A new run begins where a writer that had begun before begins again after something had failed or ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from forensics.model.event import Event, EventKind
from forensics.model.source import Span

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


@dataclass(slots=True)
class Run:
    """One run of the job. begin: the line that began it, None for the first; events in log order."""

    begin: Span | None = None
    events: list[Event] = field(default_factory=list)


def split(events: Sequence[Event]) -> list[Run]:
    """The runs, in the log's order; one where nothing begins twice. Only a log of one source is split: several files of one
    job begin at different lines."""
    runs = [Run()]
    if len({e.span.source for e in events if e.span.source >= 0}) > 1:
        runs[0].events = list(events)
        return runs
    begun: set[str] = set()
    over = False
    for event in events:
        if event.kind is EventKind.LIFECYCLE and event.fields.get("phase") in ("startup", "launch", "start"):
            if event.fields.get("state", "begin") == "begin":
                writer = event.stream or event.parser
                if over and writer in begun:
                    runs.append(Run(event.span))
                    begun.clear()
                    over = False
                begun.add(writer)
        elif (
            event.kind is EventKind.LIFECYCLE
            and event.fields.get("phase") == "shutdown"
            and event.fields.get("state") == "end"
        ) or event.kind in _FAILS:
            over = True
        runs[-1].events.append(event)
    return runs
