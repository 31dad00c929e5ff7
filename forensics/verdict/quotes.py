"""Quotations: what stands in the lines of a span. In: an `Intake`; out: `Evidence`. Sample:

Quotes(intake).of(Span(0, 812, 814), "the traceback's last lines") -> Evidence(span, "RuntimeError: …", "…")
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from forensics.ingest.intake import Intake
from forensics.model.source import Evidence, LogLine, Span

_MOST = 2_000
_MOST_LINES = 12


class Quotes:
    """Finds retained lines by span without walking through all of them."""

    def __init__(self, intake: Intake) -> None:
        self._lines: dict[int, list[LogLine]] = {}
        for line in intake.lines:
            self._lines.setdefault(line.source, []).append(line)
        self._numbers = {source: [line.number for line in lines] for source, lines in self._lines.items()}
        self.sources = tuple(self._lines)

    def of_source(self, source: int) -> Sequence[LogLine]:
        """All retained lines of a source."""
        return self._lines.get(source, [])

    def lines(self, span: Span, most: int | None = None) -> Sequence[LogLine]:
        """The retained lines of a span, at most `most` of its first ones."""
        numbers = self._numbers.get(span.source, [])
        start, end = bisect_left(numbers, span.first_line), bisect_right(numbers, span.last_line)
        if most is not None:
            end = min(end, start + most)
        return self._lines.get(span.source, [])[start:end]

    def after(self, span: Span) -> Sequence[LogLine]:
        """Everything retained behind a span in its source."""
        numbers = self._numbers.get(span.source, [])
        return self._lines.get(span.source, [])[bisect_right(numbers, span.last_line) :]

    def of(self, span: Span, shows: str = "") -> Evidence:
        """The span's lines as printed, cut at 2,000 characters."""
        text = "\n".join(line.raw.rstrip() for line in self.lines(span, 40))
        return Evidence(span, text[:_MOST], shows)

    def near(self, span: Span, message: str, shows: str = "") -> Evidence:
        """The lines of a span that hold the message: from its first line on, a few lines; the span's end where none does."""
        first = next((part.strip() for part in message.split("\n") if part.strip()), "")[:80]
        lines = self.lines(span)
        if first:
            # A message stands below its frames: the last line that has it is the one that was raised.
            for line in reversed(lines):
                if first in line.text or first in line.raw:
                    count = min(message.count("\n") + 1, _MOST_LINES)
                    return self.of(Span(span.source, line.number, min(line.number + count - 1, span.last_line)), shows)
        start = max(span.first_line, span.last_line - _MOST_LINES + 1) if len(lines) > _MOST_LINES else span.first_line
        return self.of(Span(span.source, start, span.last_line), shows)
