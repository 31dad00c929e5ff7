"""Bytes as they come, made plain: decompressed and in UTF-8. In: a raw stream; out: a stream with `readinto`. Sample:

opened = plain(open("a.log.gz", "rb", buffering=0), "a.log.gz", limit)
-> Plain(compression="gz", encoding="utf-8", …); opened.readinto(buffer) -> decompressed bytes; opened.damage -> None
"""

from __future__ import annotations

import codecs
from typing import Any, Protocol

from forensics.ingest.decode import guess_encoding

#: compressed bytes taken at once
_BITE = 256 * 1024
_ZST_BITE = 4096
#: text never shrinks this far: from so many bytes on, what unpacks to more than so many times its size is a bomb
RATIO, RATIO_FROM = 500, 256 * 1024 * 1024
#: how often one compression may hide another (a .gz inside a .xz …)
_LAYERS = 3
_MAGIC = ((b"\x1f\x8b", "gz"), (b"\x28\xb5\x2f\xfd", "zst"), (b"\xfd7zXZ\x00", "xz"), (b"BZh", "bz2"))


class Raw(Protocol):
    """What a stream is made from: files, pipes, archive members."""

    def read(self, size: int, /) -> bytes: ...


def compression_of(head: bytes) -> str | None:
    """gz, zst, xz, bz2 by the first bytes, or None."""
    return next((name for magic, name in _MAGIC if head.startswith(magic)), None)


class Headed:
    """A raw stream whose first bytes were looked at and are given back. What goes wrong while reading ends the stream; `damage`
    says why."""

    __slots__ = ("_head", "_raw", "_readinto", "damage")

    def __init__(self, raw: Raw, head_size: int = 4096) -> None:
        self._raw = raw
        self._readinto: Any = getattr(raw, "readinto", None)
        self._head = b""
        self.damage: str | None = None
        head = b""
        # a pipe gives what it has: a live log must not wait here for a whole block
        while len(head) < min(512, head_size):
            more = self.read(head_size - len(head))
            if not more:
                break
            head += more
            if more.endswith(b"\n") and b"\0" not in head and head[:1] != b"{" and compression_of(head) is None:
                break  # whole lines of text: no archive, no dump, nothing that is told by what comes further in
        self._head = head

    @property
    def head(self) -> bytes:
        """What was looked at and not read yet."""
        return self._head

    def read(self, size: int) -> bytes:
        """Up to `size` bytes; b"" at the end."""
        if self._head:
            out, self._head = self._head[:size], self._head[size:]
            return out
        return self._guarded(self._raw.read, size) or b""

    def readinto(self, buffer: memoryview) -> int:
        """Fills the buffer's start; 0 at the end."""
        if self._head or self._readinto is None:
            out = self.read(len(buffer))
            buffer[: len(out)] = out
            return len(out)
        return self._guarded(self._readinto, buffer) or 0

    def _guarded(self, call: Any, argument: Any) -> Any:
        if self.damage is not None:
            return None
        try:
            while (got := call(argument)) is None:
                _wait(self._raw)
        except Exception as error:  # what archives and file systems raise has no common base but this
            self.damage = f"it could not be read to its end: {error}"
            return None
        return got


def _wait(raw: Any) -> None:
    """A pipe in non-blocking mode has nothing yet."""
    import select

    select.select([raw], [], [], 1.0)


