"""Of very many files the small plain ones are read in one go. In: a name and a size; out: what is left of it, or None. Sample:

    Small(wants, shares, 4096).taken("rank_17.log", 102400)
    -> Taken("rank_17.log", 102400, 672, …, sightings=[(672, b"[… TP1] Decode batch …")])

None where the file is not plain text of that size; then it is opened and scanned as any other, and what is wrong with it is told.
"""

from __future__ import annotations

import os

from forensics.ingest.assemble import Taken, take
from forensics.ingest.feeds import line_feeds
from forensics.ingest.glog import Glog
from forensics.ingest.inputs import CONTROL
from forensics.ingest.pulse import Pulse
from forensics.ingest.retain import Retainer
from forensics.ingest.scan import Scanned
from forensics.ingest.shares import Shares
from forensics.ingest.wants import Wants

#: the size of a plain file that nobody has asked for
LISTED = -1
#: a bigger file is worth more than one look
BIGGEST = 1 << 20
#: first bytes that must be plain, and what is not
_HEAD = 512
_NOT_PLAIN = CONTROL + b"\0\x7f"
#: what archives, JSON and (of those that begin with plain characters) compressed files begin with
_PACKED = (b"PK", b"{", b"BZh")
#: of the last line of a file that says nothing
_LINE_CAP = 4_096
#: a name that became a pipe since it was looked at must not stop us
_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


class Small:
    """Reads small files into one buffer. shares: what each may keep; line_cap: bytes of a kept line."""

    __slots__ = ("_buffer", "_line_cap", "_shares", "_view", "_wants")

    def __init__(self, wants: Wants, shares: Shares, line_cap: int) -> None:
        self._wants, self._shares, self._line_cap = wants, shares, line_cap
        self._buffer = bytearray(BIGGEST)
        self._view = memoryview(self._buffer)

    def taken(self, name: str, size: int | None) -> Taken | None:
        """What is left of a file of `size` bytes (LISTED; None where that is not known): its marked lines, or else just its last one."""
        least = self._shares.whole
        if size is None or not (size == LISTED or least < size < BIGGEST):
            return None
        try:
            got, is_all = self._read(name)
        except (OSError, ValueError):
            return None  # told where it is opened again
        if size == LISTED and is_all and got > least:
            size = got
        if got != size or not _is_plain(bytes(self._view[: min(_HEAD, size)])):
            return None
        buffer = self._buffer
        hits = Glog(self._wants).added(self._wants.engine.scan(self._view[:size]), buffer, 0, size)
        ends = buffer[size - 1] == 10
        start = buffer.rfind(b"\n", 0, size - ends) + 1
        last = bytes(self._view[start : min(size - ends, start + _LINE_CAP)])
        if not hits:
            lines = line_feeds(buffer, 0, size) + (not ends)
            return Taken(name, size, lines, "utf-8", None, [], {}, 0, 0, [(lines, last)], False)
        retainer = Retainer(self._wants, self._shares.budget, self._line_cap, common=self._shares.common)
        _, following = retainer.feed(buffer, 0, 0, size, 1, hits, True)
        lines = following - ends
        return take(name, "utf-8", None, Scanned(size, lines), retainer, Pulse(), False)._replace(sightings=[(lines, last)])

    def _read(self, name: str) -> tuple[int, bool]:
        """(bytes read, whether that was all)."""
        file = os.open(name, _OPEN)
        try:
            if hasattr(os, "readv"):
                got = os.readv(file, (self._view,))
            else:
                got = os.fdopen(file, "rb", buffering=0, closefd=False).readinto(self._view) or 0
            return got, got < BIGGEST and not os.read(file, 1)
        finally:
            os.close(file)


def _is_plain(head: bytes) -> bool:
    """ASCII without control characters: neither packed nor a dump, and in no encoding of its own."""
    return (
        head.isascii()
        and len(head.translate(None, _NOT_PLAIN)) == len(head)
        and not head.startswith(_PACKED)
        and head[257:262] != b"ustar"
    )
