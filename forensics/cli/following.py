"""`forensics --follow FILE`: watches a log as `tail -F` does. In: a path; out: failures as they come, the verdict whenever the log comes to
rest, the whole report at the end (Ctrl-C, or the input's). Sample:

    $ forensics --follow server.log
    20:15:20  TP1  line 812: torch.OutOfMemoryError: CUDA out of memory. Tried …  [torch.cuda-out-of-memory]
    crashed oom_gpu (established): GPU 1 is too full: 512.00 MiB more were asked for
    ^C
    (the report)
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from forensics.cli.talk import say
from forensics.errors import UsageError

if TYPE_CHECKING:
    from forensics.ingest.follow import Update
    from forensics.model.source import LogLine
    from forensics.model.verdict import Incident


#: seconds between two looks for a file that is not there yet
_ARRIVAL = 0.1
#: seconds after Ctrl-C in which a pipe is still read
_LAST_WORDS = 3.0


def one_input(paths: Sequence[str]) -> str:
    """The one thing to follow. Raises UsageError where it is several, or a folder."""
    if len(paths) > 1 or (paths and os.path.isdir(paths[0])):
        raise UsageError(
            "--follow takes one file, or standard input",
            why=f"{len(paths)} inputs are given" if len(paths) > 1 else f"{paths[0]} is a folder",
            help="follow the file in which all ranks write, or start one forensics for each",
        )
    return paths[0] if paths else "-"


def told_by(
    folders: Sequence[str], speak: Callable[[str], None], hide: bool = False, rank: str | None = None
) -> Callable[[list[LogLine]], None]:
    """What is to be called with marked lines, and says those that a signature knows. folders: with the user's own signatures; hide:
    redact what is said; rank: only this one's lines."""
    from forensics.cli.ticker import Ticker
    from forensics.match import load_signatures

    return Ticker(load_signatures([*folders]), speak, hide, rank).told


def watch(path: str, folders: Sequence[str], speak: Callable[[str], None], hide: bool = False, **options: Any) -> Incident:
    """Follows a file until it is interrupted, and returns the last analysis. speak: takes what is to be said, line by line; hide:
    redact that; options: as those of `forensics.pipeline.analyze_intake`. Raises ForensicsError."""
    from forensics.cli.ticker import Ticker
    from forensics.ingest.follow import follow
    from forensics.match import load_signatures
    from forensics.pipeline import analyze_intake, anchors_for
    from forensics.report import render

    known = load_signatures([*folders])
    if not os.path.lexists(path):
        say(f"{path} is not there yet: waiting for it, as tail -F does")
        while not os.path.lexists(path):
            time.sleep(_ARRIVAL)
    updates = follow(path, anchors_for(known), on_news=Ticker(known, speak, hide, options["rank"]).told)
    update: Update | None = None
    is_stale, said = True, ""
    try:
        for update in updates:
            is_stale = is_stale or update.is_new
            if is_stale and update.at_rest and not update.ended:
                is_stale = False
                try:
                    found = analyze_intake(update.intake, signatures=known, **options)
                except UsageError:  # the rank, time or incident that is asked for has not come yet
                    continue
                verdict = render(found, "console", brief=True, redact=hide).strip()
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
    """While it lasts, the first Ctrl-C ends standard input and not the program: what came by then is reported. The next one interrupts.

    The job at the pipe's other end gets the same Ctrl-C, and its ranks' last words say where each of them was: for these there is a
    moment."""

    def end(*_: object) -> None:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, sys.stdin.fileno())  # a read that waits is begun again, and is at its end
        os.close(nothing)

    def wait(*_: object) -> None:
        signal.signal(signal.SIGINT, before)
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, end)
            signal.setitimer(signal.ITIMER_REAL, _LAST_WORDS)
        else:
            end()

    before = signal.signal(signal.SIGINT, wait)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
