"""Samples that training prints: data, rollouts, conversations. In: the lines of a log; out: whether a span stands inside one. Sample:

    (TaskRunner pid=4711) [prompt] My program fails with                    opens
    (TaskRunner pid=4711) Traceback (most recent call last): …              -> inside: nobody's failure
    (TaskRunner pid=4711) [score] 0.0                                       closes

The marks are knowledge (signatures/verdict/samples.toml). A sample belongs to the writer that opened it; a line of the job at work ends
it, too: then its end was lost.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple
from weakref import WeakKeyDictionary

from forensics.data import table
from forensics.ingest.compiled import pattern_of
from forensics.model.source import LogLine, Span
from forensics.verdict.quotes import Quotes
from forensics.verdict.sighting import is_work_text

#: lines above a failure and below it in which a sample's marks are sought: models answer at length
_REACH = 400


class Row(NamedTuple):
    """A kind of sample, see the table."""

    opens: re.Pattern[str]
    closes: re.Pattern[str]
    open_ended: bool


@cache
def rows() -> tuple[Row, ...]:
    """The kinds of the table."""
    return tuple(
        Row(pattern_of(row["opens"]), pattern_of(row["closes"]), row.get("open_ended", False)) for row in table("verdict/samples")["sample"]
    )


class Samples:
    """Where samples begin in a log. Looked for once: most logs have none."""

    def __init__(self, quotes: Quotes) -> None:
        self._quotes = quotes
        self._opened: dict[tuple[int, str], list[tuple[int, Row]]] = {}
        self._closed: dict[tuple[int, str], list[int]] = {}
        for source in quotes.sources:
            for line in quotes.lines(Span(source, 1, 1 << 60)):
                if not line.text or line.text[0] not in "[<ilpcr":
                    continue
                if (row := _opening(line.text)) is not None:
                    self._opened.setdefault((source, line.stream), []).append((line.number, row))
                elif any(not row.open_ended and row.closes.match(line.text) for row in rows()):
                    self._closed.setdefault((source, line.stream), []).append(line.number)

    def holds(self, line: LogLine, span: Span) -> bool | None:
        """True where the failure that begins in `line` and covers `span` is told inside a sample; None where nothing shows whether the
        sample had ended; False elsewhere."""
        opened = self._opened.get((line.source, line.stream))
        place = bisect_left(opened, line.number, key=lambda entry: entry[0]) if opened else 0
        begin, row = opened[place - 1] if opened and place else (0, None)
        if row is None or line.number - begin > _REACH:
            return self._ends_below(line, opened[place][0] if opened and place < len(opened) else None)
        if any(_ends(row, other) for other in self._of(line, begin + 1, line.number - 1)):
            return False
        # what is said below an exception is taken for its message: the closing line may stand in the span
        for other in self._of(line, line.number + 1, span.last_line + _REACH):
            if row.closes.match(other.text) or row.opens.match(other.text):
                return True
            if _ends(row, other):
                break
        return False if row.open_ended else None

    def _ends_below(self, line: LogLine, next_opening: int | None) -> bool:
        """Of a sample whose beginning was not kept, amid a big log: whether one ends soon below the line, before the next one begins."""
        first = max(1, line.number - _REACH)
        if len(self._quotes.lines(Span(line.source, first, line.number))) > line.number - first:
            return False  # all is there, and nothing opens
        closed = self._closed.get((line.source, line.stream), ())
        place = bisect_left(closed, line.number)
        return place < len(closed) and closed[place] - line.number <= _REACH and (next_opening is None or closed[place] < next_opening)

    def _of(self, line: LogLine, first: int, last: int) -> Iterator[LogLine]:
        """The lines of the same writer."""
        return (other for other in self._quotes.lines(Span(line.source, first, last)) if other.stream == line.stream)


def holds(line: LogLine, span: Span, quotes: Quotes) -> bool | None:
    """`Samples.holds`, of samples that are looked for once a log."""
    samples = _known.get(quotes)
    if samples is None:
        samples = _known[quotes] = Samples(quotes)
    return samples.holds(line, span)


_known: WeakKeyDictionary[Quotes, Samples] = WeakKeyDictionary()


def _ends(row: Row, line: LogLine) -> bool:
    return row.closes.match(line.text) is not None or (row.open_ended and is_work_text(line.text))


def _opening(text: str) -> Row | None:
    return next((row for row in rows() if row.opens.match(text)), None)
