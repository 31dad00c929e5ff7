"""The anchors, ready for the scan. In: `Anchor`s; out: what is searched, with its windows and a lazily built engine. Sample:

Wants([Anchor(b"CUDA error", 1, 3), Anchor(b"CUDA error", 0, 9)]).heads.literals[0] -> [(b"CUDA error", 1, 9)]

A log that is kept whole is searched for the literals themselves; a bigger one is scanned for their heads (`heads.py`), which are made then.
"""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from typing import TypeVar

from forensics.ingest.anchors import Anchor
from forensics.ingest.engine import Engine, engine, is_little
from forensics.ingest.heads import searched_for

T = TypeVar("T")

#: bytes from which on the fast engine is built although a light one is there
_LIGHT = 200_000
#: a window of so many lines after the hit is a block, whose body is compared, too
BLOCK_LINES = 20
#: no parser may ask for more lines than this around a hit
_MOST_BEFORE, _MOST_AFTER = 200, 400

#: of each thing searched the literals that stand there where it is found: (literal, whether it is all of it)
Meaning = Sequence[tuple[tuple[bytes, bool], ...]]


class _PerHead(dict[int, T]):
    """Values by a head's number, each made when it is first asked for: most heads stand in no line of a log."""

    def __init__(self, make: Callable[[int], T]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, which: int) -> T:
        value = self[which] = self._make(which)
        return value


class Heads:
    """heads: what is searched, each once, sorted: of each literal a part that prose seldom holds.

    literals: per head those it stands for, the most telling one last, each with the lines wanted before and after it; rests: per head what
    stands behind it in them, longest first; most_before, most_after: lines that any of them wants; is_frame: the head stands in each frame
    of a stack; is_block: it may begin one.
    """

    __slots__ = ("_found", "_longest_rest", "_wanted", "heads", "is_block", "is_frame", "literals", "most_after", "most_before", "rests")

    def __init__(self, wanted: dict[bytes, tuple[int, int]], alone: Collection[bytes] = ()) -> None:
        found = self._found = searched_for(wanted, alone)
        self._wanted = wanted
        self._longest_rest: int | None = None
        self.heads = sorted(found)
        self.literals = _PerHead(self._literals_of)
        self.rests = _PerHead(self._rests_of)
        self.most_before = max((before for before, _ in wanted.values()), default=0)
        self.most_after = max((after for _, after in wanted.values()), default=0)
        blocks = {literal for literal, (_, after) in wanted.items() if after >= BLOCK_LINES}
        self.is_frame = [b'", line ' in head or b'File "' in head for head in self.heads]
        self.is_block = [
            not frame and not blocks.isdisjoint(found[head]) for head, frame in zip(self.heads, self.is_frame, strict=True)
        ]

    def place_of(self, literal: bytes) -> int | None:
        """The number of a head that stands for a literal; None where nobody asks for it."""
        return next((which for which, head in enumerate(self.heads) if literal in self._found[head]), None)

    def longest_rest(self) -> int:
        """Bytes of the longest of all rests."""
        if self._longest_rest is None:
            behind = (_behind(head, literals) for head, literals in self._found.items())
            self._longest_rest = max((len(rests[0]) for rests in behind if rests), default=0)
        return self._longest_rest

    def _literals_of(self, which: int) -> list[tuple[bytes, int, int]]:
        wanted = self._wanted
        by_weight = sorted(self._found[self.heads[which]], key=lambda one: (wanted[one][1] >= BLOCK_LINES, len(one)))
        return [(literal, *wanted[literal]) for literal in by_weight]

    def _rests_of(self, which: int) -> list[bytes]:
        head = self.heads[which]
        return _behind(head, self._found[head])


def _behind(head: bytes, literals: Sequence[bytes]) -> list[bytes]:
    """What follows a head in the literals that hold more than it, longest first."""
    rests = (literal[literal.find(head) + len(head) :] for literal in literals if head in literal and literal != head)
    return sorted(filter(None, rests), key=len, reverse=True)


class Wants:
    """What anchors ask for. kind: of the engine."""

    __slots__ = ("_alone", "_engine", "_heads", "_kind", "_light", "_meaning", "_wanted")

    def __init__(self, anchors: Iterable[Anchor], kind: str = "auto") -> None:
        wanted: dict[bytes, tuple[int, int]] = {}
        alone: set[bytes] = set()
        for literal, before, after, _, is_alone in anchors:
            if not literal or b"\0" in literal:  # no kept line has one, and hyperscan ends a literal there
                continue
            known = wanted.get(literal)
            if known is not None:
                before, after = max(before, known[0]), max(after, known[1])
            wanted[literal] = (min(before, _MOST_BEFORE), min(after, _MOST_AFTER))
            if is_alone:
                alone.add(literal)
        self._wanted, self._alone, self._kind = wanted, alone, kind
        self._heads: Heads | None = None
        self._engine: Engine | None = None
        self._light: tuple[Engine, Meaning] | None = None
        self._meaning: Meaning | None = None

    def __bool__(self) -> bool:
        """Whether anything is asked for."""
        return bool(self._wanted)

    @property
    def heads(self) -> Heads:
        """What a scan searches, made on first use."""
        if self._heads is None:
            self._heads = Heads(self._wanted, self._alone)
        return self._heads

    @property
    def engine(self) -> Engine:
        """Finds the heads; built on first use: a small log is never scanned."""
        if self._engine is None:
            self._engine = engine(self.heads.heads, self._kind)
        return self._engine

    def search_for(self, size: int) -> tuple[Engine, Meaning]:
        """An engine that is worth building for so many bytes, or the one that is there, and what its indices mean."""
        if self._engine is None:
            if self._light is not None and size <= _LIGHT:
                return self._light
            if self._light is None and is_little(size) and self._kind == "auto":
                literals = sorted(self._wanted)
                self._light = engine(literals, "find"), [((literal, True),) for literal in literals]
                return self._light
        heads = self.heads
        meaning = self._meaning
        if meaning is None:
            meaning = self._meaning = [
                tuple((literal, literal in head) for literal, _, _ in heads.literals[which]) for which, head in enumerate(heads.heads)
            ]
        if self._engine is None and self._light is None:
            built = engine(heads.heads, self._kind, size)
            if built.name == "find":
                self._light = built, meaning
                return self._light
            self._engine = built
        return self.engine, meaning


def wants_of(anchors: tuple[Anchor, ...], kind: str = "auto") -> Wants:
    """The same anchors, the same engine: a process that reads many logs builds it once for each of its threads."""
    return _kept(anchors, kind, get_ident())


@lru_cache(maxsize=4)
def _kept(anchors: tuple[Anchor, ...], kind: str, thread: int) -> Wants:
    return Wants(anchors, kind)
