"""What a user of a service wrote, as its log quotes it over several lines. In: a log record and the lines below it; out: what the
quotation still waits for. Sample:

    INFO … Received request cmpl-1: prompt: 'Why does this fail?      -> waits for "'"
    Traceback (most recent call last):                                -> it still does: nobody's failure
    ', params: SamplingParams(n=1)                                    -> closed

A quotation that is closed in its own line says nothing of the next one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from forensics.ingest.asked import names
from forensics.ingest.compiled import pattern_of
from forensics.ingest.pattern import Pattern

#: characters of a line that are looked at
LOOK = 4_000
_BRACKETS = {"[": "]", "{": "}"}


@lru_cache(maxsize=1)
def _asked() -> re.Pattern[str]:
    """What begins a text that somebody wrote, with its quote (1)."""
    return pattern_of(rf"""\b(?:{names()})["']?\s?[=:]\s?(\"{{3}}|'{{3}}|["'\[{{])""", re.IGNORECASE)


def waits_for(lines: Iterable[str]) -> str:
    """The quote (or bracket) that is missing behind the last of the lines, "" where none is. lines: the record's own first."""
    waits, depth = "", 0
    for place, line in enumerate(lines):
        text = line[:LOOK]
        if not place:
            waits, depth = _opened(text)
        elif waits in _BRACKETS:
            depth += _depth(text)
            waits = waits if depth > 0 else ""
        elif _closing(text, waits, 0) >= 0:
            waits = ""
        if not waits:
            return ""
    return waits


def _opened(text: str) -> tuple[str, int]:
    """What a record's first line opens and does not close: a quote before the brackets around it; of a bracket how many are open."""
    bracket, depth, at = "", 0, 0
    for match in _asked().finditer(text):
        if match.start() < at:
            continue
        if match[1] not in _BRACKETS:
            at = _closing(text, match[1], match.end())
            if at < 0:
                return str(match[1]), 0
        elif not bracket and (depth := _depth(text[match.end() - 1 :])) > 0:
            bracket = match[1]
    return bracket, depth


def _closing(text: str, quote: str, start: int) -> int:
    """Where a quotation that is open at `start` ends in a line, -1 where it does not: at a quote behind which the record goes on or
    ends, and which is not the second one of a word in quotes."""
    if quote not in text:
        return -1
    inner = 0
    for match in pattern_of(r"(?<!\\)" + quote).finditer(text, start):
        if match.start() > start and text[match.start() - 1].isalnum() and text[match.end() : match.end() + 1].isalpha():
            continue  # don't
        if inner % 2 == 0 and _GOES_ON.match(text, match.end()):
            return match.end()
        inner += 1
    return -1


#: what stands behind the end of a quotation: the record's next field, its closing brackets, nothing
_GOES_ON = Pattern(r"\s{0,4}(?:, ?['\"]?\w{1,40}['\"]? ?[=:]|[)\]}]{1,8}|\\?n?$)| \w{1,40}=")


def _depth(text: str) -> int:
    return text.count("[") + text.count("{") - text.count("]") - text.count("}")
