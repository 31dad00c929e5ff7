"""Text, sizes and times as people read them, which cannot hurt a terminal. In: strings and numbers; out: printable strings. Sample:

one_line("\\x1b[31mred\\n  and more", 12) -> "␛[31mred an…"
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from forensics.visible import visible

__all__ = ["block", "clock_time", "counted", "duration", "listed", "one_line", "places", "size", "visible", "words"]

#: "=========" and the like, which only make sense on lines of their own
_RULER = re.compile(r"([=\-*_#~])\1{9,}")


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
    from time import gmtime, strftime

    if kind == "line":
        return f"line {seconds:,.0f}"
    if kind == "monotonic" or seconds < 0 or seconds > 1e11:
        return f"{seconds:.3f} s"
    whole, millis = divmod(round(seconds * 1e6) // 1000, 1000)
    form = {"time_of_day": "%H:%M:%S", "wall_no_year": "%m-%d %H:%M:%S"}.get(kind, "%Y-%m-%d %H:%M:%S")
    return strftime(form, gmtime(whole)) + (f".{millis:03d}" if millis else "")
