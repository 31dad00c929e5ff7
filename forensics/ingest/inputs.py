"""What the user named, as a row of openable inputs. In: paths, folders, globs, "-", bytes; out: `Opened` records. Sample:

list(open_all(["a.log", "b.tar.gz"], options, skipped))
-> [Opened("logs/rank_0.log", …), Opened("a.tar.gz!rank_1.log", …)]; skipped -> [Skipped("logs/core", "binary data")]
"""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from forensics.ingest.options import ReadOptions
from forensics.ingest.streams import RATIO, RATIO_FROM, Plain
from forensics.model.source import Skipped

#: a member of an archive inside an archive is as deep as it gets
_DEEPEST = 3
#: a zip that cannot be sought (a pipe) is held in memory up to this size
_ZIP_IN_MEMORY = 256 * 1024 * 1024
_BLOB_CAP = 256 * 1024 * 1024
_HEADER_CAP = 1024 * 1024
#: control bytes that no text has: all below the space but NUL, tab, line ends and ESC
CONTROL = bytes([*range(1, 9), *range(14, 27), *range(28, 32)])
_PICKLE = tuple(bytes((0x80, protocol)) for protocol in range(2, 6))


class Opened:
    """One input, open. name: for people; path, size: of a plain uncompressed regular file (ranges of it can be read), else None;
    blob: the whole content where it is no log but evidence (flight recorder dumps)."""

    __slots__ = ("blob", "name", "path", "size", "stream")

    def __init__(
        self, name: str, stream: Plain, path: str | None = None, size: int | None = None, blob: bytes | None = None
    ) -> None:
        self.name, self.stream, self.path, self.size, self.blob = name, stream, path, size, blob


class Names(list[str]):
    """Names of inputs. listed: all of them were plain files when their folders were listed."""

    __slots__ = ("listed",)

    def __init__(self, names: Iterable[str], listed: bool = False) -> None:
        super().__init__(names)
        self.listed = listed


class _Allowance:
    """What one input and everything packed inside of it may still hold."""

    __slots__ = ("_bytes", "_members", "count")

    def __init__(self, options: ReadOptions) -> None:
        self._members, self._bytes = options.archive_members, options.archive_bytes
        self.count = 0

    def takes(self, size: int) -> bool:
        """Whether one more member of this size is within it; it counts from then on."""
        if self.count >= self._members or size > self._bytes:
            return False
        self.count, self._bytes = self.count + 1, self._bytes - size
        return True


def names_of(inputs: Sequence[str | os.PathLike[str]], skipped: list[Skipped]) -> Names:
    """Files behind paths, folders and globs, each once, in order; "-" stays. What is not there goes to `skipped`."""
    found: list[str] = []
    several = len(inputs) > 1
    listed = True
    for item in inputs:
        name = os.fspath(item)
        if os.path.isdir(name):
            are_plain = _walk(name, found, skipped)
            several, listed = several or not are_plain, listed and are_plain
            continue
        listed = False
        if name == "-" or os.path.lexists(name) or not any(letter in name for letter in "*?["):
            found.append(name)
        else:
            import glob

            matches = sorted(glob.glob(name, recursive=True))
            if not matches:
                skipped.append(Skipped(name, "no file matches this pattern"))
            found.extend(m for m in matches if not os.path.isdir(m))
            several = several or any(map(os.path.islink, matches))
    if len(found) == len(set(found)) and not several:
        return Names(found, listed)
    # a file that stands beside a link to it is known by its own name, which may tell its rank
    linked = {name for name in found if name != "-" and os.path.islink(name)}
    seen: set[str] = {os.path.realpath(name) for name in found if name not in linked and name != "-"} if linked else set()
    own = seen.copy()
    unique = []
    for name in found:
        real = name if name == "-" else os.path.realpath(name)
        if real not in seen or (real in own and name not in linked):
            own.discard(real)
            seen.add(real)
            unique.append(name)
    return Names(unique, listed)


