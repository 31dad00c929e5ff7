"""From kept bytes to an `Intake`. In: what scans left over; out: lines, marks, activity. Sample:

assembly.add(Taken("a.log", …, kept=[(812, b"[2026-11-29 20:15:20 TP1] boom")], …)); assembly.intake() -> Intake(…)
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import NamedTuple

from forensics.ingest.activity import activity_of
from forensics.ingest.alike import Alike
from forensics.ingest.attempts import with_global_ranks
from forensics.ingest.decode import text_of
from forensics.ingest.exported import records
from forensics.ingest.intake import Intake
from forensics.ingest.lines import LineMaker, settle
from forensics.ingest.markdown import fenced
from forensics.ingest.marks import marks_of
from forensics.ingest.newest import is_newest_first, turned
from forensics.ingest.partial import whole_lines
from forensics.ingest.pulse import Pulse
from forensics.ingest.ranks import Siblings, rank_of_name
from forensics.ingest.retain import Retainer
from forensics.ingest.scan import Scanned
from forensics.ingest.wants import Wants
from forensics.model.record import replace
from forensics.model.source import Clock, LogLine, LogSource, Note, Rank, RankActivity, Skipped


class Taken(NamedTuple):
    """What is left of a source after its scan.

    size: in bytes; kept: (number, bytes) of every kept line; repeats: as `Fold.repeats`; sightings: as
    `Pulse.sightings`; whole: every line is in `kept`; alike: as `Retainer.alike`.
    """

    name: str
    size: int
    lines: int
    encoding: str
    compression: str | None
    kept: list[tuple[int, bytes]]
    repeats: dict[int, int]
    evicted: int
    cut_lines: int
    sightings: list[tuple[int, bytes]]
    whole: bool
    alike: Set[int] = frozenset()


def take(
    name: str, encoding: str, compression: str | None, scanned: Scanned, retainer: Retainer, pulse: Pulse, whole: bool
) -> Taken:
    """A scan's result as plain values."""
    kept = list(retainer.lines())
    return Taken(
        name, scanned.bytes, scanned.lines, encoding, compression, kept, retainer.repeats(kept),
        retainer.evicted, retainer.cut_lines + scanned.long_lines, [] if whole else pulse.sightings(), whole,
        retainer.alike,
    )  # fmt: skip


