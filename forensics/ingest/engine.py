"""Finds many literals in bytes at once. In: literals and a block; out: (literal index, end offset) pairs. Sample:

engine([b"Traceback (most", b"CUDA error"]).scan(b"x CUDA error: y") -> [(12, 1)]
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Protocol

from forensics import data

_INDEX = itemgetter(1)
#: literals from which on it pays to ask first which can be there, and bytes up to which it does
_MANY, _SMALL = 48, 1 << 20

Block = bytes | bytearray | memoryview
#: hardly ever stands in a log (no UTF-8, no Latin-1 prose); shortens hyperscan's stride, which from some 250 literals on is too
#: long for their number and costs up to half of the speed. Two bytes do 20 % more than three with 1,480 literals
_MENDS_STRIDE = b"\xff\xfe"
#: literals from which on their database is kept between starts
_KEPT_FROM = 200


class Engine(Protocol):
    """scan: pairs (end offset, literal index) of all occurrences in a block, sorted by end offset."""

    name: str

    def scan(self, block: Block) -> list[tuple[int, int]]: ...


class _Hyperscan:
    name = "hyperscan"

    def __init__(self, literals: Sequence[bytes]) -> None:
        self._literals = list(literals)
        self._db = _database([*self._literals, _MENDS_STRIDE])
        self._dummy = len(self._literals)

    def scan(self, block: Block) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        add = found.append

        def on_match(index: int, _from: int, to: int, _flags: int, _context: object) -> None:
            add((to, index))

        self._db.scan(block, match_event_handler=on_match)
        if len(found) > 1:
            found.sort()
        dummy = self._dummy
        return [pair for pair in found if pair[1] != dummy] if dummy in map(_INDEX, found) else found


def _database(patterns: list[bytes]) -> Any:
    """hyperscan's database of these literals; of many it is kept: making it takes some 30 ms, loading it 0.1."""
    import hyperscan

    many = len(patterns) >= _KEPT_FROM
    db = _kept(patterns) if many else None
    if db is None:
        db = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        numbers = list(range(len(patterns)))
        db.compile(expressions=patterns, ids=numbers, elements=len(patterns), flags=[0] * len(patterns), literal=True)
        if many:
            content = hyperscan.dumpb(db)
            data.write_own(_place(patterns), _stamp(patterns, content) + content)
    db.scratch = hyperscan.Scratch(db)
    return db


def _kept(patterns: list[bytes]) -> Any:
    """The database as an earlier start left it, or None: damaged, of other literals, of another hyperscan or processor."""
    import hyperscan

    found = data.read_own(_place(patterns))
    at = len(_stamp(patterns, b""))
    if not found or found[:at] != _stamp(patterns, found[at:]):
        return None
    try:
        return hyperscan.loadb(found[at:], hyperscan.HS_MODE_BLOCK)
    except hyperscan.error:
        return None


def _stamp(patterns: list[bytes], content: bytes) -> bytes:
    """What a kept database begins with: all that it depends on, and its own sum (hyperscan's does not cover every byte)."""
    import zlib

    from hyperscan._version import __version__

    listed = b"".join(b"%d:%b," % (len(one), one) for one in patterns)
    return b"%08x hyperscan %b\n%b\n" % (zlib.crc32(content), __version__.encode(), listed)


def _place(patterns: list[bytes]) -> str:
    """The file of these literals: one of sixteen, so that sets which come and go do not fill the disk."""
    import zlib

    return os.path.join(data.cache_folder(), f"literals.{zlib.crc32(b''.join(patterns)) & 15:x}.bin")


class _AhoCorasick:
    name = "ahocorasick"

    def __init__(self, literals: Sequence[bytes]) -> None:
        import ahocorasick_rs

        self._automaton = ahocorasick_rs.BytesAhoCorasick(
            list(literals), implementation=ahocorasick_rs.Implementation.DFA
        )

    def scan(self, block: Block) -> list[tuple[int, int]]:
        found = self._automaton.find_matches_as_indexes(bytes(block), overlapping=True)
        return sorted((end, index) for index, _, end in found)


class _Find:
    """Without any library, and for small blocks, where building an automaton takes longer than the search."""

    name = "find"

    def __init__(self, literals: Sequence[bytes]) -> None:
        self._literals = list(enumerate(literals))

    def scan(self, block: Block) -> list[tuple[int, int]]:
        whole = bytes(block)
        found = []
        candidates = self._literals
        if len(candidates) > _MANY and len(whole) < _SMALL:
            # most literals are not there: of each, four bytes at its ends and amid it are looked up among all fours of the block
            fours = _fours(whole)
            candidates = [row for row in candidates if len(row[1]) < 4 or _may_stand(row[1], fours)]
        for index, literal in candidates:
            size, at = len(literal), whole.find(literal)
            while at >= 0:
                found.append((at + size, index))
                at = whole.find(literal, at + 1)
        found.sort()
        return found


def _fours(whole: bytes) -> set[int]:
    """Every four bytes that follow each other, as numbers."""
    found: set[int] = set()
    for start in range(4):
        found.update(memoryview(whole[start : start + (len(whole) - start) // 4 * 4]).cast("I"))
    return found


def _may_stand(literal: bytes, fours: set[int]) -> bool:
    middle = len(literal) // 2
    number, order = int.from_bytes, sys.byteorder
    return (
        number(literal[-4:], order) in fours
        and number(literal[:4], order) in fours
        and number(literal[middle - 2 : middle + 2], order) in fours
    )


#: seconds a literal and in all to build the fast engine, or to load it; seconds a byte of the one that needs no building
_BUILD_EACH, _BUILD, _LOAD, _SLOW_BYTE = 20e-6, 0.013, 0.006, 0.15e-6


def is_little(size: int) -> bool:
    """Whether so many bytes are searched sooner than a kept database is loaded."""
    return size * _SLOW_BYTE <= _LOAD


def engine(literals: Sequence[bytes], kind: str = "auto", block_size: int | None = None) -> Engine:
    """The fastest engine installed ("auto"), or the named one: hyperscan, ahocorasick, find. Literals are not empty.

    block_size: bytes to be searched in all, where that is known: for few of them nothing is built.
    """
    if not literals:
        return _Find(())
    if kind == "auto" and block_size is not None:
        slow = block_size * _SLOW_BYTE
        is_kept = not is_little(block_size) and len(literals) >= _KEPT_FROM and os.path.exists(_place([*literals, _MENDS_STRIDE]))
        if slow < (_LOAD if is_kept else _BUILD + _BUILD_EACH * len(literals)):
            return _Find(literals)
    for name, maker in (("hyperscan", _Hyperscan), ("ahocorasick", _AhoCorasick)):
        if kind in ("auto", name):
            try:
                return maker(literals)
            except ImportError:
                if kind == name:
                    raise
    return _Find(literals)
