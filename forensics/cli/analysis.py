"""An analysis and its report, as `forensics analyze` makes them. In: paths and what the options said; out: a report, an exit code.
Sample:

    report(["run/"], format_="json", output="report.json") -> 1
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from forensics.cli.output import colored, emit, keep_inputs, let_go_of_stdout
from forensics.cli.talk import say
from forensics.errors import ExitCode, UsageError
from forensics.ingest.compiled import keep
from forensics.report import PUBLIC, render

if TYPE_CHECKING:
    from forensics.model.verdict import Incident
    from forensics.report.blocks import ReproOffer

#: what a file name asks for where --format is not given
SUFFIXES = {
    ".json": "json",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".sarif": "sarif",
    ".xml": "junit",
}


def report(
    paths: Sequence[str],
    *,
    format_: str | None = None,
    output: str | None = None,
    gpu: str | None = None,
    rank: str | None = None,
    since: str | None = None,
    until: str | None = None,
    incident: int | None = None,
    folders: Sequence[str] = (),
    explain: bool = False,
    color: str = "auto",
    redact: bool | None = None,
    quiet: bool = False,
    debug: bool = False,
    follow: bool = False,
) -> int:
    """Analyses and reports; the parameters are the options of `forensics analyze --help`. Raises ForensicsError."""
    if debug:
        os.environ["FORENSICS_DEBUG"] = "1"
    if not paths and (sys.stdin is None or sys.stdin.isatty()):
        raise UsageError(
            "no input",
            why=f"no PATH is given and standard input is {'closed' if sys.stdin is None else 'a terminal'}",
            help="forensics server.log, or … | forensics",
        )
    format_ = format_ or SUFFIXES.get(os.path.splitext(output or "")[1].lower(), "console")
    keep_inputs(output, paths)
    aside = format_ != "console" or output is not None  # what comes in is told beside the report, not in it

    def told(found: Incident) -> str:
        return render(
            found,
            format_,
            explain=explain,
            brief=quiet,
            color=colored(color, output),
            repro=_offer(found, with_script=format_ == "html") if explain or format_ != "console" else None,
            redact=redact,
        )

    found = _analyzed(
        paths,
        told,
        follow=follow,
        aside=aside,
        hide=redact or (redact is None and format_ in PUBLIC),
        gpu=gpu,
        rank=rank,
        since=_time(since, "--since"),
        until=_time(until, "--until"),
        incident=incident,
        folders=folders,
        quiet=quiet,
    )
    code = exit_code(found)
    try:
        emit(told(found).encode("utf-8", "replace"), output, commands=format_ == "github")
    except BrokenPipeError:  # `… | head`: the reader had enough, the verdict stands
        let_go_of_stdout()
    keep()
    return code


def _analyzed(
    paths: Sequence[str],
    told: Callable[[Incident], str],
    *,
    follow: bool,
    aside: bool,
    hide: bool,
    gpu: str | None,
    rank: str | None,
    since: float | None,
    until: float | None,
    incident: int | None,
    folders: Sequence[str],
    quiet: bool,
) -> Incident:
    from forensics.cli.progress import Progress
    from forensics.ingest import ReadOptions
    from forensics.pipeline import analyze as run

    options: dict[str, Any] = {"gpu": gpu, "rank": rank, "since": since, "until": until, "incident": incident}
    with Progress(silent=quiet) as progress:
        tell, is_live = None, _is_live(paths)
        if follow or (not quiet and is_live):
            from forensics.cli.following import one_input, told_by, watch

            speak = say if aside or not follow else lambda text: emit((text + "\n").encode("utf-8", "replace"))
            if follow and (path := one_input(paths)) != "-":
                return watch(path, folders, speak, hide, **options)
            tell = told_by(folders, progress.aside(speak), hide, rank)
        reading = ReadOptions(on_progress=progress.callback, on_news=tell)
        if follow or is_live:
            from forensics.cli.following import ended_by_interrupt

            with ended_by_interrupt():
                return run(["-"], signatures=folders, read_options=reading, **options)
        return run(list(paths) or ["-"], signatures=folders, read_options=reading, on_rehearsal=told, **options)


def _is_live(paths: Sequence[str]) -> bool:
    """Whether somebody at a terminal waits for what is piped in."""
    if [*paths] not in ([], ["-"]) or sys.stdin is None or sys.stderr is None or not sys.stderr.isatty():
        return False
    import stat

    try:
        return stat.S_ISFIFO(os.fstat(sys.stdin.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def _offer(found: Incident, with_script: bool) -> ReproOffer:
    """The repro floor's plan; it costs more than the whole console report, so that one does without."""
    from forensics.cli.offer import offered

    return offered(found, with_script)


def exit_code(found: Incident) -> int:
    """The contract's exit code of an analysis."""
    if found.primary is None and not _understood(found):
        return ExitCode.NOT_UNDERSTOOD
    if found.status.value != "healthy" or found.coverage.skipped:
        return ExitCode.FAILURE_FOUND
    return ExitCode.HEALTHY


def _understood(found: Incident) -> bool:
    """Whether anything in the input told a clock, a rank, an engine, a GPU, an end, or what a rule knows."""
    facts, it = found.facts, found.coverage
    timed = any(one.clock.kind != "none" for one in (found.sources or it.sources))
    told = timed or found.ranks or facts.engine or facts.gpu or found.findings or it.claimed_lines
    return bool(told or found.verdict.evidence)


def _time(text: str | None, option: str) -> float | None:
    """Seconds on the log's clock. A time without a zone is taken as the log prints it, one without a date as a time of day; plain
    numbers are seconds."""
    if text is None:
        return None
    from datetime import UTC, datetime, time

    try:
        if math.isfinite(seconds := float(text)):
            return seconds
    except ValueError:
        pass
    try:
        of_day = time.fromisoformat(text.strip())
        return of_day.hour * 3600 + of_day.minute * 60 + of_day.second + of_day.microsecond / 1e6
    except ValueError:
        pass
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(
            f"{option} {text!r} is no time I can read",
            why="it is neither a date, a time of day nor a number",
            help="write it as 2026-11-29T20:10:00, 20:10:00, or in seconds",
        ) from None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