def _walk(folder: str, found: list[str], skipped: list[Skipped]) -> bool:
    """Files in a folder, then those in the folders within it, by name; hidden ones and links to folders are left out. False where there is
    more than plain files among them: a link, by which a file may be there under two names, or something else."""
    waiting = [folder]
    are_plain = True
    while waiting:
        inside = waiting.pop()
        try:
            with os.scandir(inside) as entries:
                rows = sorted((entry for entry in entries if entry.name[0] != "."), key=attrgetter("name"))
        except OSError as error:
            skipped.append(Skipped(inside, (error.strerror or str(error)).lower()))
            continue
        inner = []
        for entry in rows:
            try:
                # a plain file is known as one without another look at it
                if entry.is_file(follow_symlinks=False):
                    found.append(entry.path)
                elif entry.is_dir():
                    if not entry.is_symlink():
                        inner.append(entry.path)
                elif _is_pipe(entry.path):
                    skipped.append(Skipped(entry.path, "a named pipe in a folder; name it itself to read from it", harmless=True))
                else:
                    found.append(entry.path)
                    are_plain = False
            except OSError:
                found.append(entry.path)  # told where it is opened
                are_plain = False
        waiting.extend(reversed(inner))
    return are_plain


def open_all(
    inputs: Iterable[str | bytes], options: ReadOptions, skipped: list[Skipped], first: int = 1, files: bool = False
) -> Iterator[Opened]:
    """Opens one input after the other; each is valid until the next is asked for. Never raises for a bad input: `skipped`
    tells. inputs: bytes, and names as `names_of` gives them; first: the number of the first one, 1-based; files: they were regular
    files when they were listed."""
    for number, item in enumerate(inputs, first):
        if isinstance(item, bytes):
            yield from _contents(f"input {number}", io.BytesIO(item), options, skipped, 0, _Allowance(options))
        else:
            yield from open_one(item, options, skipped, files)


def open_one(name: str, options: ReadOptions, skipped: list[Skipped], is_file: bool = False) -> Iterator[Opened]:
    """One path or "-": the file itself, or the members of the archive that it is."""
    if name == "-":
        if sys.stdin is None:  # whoever started this process has closed it
            skipped.append(Skipped(name, "standard input is closed"))
            return
        raw: Any = sys.stdin.buffer
        raw = getattr(raw, "raw", raw)
        _widen(raw)
        yield from _contents("-", raw, options, skipped, 0, _Allowance(options))
        return
    try:
        # a FIFO that nobody writes to would hang on a plain open
        mode = os.stat(name).st_mode
        if stat.S_ISSOCK(mode) or stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and not name.startswith("/dev/fd")):
            skipped.append(Skipped(name, "a device or socket, not a file", harmless=True))
            return
        if is_file and not stat.S_ISREG(mode):  # a pipe in its place would keep us waiting
            skipped.append(Skipped(name, "it was a file when it was listed, and is none any more"))
            return
        was_file = stat.S_ISREG(mode)
        with open(name, "rb", buffering=0, opener=_at_once if was_file else None) as file:
            opened = os.fstat(file.fileno())
            mode = opened.st_mode
            if was_file and not stat.S_ISREG(mode):  # changed between the look and the opening
                skipped.append(Skipped(name, "it was a file when it was looked at, and is none any more"))
                return
            if stat.S_ISFIFO(mode):
                _widen(file)
            size = opened.st_size if stat.S_ISREG(mode) else None
            yield from _contents(name, file, options, skipped, 0, _Allowance(options), size)
    except OSError as error:
        skipped.append(Skipped(name, (error.strerror or str(error)).lower()))


def _at_once(name: str, flags: int) -> int:
    """Opens what was a file without waiting: a pipe that came into its place has perhaps no writer."""
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))


def _contents(
    name: str,
    raw: Any,
    options: ReadOptions,
    skipped: list[Skipped],
    depth: int,
    allowance: _Allowance,
    size: int | None = None,
) -> Iterator[Opened]:
    stream = Plain(raw, options.archive_bytes)
    head = stream.head
    if head[257:262] == b"ustar" and depth < _DEEPEST:
        yield from _tar(name, stream, options, skipped, depth, allowance)
        return
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")) and depth < _DEEPEST:
        yield from _zip(name, raw, stream, size, options, skipped, depth, allowance)
        return
    if head.startswith(_PICKLE) or _is_recorder_json(head):
        blob = _all(stream, _BLOB_CAP)
        if blob is None:
            skipped.append(Skipped(name, "a dump of more than 256 MB"))
        else:
            yield Opened(name, stream, blob=blob)
        return
    if depth + (name != "-") and _is_binary(head, stream.encoding):
        skipped.append(Skipped(name, "binary data, not a log", size, harmless=True))
        return
    plain_file = size if stream.compression is None and stream.encoding == "utf-8" and depth == 0 else None
    yield Opened(name, stream, name if plain_file else None, plain_file or None)
    if stream.damage:
        skipped.append(Skipped(name, stream.damage))


