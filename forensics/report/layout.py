"""Styled text, wrapped and set side by side in the columns of a terminal. In: words with styles; out: lines of pieces. Sample:

    text = Text("established", "green"); text.append(": the log proves it")
    text.lines(14)        -> [[("established", "green"), (": ", "")], [("the log proves", "")], [("it", "")]]
    beside("Sure", text.lines(14), 10)[0]  -> [("Sure      ", ""), ("established", "green"), (": ", "")]

The same layout as rich's, without its start: rich takes longer to import than a small log to analyse. A style is one of rich's words
("bold red", "white on blue"), so that a face made with rich can show the pieces too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TypeAlias

Piece: TypeAlias = tuple[str, str]
Line: TypeAlias = list[Piece]

_COLORS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_CODES = {"bold": "1", "dim": "2", "underline": "4"}


class Text:
    """Text of any number of lines whose parts have styles."""

    __slots__ = ("_pieces",)

    def __init__(self, text: str = "", style: str = "") -> None:
        self._pieces: Line = [(text, style)] if text else []

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def append(self, text: str, style: str = "") -> None:
        """Adds to its end."""
        if text:
            self._pieces.append((text, style))

    def extend(self, other: Text) -> None:
        """Adds another text to its end."""
        self._pieces += other._pieces

    def lines(self, width: int | None = None) -> list[Line]:
        """Its lines, none wider than `width` cells: broken between words, and within a word that is too long by itself."""
        found: list[Line] = []
        for row in _rows(self._pieces):
            plain = "".join(text for text, _ in row)
            if width is None or cells(plain) <= width:
                found.append(row)
            else:
                found += _broken(row, plain, width)
        return found


def cells(text: str) -> int:
    """Columns that a text takes on a terminal."""
    return len(text) if text.isascii() else sum(map(_cells_of, text))


def beside(label: str, lines: Iterable[Line], width: int, style: str = "") -> list[Line]:
    """Lines with a label of `width` cells at the left of the first one, and blanks before the others."""
    left, blank = (label + " " * (width - cells(label)), style), (" " * width, "")
    return [[blank if number else left, *line] for number, line in enumerate(lines)]


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int, gap: int = 2) -> list[Line]:
    """Rows of text in columns as wide as their content; the widest ones are narrowed, and wrapped, where that does not fit."""
    every = [columns, *rows]
    gaps = gap * (len(columns) - 1)
    widths = [
        min(width, max(cells(line) for row in every for line in row[at].split("\n"))) for at in range(len(columns))
    ]
    while sum(widths) + gaps > width and max(widths) > 1:
        widest = max(range(len(widths)), key=widths.__getitem__)
        widths[widest] -= 1
    found: list[Line] = []
    for number, row in enumerate(every):
        parts = [Text(cell, "" if number else "dim").lines(size) for cell, size in zip(row, widths, strict=True)]
        for at in range(max(map(len, parts))):
            line: Line = []
            for part, size in zip(parts, widths, strict=True):
                here = part[at] if at < len(part) else []
                line += here
                line.append((" " * (size - sum(cells(text) for text, _ in here) + gap), ""))
            found.append(line[:-1])
    return found


def plain(lines: Iterable[Line]) -> str:
    """Without styles."""
    return "".join("".join(text for text, _ in line).rstrip() + "\n" for line in lines)


def ansi(lines: Iterable[Line]) -> str:
    """With the escape codes of a terminal of 16 colours."""
    out: list[str] = []
    for line in lines:
        for text, style in line:
            code = _code(style)
            out.append(f"\x1b[{code}m{text}\x1b[0m" if code else text)
        out.append("\n")
    return "".join(out)


@lru_cache(maxsize=64)
def _code(style: str) -> str:
    ground, codes = "3", []
    for word in style.split():
        if word == "on":
            ground = "4"
        else:
            codes.append(_CODES[word] if word in _CODES else f"{ground}{_COLORS.index(word)}")
    return ";".join(codes)


@lru_cache(maxsize=1024)
def _cells_of(char: str) -> int:
    if char < "\u0300":
        return 1
    import unicodedata

    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _rows(pieces: Line) -> list[Line]:
    """Cut at line ends."""
    rows: list[Line] = [[]]
    for text, style in pieces:
        first, *others = text.split("\n")
        if first:
            rows[-1].append((first, style))
        rows += [[(part, style)] if part else [] for part in others]
    return rows


def _broken(row: Line, text: str, width: int) -> list[Line]:
    found: list[Line] = []
    breaks = [0, *_breaks(text, width), len(text)]
    for start, stop in pairwise(breaks):
        line: Line = []
        at = 0
        stop = start + len(text[start:stop].rstrip()) if cells(text[start:stop]) > width else stop
        for piece, style in row:
            part = piece[max(start - at, 0) : max(stop - at, 0)]
            if part:
                line.append((part, style))
            at += len(piece)
        found.append(line)
    return found


def _breaks(text: str, width: int) -> list[int]:
    """Where new lines begin."""
    found: list[int] = []
    used = at = 0
    begun = False
    for word in text.split(" "):
        size = cells(word)
        if size and begun and used + size > width:
            found.append(at)
            used = 0
        if size and used + size > width:
            for place, char in enumerate(word, at):
                one = _cells_of(char)
                if used and used + one > width:
                    found.append(place)
                    used = 0
                used += one
        else:
            used += size
        begun = begun or size > 0
        used += 1
        at += len(word) + 1
    return found
