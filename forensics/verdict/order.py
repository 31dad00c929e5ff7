"""What came before what. In: an `Intake` (clocks, lines with times); out: sort keys. Sample:

    Order(intake).key(event of 20:15:20 in line 812) -> (0, 1795983320.0, 0, 812)

Times are compared at the coarsest step of the clocks in the input: 20:15:45.33 and 20:15:45 are the same moment, and what was
printed first then counts. A source without times is ordered by its lines. A source whose times run backwards is newest-first.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import takewhile
from math import floor

from forensics.ingest.intake import Intake
from forensics.model.source import Span

#: clocks that name the same moments
_WALL = frozenset(("wall", "wall_no_year"))
#: lines of the same second above one that are asked for a finer stamp
_NEAR = 50


class Order:
    """Compares places of the log in time."""

    def __init__(self, intake: Intake) -> None:
        self._carried: dict[int, tuple[list[int], list[float]]] = {}
        self._backwards: set[int] = set()
        self._step = 0.0
        self._wall = {
            index: source.clock.kind in _WALL or source.clock.kind == "none"
            for index, source in enumerate(intake.sources)
        }
        self._walk(intake)
        timed = [index for index in self._carried if self._wall.get(index, True)]
        self.one_clock = len(timed) == len(intake.sources) or len(intake.sources) <= 1

    def _walk(self, intake: Intake) -> None:
        falls: dict[int, int] = {}
        rises: dict[int, int] = {}
        fine: dict[str | None, bool] = {}  # dialects whose stamps show fractions of a second; a fraction may be .000
        for line in intake.lines:
            if line.time is None:
                continue
            numbers, times = self._carried.setdefault(line.source, ([], []))
            if times:
                if line.time < times[-1]:
                    falls[line.source] = falls.get(line.source, 0) + 1
                elif line.time > times[-1]:
                    rises[line.source] = rises.get(line.source, 0) + 1
            if not fine.get(line.dialect):
                fine[line.dialect] = line.time != floor(line.time)
            numbers.append(line.number)
            times.append(line.time)
        self._step = 0.0 if all(fine.values()) else 1.0
        for source, count in falls.items():
            if count > 3 * rises.get(source, 0):
                self._backwards.add(source)

    def backwards(self, source: int) -> bool:
        """True where the newest lines come first."""
        return source in self._backwards

    def time_at(self, source: int, line: int) -> float | None:
        """The last time printed at or above a line."""
        numbers, times = self._carried.get(source, ([], []))
        place = bisect_right(numbers, line) - 1
        if place >= 0:
            return times[place]
        return times[0] if times else None

    def key(self, span: Span, time: float | None) -> tuple[int, float, int, int]:
        """Smaller is earlier. Times count where the input has one clock; else the order of the sources and lines."""
        moment = time if time is not None else self.time_at(span.source, span.first_line)
        line = -span.first_line if span.source in self._backwards else span.first_line
        if moment is None or not self.one_clock:
            return (0, 0.0 if not self.one_clock or not self._carried else float("inf"), span.source, line)
        return (0, self._rounded(span, moment), span.source, line)

    def _rounded(self, span: Span, moment: float) -> float:
        """A time as far as all stamps show it. In one source a line whose stamp shows whole seconds stands behind what was written above it
        in its second, so that finer stamps keep their order."""
        if not self._step:
            return moment
        whole = floor(moment / self._step) * self._step
        if len(self._carried) != 1:
            return whole
        numbers, times = self._carried.get(span.source, ([], []))
        place = bisect_right(numbers, span.first_line)
        near = times[max(0, place - _NEAR) : place][::-1] if moment == whole else []
        return next((time for time in takewhile(lambda time: floor(time) == whole, near) if time != whole), moment)
