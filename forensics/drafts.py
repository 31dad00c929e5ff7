"""Files that appear whole under their names, or not at all. In: a path and bytes; out: none. Sample:

    write_whole("report.json", b"…")   killed at any moment: the older report.json, or the new one; at worst a hidden draft beside it,
                                       ".report.json.1a2b3c4d.part", which nothing reads and the next write takes away

A draft is opened only where nothing lies yet, so that a link planted under its name is not followed.
"""

from __future__ import annotations

import os
import time

#: a draft that was left by a killed process is no longer being written
_STALE_S = 3600.0
#: what a name may have, less what a draft adds
_LONGEST = 200


def write_whole(path: str, content: bytes, *, over: bool = True, mode: int | None = None, sync: bool = False) -> None:
    """Writes a file in one step. over: an older file is replaced (else FileExistsError); mode: its permissions (None: those of the older
    file, else what the umask says); sync: not before the disk has it. Raises OSError."""
    folder, name = os.path.split(path)
    _clear(folder or ".", name)
    draft = os.path.join(folder, f".{name[:_LONGEST]}.{os.urandom(4).hex()}.part")
    if mode is None and over:
        try:
            mode = os.stat(path).st_mode & 0o777
        except OSError:
            mode = None
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(out.fileno(), mode)
            if sync:
                out.flush()
                os.fsync(out.fileno())
        if over:
            os.replace(draft, path)
        else:
            _link(draft, path)
    except BaseException:
        os.unlink(draft)
        raise


def _link(draft: str, path: str) -> None:
    """Gives the draft its name where there is none of that name."""
    try:
        os.link(draft, path)
    except (PermissionError, NotImplementedError, AttributeError):  # a file system without hard links
        if os.path.lexists(path):
            raise FileExistsError(17, os.strerror(17), path) from None
        os.replace(draft, path)
        return
    os.unlink(draft)


def _clear(folder: str, name: str) -> None:
    """Takes away what killed processes left of this file; other hosts may be writing it, too, so only after an hour."""
    start = f".{name[:_LONGEST]}."
    try:
        with os.scandir(folder) as every:
            left = [one.path for one in every if one.name.startswith(start) and one.name.endswith(".part")]
        for draft in left:
            if os.lstat(draft).st_mtime < time.time() - _STALE_S:
                os.unlink(draft)
    except OSError:
        return
