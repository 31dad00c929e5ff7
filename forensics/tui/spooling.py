"""A compressed, archived or UTF-16 log as a plain file that can be scrolled. In: a source's name; out: a path or None. Sample:

    spooled("logs.tar.gz!rank_3.log") -> "/tmp/forensics-x1.log";  spooled("server.log") -> None (read where it lies)
"""

from __future__ import annotations

import os
import tempfile

from forensics.ingest.inputs import open_one
from forensics.ingest.options import DEFAULT
from forensics.model.source import Skipped

BLOCK = 1 << 20
#: no more of one log is unpacked for the screen; the report covers all of it
MOST_BYTES = 8 << 30


def spooled(name: str) -> str | None:
    """Unpacks one log into a temporary file, which the caller deletes. None where the file can be read as it is.

    Raises OSError where it cannot be read or the disk is full."""
    outer = name if os.path.exists(name) else name.split("!", 1)[0]
    skipped: list[Skipped] = []
    for opened in open_one(outer, DEFAULT, skipped):
        if opened.name != name or opened.blob is not None:
            continue
        if opened.path is not None:
            return None
        handle, path = tempfile.mkstemp(prefix="forensics-", suffix=".log")
        buffer, total = memoryview(bytearray(BLOCK)), 0
        try:
            with os.fdopen(handle, "wb") as out:
                while total < MOST_BYTES and (got := opened.stream.readinto(buffer)):
                    out.write(buffer[:got])
                    total += got
        except BaseException:
            os.unlink(path)
            raise
        return path
    raise OSError(skipped[0].why if skipped else "it is not a log that can be shown line by line")
