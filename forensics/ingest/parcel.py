"""What one process read, on its way to another. In: an `Assembly`; out: plain values that marshal takes, and back. Sample:

    unpack(pack(worker's assembly), assembly): its sources follow those that are there, its lines know their new places

Lines are made where they were read, so that of very many files no process makes all of them.
"""

from __future__ import annotations

from typing import Any

from forensics.ingest.assemble import Assembly
from forensics.model.source import Clock, LogLine, LogSource, Note, Rank, RankActivity, Skipped, Span

_NOBODY = -1


class _Ranks:
    """Each rank once, by its place in a list: many lines share one."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self._places: dict[int, int] = {}  # by identity: ranks live as long as the assembly

    def place(self, rank: Rank | None) -> int:
        """The place of this one; _NOBODY for None."""
        if rank is None:
            return _NOBODY
        place = self._places.get(id(rank))
        if place is None:
            place = self._places[id(rank)] = len(self.rows)
            self.rows.append((rank.label, rank.number, rank.axes, rank.node, rank.pid))
        return place


def pack(part: Assembly) -> dict[str, Any]:
    """Everything in it as plain values."""
    ranks = _Ranks()
    place = ranks.place
    return {
        "sources": [
            (
                s.name, s.bytes, s.lines, s.encoding, s.compression, place(s.default_rank), s.clock.kind, s.clock.resolution_s,
                s.line_offset, s.turn,
            )
            for s in part.sources
        ],
        "lines": [(*line[:5], place(line.rank), *line[6:]) for line in part.lines],
        "activity": [
            (place(a.rank), a.first_time, a.last_time, a.first_line, a.last_line, a.last_step, a.source) for a in part.activity
        ],
        "notes": [
            (n.stage, n.text, (n.span.source, n.span.first_line, n.span.last_line) if n.span else None, n.hides) for n in part.notes
        ],
        "skipped": [(s.name, s.why, s.bytes, s.harmless) for s in part.skipped],
        "blobs": part.blobs,
        "repeats": [(*key, count) for key, count in part.repeats.items()],
        "alike": list(part.alike),
        "copies": part.copies,
        "ranks": ranks.rows,
    }  # fmt: skip


def unpack(parcel: dict[str, Any], into: Assembly) -> None:
    """Adds what another process read behind what is there."""
    before = len(into.sources)
    ranks: list[Rank | None] = [Rank(*row) for row in parcel["ranks"]]
    ranks.append(None)  # the place of nobody, from behind
    for name, size, lines, encoding, compression, rank, clock, resolution, offset, turn in parcel["sources"]:
        into.sources.append(
            LogSource(name, size, lines, encoding, compression, ranks[rank], Clock(clock, resolution), offset, turn)
        )
    told = {(source + before, number): count for source, number, count in parcel["repeats"]}
    alike = {source + before for source in parcel["alike"]}
    make = LogLine._make
    for row in parcel["lines"]:
        line = make((row[0] + before, *row[1:5], ranks[row[5]], *row[6:]))
        if line.source in alike:
            into.adopt((line,), told)
        else:
            into.lines.append(line)
    for rank, first_time, last_time, first_line, last_line, step, source in parcel["activity"]:
        who = ranks[rank]
        if who is not None:
            into.activity.append(RankActivity(who, first_time, last_time, first_line, last_line, step, source + before))
    for stage, text, span, hides in parcel["notes"]:
        into.notes.append(Note(stage, text, Span(span[0] + before, *span[1:]) if span else None, hides))
    into.skipped.extend(Skipped(*row) for row in parcel["skipped"])
    into.blobs.extend(parcel["blobs"])
    into.copies += parcel["copies"]
    for copy, count in told.items():
        into.repeats[copy] = into.repeats.get(copy, 0) + count
