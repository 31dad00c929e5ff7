"""Marked lines of a log that is still being written, as they come. In: the scan's blocks and hits; out: `LogLine`s. Sample:

    News(wants, tell).saw(buffer, base, cut, line=812, hits=[(51, 17)])  ->  tell([LogLine(0, 812, "CUDA error: …", …)])

A reader at a terminal wants the first words of a failure at once, long before the input's end says what they mean. Of lines
that differ in their numbers only the first of each rank is told: what repeats is no news.
"""

from __future__ import annotations

from collections.abc import Callable

from forensics.ingest.decode import text_of
from forensics.ingest.feeds import line_feeds
from forensics.ingest.fold import DIGITS, WHO
from forensics.ingest.lines import LineMaker
from forensics.ingest.wants import Wants
from forensics.model.source import LogLine

Tell = Callable[[list[LogLine]], None]

#: lines told of one block, and templates told in all: a reader follows no more
_AT_ONCE, _IN_ALL = 64, 4_000
#: of a line its first bytes
_CAP = 2_000


class News:
    """tell: called with the new marked lines of a block, in order. It must be quick: the scan waits for it."""

    def __init__(self, wants: Wants, tell: Tell) -> None:
        self._wants, self._tell = wants, tell
        self._seen: set[int] = set()
        self._maker = LineMaker(0)
        self._looked_at = (0, 1)  # of an input that is still small: bytes looked at, the number of the next line

    def saw(self, buf: bytearray, base: int, cut: int, line: int, hits: list[tuple[int, int]]) -> None:
        """Complete lines buf[base:cut], the first of them number `line`; hits: (end offset counted from base, literal)."""
        fresh: list[LogLine] = []
        at, stop = base, base - 1
        for end, _ in hits:
            position = base + end
            if position <= stop:
                continue
            start = buf.rfind(b"\n", base, position) + 1 or base
            stop = buf.find(b"\n", position, cut)
            stop = cut if stop < 0 else stop
            raw = bytes(buf[start : min(stop, start + _CAP)])
            who = WHO.search(raw, 0, 80)
            template = hash((raw.translate(None, DIGITS), who and who[1]))
            if template in self._seen:
                continue
            if len(self._seen) >= _IN_ALL or len(fresh) >= _AT_ONCE:
                break
            self._seen.add(template)
            line, at = line + line_feeds(buf, at, start), start
            fresh += self._maker.take(line, text_of(raw))
        if fresh:
            self._tell(fresh)

    def looks(self, buf: bytearray, base: int, fill: int) -> None:
        """The beginning of an input, buf[base:fill], that is not scanned yet because it may be kept whole."""
        done, line = self._looked_at
        start = base + done
        cut = buf.rfind(b"\n", start, fill) + 1
        if cut <= start:
            return
        view = memoryview(buf)
        hits = self._wants.engine.scan(view[start:cut])
        view.release()
        self.saw(buf, start, cut, line, hits)
        self._looked_at = (cut - base, line + line_feeds(buf, start, cut))
