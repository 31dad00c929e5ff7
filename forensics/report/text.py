"""Text that cannot hurt a terminal or mislead a reader. In: any string; out: a printable one. Sample:

visible("\\x1b[31mred\\u202e") -> "␛[31mred<U+202E>"
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

#: letters that draw nothing and are no format characters by their Unicode category
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5")

#: "=========" and the like, which only make sense on lines of their own
_RULER = re.compile(r"([=\-*_#~])\1{9,}")


def visible(text: str) -> str:
    """The same text with control characters as pictures (␛), tabs as spaces, and bidi, zero-width, private and broken
    characters spelled out (<U+202E>). Line ends stay; carriage returns before them go."""
    if text.isascii() and text.isprintable():
        return text
    if "\r" in text or "\t" in text:
        text = text.replace("\r\n", "\n").expandtabs(4)
    if text.replace("\n", "").isprintable() and _BLANK_LETTERS.isdisjoint(text):
        return text
    return "".join(map(_shown, text))


def _shown(char: str) -> str:
    if char == "\n" or (char.isprintable() and char not in _BLANK_LETTERS):
        return char
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if unicodedata.category(char) == "Zs":
        return " "
    return f"<U+{code:04X}>"


def one_line(text: str, limit: int = 400) -> str:
    """Text on one line, without rulers, at most `limit` characters; "…" stands for what was cut."""
    flat = " ".join(_RULER.sub("", visible(text[: limit * 4])).split())
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


def block(text: str, lines: int = 40, width: int = 500) -> tuple[str, ...]:
    """Text as at most `lines` lines of at most `width` characters; what was cut in the middle is said."""
    rows = [row if len(row) <= width else row[: width - 1] + "…" for row in visible(text).split("\n")]
    while rows and not rows[-1].strip():
        rows.pop()
    if len(rows) <= lines:
        return tuple(rows)
    head = (lines - 1) * 2 // 3
    tail = lines - 1 - head
    return (*rows[:head], f"… {len(rows) - head - tail} lines …", *rows[-tail:])


def words(term: str) -> str:
    """A contract word as people read it: "graph_capture" -> "graph capture"."""
    return term.replace("_", " ")


def listed(items: Iterable[str], limit: int = 8) -> str:
    """ "a, b, c and 5 more"."""
    every = list(items)
    if len(every) <= limit:
        return ", ".join(every)
    return ", ".join(every[:limit]) + f" and {len(every) - limit} more"


def places(every: Iterable[str], limit: int = 6) -> str:
    """Places of one file named once: "a.log:1", "a.log:7-9", "b.log:2" -> "a.log:1, 7-9, b.log:2"."""
    told: list[str] = []
    last = ""
    items = list(dict.fromkeys(every))
    for place in items[:limit]:
        name, _, lines = place.rpartition(":")
        told.append(lines if name and name == last else place)
        last = name
    return ", ".join(told) + (f" and {len(items) - limit} more" if len(items) > limit else "")


def counted(number: int, noun: str) -> str:
    """ "1 rank", "1,024 ranks"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size(number: int) -> str:
    """Bytes for people: 1536 -> "1.5 KiB"."""
    value = float(number)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            return f"{int(value)} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{number} B"


def duration(seconds: float) -> str:
    """Seconds for people: 0.25 -> "0.25 s", 754 -> "12 min 34 s"."""
    if seconds < 10:
        return f"{seconds:.2g} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def clock_time(seconds: float, kind: str = "wall") -> str:
    """A time as the log's own clock writes it. kind: `Clock.kind`."""
    from datetime import UTC, datetime

    if kind == "line":
        return f"line {seconds:,.0f}"
    if kind == "monotonic" or seconds < 0 or seconds > 1e11:
        return f"{seconds:.3f} s"
    when = datetime.fromtimestamp(seconds, UTC)
    form = {"time_of_day": "%H:%M:%S", "wall_no_year": "%m-%d %H:%M:%S"}.get(kind, "%Y-%m-%d %H:%M:%S")
    text = when.strftime(form)
    return text + (f".{when.microsecond // 1000:03d}" if when.microsecond >= 1000 else "")
