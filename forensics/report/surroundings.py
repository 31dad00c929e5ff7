"""The lines around a quotation, read again from the input. In: evidence; out: the lines before and after. Sample:

    around(quote, 3) -> Quote(…, before=("[… TP1] Capture draft cuda graph begin …",), after=("",))

Only of files that can be opened again by their name and still say there what was quoted: a pipe is gone, and so is a log that
was rotated meanwhile.
"""

from __future__ import annotations

import gzip
import os
import stat
from collections.abc import Sequence

from forensics.model.record import replace
from forensics.report.blocks import Quote
from forensics.report.text import visible

#: further into a file than this nothing is looked up
MOST_BYTES = 512 * 1024 * 1024
#: of one line
MOST_COLUMNS = 500


def around(quotes: Sequence[Quote], lines: int = 3) -> tuple[Quote, ...]:
    """The quotations with up to `lines` lines before and after each, where they can be had. Reads every file once."""
    wanted: dict[str, list[Quote]] = {}
    for quote in quotes:
        wanted.setdefault(quote.source, []).append(quote)
    found: dict[tuple[str, int, int], Quote] = {}
    for source, of_it in wanted.items():
        kept = _lines(source, {n for q in of_it for n in _numbers(q, lines)})
        for quote in of_it:
            found[_key(quote)] = _with(quote, kept, lines)
    return tuple(found[_key(quote)] for quote in quotes)


def _key(quote: Quote) -> tuple[str, int, int]:
    return (quote.source, quote.first_line, quote.last_line)


def _numbers(quote: Quote, lines: int) -> list[int]:
    before = range(max(1, quote.first_line - lines), quote.first_line + 1)
    return [*before, *range(quote.last_line + 1, quote.last_line + 1 + lines)]


def _with(quote: Quote, kept: dict[int, str], lines: int) -> Quote:
    first = kept.get(quote.first_line)
    said = quote.lines[0].strip() if quote.lines else ""
    if first is None or not said or (said[:80] not in first and first.strip()[:80] not in said):
        return quote
    before = [kept[n] for n in range(max(1, quote.first_line - lines), quote.first_line) if n in kept]
    after = [kept[n] for n in range(quote.last_line + 1, quote.last_line + 1 + lines) if n in kept]
    return replace(quote, before=tuple(before), after=tuple(after))


def _lines(path: str, numbers: set[int]) -> dict[int, str]:
    """The wanted lines of a regular file, 1-based; none where it cannot be read again."""
    found: dict[int, str] = {}
    last, done = max(numbers), 0
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return {}
        with open(path, "rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rb") if packed else open(path, "rb") as file:
            number = 1
            while number <= last and done < MOST_BYTES:
                line = file.readline(1 << 20)
                if not line:
                    break
                done += len(line)
                if number in numbers and number not in found:
                    found[number] = visible(line[: 4 * MOST_COLUMNS].decode("utf-8", "replace").rstrip("\r\n"))[
                        :MOST_COLUMNS
                    ]
                number += line.endswith(b"\n")
    except (OSError, EOFError, ValueError):
        return found
    return found
