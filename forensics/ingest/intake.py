"""What ingest hands on. In: nothing; out: `Intake`. Sample:

from_text("[rank3]: Traceback (most recent call last):\\n…") -> Intake(lines=[LogLine(…)], …)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from forensics.model.source import LogLine, LogSource, Note, RankActivity, Skipped, Span


@dataclass(slots=True)
class Intake:
    """Retained lines of all sources, ordered by (source, number): not every line of a big log is here, a jump in `number`
    shows a hole. Several lines may share a number (carriage returns, a JSON message with line feeds). marks: anchor literal
    -> indices into `lines`; activity: first and last sighting of each rank."""

    sources: tuple[LogSource, ...] = ()
    lines: list[LogLine] = field(default_factory=list)
    marks: dict[bytes, list[int]] = field(default_factory=dict)
    activity: tuple[RankActivity, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    notes: list[Note] = field(default_factory=list)
    #: binary side inputs (flight recorder dumps): (name, content)
    blobs: tuple[tuple[str, bytes], ...] = ()
    #: (source, line number of the last copy that was kept) -> how many more of the same were seen and not kept
    repeats: dict[tuple[int, int], int] = field(default_factory=dict)

    def between(self, span: Span) -> Sequence[LogLine]:
        """The retained lines of a span."""
        low = bisect_left(self.lines, (span.source, span.first_line), key=_place)
        high = bisect_right(self.lines, (span.source, span.last_line), key=_place)
        return self.lines[low:high]


def _place(line: LogLine) -> tuple[int, int]:
    return line.source, line.number
