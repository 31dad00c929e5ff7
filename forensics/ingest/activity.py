"""When each rank was first and last heard. In: lines; out: `RankActivity` records. Sample:

[LogLine(… rank=TP0, time=1.0, number=5), LogLine(… rank=TP0, time=9.0, number=80)]
-> (RankActivity(TP0, first_time=1.0, last_time=9.0, first_line=5, last_line=80),)
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.ingest.pattern import Pattern
from forensics.model.source import LogLine, Rank, RankActivity

_STEP = Pattern(r"\b(?:global_step|step|iteration|iter|Step|Iteration|Iter)[ =:#]{0,3}\[? {0,8}(\d{1,9})\b")
_REACH = 300


class _Seen:
    __slots__ = ("first_line", "first_time", "last_line", "last_time", "rank", "source", "step")

    def __init__(self, line: LogLine, rank: Rank) -> None:
        self.rank, self.source = rank, line.source
        self.first_line = self.last_line = line.number
        self.first_time = self.last_time = line.time
        self.step: int | None = None


def activity_of(lines: Sequence[LogLine]) -> tuple[RankActivity, ...]:
    """One record a rank (label and node) and source, in order of first sighting. Lines come in order of their numbers."""
    if len(lines) == 1:  # all that very many inputs have to say
        line = lines[0]
        if line.rank is None:
            return ()
        time, number = line.time, line.number
        return (RankActivity(line.rank, time, time, number, number, _step_of(line.text), line.source),)
    seen: dict[tuple[str, str | None, int], _Seen] = {}
    for line in lines:
        rank = line.rank
        if rank is None:
            continue
        key = (rank.label, rank.node, line.source)
        entry = seen.get(key)
        if entry is None:
            entry = seen[key] = _Seen(line, rank)
        entry.last_line = line.number
        if line.time is not None:
            if entry.first_time is None:
                entry.first_time = line.time
            entry.last_time = line.time if entry.last_time is None else max(line.time, entry.last_time)
        step = _step_of(line.text)
        if step is not None:
            entry.step = step
    return tuple(
        RankActivity(e.rank, e.first_time, e.last_time, e.first_line, e.last_line, e.step, e.source)
        for e in seen.values()
    )


def _step_of(text: str) -> int | None:
    """The step that a line names near its beginning."""
    text = text[:_REACH]
    step = _STEP.search(text) if "tep" in text or "ter" in text else None
    return int(step[1]) if step is not None else None
