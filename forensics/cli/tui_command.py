"""`forensics tui`: logs in, a screen to walk through. In: paths or standard input; out: nothing but what is exported. Sample:

forensics tui run/*.log
kubectl logs pod-0 | forensics tui
"""

from __future__ import annotations

import os
import sys

import click

from forensics.errors import ExitCode, UsageError


@click.command(
    epilog="""\b
Examples:
  forensics tui server.log
  kubectl logs pod-0 | forensics tui

Press ? inside for every key."""
)
@click.argument("paths", nargs=-1, type=click.Path(), metavar="[PATH]…")
@click.option("--gpu", metavar="NAME", help="The GPU, where the log does not say.")
@click.option(
    "--signatures",
    "folders",
    multiple=True,
    type=click.Path(exists=True, file_okay=False),
    metavar="DIR",
    help="A folder with signatures of your own; may be repeated.",
)
def tui(paths: tuple[str, ...], gpu: str | None, folders: tuple[str, ...]) -> int:
    """Walk through a crash: verdict, ranks, failures, call path, the raw log with its evidence, findings, repro.

    PATHs are files, folders or archives; without one standard input is read, and the keys come from the terminal.
    """
    piped = (not paths or "-" in paths) and sys.stdin is not None and not sys.stdin.isatty()
    if not paths and not piped:
        raise UsageError(
            "no input", why="no PATH is given and standard input is a terminal", help="forensics tui server.log"
        )
    if sys.stdout is None or not sys.stdout.isatty():
        raise UsageError(
            "the screen needs a terminal",
            why="standard output is not one",
            help="forensics analyze writes to files and pipes",
        )
    missing = [path for path in paths if path != "-" and not os.path.exists(path)]
    if missing:
        raise UsageError(
            f"there is no {missing[0]}",
            why="no such file or folder",
            where=missing[0],
            help="name files or folders that exist",
        )
    spool = None
    if piped:
        from forensics.tui.logs import Spool

        stream = os.fdopen(os.dup(0), "rb", buffering=0)
        _keys_from_terminal()
        spool = Spool(stream)
    from forensics.tui.app import TriageApp

    options = {"gpu": gpu, "signatures": list(folders)}
    TriageApp([path for path in paths if path != "-"], options, spool).run()
    return ExitCode.HEALTHY


def _keys_from_terminal() -> None:
    """Standard input is the log; the keys come from the terminal itself."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY)
    except OSError as error:
        raise UsageError(
            "there is no terminal to read keys from", why=error.strerror or "", help="forensics analyze needs none"
        ) from error
    os.dup2(terminal, 0)
    os.close(terminal)
