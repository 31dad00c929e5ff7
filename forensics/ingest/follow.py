"""Keeps reading a log that is still being written. In: a path or "-"; out: an `Update` each time something new was kept. Sample:

    for update in follow("server.log", anchors):      # like tail -F: through rotation and truncation
        if update.at_rest: report(analyze_intake(update.intake))

What was kept so far is in every `Intake`, within the budget.
"""

from __future__ import annotations

import os
import select
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from forensics.errors import ForensicsError
from forensics.ingest.activity import activity_of
from forensics.ingest.anchors import Anchor
from forensics.ingest.decode import text_of
from forensics.ingest.intake import Intake
from forensics.ingest.lines import LineMaker, settle
from forensics.ingest.marks import marks_of
from forensics.ingest.news import News, Tell
from forensics.ingest.options import DEFAULT, ReadOptions
from forensics.ingest.retain import Retainer
from forensics.ingest.scan import CHUNK, CONTEXT, LongLine, Scanned
from forensics.ingest.wants import Wants
from forensics.model.source import LogLine, LogSource, Note

#: seconds between two looks at a file
_POLL = 0.02
#: silence after which an open window is handed on although lines are still owed to it
_SETTLE = 0.15
#: lines that tell which weak prefixes a source uses
_SAMPLE = 400


_TURNED = "{name}: while it was followed, it was rotated or truncated {turns} times; line numbers count on through all of its files"


class Update:
    """is_new: a marked line came in since the last update; at_rest: nothing has come for a moment; ended: the input is at its end."""

    __slots__ = ("_live", "at_rest", "ended", "is_new")

    def __init__(self, live: _Live, is_new: bool, at_rest: bool, ended: bool) -> None:
        self._live, self.is_new, self.at_rest, self.ended = live, is_new, at_rest, ended

    @property
    def intake(self) -> Intake:
        """Everything kept so far, put together when it is asked for."""
        return self._live.intake()


def follow(
    name: str,
    anchors: Iterable[Anchor],
    options: ReadOptions = DEFAULT,
    *,
    idle: float | None = None,
    on_news: Tell | None = None,
    stop: Callable[[], bool] | None = None,
) -> Iterator[Update]:
    """Yields an update after each batch of new lines that holds a hit, and one when the input has come to rest.

    name: a file, read from its start, through rotation (another file under the name) and truncation (it became shorter), or "-",
    read to its end. idle: end after so many seconds without news (None: never, for a file). on_news: told of marked lines before
    anything else is made of them. stop: asked at each look.
    """
    reader = _Pipe(sys.stdin.fileno()) if name == "-" else _opened(name)
    live = _Live(name, anchors, options, on_news)
    quiet_since = time.monotonic()
    pending = waiting = False
    while True:
        data = reader.read()
        live.turns = reader.turns
        now = time.monotonic()
        if data:
            quiet_since = now
            pending |= live.feed(data)
            waiting = True
            if pending:
                yield Update(live, True, False, False)
                pending = False
        elif reader.ended or (stop is not None and stop()) or (idle is not None and now - quiet_since >= idle):
            live.finish()
            yield Update(live, pending, True, True)
            return
        elif waiting and now - quiet_since > _SETTLE:
            is_new = live.rest()
            waiting = False
            yield Update(live, is_new, True, False)


