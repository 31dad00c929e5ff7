"""An incident as something to read, send or feed to a program. Public verb: `render`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forensics.errors import UsageError

if TYPE_CHECKING:
    from forensics.model.verdict import Incident
    from forensics.report.blocks import ReproOffer

#: what `render` can make, in the order of --help
FORMATS = ("console", "json", "markdown", "html")

__all__ = ["FORMATS", "render"]


def render(
    incident: Incident,
    format: str = "console",
    *,
    explain: bool = False,
    brief: bool = False,
    color: bool = False,
    width: int | None = None,
    repro: ReproOffer | None = None,
) -> str:
    """The report as text. explain: every finding and note; brief: only the verdict's line (console); color: ANSI colours
    (console); width: columns (console; None: the terminal's); repro: what the repro floor offers. Raises UsageError for an
    unknown format."""
    if format == "json":
        from forensics.report.json import write as write_json

        return write_json(incident, repro).decode("utf-8")
    if format == "console":
        from forensics.report.console import write as write_console
        from forensics.report.view import view

        return write_console(view(incident, repro), explain=explain, brief=brief, color=color, width=width)
    if format == "markdown":
        from forensics.report.markdown import write as write_markdown
        from forensics.report.view import view

        return write_markdown(view(incident, repro), explain=explain)
    if format == "html":
        from forensics.report.html import write as write_html
        from forensics.report.view import view

        return write_html(view(incident, repro), repro)
    raise UsageError(f"unknown format {format!r}", help="one of " + ", ".join(FORMATS))
