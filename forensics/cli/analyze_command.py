"""`forensics analyze`: logs in, a report and an exit code out. In: paths or standard input; out: a report. Sample:

forensics analyze run/ --gpu sm_120 --format json --output report.json
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from forensics.cli.output import colored, emit, let_go_of_stdout
from forensics.errors import ExitCode, UsageError
from forensics.report import FORMATS, render

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


@click.command(
    epilog="""\b
Examples:
  forensics server.log
  torchrun … 2>&1 | forensics
  forensics run/ *.zst --since "2026-11-29 20:10"
  forensics server.log --gpu "RTX PRO 6000" --format json | jq .verdict
  forensics server.log --output report.html"""
)
@click.argument("paths", nargs=-1, type=click.Path(), metavar="[PATH]…")
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help="How to report; by default what --output is named after, else console.",
)
@click.option("-o", "--output", type=click.Path(), help="Write the report to this file.")
@click.option(
    "--gpu",
    metavar="NAME",
    help='The GPU, where the log does not say: "RTX PRO 6000", sm_120, or local for this machine\'s.',
)
@click.option("--rank", metavar="RANK", help="Only this rank's lines: 3, TP1, …")
@click.option(
    "--since", metavar="TIME", help="Only from this time on, on the log's clock: 2026-11-29T20:10:00 or 20:10."
)
@click.option("--until", metavar="TIME", help="Only up to this time.")
@click.option(
    "--incident",
    type=click.IntRange(min=1),
    metavar="N",
    help="Report the Nth incident of the log instead of the gravest.",
)
@click.option(
    "--signatures",
    "folders",
    multiple=True,
    type=click.Path(exists=True, file_okay=False),
    metavar="DIR",
    help="A folder with signatures of your own; may be repeated.",
)
@click.option("--explain", is_flag=True, help="Every finding and note, in the order the analysis made them.")
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Colours on the console; NO_COLOR is respected.",
)
@click.option(
    "--redact/--no-redact",
    default=None,
    help="Replace secrets and the names of users and hosts; by default for html, markdown and github.",
)
@click.option("-q", "--quiet", is_flag=True, help="Only the verdict's line; no progress.")
@click.option("--debug", is_flag=True, help="Let an error inside forensics end with its traceback.")
def analyze(
    paths: tuple[str, ...],
    format_: str | None,
    output: str | None,
    gpu: str | None,
    rank: str | None,
    since: str | None,
    until: str | None,
    incident: int | None,
    folders: tuple[str, ...],
    explain: bool,
    color: str,
    redact: bool | None,
    quiet: bool,
    debug: bool,
) -> int:
    """Say what failed first in a log, where, why, and what to do.

    PATHs are files, folders, globs or archives, compressed or not; without one, or with -, standard input is read.
    """
    if debug:
        os.environ["FORENSICS_DEBUG"] = "1"
    if not paths and sys.stdin is not None and sys.stdin.isatty():
        raise UsageError(
            "no input",
            why="no PATH is given and standard input is a terminal",
            help="forensics server.log, or … | forensics",
        )
    format_ = format_ or SUFFIXES.get(os.path.splitext(output or "")[1].lower(), "console")
    found = _analyzed(
        paths,
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
        text = render(
            found,
            format_,
            explain=explain,
            brief=quiet,
            color=colored(color, output),
            repro=_offer(found, with_script=format_ == "html") if explain or format_ != "console" else None,
            redact=redact,
        )
        emit(text.encode("utf-8", "replace"), output)
    except BrokenPipeError:  # `… | head`: the reader had enough, the verdict stands
        let_go_of_stdout()
    return code


def _analyzed(
    paths: tuple[str, ...],
    *,
    gpu: str | None,
    rank: str | None,
    since: float | None,
    until: float | None,
    incident: int | None,
    folders: tuple[str, ...],
    quiet: bool,
) -> Incident:
    from forensics.cli.progress import Progress
    from forensics.ingest import ReadOptions
    from forensics.pipeline import analyze as run

    with Progress(silent=quiet) as progress:
        return run(
            list(paths) or ["-"],
            gpu=gpu,
            rank=rank,
            since=since,
            until=until,
            signatures=folders,
            incident=incident,
            read_options=ReadOptions(on_progress=progress.callback),
        )


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
    """Whether anything in the input told a clock, a rank, an engine, a GPU, or what a rule knows."""
    facts, it = found.facts, found.coverage
    timed = any(one.clock.kind != "none" for one in (found.sources or it.sources))
    return bool(timed or found.ranks or facts.engine or facts.gpu or found.findings or it.claimed_lines)


def _time(text: str | None, option: str) -> float | None:
    """Seconds on the log's clock. A time without a zone is taken as the log prints it, one without a date as a time of day; plain
    numbers are seconds."""
    if text is None:
        return None
    from datetime import UTC, datetime, time

    try:
        return float(text)
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
            f"{option} {text!r} is no time I can read", help="write it as 2026-11-29T20:10:00, 20:10:00, or in seconds"
        ) from None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
