"""Error lines of a source that writes glog's lines: one letter tells their level. In: the scan's block and hits; out: more hits. Sample:

    I0523 12:00:41.000123 71 server.cc:80] iteration finished in 7 us
    E0523 12:07:41.000123 71 client.cc:123] lost the connection to shard 7           -> a hit, though no literal stands in it

Three bytes are too short for the scan; so the lines are searched by themselves, in sources only that begin with glog's. Their format:
glog, "Log Line Prefix" of its documentation: [IWEF]mmdd hh:mm:ss.uuuuuu thread file:line].
"""

from __future__ import annotations

from forensics.ingest.pattern import Pattern
from forensics.ingest.wants import Wants

#: an anchor that asks for the lines of the same logger that Bazel's programs write: the window of theirs is wanted here
LITERAL = b": E external/"
#: bytes of a source's beginning that tell who writes, and lines in them
_LOOKED_AT, _LEAST = 4_096, 3
_LINE = Pattern(rb"(?:^|\n)[IWEF][01]\d[0-3]\d \d\d:\d\d:\d\d\.\d{3,6} ")
_ERROR = Pattern(rb"\n[EF][01]\d[0-3]\d \d\d:\d\d:\d\d\.\d{3,6} ")
_FIRST = frozenset(b"IWEF")

Hits = list[tuple[int, int]]


class Glog:
    """Finds the error lines of one source, once `begins` has said that it is glog's."""

    __slots__ = ("_is_glog", "_wants", "_which")

    def __init__(self, wants: Wants) -> None:
        self._wants = wants
        self._is_glog: bool | None = None
        self._which: int | None = None

    def added(self, hits: Hits, buf: bytearray, base: int, cut: int) -> Hits:
        """The scan's hits in buf[base:cut], whole lines, and those of error lines: (end counted from base, head), ascending."""
        if self._is_glog is None:
            self._is_glog = self._begins(buf, base, cut)
        if not self._is_glog or self._which is None:
            return hits
        which = self._which
        more = [(found.end() - base, which) for found in _ERROR.finditer(buf, max(base - 1, 0), cut)]
        if base == 0 and buf[:1] in (b"E", b"F"):
            more.append((1, which))
        return sorted(hits + more) if more else hits

    def _begins(self, buf: bytearray, base: int, cut: int) -> bool:
        # the first byte settles it for nearly all sources
        if buf[base] not in _FIRST or len(_LINE.findall(bytes(buf[base : min(base + _LOOKED_AT, cut)]))) < _LEAST:
            return False
        self._which = self._wants.heads.place_of(LITERAL)
        return True
