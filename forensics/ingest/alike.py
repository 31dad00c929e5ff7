"""Of what very many inputs say alike each rank's first copies are enough. In: a line; out: the place of a kept copy. Sample:

    four files of TP1 said "CUDA error: an illegal memory access was encountered at step 8216", so does the next:
    Alike().place_of(its line) -> (1003, 294): source and line of the copy that is kept, which counts this one, too

Numbers of up to three digits are codes and devices, longer ones are steps and addresses: those do not make a line another one. A copy
that is earlier than all before it is kept: it may be where things began.
"""

from __future__ import annotations

from forensics.ingest.pattern import Pattern
from forensics.model.source import LogLine

#: copies of one rank
_COPIES = 2
_COMPARED = 240
_LONG_NUMBER = Pattern(r"0x[0-9a-fA-F]{1,16}|\d{4,24}|\d{1,9}\.\d{1,9}")
#: more different ones are all kept
_MOST = 50_000


class _Copies:
    __slots__ = ("earliest", "kept", "place")

    def __init__(self) -> None:
        self.kept = 0
        self.earliest: float | None = None
        self.place = (0, 0)


class Alike:
    """Counts copies by text and rank."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str, str | None], _Copies] = {}

    def place_of(self, line: LogLine) -> tuple[int, int] | None:
        """(source, line number) of a kept copy that speaks for this line; None where it is to be kept itself."""
        if line.rank is None:
            return None  # which input it stands in is all that tells who it was
        text = _LONG_NUMBER.sub("", line.text[:_COMPARED])
        key = (text, line.rank.label, line.rank.node)
        copies = self._seen.get(key)
        if copies is None:
            if len(self._seen) >= _MOST:
                return None
            copies = self._seen[key] = _Copies()
        is_first = line.time is not None and (copies.earliest is None or line.time < copies.earliest)
        if is_first:
            copies.earliest = line.time
        if copies.kept >= _COPIES and not is_first:
            return copies.place
        copies.kept += 1
        copies.place = (line.source, line.number)
        return None