class _Live:
    """The scan's loop, turned inside out: bytes come in, what was kept can be asked at any time."""

    def __init__(self, name: str, anchors: Iterable[Anchor], options: ReadOptions, on_news: Tell | None) -> None:
        self._name, self._options = name, options
        self._wants = Wants(anchors, options.engine)
        self._wants.engine.scan(b"")  # built before there is anything to look for
        self._news = News(self._wants, on_news) if on_news is not None else None
        self._retainer = Retainer(self._wants, options.budget, options.line_cap)
        self._retainer.owe(options.edge_lines)
        self._scanned = Scanned()
        self._buf = bytearray()
        self._base, self._line = 0, 1
        self._long: LongLine | None = None
        self._edges = options.edge_lines
        self._maker, self._sampled = LineMaker(0), 0
        self.turns = 0  # files that took the first one's place
        self._made: dict[int, list[LogLine]] = {}

    def feed(self, data: bytes) -> bool:
        """More bytes; True where a hit is among the complete lines."""
        self._scanned.bytes += len(data)
        if self._long is not None:
            end = data.find(b"\n")
            self._lengthen(self._long, data if end < 0 else data[:end])
            if end < 0:
                return False
            self._buf += self._long.text()
            self._long, data = None, data[end:]
        self._buf += data
        start = max(self._base, self._buf.rfind(b"\n") + 1)
        if len(self._buf) - start > CHUNK:
            # a line without an end: of what comes its hits and its last bytes are kept
            self._long = LongLine(0)
            self._lengthen(self._long, bytes(self._buf[start:]))
            del self._buf[start:]
        return self._take(start, False)

    def _lengthen(self, line: LongLine, piece: bytes) -> None:
        if piece:
            line.add(memoryview(piece), self._wants.engine.scan(piece))

    def rest(self) -> bool:
        """Hands on windows that wait for more lines; True where they hold a hit, or the last line does, whose line feed has not come
        yet. That line is not taken: the rest of it may still come."""
        end = self._buf.rfind(b"\n") + 1
        is_new = (
            end > self._base
            and bool(self._wants.engine.scan(bytes(self._buf[self._base : end])))
            and self._take(end, True)
        )
        hits = self._wants.engine.scan(bytes(self._buf[self._base :]))
        if self._news is not None and hits:
            self._news.saw(self._buf, self._base, len(self._buf), self._line, hits)
        return is_new or bool(hits)

    def finish(self) -> None:
        """The input is at its end: a last line without its line feed is a line, too."""
        if self._long is not None:
            self._buf += self._long.text()
            self._long = None
        self._take(len(self._buf), True)

    def _take(self, cut: int, final: bool) -> bool:
        if cut <= self._base:
            return False
        buf, base = self._buf, self._base
        view = memoryview(buf)
        hits = self._wants.engine.scan(view[base:cut])
        view.release()
        if self._news is not None and hits:
            self._news.saw(buf, base, cut, self._line, hits)
        before = sum(self._retainer.fold.counts.values())
        at, number = self._retainer.feed(buf, 0, base, cut, self._line, hits, final)
        self._base, self._line = at, number + (at == cut and buf[cut - 1] != 10)
        if at > 4 * CONTEXT:
            keep = buf.find(b"\n", at - CONTEXT, at) + 1
            del buf[:keep]
            self._base -= keep
        return sum(self._retainer.fold.counts.values()) > before or (bool(hits) and final)

    def intake(self) -> Intake:
        """What is kept now. Lines that were decoded for an earlier call are not decoded again."""
        self._take(self._buf.rfind(b"\n") + 1, True)  # nothing, unless a window is open or an interrupt came in between
        scanned, at, first = self._scanned, self._base, self._line
        while at > 0 and first > max(1, self._line - self._edges):
            at = self._buf.rfind(b"\n", 0, at - 1) + 1
            first -= 1
        waiting = bytes(self._buf[self._base :]) + (b"" if self._long is None else self._long.text())
        count = self._line - 1
        unfinished = count + 1 if waiting else 0
        if scanned.bytes <= self._options.whole_below:
            # the buffer still holds all of it
            kept = list(enumerate(bytes(self._buf).split(b"\n"), 1))[: unfinished or count]
        else:
            self._retainer.keep_tail(first, bytes(self._buf[at : self._base]) + waiting)
            kept = list(self._retainer.lines())
        # once more when there are twice as many lines to tell the prefixes, or the first tracebacks
        sample = min(len(kept), _SAMPLE) + (_SAMPLE * 2 if any(b'File "' in raw for _, raw in kept) else 0)
        if sample > 2 * self._sampled or not self._sampled:
            # more lines may tell more about the prefixes
            self._maker, self._made, self._sampled = (
                LineMaker(0, None, (text_of(raw) for _, raw in kept)),
                {},
                sample,
            )
        made: dict[int, list[LogLine]] = {}
        for number, raw in kept:
            made[number] = self._made.get(number) or self._maker.take(number, text_of(raw))
        lines = settle([line for number in sorted(made) for line in made[number]], self._maker.watch)
        made.pop(unfinished, None)  # there may be more of it the next time
        self._made = made
        source = LogSource(self._name, scanned.bytes, unfinished or count, clock=self._maker.watch.clock())
        return Intake(
            sources=(source,),
            lines=lines,
            marks=marks_of(lines, self._wants),
            activity=activity_of(lines),
            repeats={(0, number): count for number, count in self._retainer.repeats(kept).items()},
            notes=[Note("ingest", _TURNED.format(name=self._name, turns=self.turns))] if self.turns else [],
            scanned=True,
        )


def _opened(name: str) -> _Pipe | _Tail:
    """What reads it. Raises ForensicsError."""
    try:
        if stat.S_ISFIFO(os.stat(name).st_mode):
            return _Pipe(os.open(name, os.O_RDONLY))
        return _Tail(name, open(name, "rb", buffering=0))
    except OSError as error:
        raise ForensicsError(f"cannot read {name}", why=(error.strerror or str(error)).lower()) from error


class _Pipe:
    """Standard input or a named pipe, as it comes."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.ended, self.turns = False, 0

    def read(self) -> bytes:
        """What is there; b"" where nothing is (after a short wait) or at the end."""
        ready, _, _ = select.select([self._fd], [], [], _POLL)
        if not ready:
            return b""
        data = os.read(self._fd, CHUNK)
        self.ended = not data
        return data


class _Tail:
    """A file, as it grows."""

    def __init__(self, name: str, file: Any) -> None:
        self._name, self._file = name, file
        self.ended = self._torn = False
        self.turns = 0

    def read(self) -> bytes:
        """What was added; b"" after a short wait where nothing was."""
        data: bytes = self._file.read(CHUNK)
        if data:
            self._torn = not data.endswith(b"\n")
            return data
        if self._is_other():
            # the old file was read to its end; a line that it left unfinished stays a line
            head, self._torn = (b"\n" if self._torn else b""), False
            self.turns += 1
            return head + (self._file.read(CHUNK) or b"")
        time.sleep(_POLL)
        return b""

    def _is_other(self) -> bool:
        """Reopens the name where it means another file now; starts over where the file became shorter."""
        try:
            there, here = os.stat(self._name), os.fstat(self._file.fileno())
        except FileNotFoundError:
            return False  # between two files of a rotation
        if (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino):
            try:
                renewed = open(self._name, "rb", buffering=0)  # noqa: SIM115
            except OSError:
                return False
            self._file.close()
            self._file = renewed
            return True
        if here.st_size < self._file.tell():
            self._file.seek(0)
            return True
        return False
