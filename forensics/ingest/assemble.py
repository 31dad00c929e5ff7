"""From kept bytes to an `Intake`. In: retainers and what is known of their sources; out: lines, marks, activity. Sample:

    assembly.add(LogSource("a.log", …), retainer, pulse); assembly.intake() -> Intake(…)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from forensics.ingest.activity import activity_of
from forensics.ingest.decode import text_of
from forensics.ingest.intake import Intake
from forensics.ingest.lines import LineMaker, settle
from forensics.ingest.markdown import fenced
from forensics.ingest.marks import marks_of
from forensics.ingest.options import ReadOptions
from forensics.ingest.pulse import Pulse
from forensics.ingest.retain import Retainer
from forensics.model.source import LogLine, LogSource, Note, RankActivity, Skipped

#: lines that tell which weak prefixes a source uses
_SAMPLE = 400


class Assembly:
    """Collects the sources of one run."""

    def __init__(self, literals: Iterable[bytes], options: ReadOptions) -> None:
        self._literals = list(literals)
        self._options = options
        self.sources: list[LogSource] = []
        self.lines: list[LogLine] = []
        self.activity: list[RankActivity] = []
        self.notes: list[Note] = []
        self.skipped: list[Skipped] = []
        self.blobs: list[tuple[str, bytes]] = []
        self.repeats: dict[tuple[int, int], int] = {}

    def add(self, source: LogSource, retainer: Retainer, pulse: Pulse | None = None, whole: bool = False) -> None:
        """One scanned source. whole: every line of it is in the retainer."""
        kept = [(number, text_of(raw)) for number, raw in retainer.lines()]
        parts = fenced(source.name, kept) if whole else None
        if parts is None:
            self._add(source, kept, pulse)
        else:
            for part in parts:
                self._add(replace(source, line_offset=part[0][0] - 1, lines=len(part), bytes=sum(len(t) + 1 for _, t in part)), part, None)
        index = len(self.sources) - 1
        folded = 0
        for number, count in retainer.repeats().items():
            self.repeats[(index, number)] = count
            folded += count
        if not whole:
            self._explain(index, retainer, folded)

    def _explain(self, index: int, retainer: Retainer, folded: int) -> None:
        name = self.sources[index].name
        if folded:
            self.notes.append(Note("ingest", f"{name}: {folded:,} marked lines only repeat others and were counted, not kept"))
        if retainer.evicted:
            self.notes.append(Note("ingest", f"{name}: more marked lines than the budget holds; of the middle part only rare ones were kept"))
        if retainer.cut_lines:
            self.notes.append(Note("ingest", f"{name}: {retainer.cut_lines} long lines were cut"))

    def _add(self, source: LogSource, kept: list[tuple[int, str]], pulse: Pulse | None) -> None:
        index = len(self.sources)
        maker = LineMaker(index, source.default_rank, [text for _, text in kept[:_SAMPLE]])
        for number, text in kept:
            maker.add(number, text)
        lines = settle(maker.lines, maker.watch)
        self.sources.append(replace(source, clock=maker.watch.clock()))
        self.lines.extend(lines)
        seen = lines
        if pulse is not None:
            have = {line.number for line in lines}
            for number, raw in pulse.sightings():
                if number not in have:
                    maker.add(number, text_of(raw))
            seen = sorted(settle(maker.lines, maker.watch), key=lambda line: line.number)
        self.activity.extend(activity_of(seen))

    def intake(self) -> Intake:
        """Everything collected so far."""
        return Intake(
            sources=tuple(self.sources),
            lines=self.lines,
            marks=marks_of(self.lines, self._literals, self._options.engine),
            activity=tuple(self.activity),
            skipped=tuple(self.skipped),
            notes=self.notes,
            blobs=tuple(self.blobs),
            repeats=self.repeats,
        )


