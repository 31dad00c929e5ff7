"""Makes intakes of text. In: a log's text; out: an `Intake` whose lines are all kept."""

from __future__ import annotations

from forensics.ingest.intake import Intake
from forensics.model import Event, EventKind, LogLine, LogSource, Span


def intake_of(text: str) -> Intake:
    """A text as one source, every line kept, without marks."""
    lines = [LogLine(0, number, line, line) for number, line in enumerate(text.strip("\n").split("\n"), 1)]
    return Intake(sources=(LogSource("job.log", len(text), len(lines)),), lines=lines)


def message(text: str, line: int = 1) -> Event:
    """An error message as an event."""
    return Event(EventKind.MESSAGE, Span(0, line, line), message=text)
