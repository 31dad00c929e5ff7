"""`forensics --follow FILE`: watches a log as `tail -F` does. In: a path; out: failures as they come, the verdict whenever the log comes to
rest, the whole report at the end (Ctrl-C, or the input's). Sample:

    $ forensics --follow server.log
    20:15:20  TP1  line 812: torch.OutOfMemoryError: CUDA out of memory. Tried …  [torch.cuda-out-of-memory]
    server.log: OOM · TP1 failed first · …
    ^C
    (the report)
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from forensics.errors import UsageError

if TYPE_CHECKING:
    from forensics.ingest.follow import Update
    from forensics.model.source import LogLine
    from forensics.model.verdict import Incident


def one_input(paths: Sequence[str]) -> str:
    """The one thing to follow. Raises UsageError where it is several, or a folder."""
    if len(paths) > 1 or (paths and os.path.isdir(paths[0])):
        raise UsageError(
            "--follow takes one file, or standard input",
            why=f"{len(paths)} inputs are given" if len(paths) > 1 else f"{paths[0]} is a folder",
            help="follow the file in which all ranks write, or start one forensics for each",
        )
    return paths[0] if paths else "-"


def told_by(folders: Sequence[str], speak: Callable[[str], None], hide: bool = False) -> Callable[[list[LogLine]], None]:
    """What is to be called with marked lines, and says those that a signature knows. folders: with the user's own signatures; hide:
    redact what is said."""
    from forensics.cli.ticker import Ticker
    from forensics.match import load_signatures

    return Ticker(load_signatures([*folders]), speak, hide).told


def watch(path: str, folders: Sequence[str], speak: Callable[[str], None], hide: bool = False, **options: Any) -> Incident:
    """Follows a file until it is interrupted, and returns the last analysis. speak: takes what is to be said, line by line; hide:
    redact that; options: as those of `forensics.pipeline.analyze_intake`. Raises ForensicsError."""
    from forensics.cli.ticker import Ticker
    from forensics.ingest.follow import follow
    from forensics.match import load_signatures
    from forensics.pipeline import analyze_intake, anchors_for
    from forensics.report import render

    known = load_signatures([*folders])
    updates = follow(path, anchors_for(known), on_news=Ticker(known, speak, hide).told)
    update: Update | None = None
    is_stale, said = True, ""
    try:
        for update in updates:
            is_stale = is_stale or update.is_new
            if is_stale and update.at_rest and not update.ended:
                verdict = render(analyze_intake(update.intake, signatures=known, **options), "console", brief=True, redact=hide).strip()
                is_stale = False
                if verdict != said:
                    speak(verdict)
                    said = verdict
    except KeyboardInterrupt:
        if update is None:
            raise
    assert update is not None
    # the lines of the last moments are in the report, too
    return analyze_intake(update.intake, signatures=known, **options)


@contextmanager
def ended_by_interrupt() -> Iterator[None]:
    """While it lasts, the first Ctrl-C ends standard input and not the program: what came by then is reported. The next one interrupts."""

    def end(*_: object) -> None:
        signal.signal(signal.SIGINT, before)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, sys.stdin.fileno())  # a read that waits is begun again, and is at its end
        os.close(nothing)

    before = signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
