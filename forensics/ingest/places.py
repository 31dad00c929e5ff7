"""Where in a block a line stands. In: a buffer, offsets; out: line numbers, offsets. Sample:

    Place(bytearray(b"one\\ntwo\\n"), 0, 811).of(4)          -> 812
    behind_lines(bytearray(b"one\\ntwo\\nsix\\n"), 0, 12, 1)  -> 8
"""

from __future__ import annotations

from bisect import bisect_right

from forensics.ingest.feeds import line_feeds

_ENDLESS = 1 << 62


class Place:
    """Line numbers of offsets; line feeds are counted once where the offsets grow, else from the last place asked for before."""

    __slots__ = ("_asked", "_at", "_buf", "_number")

    def __init__(self, buf: bytearray, at: int, number: int) -> None:
        self._buf, self._at, self._number = buf, at, number
        self._asked = [(at, number)]

    def of(self, offset: int) -> int:
        """The number of the line that starts at `offset`, which is not before the first one."""
        if offset > self._at:
            self._number += line_feeds(self._buf, self._at, offset)
            self._at = offset
            self._asked.append((offset, self._number))
        elif offset < self._at:
            at, number = self._asked[bisect_right(self._asked, (offset, _ENDLESS)) - 1]
            return number + line_feeds(self._buf, at, offset)
        return self._number


def behind_lines(buf: bytearray, at: int, cut: int, lines: int) -> int:
    """The offset behind `lines` more line feeds after the one at or behind `at`; -1 where the block ends before."""
    find = buf.find
    for _ in range(lines + 1):
        at = find(b"\n", at, cut) + 1
        if at == 0:
            return -1
    return at
