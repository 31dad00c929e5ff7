"""Whose lines a pod's are that name no rank. In: the lines of one source; out: the same, with ranks. Sample:

    [pod/train-0/pytorch] [rank0]: step 1 loss 2.2
    [pod/train-1/pytorch] Traceback (most recent call last):          no rank is named yet
    [pod/train-1/pytorch] KeyError: 'b17'
    [pod/train-1/pytorch] [rank1]:[W503 10:00:01.1 …] Warning: …      -> all of them are rank 1's

Only where the pods of a job have one rank each, which takes more than one pod to see: of many ranks in a pod often just the one that
failed puts its number before its lines.
"""

from __future__ import annotations

from forensics.model.source import LogLine, Rank

_PREFIX = "[pod/"


def with_pods_ranks(lines: list[LogLine]) -> list[LogLine]:
    """The lines of `kubectl logs --prefix`, those without a rank with the only one that their container speaks of."""
    if not lines or not lines[0].raw.startswith(_PREFIX):
        return lines
    owners: dict[str, tuple[Rank, str]] = {}
    pods: set[str] = set()
    for line in lines:
        if not line.raw.startswith(_PREFIX):
            continue
        place = _place(line)
        pods.add(place.partition("/")[0])
        if line.rank is not None and owners.setdefault(place, (line.rank, line.stream))[0].key != line.rank.key:
            return lines
    if not _is_one_each([rank.number for rank, _ in owners.values()], len(pods)):
        return lines
    return [_owned(line, owners) for line in lines]


def _is_one_each(numbers: list[int | None], pods: int) -> bool:
    """True for the ranks of several containers, each named by one only, that are not more than there are pods."""
    return len(numbers) > 1 and len(set(numbers)) == len(numbers) and all(number is not None and number < pods for number in numbers)


def _place(line: LogLine) -> str:
    return line.raw[len(_PREFIX) : line.raw.find("]")]


def _owned(line: LogLine, owners: dict[str, tuple[Rank, str]]) -> LogLine:
    if line.rank is not None or not line.raw.startswith(_PREFIX):
        return line
    held = owners.get(_place(line))
    return line if held is None else line._replace(rank=held[0], stream=held[1])