def _tar(
    name: str, stream: Plain, options: ReadOptions, skipped: list[Skipped], depth: int, allowance: _Allowance
) -> Iterator[Opened]:
    import tarfile

    class Member(tarfile.TarInfo):
        """A header; long names and attributes are read into memory whole, so they must be small."""

        def _proc_member(self, archive: Any) -> Any:
            if self.type in b"LKxgX" and self.size > _HEADER_CAP:
                raise tarfile.ReadError("a header of more than 1 MB")
            return super()._proc_member(archive)  # type: ignore[misc]

    try:
        with tarfile.open(fileobj=stream, mode="r|", tarinfo=Member) as archive:  # type: ignore[call-overload]
            for member in archive:
                if not member.isreg() or member.size == 0:
                    continue
                if member.issparse():
                    skipped.append(Skipped(f"{name}!{member.name}", "a file with holes"))
                    continue
                if not allowance.takes(member.size):
                    skipped.append(Skipped(name, f"more than the limit of an archive; read {allowance.count} members"))
                    return
                inside = archive.extractfile(member)
                if inside is not None:
                    yield from _contents(f"{name}!{member.name}", inside, options, skipped, depth + 1, allowance)
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        skipped.append(Skipped(name, stream.damage or f"the archive is damaged: {error}"))


def _zip(
    name: str,
    raw: Any,
    stream: Plain,
    size: int | None,
    options: ReadOptions,
    skipped: list[Skipped],
    depth: int,
    allowance: _Allowance,
) -> Iterator[Opened]:
    import zipfile

    if size is not None and stream.compression is None:
        holder: Any = name
    else:
        content = _all(stream, _ZIP_IN_MEMORY)
        if content is None:
            skipped.append(
                Skipped(name, "a zip archive of more than 256 MB cannot be read from a pipe; unpack it first")
            )
            return
        holder = io.BytesIO(content)
    try:
        with zipfile.ZipFile(holder) as archive:
            for info in archive.infolist():
                if info.is_dir() or info.file_size == 0:
                    continue
                if info.file_size > max(RATIO_FROM, RATIO * info.compress_size):
                    skipped.append(
                        Skipped(f"{name}!{info.filename}", f"it unpacks to more than {RATIO} times its size, as a bomb does")
                    )
                    continue
                if not allowance.takes(info.file_size):
                    skipped.append(Skipped(name, f"more than the limit of an archive; read {allowance.count} members"))
                    return
                if info.flag_bits & 1:
                    skipped.append(Skipped(f"{name}!{info.filename}", "encrypted"))
                    continue
                with archive.open(info) as inside:
                    yield from _contents(f"{name}!{info.filename}", inside, options, skipped, depth + 1, allowance)
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, NotImplementedError) as error:
        skipped.append(Skipped(name, f"the archive is damaged: {error}"))


def _all(stream: Plain, cap: int) -> bytes | None:
    """The whole content, or None where it is bigger than `cap`."""
    parts, total = [], 0
    buffer = memoryview(bytearray(1 << 20))
    while size := stream.readinto(buffer):
        total += size
        if total > cap:
            return None
        parts.append(bytes(buffer[:size]))
    return b"".join(parts)


def _is_recorder_json(head: bytes) -> bool:
    """A JSON dump of torch's flight recorder."""
    start = head[:4096].lstrip()
    return start.startswith(b"{") and b'"pg_config"' in start and (b'"version"' in start or b'"entries"' in start)


def _is_binary(head: bytes, encoding: str) -> bool:
    """Not text in any encoding that logs have: many control bytes. A few NULs (a torn file) do not make it binary."""
    if encoding.startswith(("utf-16", "utf-32")) or not head:
        return False
    sample = head[:2048]
    control = len(sample) - len(sample.translate(None, CONTROL))
    return control > max(len(sample) * 0.05, 12) or (
        sample.count(0) > len(sample) * 0.5 and sample.strip(b"\0") != b"" and control > 0
    )


def _is_pipe(path: str) -> bool:
    """A named pipe; opening one waits until somebody writes to it."""
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except OSError:
        return False


def _widen(file: Any) -> None:
    """A pipe of 1 MB instead of 64 KB saves half of the switches between writer and reader; where the system lets us."""
    try:
        import fcntl

        fcntl.fcntl(file.fileno(), 1031, 1 << 20)
    except (ImportError, OSError, ValueError, AttributeError):
        return
