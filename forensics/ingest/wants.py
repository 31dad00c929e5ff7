"""The anchors, ready for the scan. In: `Anchor`s; out: what is searched, with its windows and a lazily built engine. Sample:

Wants([Anchor(b"CUDA error", 1, 3), Anchor(b"CUDA error", 0, 9)]).windows -> [(1, 9)]
"""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Iterable
from functools import lru_cache

from forensics.ingest.anchors import Anchor
from forensics.ingest.engine import Engine, engine
from forensics.ingest.heads import head_of

#: bytes from which on the fast engine is built although a light one is there
_LIGHT = 200_000
#: a window of so many lines after the hit is a block, whose body is compared, too
BLOCK_LINES = 20
#: no parser may ask for more lines than this around a hit
_MOST_BEFORE, _MOST_AFTER = 200, 400


class Wants:
    """heads: what is searched, each once, sorted: of each literal a part that prose seldom holds; literals: per head those that begin
    with it; rests: per head what stands behind it in them, longest first; windows: per head the lines kept before and after; most_*:
    of any; is_frame: the head stands in each frame of a stack; is_block: it begins one."""

    __slots__ = (
        "_engine", "_kind", "_light", "heads", "is_block", "is_frame", "literals", "most_after", "most_before", "rests", "windows",
    )  # fmt: skip

    def __init__(self, anchors: Iterable[Anchor], kind: str = "auto") -> None:
        wanted: dict[bytes, tuple[int, int]] = {}
        literals: dict[bytes, set[bytes]] = {}
        for anchor in anchors:
            if anchor.literal and b"\0" not in anchor.literal:  # no kept line has one, and hyperscan ends a literal there
                head = head_of(anchor.literal)
                literals.setdefault(head, set()).add(anchor.literal)
                before, after = wanted.get(head, (0, 0))
                wanted[head] = (
                    min(max(before, anchor.before), _MOST_BEFORE),
                    min(max(after, anchor.after), _MOST_AFTER),
                )
        self.heads = sorted(wanted)
        self.literals = [sorted(literals[head]) for head in self.heads]
        self.rests = [
            sorted((one[len(head) :] for one in literals[head] if one != head), key=len, reverse=True) for head in self.heads
        ]
        self.windows = [wanted[head] for head in self.heads]
        self.most_before = max((before for before, _ in self.windows), default=0)
        self.most_after = max((after for _, after in self.windows), default=0)
        self.is_frame = [b'", line ' in head or b'File "' in head for head in self.heads]
        self.is_block = [after >= BLOCK_LINES and not frame for (_, after), frame in zip(self.windows, self.is_frame, strict=True)]
        self._kind = kind
        self._engine: Engine | None = None
        self._light: Engine | None = None

    @property
    def engine(self) -> Engine:
        """Built on first use: a small log is never scanned."""
        if self._engine is None:
            self._engine = engine(self.heads, self._kind)
        return self._engine

    def engine_for(self, size: int) -> Engine:
        """One that is worth building for so many bytes, or the one that is there."""
        if self._engine is not None:
            return self._engine
        if self._light is None:
            light = engine(self.heads, self._kind, size)
            if light.name != "find":
                self._engine = light
                return light
            self._light = light
        elif size > _LIGHT:
            return self.engine
        return self._light


def wants_of(anchors: tuple[Anchor, ...], kind: str = "auto") -> Wants:
    """The same anchors, the same engine: a process that reads many logs builds it once for each of its threads."""
    return _kept(anchors, kind, get_ident())


@lru_cache(maxsize=4)
def _kept(anchors: tuple[Anchor, ...], kind: str, thread: int) -> Wants:
    return Wants(anchors, kind)