class Assembly:
    """Collects the sources of one run. names: of all inputs, which tell whether a number in a name is a pod's; copies: lines
    that were not kept, as other inputs say the same; alike: sources that say nothing else."""

    def __init__(self, wants: Wants, names: Iterable[str] = ()) -> None:
        self._siblings = Siblings(names)
        self._wants = wants
        self.sources: list[LogSource] = []
        self.lines: list[LogLine] = []
        self.activity: list[RankActivity] = []
        self.notes: list[Note] = []
        self.skipped: list[Skipped] = []
        self.blobs: list[tuple[str, bytes]] = []
        self.repeats: dict[tuple[int, int], int] = {}
        self._alike = Alike()
        self.alike: set[int] = set()
        self.copies = 0

    def apart(self) -> Assembly:
        """An empty one for inputs of the same run that another process reads."""
        other = Assembly(self._wants)
        other._siblings = self._siblings
        return other

    def add(self, taken: Taken) -> None:
        """One scanned source."""
        rank = rank_of_name(taken.name, self._siblings)
        if not taken.kept and len(taken.sightings) == 1:
            self._add_calm(taken, rank)
            return
        kept = [(number, text_of(raw)) for number, raw in taken.kept]
        source = LogSource(taken.name, taken.size, taken.lines, taken.encoding, taken.compression, rank)
        kept = (records(kept) if taken.whole and kept else None) or kept
        parts = fenced(source.name, kept) if taken.whole else None
        if parts is None:
            self._add(source, kept, taken.sightings, taken.alike, taken.whole)
        else:
            for part in parts:
                size = sum(len(text) + 1 for _, text in part)
                self._add(replace(source, line_offset=part[0][0] - 1, lines=len(part), bytes=size), part, [], whole=True)
        index = len(self.sources) - 1
        for number, count in taken.repeats.items():
            self.repeats[(index, number)] = count
        if not taken.whole:
            self._explain(taken)

    def _add_calm(self, taken: Taken, rank: Rank | None) -> None:
        """A source of which the last line was seen, and nothing kept."""
        index = len(self.sources)
        maker = LineMaker(index, rank)
        number, raw = taken.sightings[0]
        maker.add(number, text_of(raw))
        clock = maker.watch.clock()
        self.sources.append(LogSource(taken.name, taken.size, taken.lines, taken.encoding, taken.compression, rank, clock))
        self.activity.extend(activity_of(settle(maker.lines, maker.watch)))

    def _explain(self, taken: Taken) -> None:
        folded = sum(taken.repeats.values())
        if folded:
            self.notes.append(
                Note("ingest", f"{taken.name}: {folded:,} marked lines only repeat others; they were counted, not kept")
            )
        if taken.evicted:
            self.notes.append(
                Note(
                    "ingest",
                    f"{taken.name}: more marked lines than the budget holds; of its middle only rare ones were kept",
                    hides=True,
                )
            )
        if taken.cut_lines:
            self.notes.append(Note("ingest", f"{taken.name}: {taken.cut_lines} long lines were cut", hides=True))

    def _add(
        self,
        source: LogSource,
        kept: list[tuple[int, str]],
        sightings: list[tuple[int, bytes]],
        alike: Set[int] = frozenset(),
        whole: bool = False,
    ) -> None:
        index = len(self.sources)
        have = {number for number, _ in kept}
        lines = whole_lines(kept)
        maker = LineMaker(index, source.default_rank, (text for _, text in lines))
        for number, text in lines:
            maker.add(number, text)
        count = len(maker.lines)
        for number, raw in sightings:
            if number not in have:
                maker.add(number, text_of(raw))
        seen, turn = settle(maker.lines, maker.watch), 0
        if whole and is_newest_first(seen):
            seen, turn = turned(seen)
        self.sources.append(_clocked(source, maker.watch.clock(), turn))
        mine = seen[:count]
        if alike and all(number in alike for number, _ in kept):
            self.alike.add(index)
            self.adopt(mine)
        else:
            self.lines.extend(mine)
        if len(seen) > count > 0 and seen[count].number < seen[count - 1].number:
            seen = sorted(seen, key=lambda line: line.number)
        self.activity.extend(activity_of(seen))

    def adopt(self, lines: Iterable[LogLine], told: dict[tuple[int, int], int] | None = None) -> None:
        """Adds lines of sources that only say what many say, as far as they say something new; of the others a kept copy elsewhere is
        counted, with what they stand for by `told`, which loses it."""
        for line in lines:
            place = self._alike.place_of(line)
            if place is None:
                self.lines.append(line)
            else:
                more = told.pop((line.source, line.number), 0) if told else 0
                self.repeats[place] = self.repeats.get(place, 0) + 1 + more
                self.copies += 1

    def intake(self) -> Intake:
        """Everything collected so far."""
        if self.copies:
            text = f"{self.copies:,} marked lines only repeat what inputs of the same rank said before; they were counted, not kept"
            self.notes.append(Note("ingest", text))
        sources, lines, activity = with_global_ranks(self.sources, self.lines, self.activity)
        return Intake(
            sources=tuple(sources),
            lines=lines,
            marks=marks_of(lines, self._wants),
            activity=tuple(activity),
            skipped=tuple(self.skipped),
            notes=self.notes,
            blobs=tuple(self.blobs),
            repeats=self.repeats,
            scanned=bool(self._wants),
        )


def _clocked(source: LogSource, clock: Clock, turn: int) -> LogSource:
    """`replace(source, clock=clock, turn=turn)`, of which very many inputs need one each."""
    return LogSource(
        source.name, source.bytes, source.lines, source.encoding, source.compression, source.default_rank, clock, source.line_offset, turn
    )
