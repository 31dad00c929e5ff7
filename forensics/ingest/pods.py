"""Whose lines a pod's are that name no rank. In: the lines of one source; out: the same, with ranks. Sample:

    [pod/train-1/pytorch] Traceback (most recent call last):          no rank is named yet
    [pod/train-1/pytorch] KeyError: 'b17'
    [pod/train-1/pytorch] [rank1]:[W503 10:00:01.1 …] Warning: …      -> all of them are rank 1's

Only where every line of that container which names a rank names the same one: a pod of several ranks has lines of nobody in particular.
"""

from __future__ import annotations

from forensics.model.source import LogLine, Rank

_PREFIX = "[pod/"


def with_pods_ranks(lines: list[LogLine]) -> list[LogLine]:
    """The lines of `kubectl logs --prefix`, those without a rank with the only one that their container speaks of."""
    if not lines or not lines[0].raw.startswith(_PREFIX):
        return lines
    owners: dict[str, tuple[Rank, str] | None] = {}
    for line in lines:
        if line.rank is None or not line.raw.startswith(_PREFIX):
            continue
        place = _place(line)
        held = owners.setdefault(place, (line.rank, line.stream))
        if held is not None and held[0].key != line.rank.key:
            owners[place] = None
    if not any(owners.values()):
        return lines
    return [_owned(line, owners) for line in lines]


def _place(line: LogLine) -> str:
    return line.raw[len(_PREFIX) : line.raw.find("]")]


def _owned(line: LogLine, owners: dict[str, tuple[Rank, str] | None]) -> LogLine:
    if line.rank is not None or not line.raw.startswith(_PREFIX):
        return line
    held = owners.get(_place(line))
    return line if held is None else line._replace(rank=held[0], stream=held[1])
