"""Any line of a log of any size, read where it stands. In: a file; out: lines by number. Sample:

    log = RawLog("server.log"); log.read(812, 2) -> ["[2026-11-29 20:15:20 TP1] Scheduler hit …", "  File …"]

Only an index of one entry per 256 KiB is kept (8 KB for 1 GB). Nothing of the log stays in memory but the window read last.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_right
from collections.abc import Iterator

STEP = 256 * 1024
#: of a longer line only its beginning is shown
LINE_CAP = 4096


class RawLog:
    """Lines are 1-based and end at "\\n", as the report counts them. `advance` must be called until it returns False."""

    def __init__(self, path: str, name: str | None = None) -> None:
        self.path, self.name = path, name or path
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115 (closed by `close`)
        #: newlines before block i, which begins at byte i * STEP
        self._before = array("Q", [0])
        self._indexed = 0
        self._newlines = 0
        self._ends_open = False
        self.complete = False

    @property
    def lines(self) -> int:
        """Lines known so far; exact once `complete`."""
        return self._newlines + (1 if self._ends_open else 0)

    @property
    def indexed_bytes(self) -> int:
        """How far the index reaches, in bytes."""
        return self._indexed

    @property
    def size(self) -> int:
        """The file's size now, in bytes."""
        return os.fstat(self._file.fileno()).st_size

    def advance(self, budget: int = 16 * STEP) -> bool:
        """Indexes up to `budget` further bytes; False when the end is reached (the file may grow later)."""
        done = 0
        while done < budget:
            block = os.pread(self._file.fileno(), STEP - self._indexed % STEP, self._indexed)
            if not block:
                self.complete = True
                return False
            done += len(block)
            self._indexed += len(block)
            self._newlines += block.count(b"\n")
            self._ends_open = not block.endswith(b"\n")
            if self._indexed % STEP == 0:
                self._before.append(self._newlines)
        self.complete = False
        return True

    def read(self, first: int, count: int) -> list[str]:
        """`count` lines from line `first` on (fewer at the end); each at most LINE_CAP characters, as text."""
        first = max(1, first)
        number, offset = self._start(first)
        return [text for _, text in zip(range(count), self._lines_at(offset, first - number), strict=False)]

    def _start(self, first: int) -> tuple[int, int]:
        """(number, byte) of a line start at or before line `first`, as late as the index knows one."""
        block = max(0, bisect_right(self._before, first - 2) - 1)
        if block == 0:
            return 1, 0
        # The line that runs into the block ends there, so the next one to start is the second after those counted;
        # where the block begins with a line of its own, that line is passed over as well.
        return self._before[block] + 2, self._line_start_after(block * STEP)

    def _line_start_after(self, offset: int) -> int:
        """The byte after the first newline at or after `offset`."""
        at = offset
        while True:
            block = os.pread(self._file.fileno(), STEP, at)
            if not block:
                return at
            hit = block.find(b"\n")
            if hit >= 0:
                return at + hit + 1
            at += len(block)

    def _lines_at(self, offset: int, skip: int) -> Iterator[str]:
        """Lines from a line's first byte on, the first `skip` left out; the rest of an overlong line is passed over."""
        kept = b""
        while True:
            block = os.pread(self._file.fileno(), STEP, offset)
            if not block:
                break
            offset += len(block)
            start = 0
            while (hit := block.find(b"\n", start)) >= 0:
                if skip:
                    skip -= 1
                else:
                    yield _text(kept + block[start : min(hit, start + LINE_CAP)])
                kept = b""
                start = hit + 1
            if len(kept) < LINE_CAP:
                kept += block[start : start + LINE_CAP]
        if kept and not skip:
            yield _text(kept)

    def find(self, wanted: bytes, start_line: int, *, ignore_case: bool = True, limit: int = 1) -> Iterator[int]:
        """Numbers of lines from `start_line` on that hold `wanted`, at most `limit` of them, in order."""
        needle = wanted.lower() if ignore_case else wanted
        found = 0
        for number, line in self.scan(start_line):
            if needle in (line.lower() if ignore_case else line):
                yield number
                found += 1
                if found >= limit:
                    return

    def scan(self, first: int = 1) -> Iterator[tuple[int, bytes]]:
        """(number, bytes) of every line from `first` on, each cut at LINE_CAP."""
        number, offset = self._start(first)
        kept = b""
        while True:
            data = os.pread(self._file.fileno(), STEP, offset)
            if not data:
                break
            offset += len(data)
            *whole, rest = data.split(b"\n")
            for line in whole:
                if number >= first:
                    yield number, (kept + line)[:LINE_CAP] if kept else line[:LINE_CAP]
                kept = b""
                number += 1
            if len(kept) < LINE_CAP:
                kept += rest[:LINE_CAP]
        if kept and number >= first:
            yield number, kept[:LINE_CAP]

    def close(self) -> None:
        """Lets the file go."""
        self._file.close()


def _text(line: bytes) -> str:
    return line[:LINE_CAP].decode("utf-8", "replace").rstrip("\r")
