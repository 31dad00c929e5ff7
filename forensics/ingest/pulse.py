"""Signs of life of each rank, from samples. In: blocks of raw lines; out: each rank's latest line. Sample:

    pulse.sample(buffer, base, cut, line_after)  ->  pulse.latest() -> [(6484729, b"[2026-11-29 20:15:20 TP1] Decode batch …")]

A healthy line must cost nothing, so no line is looked at by itself: of each block the last lines are looked at, and for
every writer known by then a search backwards from the block's end finds its latest line.
"""

from __future__ import annotations

from forensics.ingest.decode import plain, text_of
from forensics.ingest.dialects import table_of
from forensics.ingest.feeds import line_feeds
from forensics.ingest.ranks import rank_of

#: lines at a block's end that are asked who wrote them; far more at the very first block
_ASKED, _ASKED_FIRST, _ASKED_EVERY = 3, 200, 4
_MOST_WRITERS = 4_096
#: how far back from a block's end a writer is searched: a little, and more in every n-th block
_NEAR, _FAR, _PATIENCE = 16 * 1024, 256 * 1024, 8
#: of a long log every second block is looked at
_ALL_AT_FIRST = 8
_LINE_CAP = 600


class Pulse:
    """Latest sighting of each writer with a rank, by the literal bytes that name it (" TP3]", "[rank3]:", "_TP3 pid=71)")."""

    __slots__ = ("_blocks", "_calls", "_tokens", "first", "last")

    def __init__(self) -> None:
        self._tokens: dict[bytes, int] = {}  # token -> block in which it was last seen
        self._blocks = self._calls = 0
        self.first: dict[bytes, tuple[int, bytes]] = {}
        self.last: dict[bytes, tuple[int, bytes]] = {}

    def sample(self, buf: bytearray, base: int, cut: int, line: int) -> None:
        """Takes the block buf[base:cut]; the line at `cut` has number `line`."""
        if cut <= base:
            return
        self._calls += 1
        if self._calls > _ALL_AT_FIRST and self._calls & 1:
            return
        self._blocks += 1
        if self._blocks <= _ALL_AT_FIRST or not self._blocks % _ASKED_EVERY:
            self._ask(buf, base, cut)
        blocks = self._blocks
        near, far = max(base, cut - _NEAR), max(base, cut - _FAR)
        for token, seen in self._tokens.items():
            if blocks - seen <= _PATIENCE:
                start = near if blocks % _PATIENCE else far
            elif blocks % _PATIENCE:
                continue  # silent for long: it may be gone
            else:
                start = far
            self._seek(token, buf, start, base, cut, line)

    def finish(self, buf: bytearray, base: int, cut: int, line: int) -> None:
        """Looks for every writer in the source's last bytes buf[base:cut]; the line at `cut` has number `line`."""
        for token in self._tokens:
            self._seek(token, buf, base, base, cut, line)

    def _seek(self, token: bytes, buf: bytearray, low: int, base: int, cut: int, line: int) -> None:
        found = buf.rfind(token, low, cut)
        if found < 0:
            return
        self._tokens[token] = self._blocks
        start = buf.rfind(b"\n", base, found) + 1 or base
        stop = buf.find(b"\n", found, cut)
        stop = cut if stop < 0 else stop
        number = line - line_feeds(buf, start, cut)
        sighting = (number, bytes(buf[start : min(stop, start + _LINE_CAP)]))
        self.last[token] = sighting
        self.first.setdefault(token, sighting)

    def _ask(self, buf: bytearray, base: int, cut: int) -> None:
        """Looks for writers that were not known yet."""
        if len(self._tokens) >= _MOST_WRITERS:
            return
        stop = cut
        for _ in range(_ASKED_FIRST if self._blocks == 1 else _ASKED):
            if stop <= base:
                return
            start = buf.rfind(b"\n", base, stop - 1) + 1 or base
            raw = bytes(buf[start : min(stop, start + _LINE_CAP)])
            stop = start
            text = plain(text_of(raw.rstrip(b"\r\n")))
            peeled = table_of().peel(text)
            if peeled.rank_at is None or rank_of(peeled.captures, peeled.axes) is None:
                continue
            token = _token(text, *peeled.rank_at)
            if len(token) >= 3 and token not in self._tokens:
                self._tokens[token] = self._blocks

    def merge(self, later: Pulse, lines_before: int) -> None:
        """Adds what a later piece of the same source saw."""
        for token, (number, raw) in later.first.items():
            self.first.setdefault(token, (number + lines_before, raw))
        for token, (number, raw) in later.last.items():
            self.last[token] = (number + lines_before, raw)

    def sightings(self) -> list[tuple[int, bytes]]:
        """First and latest lines of every writer, by number."""
        return sorted({*self.first.values(), *self.last.values()})


def _token(text: str, start: int, stop: int) -> bytes:
    """The literal that names the writer: "TP1]", "[rank3]", "(Worker_TP0 "; never a part of the time before it."""
    low = start
    if not text[start].isspace():
        while low > 0 and start - low < 24 and (text[low - 1].isalpha() or text[low - 1] in "_[(=,:"):
            low -= 1
    return text[low : stop + 1].encode()