class Inflated:
    """Decompressed bytes of a gz, xz, bz2 or zst stream, several members in a row included. What cannot be decompressed ends
    the stream; `damage` says why. Output is taken in bounded bites, so a bomb costs time up to the limit, never memory."""

    __slots__ = ("_engine", "_kind", "_left", "_made", "_over", "_pending", "_raw", "_started", "_taken", "damage")

    def __init__(self, raw: Headed, kind: str, limit: int) -> None:
        self._raw, self._kind, self._left = raw, kind, limit
        self._pending = self._over = b""
        self._engine: Any = _decompressor(kind)
        self._started = False
        self._taken = self._made = 0
        self.damage: str | None = None

    def read(self, size: int) -> bytes:
        """Up to `size` decompressed bytes; b"" at the end."""
        if self._over:
            out, self._over = self._over[:size], self._over[size:]
            return out
        if self.damage is not None:
            return b""
        try:
            out = self._inflate(size)
        except Exception as error:  # zlib.error, LZMAError and ZstdError share no base class but Exception
            self.damage = f"the {self._kind} data is damaged: {error}"
            return b""
        self._left -= len(out)
        self._made += len(out)
        if self._made > RATIO_FROM and self._made > RATIO * self._taken:
            self.damage = f"it unpacks to more than {RATIO} times its size, as a bomb does; the rest was not read"
            return b""
        if self._left < 0:
            self.damage = "more decompressed bytes than the limit allows; the rest was not read"
            return b""
        if len(out) > size:
            out, self._over = out[:size], out[size:]
        return out

    def _inflate(self, size: int) -> bytes:
        while True:
            engine = self._engine
            if engine.eof:
                self._pending = engine.unused_data + self._pending
                rest = self._pending.lstrip(b"\0") or self._raw.read(_BITE).lstrip(b"\0")
                if not rest:
                    return b""
                if compression_of(rest) != self._kind and len(rest) > 3:
                    self.damage = f"bytes after the end of the {self._kind} data were left out"
                    return b""
                self._pending = rest
                self._taken += len(rest)
                self._engine = engine = _decompressor(self._kind)
                self._started = False
            data, self._pending = self._pending, b""
            if not data and not getattr(engine, "unconsumed_tail", b"") and getattr(engine, "needs_input", True):
                data = self._raw.read(_ZST_BITE if self._kind == "zst" else _BITE)
                self._taken += len(data)
                if not data:
                    if self._started:
                        self.damage = f"the {self._kind} data ends early; the file may still be being written"
                    return b""
            self._started = True
            out: bytes
            if self._kind == "zst":
                # its decompressor has no limit on the output: small bites have
                self._pending = data[_ZST_BITE:]
                out = engine.decompress(data[:_ZST_BITE])
            elif self._kind == "gz":
                out = engine.decompress(getattr(engine, "unconsumed_tail", b"") + data, size)
            else:
                out = engine.decompress(data, size)
            if out:
                return out

    def readinto(self, buffer: memoryview) -> int:
        """Fills the buffer's start; 0 at the end."""
        out = self.read(len(buffer))
        buffer[: len(out)] = out
        return len(out)


def _decompressor(kind: str) -> Any:
    """A fresh decompressor with `decompress`, `eof` and `unused_data`."""
    if kind == "gz":
        try:
            from isal import isal_zlib as zlib  # three times as fast where it is installed
        except ImportError:
            import zlib  # type: ignore[no-redef]
        return zlib.decompressobj(31)
    if kind == "xz":
        import lzma

        return lzma.LZMADecompressor(memlimit=512 * 1024 * 1024)
    if kind == "bz2":
        import bz2

        return bz2.BZ2Decompressor()
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()


class Transcoded:
    """UTF-16 or UTF-32 as UTF-8."""

    __slots__ = ("_decoder", "_raw", "_rest")

    def __init__(self, raw: Any, encoding: str) -> None:
        self._raw = raw
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._rest = b""

    def readinto(self, buffer: memoryview) -> int:
        """Fills the buffer's start; 0 at the end."""
        while not self._rest:
            data = self._raw.read(_BITE)
            self._rest = self._decoder.decode(data, not data).encode("utf-8", "replace").replace(b"\xef\xbb\xbf", b"")
            if not data:
                break
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


class Plain:
    """A stream of UTF-8 bytes. head: its first bytes, not yet read; compression: outermost, or None; encoding: of the input."""

    __slots__ = ("_headed", "_inflated", "_stream", "compression", "encoding", "head")

    def __init__(self, raw: Raw, limit: int) -> None:
        stream: Headed = Headed(raw)
        self.compression: str | None = None
        self._inflated: list[Inflated] = []
        self._headed = [stream]
        for _ in range(_LAYERS):
            kind = compression_of(stream.head)
            if kind is None:
                break
            self.compression = self.compression or kind
            inflated = Inflated(stream, kind, limit)
            self._inflated.append(inflated)
            stream = Headed(inflated)
            self._headed.append(stream)
        self.head = stream.head
        self.encoding = guess_encoding(self.head)
        self._stream: Any = stream
        if self.encoding in ("utf-16-le", "utf-16-be", "utf-32"):
            self._stream = Transcoded(stream, self.encoding)
        elif self.encoding == "utf-8-sig":
            stream.read(3)

    @property
    def damage(self) -> str | None:
        """Why the stream ended before its end, or None. Ask at the end."""
        found = [part.damage for part in self._inflated] + [part.damage for part in self._headed]
        return next((why for why in found if why), None)

    def readinto(self, buffer: memoryview) -> int:
        """Fills the buffer's start; 0 at the end."""
        return int(self._stream.readinto(buffer))

    def read(self, size: int) -> bytes:
        """Bytes without transcoding, for archives."""
        out: bytes = self._stream.read(size)
        return out
