"""Lines that a terminal or a ticket system wrapped hard, put together again. In: lines; out: lines. Sample (width 80):

RuntimeError: CUDA error: no kernel image is available for execution on the dev     -> one line, number of the first,
ice                                                                                    joined=1
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from forensics.model.source import LogLine

_NARROWEST, _WIDEST = 60, 500
#: lines of exactly the width that are needed, and how many of them must break inside a word
_LEAST_FULL, _LEAST_BROKEN = 3, 0.5
#: a line that starts like this is a new one, however full the one before is
_STARTS = (
    "Traceback (most",
    '  File "',
    'File "',
    "During handling of",
    "The above exception",
    "frame #",
    "[rank",
    "+ ",
)
#: fragments of one line
_MOST_JOINED = 200


def width_of(lines: Sequence[LogLine]) -> int | None:
    """The width at which these lines were wrapped, or None. It is the greatest length, is reached often, and the text breaks
    inside words there."""
    lengths = [len(line.raw) for line in lines]
    width = max(lengths, default=0)
    if not _NARROWEST <= width <= _WIDEST:
        return None
    full = broken = 0
    for line, after in pairwise(lines):
        if _full(line.raw) != width or line.source != after.source or len(set(line.raw.strip())) < 4:
            continue
        full += 1
        first = after.raw[:1]
        broken += _in_word(line.raw[-1]) and bool(first) and _in_word(first) and not _is_new(after)
    return width if full >= _LEAST_FULL and broken >= full * _LEAST_BROKEN else None


def rejoin(lines: Sequence[LogLine], width: int | None = None) -> list[LogLine]:
    """The lines with wrapped ones joined: number, rank and time of the first fragment, `joined` = fragments added.

    width: as `width_of` finds it where it is None; without a width the lines come back as they are.
    """
    if width is None:
        width = width_of(lines)
    if width is None:
        return list(lines)
    out: list[LogLine] = []
    size = 0  # length of the last fragment of the line at the end of `out`; 0 = it is complete
    for line in lines:
        before = out[-1] if out else None
        if (
            before is not None
            and size == width
            and line.source == before.source
            and line.number in (before.number + before.joined, before.number + before.joined + 1)
            and before.joined < _MOST_JOINED
            and not _is_new(line)
        ):
            out[-1] = before._replace(text=before.text + line.raw, raw=before.raw + line.raw, joined=before.joined + 1)
        else:
            out.append(line)
        size = _full(line.raw)
    return out


def _full(raw: str) -> int:
    """The line's length; 0 where blanks fill it up to the terminal's width: such a line had its end before."""
    return 0 if raw.endswith("  ") else len(raw)


def _in_word(letter: str) -> bool:
    return letter.isalnum() or letter in "_./-=,:"


def _is_new(line: LogLine) -> bool:
    """It has a prefix of its own, or starts like a line that never is a rest."""
    return line.dialect is not None or line.raw.startswith(_STARTS)
