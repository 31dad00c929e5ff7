"""`forensics diff GOOD BAD`: what differs between a good and a bad run. In: two inputs; out: a report. Sample:

forensics diff monday.log tuesday.log --format json
"""

from __future__ import annotations

import click

from forensics.cli.output import colored, emit, keep_inputs


@click.command(
    epilog="""\b
Examples:
  forensics diff good.log bad.log
  forensics diff run-41/ run-42/ --format json | jq .changes

Exit codes: 0 no difference, 1 differences, 2 wrong usage, 4 an input could not be read."""
)
@click.argument("good", type=click.Path())
@click.argument("bad", type=click.Path())
@click.option(
    "--format", "format_", type=click.Choice(["console", "json", "markdown"]), default="console", show_default=True
)
@click.option("-o", "--output", type=click.Path(), help="Write the report to this file.")
@click.option("--gpu", metavar="NAME", help="The GPU, where the logs do not say.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True)
def diff(good: str, bad: str, format_: str, output: str | None, gpu: str | None, color: str) -> int:
    """What differs between a good and a bad run: settings, versions, GPUs, how far they came, findings.

    GOOD and BAD are files, folders or archives.
    """
    from forensics.pipeline import analyze
    from forensics.report import diff as differ
    from forensics.report import spelled_out

    keep_inputs(output, (good, bad))
    one, two = analyze([good], gpu=gpu), analyze([bad], gpu=gpu)
    found = differ.changes(one, two)
    if format_ == "json":
        content = spelled_out(differ.as_json(one, two).decode()).encode()
    elif format_ == "markdown":
        from forensics.redact import Redactor
        from forensics.report.markdown import write as write_markdown

        redactor = Redactor(one, two)
        seen = redactor.value(differ.view(one, two))
        content = write_markdown(seen, redacted=redactor.summary()).encode("utf-8", "replace")
    else:
        from forensics.report.console import write as write_console

        content = write_console(differ.view(one, two), color=colored(color, output)).encode("utf-8", "replace")
    emit(content, output)
    return 1 if found else 0
