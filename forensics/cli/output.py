"""Where a report goes: standard output or a file, whole or not at all. In: bytes; out: none. Sample:

emit(b"…", "report.json")   -> report.json appears complete under its name, or an error says why not
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

from forensics.errors import ForensicsError, UsageError


def emit(content: bytes, path: str | None = None, *, mode: int | None = None, commands: bool = False) -> None:
    """Writes to a file (whole or not at all; mode: its permissions) or to standard output. commands: what looks like a command of
    a CI runner is one of ours. Raises ForensicsError, BrokenPipeError."""
    if path is None or path == "-":
        _to_stdout(content if commands else _no_commands(content))
    else:
        _to_file(content, path, mode)


def emit_text(text: str) -> None:
    """Text on standard output in which nothing moves a terminal: names out of files and logs are in it."""
    from forensics.visible import visible

    emit((visible(text.rstrip("\n")) + "\n").encode("utf-8", "replace"))


def keep_inputs(output: str | None, inputs: Sequence[str]) -> None:
    """Refuses to write over what is being read: a log may be the only one. Raises UsageError."""
    for path in inputs:
        try:
            same = bool(output) and os.path.isfile(path) and os.path.samefile(str(output), path)
        except OSError:
            continue
        if same:
            raise UsageError(
                "--output names a file that is being read",
                why="the report would take the place of the log",
                where=path,
                help="choose another name",
            )


def colored(color: str, output: str | None) -> bool:
    """Whether to colour: as asked, else on a terminal. NO_COLOR and FORCE_COLOR as their conventions say."""
    if color != "auto":
        return color == "always"
    if output or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (sys.stdout is not None and sys.stdout.isatty())


def _no_commands(content: bytes) -> bytes:
    """On a CI runner standard output is read for commands, in lines that begin with "::" or "##[": a log's text must not be one."""
    if not (os.environ.get("GITHUB_ACTIONS") or os.environ.get("TF_BUILD")) or not (b"::" in content or b"##[" in content):
        return content
    import re

    return re.sub(rb"(?m)^([^\S\n]*)(?=::|##\[|##vso\[)", b"\\1\xe2\x80\x8b", content)


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
        raise ForensicsError(
            "cannot write the report",
            why=error.strerror or str(error),
            where="standard output",
            help="use --output FILE",
        ) from None


def _to_file(content: bytes, path: str, mode: int | None) -> None:
    from forensics.drafts import write_whole

    try:
        if os.path.exists(path) and not os.path.isfile(path):  # a device or a named pipe is written to, not replaced
            with open(path, "wb") as out:
                out.write(content)
            return
        write_whole(path, content, mode=mode)
    except OSError as error:
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
