"""What ingest hands on. In: nothing; out: `Intake`, `from_text`. Sample:

    from_text("[rank3]: Traceback (most recent call last):\\n…") -> Intake(lines=[LogLine(…)], …)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from forensics.model.source import LogLine, LogSource, Note, RankActivity, Skipped, Span


@dataclass(slots=True)
class Intake:
    """Retained lines of all sources, ordered by (source, number): not every line of a big log is here, a jump in `number`
    shows a hole. marks: anchor literal -> indices into `lines`; activity: first and last sighting of each rank."""

    sources: tuple[LogSource, ...] = ()
    lines: list[LogLine] = field(default_factory=list)
    marks: dict[bytes, list[int]] = field(default_factory=dict)
    activity: tuple[RankActivity, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    notes: list[Note] = field(default_factory=list)
    #: binary side inputs (flight recorder dumps): (name, content)
    blobs: tuple[tuple[str, bytes], ...] = ()

    def between(self, span: Span) -> Sequence[LogLine]:
        """The retained lines of a span."""
        return [
            line
            for line in self.lines
            if line.source == span.source and span.first_line <= line.number <= span.last_line
        ]
