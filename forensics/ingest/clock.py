"""Times as logs print them. In: the text of a stamp; out: seconds and what kind of clock it is. Sample:

moment("2026-11-29 20:15:20,250") -> (1795983320.25, "wall", 0.001)
moment("1129 20:15:34.123")       -> (28757734.123, "wall_no_year", 0.001): seconds since a 1 January
"""

from __future__ import annotations

from functools import lru_cache

from forensics.ingest.pattern import Pattern
from forensics.model.source import Clock

_MONTHS = {
    m: i for i, m in enumerate(["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], 1)
}
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

_CLOCK = r"(?P<H>\d\d):(?P<M>\d\d)(?::(?P<S>\d\d)(?:[.,](?P<f>\d{1,9}))?)?"
_FORMS = (
    Pattern(r"(?P<m>\d\d)/(?P<d>\d\d)/(?P<y>\d{4})[- ]" + _CLOCK + "$"),
    Pattern(r"(?P<m>\d\d?)-?(?P<d>\d\d) " + _CLOCK + "$"),
    Pattern(r"[A-Z][a-z]{2} (?P<b>[A-Z][a-z]{2}) +(?P<d>\d{1,2}) " + _CLOCK + r" (?P<y>\d{4})$"),
    Pattern(r"(?P<b>[A-Z][a-z]{2}) {0,2}(?P<d>\d{1,2}) " + _CLOCK + "$"),
    Pattern(_CLOCK + "$"),
)
_LLAMA = Pattern(r"(\d{1,4})\.(\d\d)\.(\d{3})\.(\d{3})$")
_NUMBER = Pattern(r"\d{1,19}(?:\.\d{1,9})?$")


@lru_cache(maxsize=4096)
def _day(year: int, month: int, day: int) -> int | None:
    """Seconds from 1970 to the start of a day; None where the calendar has no such day."""
    if not (1 <= month <= 12 and year >= 1):
        return None
    if not 1 <= day <= _DAYS[month - 1] + (month == 2 and _is_leap(year)):
        return None
    before = year - 1
    days = before * 365 + before // 4 - before // 100 + before // 400 - 719162
    days += sum(_DAYS[: month - 1]) + (month > 2 and _is_leap(year)) + day - 1
    return days * 86400


@lru_cache(maxsize=1024)
def moment(stamp: str) -> tuple[float, str, float] | None:
    """(seconds, Clock.kind, resolution in seconds), or None where it is no time.

    wall: seconds since 1970 (no zone = UTC); wall_no_year: as if it were 1970, or 1972 on a 29 February; time_of_day: since
    midnight; monotonic: as printed.
    """
    if stamp[4:5] == "-" and stamp[:4].isdigit():
        return _iso(stamp)
    for form in _FORMS:
        found = form.match(stamp)
        if found is None:
            continue
        part = found.groupdict()
        seconds = int(part["H"]) * 3600 + int(part["M"]) * 60 + int(part["S"] or 0)
        digits = part["f"] or ""
        fraction = int(digits) / 10 ** len(digits) if digits else 0.0
        step = 10.0 ** -len(digits) if digits else 1.0 if part["S"] else 60.0
        if "d" not in part:
            return seconds + fraction, "time_of_day", step
        month = _MONTHS.get(part["b"], 0) if part.get("b") else int(part["m"])
        year = int(part["y"]) if part.get("y") else 1972 if (month, part["d"]) == (2, "29") else 1970
        start = _day(year, month, int(part["d"]))
        if start is None:
            return None
        return start + seconds + fraction, "wall" if part.get("y") else "wall_no_year", step
    llama = _LLAMA.match(stamp)
    if llama:
        minutes, whole, milli, micro = (int(x) for x in llama.groups())
        return minutes * 60 + whole + milli / 1e3 + micro / 1e6, "monotonic", 1e-6
    if _NUMBER.match(stamp):
        return _number(stamp)
    return None


def _iso(stamp: str) -> tuple[float, str, float] | None:
    """2026-11-29T20:15:20.250+02:00 and its kin, without a pattern: the commonest form by far."""
    try:
        start = _day(int(stamp[:4]), int(stamp[5:7]), int(stamp[8:10]))
        seconds = int(stamp[11:13]) * 3600 + int(stamp[14:16]) * 60 + int(stamp[17:19])
        rest = stamp[19:]
        if rest[-1:] == "Z":
            rest = rest[:-1]
        elif rest[-6:-5] in ("+", "-") or rest[-5:-4] in ("+", "-"):
            cut = -6 if rest[-3:-2] == ":" else -5
            zone, rest = rest[cut:], rest[:cut]
            offset = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
            seconds -= offset if zone[0] == "+" else -offset
        digits = rest[1:]
        fraction = int(digits) / 10 ** len(digits) if digits else 0.0
    except ValueError:
        return None
    if start is None or rest[:1] not in ("", ".", ","):
        return None
    return start + seconds + fraction, "wall", 10.0 ** -len(digits) if digits else 1.0


def _number(stamp: str) -> tuple[float, str, float]:
    """A bare number: an epoch in s, ms, us or ns by its size, else a count of seconds."""
    value = float(stamp)
    for scale in (1.0, 1e3, 1e6, 1e9):
        if 9e8 <= value / scale <= 4.2e9:
            return value / scale, "wall", 1 / scale if scale > 1 else 1e-6 if "." in stamp else 1.0
    return value, "monotonic", 1e-6 if "." in stamp else 1.0


def with_year(seconds: float, anchor: float) -> float:
    """A time without a year, put into the year that brings it nearest to `anchor` (a time with a date)."""
    year = 1970 + int(anchor / 31556952)
    shifts = [d for d in (_day(y, 1, 1) for y in (year - 1, year, year + 1)) if d is not None]
    leap = 86400 if seconds >= 59 * 86400 else 0
    choices = [
        s + seconds + (leap if _is_leap(y) else 0) for y, s in zip((year - 1, year, year + 1), shifts, strict=True)
    ]
    return min(choices, key=lambda t: abs(t - anchor))


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


class ClockWatch:
    """Which clock a source runs on: the commonest kind of its stamps, and the finest step seen."""

    __slots__ = ("counts", "finest")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.finest: dict[str, float] = {}

    def saw(self, kind: str, step: float) -> None:
        """One more stamp."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if step < self.finest.get(kind, 1e9):
            self.finest[kind] = step

    def clock(self) -> Clock:
        """The verdict; Clock("none") where no line had a time."""
        if not self.counts:
            return Clock()
        kind = max(self.counts, key=lambda k: (self.counts[k], k == "wall")) if len(self.counts) > 1 else next(iter(self.counts))
        return _clock(kind, self.finest[kind])


@lru_cache(maxsize=64)
def _clock(kind: str, step: float) -> Clock:
    return Clock(kind, step)
