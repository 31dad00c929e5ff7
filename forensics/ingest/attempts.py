"""Which rank a file of torchrun's log folder is of. In: sources, lines, activity; out: the same, with global ranks. Sample:

    run/node2/attempt_0/2/stderr.log   [rank18]:[E1129 20:25:20.1 …       local rank 2 of this folder is rank 18
    run/node2/attempt_0/4/stderr.log   [rank20]:[E1129 20:25:20.2 …
    run/node2/attempt_0/3/stderr.log   ValueError: …                      so local rank 3 is rank 19, which no line says

torchrun --log-dir writes DIR/RUN/attempt_N/LOCAL_RANK/stderr.log (torch.distributed.elastic.multiprocessing.api, 2.7). An agent numbers
its ranks in a row, so two files that agree tell of the others in their folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from forensics.ingest.pattern import Pattern
from forensics.model.record import replace
from forensics.model.source import LogLine, LogSource, Rank, RankActivity

_PLACE = Pattern(r"^(?P<folder>(?:.{0,4000}[/\\!])?attempt_(?P<attempt>\d{1,3}))[/\\](?P<local>\d{1,4})[/\\][^/\\]{1,80}$")
#: files of one folder that must agree
_LEAST = 2

class Place(NamedTuple):
    """Where a file stands in such a folder. folder: of the attempt; attempt: its number; local: the local rank."""

    folder: str
    attempt: int
    local: int


Told = tuple[list[LogSource], list[LogLine], list[RankActivity]]


def with_global_ranks(sources: list[LogSource], lines: list[LogLine], activity: list[RankActivity]) -> Told:
    """Lines that have only their file's local rank get the global one, where the folder's other files tell it."""
    places = {index: found for index, source in enumerate(sources) if (found := _place(source)) is not None}
    if not places:
        return sources, lines, activity
    final = _numbers(places, lines)
    if not final:
        return sources, lines, activity
    ranks = {index: Rank(f"rank {number}", number, (("local", places[index].local),)) for index, number in final.items()}

    def rank_of(rank: Rank | None, source: int) -> Rank | None:
        return ranks[source] if rank is not None and source in ranks and rank == sources[source].default_rank else rank

    told = []
    for line in lines:
        rank = rank_of(line.rank, line.source)
        alone = line.rank is not None and line.stream == line.rank.label
        told.append(line if rank is line.rank or rank is None else line._replace(rank=rank, stream=rank.label if alone else line.stream))
    rows = [row if (rank := rank_of(row.rank, row.source)) is row.rank or rank is None else replace(row, rank=rank) for row in activity]
    named = [replace(source, default_rank=ranks[index]) if index in ranks else source for index, source in enumerate(sources)]
    return named, told, rows


def place_of(source: LogSource) -> Place | None:
    """The place of a file that torchrun names; None for another one."""
    if "attempt_" not in source.name or (found := _PLACE.match(source.name)) is None:
        return None
    return Place(found["folder"], int(found["attempt"]), int(found["local"]))


def _place(source: LogSource) -> Place | None:
    """The same, of a file whose name is all that tells a rank."""
    return place_of(source) if source.default_rank is not None and source.default_rank.axis("local") is not None else None


def _numbers(places: dict[int, Place], lines: Sequence[LogLine]) -> dict[int, int]:
    """Source -> global rank, for files that say it and those beside them; of a folder that contradicts itself none."""
    said: dict[int, set[int]] = {}
    for line in lines:
        if line.source in places and line.rank is not None and line.rank.number is not None:
            said.setdefault(line.source, set()).add(line.rank.number)
    bases: dict[str, dict[tuple[int, int], int]] = {}
    for source, numbers in said.items():
        folder, _, local = places[source]
        if len(numbers) == 1:
            bases.setdefault(folder, {})[local, next(iter(numbers))] = next(iter(numbers)) - local
    found = {}
    for source, (folder, _, local) in places.items():
        known = bases.get(folder, {})
        offsets = set(known.values())
        if len(offsets) == 1 and len({place for place, _ in known}) >= _LEAST:
            found[source] = offsets.pop() + local
    return found
