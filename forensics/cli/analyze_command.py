"""`forensics analyze`: logs in, a report and an exit code out. In: paths or standard input; out: a report. Sample:

forensics analyze run/ --gpu sm_120 --format json --output report.json
"""

from __future__ import annotations

import click

from forensics.report import FORMATS


@click.command(
    epilog="""\b
Examples:
  forensics server.log
  torchrun … 2>&1 | forensics
  forensics run/ *.zst --since "2026-11-29 20:10"
  forensics server.log --gpu "RTX PRO 6000" --format json | jq .verdict
  forensics server.log --output report.html
  forensics --follow server.log"""
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
@click.option(
    "-f",
    "--follow",
    is_flag=True,
    help="Say failures as they come, and the verdict when the log comes to rest; report at its end or at Ctrl-C.",
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
    follow: bool,
    quiet: bool,
    debug: bool,
) -> int:
    """Say what failed first in a log, where, why, and what to do.

    PATHs are files, folders, globs or archives, compressed or not; without one, or with -, standard input is read.
    """
    from forensics.cli.analysis import report

    return report(
        paths,
        format_=format_,
        output=output,
        gpu=gpu,
        rank=rank,
        since=since,
        until=until,
        incident=incident,
        folders=folders,
        explain=explain,
        color=color,
        redact=redact,
        quiet=quiet,
        debug=debug,
        follow=follow,
    )
