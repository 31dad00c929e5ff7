"""Counts line feeds. In: a buffer, two offsets; out: how many. Sample:

    line_feeds(bytearray(b"one\\ntwo\\n"), 0, 8) -> 2

The price of line numbers: `bytes.count` looks at one byte after the other (CPython 3.11, Objects/stringlib/fastsearch.h), which takes
as long as the search for all literals. StringZilla counts with vector instructions, several times as fast where lines are of ordinary
length, and slower where a line has but a few bytes.
"""

from __future__ import annotations

from collections.abc import Callable

#: bytes of a line, on average, below which counting byte by byte is faster
_SHORT = 32
#: of a range its first bytes tell how long its lines are
_LOOK = 2_048
#: ranges below this are not worth a look, less than this in all not the loading of the library
_SMALL, _LITTLE = 4_096, 256 * 1024

Count = Callable[[bytearray, int, int], int]


def _plain(buf: bytearray, start: int, stop: int) -> int:
    return buf.count(b"\n", start, stop)


def _vectorised() -> Count:
    try:
        from stringzilla import count
    except ImportError:
        return _plain

    def counted(buf: bytearray, start: int, stop: int) -> int:
        if stop - start < _SMALL:
            return buf.count(b"\n", start, stop)
        look = min(stop, start + _LOOK)
        first = buf.count(b"\n", start, look)
        if look == stop or first * _SHORT > look - start:
            return first + buf.count(b"\n", look, stop)
        found: int = count(buf, b"\n", look, stop)
        return first + found

    return counted


class _Lazy:
    """The library is loaded once there was enough to count."""

    count: Count | None = None
    left = _LITTLE


def line_feeds(buf: bytearray, start: int, stop: int) -> int:
    """Line feeds in buf[start:stop]; 0 <= start <= stop <= len(buf)."""
    count = _Lazy.count
    if count is None:
        _Lazy.left -= stop - start
        if _Lazy.left > 0:
            return _plain(buf, start, stop)
        count = _Lazy.count = _vectorised()
    return count(buf, start, stop)
