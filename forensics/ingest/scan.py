"""The one pass over a source's bytes. In: a stream, a retainer; out: counts, and what the retainer kept. Sample:

    scan(stream, retainer, wants) -> Scanned(bytes=1073741824, lines=6484729, …)

One buffer is reused: a bit of context, then whole lines, then the beginning of the next line. Nothing in here is done per
line: the engine finds hits, line feeds are counted between them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from forensics.ingest.feeds import line_feeds
from forensics.ingest.glog import Glog
from forensics.ingest.news import News
from forensics.ingest.pulse import Pulse
from forensics.ingest.retain import Retainer
from forensics.ingest.wants import Wants

#: the engine is fastest on blocks of 256 KB to 1 MB
CHUNK = 1 << 20
#: finished lines that stay in front of the buffer, for windows that reach back and for the tail
CONTEXT = 64 * 1024
#: of a line that does not fit into the buffer: kept around its first hits
_AROUND, _MOST_AROUND = 8 * 1024, 8


class Stream(Protocol):
    """What is scanned."""

    def readinto(self, buffer: memoryview, /) -> int: ...


class Scanned:
    """bytes, lines: of the source or piece; long_lines: lines that did not fit into the buffer."""

    __slots__ = ("bytes", "lines", "long_lines")

    def __init__(self, size: int = 0, lines: int = 0) -> None:
        self.bytes, self.lines, self.long_lines = size, lines, 0


class LongLine:
    """A line longer than the buffer: its first bytes, some around hits, its last ones."""

    __slots__ = ("hits", "number", "parts", "size", "tail")

    def __init__(self, number: int) -> None:
        self.number, self.size, self.hits = number, 0, 0
        self.parts: list[bytes] = []
        self.tail = b""

    def add(self, piece: memoryview, hits: list[tuple[int, int]]) -> None:
        """One more piece of it."""
        if not self.size:
            self.parts.append(bytes(piece[:_AROUND]))
        for end, _ in hits:
            if self.hits < _MOST_AROUND:
                low = max(0, end - _AROUND // 2)
                self.parts.append(b"[... at byte %d of the line ...]" % (self.size + low))
                self.parts.append(bytes(piece[low : end + _AROUND // 2]))
            self.hits += 1
        self.size += len(piece)
        self.tail = (self.tail + bytes(piece[-_AROUND:]))[-_AROUND:]

    def text(self) -> bytes:
        """What is kept of it, as one line."""
        return b" ".join(self.parts) + b" [... a line of %d bytes, most of it not kept ...] " % self.size + self.tail


_spare: list[bytearray] = []


def _buffer() -> bytearray:
    """A buffer for one scan, that of the last one where nobody has it."""
    try:
        buf = _spare.pop()
    except IndexError:
        return bytearray(CONTEXT + CHUNK)
    return buf if len(buf) == CONTEXT + CHUNK else bytearray(CONTEXT + CHUNK)


def scan(
    stream: Stream,
    retainer: Retainer,
    wants: Wants,
    *,
    whole: int = 0,
    head_lines: int = 0,
    tail_lines: int = 0,
    pulse: Pulse | None = None,
    limit: int | None = None,
    progress: Callable[[int], None] | None = None,
    news: News | None = None,
) -> Scanned:
    """Reads to the end, or just `limit` bytes.

    whole: an input of up to so many bytes is kept whole, and not scanned at all; of a bigger one head_lines and tail_lines are
    kept at the ends; pulse: samples each block; progress: called with the bytes of each block; news: told of hits as they come.
    """
    result = Scanned()
    buf = _buffer()
    view = memoryview(buf)
    size = len(buf)
    low = base = fill = 0  # buf[low:base]: context; buf[base:fill]: not done yet
    line = 1
    long: LongLine | None = None
    glog = Glog(wants)
    done = False
    while not done:
        if fill > size - CHUNK // 8:
            keep = base - CONTEXT
            keep = low if keep <= low else buf.find(b"\n", keep, base) + 1 or base
            view[: fill - keep] = view[keep:fill]
            low, base, fill = 0, base - keep, fill - keep
        room = size - fill if limit is None else min(size - fill, limit - result.bytes)
        got = stream.readinto(view[fill : fill + room]) if room else 0
        fill += got
        result.bytes += got
        done = got == 0 and fill < size  # a full buffer is not the end: a line longer than it goes on behind it
        small = result.bytes <= whole
        if small and not done and fill < size:
            if news is not None:
                news.looks(buf, base, fill)
            continue  # perhaps that is all: then nothing is scanned
        if head_lines and not small:
            retainer.owe(head_lines)
            head_lines = 0
        if long is not None:
            base, line, long = _go_on(long, buf, view, base, fill, done, line, retainer, wants)
            low = base
            if long is not None:
                low = base = fill = 0
                continue
        cut = fill if done else buf.rfind(b"\n", base, fill) + 1 or base
        if cut > base and small:
            retainer.keep_lines(line, bytes(buf[base:cut]))
            line += line_feeds(buf, base, cut) + (buf[cut - 1] != 10)
            base = cut
        elif cut > base:
            hits = glog.added(wants.engine.scan(view[base:cut]), buf, base, cut)
            if news is not None and hits:
                news.saw(buf, base, cut, line, hits)
            at, number = retainer.feed(buf, low, base, cut, line, hits, done or not room)
            if pulse is not None:
                pulse.sample(buf, base, at, number)
            base, line = at, number + (at == cut and buf[cut - 1] != 10)
        elif not done and fill == size and base <= CONTEXT:
            long = LongLine(line)
            result.long_lines += 1
            long.add(view[base:fill], wants.engine.scan(view[base:fill]))
            low = base = fill = 0
        if progress is not None:
            progress(got)
    result.lines = line - 1
    if pulse is not None and base > low:
        pulse.finish(buf, low, base, line)
    if tail_lines and result.bytes > whole:
        at, first = base, line
        while at > low and first > max(1, line - tail_lines):
            at = buf.rfind(b"\n", low, at - 1) + 1 or low
            first -= 1
        if at < base:
            retainer.keep_tail(first, bytes(buf[at:base]))
    view.release()
    _spare.append(buf)
    return result


def _go_on(
    long: LongLine,
    buf: bytearray,
    view: memoryview,
    base: int,
    fill: int,
    done: bool,
    line: int,
    retainer: Retainer,
    wants: Wants,
) -> tuple[int, int, LongLine | None]:
    """Takes more of a line that did not fit; (offset behind it, next line number, None) once its end is found."""
    stop = buf.find(b"\n", base, fill)
    end = stop if stop >= 0 else fill
    piece = view[base:end]
    if len(piece):
        long.add(piece, wants.engine.scan(piece))
    if stop < 0 and not done:
        return base, line, long
    if long.hits:
        retainer.keep_lines(long.number, long.text() + b"\n")
    return (stop + 1 if stop >= 0 else fill), line + 1, None
