"""Of very many files most say nothing: those are read in one go. In: a name; out: what is left of it, or None. Sample:

    Calm(wants, 0).taken("rank_17.log") -> Taken("rank_17.log", 102400, 672, …, sightings=[(672, b"[… TP1] Decode batch …")])

None where the file is not plain text without a single hit; then it is opened and scanned as any other.
"""

from __future__ import annotations

import os
import stat

from forensics.ingest.assemble import Taken
from forensics.ingest.feeds import line_feeds
from forensics.ingest.inputs import CONTROL
from forensics.ingest.streams import compression_of
from forensics.ingest.wants import Wants

#: a bigger file is worth more than one look
BIGGEST = 1 << 20
#: first bytes that must be plain, and what is not
_HEAD = 512
_NOT_PLAIN = CONTROL + b"\0\x7f"
#: of the last line
_LINE_CAP = 4_096


class Calm:
    """Reads small files into one buffer. kept_whole: files up to so many bytes are kept whole by others."""

    __slots__ = ("_buffer", "_kept_whole", "_view", "_wants")

    def __init__(self, wants: Wants, kept_whole: int) -> None:
        self._wants, self._kept_whole = wants, kept_whole
        self._buffer = bytearray(BIGGEST)
        self._view = memoryview(self._buffer)

    def taken(self, name: str) -> Taken | None:
        """The last line of a small calm file."""
        try:
            found = os.stat(name)
            size = found.st_size
            if not self._kept_whole < size < BIGGEST or not stat.S_ISREG(found.st_mode):
                return None
            with open(name, "rb", buffering=0) as file:
                got = file.readinto(self._view)
        except (OSError, ValueError):
            return None  # told where it is opened again
        buffer = self._buffer
        if got != size or not _is_plain(bytes(self._view[: min(_HEAD, size)])) or self._wants.engine.scan(self._view[:size]):
            return None
        ends = buffer[size - 1] == 10
        start = buffer.rfind(b"\n", 0, size - ends) + 1
        lines = line_feeds(buffer, 0, size) + (not ends)
        last = bytes(self._view[start : min(size - ends, start + _LINE_CAP)])
        return Taken(name, size, lines, "utf-8", None, [], {}, 0, 0, [(lines, last)], False)


def _is_plain(head: bytes) -> bool:
    """ASCII without control characters: neither packed nor a dump, and in no encoding of its own."""
    return (
        head.isascii()
        and len(head.translate(None, _NOT_PLAIN)) == len(head)
        and not head.startswith((b"PK", b"{"))
        and head[257:262] != b"ustar"
        and compression_of(head) is None
    )
