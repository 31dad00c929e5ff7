"""An incident as something to read, send or feed to a program. Public verb: `render`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forensics.errors import UsageError

if TYPE_CHECKING:
    from forensics.model.verdict import Incident
    from forensics.report.blocks import ReproOffer

#: what `render` can make, in the order of --help
FORMATS = ("console", "json", "markdown", "html", "github", "sarif", "junit")
#: those that are handed on to others: redacted unless told otherwise
PUBLIC = frozenset({"markdown", "html", "github"})

__all__ = ["FORMATS", "PUBLIC", "render", "spelled_out"]


def render(
    incident: Incident,
    format: str = "console",
    *,
    explain: bool = False,
    brief: bool = False,
    color: bool = False,
    width: int | None = None,
    repro: ReproOffer | None = None,
    redact: bool | None = None,
) -> str:
    """The report as text.

    explain: every finding and note; brief: only the verdict's line (console); color: ANSI colours (console); width: columns
    (console; None: the terminal's); repro: what the repro floor offers; redact: replace secrets and names (None: where the
    format is made to be handed on, see PUBLIC). Raises UsageError for an unknown format.
    """
    if format not in FORMATS:
        raise UsageError(f"unknown format {format!r}", why="no face of a report is called so", help="one of " + ", ".join(FORMATS))
    redactor = None
    if redact or (redact is None and format in PUBLIC):
        from forensics.redact import Redactor

        redactor = Redactor(incident)
    if format in ("json", "sarif", "junit"):
        return _for_programs(incident, format, repro, redactor)
    from forensics.report.view import view

    seen = view(incident, repro)
    if format == "html":
        from forensics.report.html import write as write_html

        return write_html(seen, repro, redactor)
    if redactor is not None:
        seen = redactor.value(seen)
    if format == "markdown":
        from forensics.report.markdown import write as write_markdown

        return write_markdown(seen, explain=explain, redacted=redactor.summary() if redactor else "")
    if format == "github":
        from forensics.report.github import write as write_github

        return write_github(seen, redacted=redactor.summary() if redactor else "")
    from forensics.report.console import write as write_console

    return write_console(seen, explain=explain, brief=brief, color=color, width=width)


def _for_programs(incident: Incident, format: str, repro: ReproOffer | None, redactor: object) -> str:
    """JSON, and what is made of it."""
    from forensics.report.json import report_of, write

    if format == "json":
        return spelled_out(write(incident, repro, redactor).decode("utf-8"))
    if format == "sarif":
        from forensics.report.sarif import write as write_sarif

        return spelled_out(write_sarif(report_of(incident, repro), redactor))
    from forensics.report.junit import write as write_junit

    return write_junit(report_of(incident, repro), redactor)


def spelled_out(text: str) -> str:
    """JSON whose strings hold nothing that moves a terminal or hides: JSON itself lets DEL, C1 codes and bidi characters stand."""
    if text.isascii() and "\x7f" not in text:
        return text
    import re
    from json.encoder import encode_basestring_ascii

    letters = "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"
    hidden = f"[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff{letters}]"
    return re.sub(hidden, lambda found: encode_basestring_ascii(found[0])[1:-1], text)
