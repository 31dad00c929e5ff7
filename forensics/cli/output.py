"""Where a report goes: standard output or a file, whole or not at all. In: bytes; out: none. Sample:

emit(b"…", "report.json")   -> report.json appears complete under its name, or an error says why not
"""

from __future__ import annotations

import errno
import os
import sys

from forensics.errors import ForensicsError


def emit(content: bytes, path: str | None = None) -> None:
    """Writes to a file (through a temporary one beside it) or to standard output. Raises ForensicsError, BrokenPipeError."""
    if path is None or path == "-":
        _to_stdout(content)
    else:
        _to_file(content, path)


def colored(color: str, output: str | None) -> bool:
    """Whether to colour: as asked, else on a terminal. NO_COLOR and FORCE_COLOR as their conventions say."""
    if color != "auto":
        return color == "always"
    if output or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (sys.stdout is not None and sys.stdout.isatty())


def _to_stdout(content: bytes) -> None:
    if sys.stdout is None or sys.stdout.closed:
        raise ForensicsError(
            "cannot write the report", why="standard output is closed", help="use --output FILE, or open it"
        )
    try:
        out = getattr(sys.stdout, "buffer", None)
        if out is None:  # a stand-in without bytes below, as tests and notebooks use
            sys.stdout.write(content.decode("utf-8", "replace"))
        else:
            sys.stdout.flush()
            out.write(content)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise ForensicsError("cannot write the report", why=error.strerror or str(error)) from None


def _to_file(content: bytes, path: str) -> None:
    part = f"{path}.{os.getpid()}.part"
    try:
        if os.path.exists(path) and not os.path.isfile(path):  # a device or a named pipe is written to, not replaced
            with open(path, "wb") as out:
                out.write(content)
            return
        with open(part, "wb") as out:
            out.write(content)
        os.replace(part, path)
    except OSError as error:
        try:
            os.unlink(part)
        except OSError:
            pass
        hint = "make the folder first" if error.errno == errno.ENOENT else "choose another place with --output"
        raise ForensicsError(
            "cannot write the report", why=error.strerror or str(error), where=path, help=hint
        ) from None


def let_go_of_stdout() -> None:
    """After a reader such as `head` went away: nothing more is written, and the interpreter's own flush stays silent."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):
        pass
