"""Exceptions that a program only shows to those who debug it. In: a sighting and the lines around it; out: yes or no. Sample:

    [20:15:00] VERBOSE probe: Traceback … AttributeError     -> True: caught, and told at a level that nobody reads by default
    [20:15:40] ERROR main: Traceback … ValueError            -> False
"""

from __future__ import annotations

from forensics.ingest.pattern import Pattern
from forensics.model.source import LogLine, Span
from forensics.verdict.outcome import printed_inside
from forensics.verdict.quotes import Quotes
from forensics.verdict.sighting import Sighting

_LEVELS = frozenset(("DEBUG", "VERBOSE", "TRACE", "V"))
#: such a level as a line's first word, where no dialect reads it: behind a time, brackets, nothing
_FIRST_WORD = Pattern(r"^[^A-Za-z]{0,40}(?:DEBUG|VERBOSE|TRACE|debug|verbose|trace)(?:\d{1,2})?(?:\]|:|\||\s)")


def only_shown(seen: Sighting, quotes: Quotes) -> bool:
    """True where all that tells of a caught exception is told at the level of debugging."""
    if seen.kind != "python" or seen.torn:
        return False
    own = quotes.lines(seen.span, 1)
    if own and (own[0].level is not None or _is_low(own[0])):
        return _is_low(own[0])
    if seen.heading or not printed_inside(seen):  # a program that ends prints its traceback below whatever was said last
        return False
    above = quotes.lines(Span(seen.span.source, max(1, seen.span.first_line - 1), max(1, seen.span.first_line - 1)))
    return bool(above) and above[0].number < seen.span.first_line and above[0].stream == seen.stream and _is_low(above[0])


def _is_low(line: LogLine) -> bool:
    return line.level in _LEVELS if line.level is not None else _FIRST_WORD.search(line.raw[:80]) is not None
