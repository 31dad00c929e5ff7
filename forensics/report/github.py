"""The GitHub face: annotations first, then the Markdown report for the step summary. In: a `View`; out: text. Sample:

    ::error title=arch_mismatch on TP1,file=server.log,line=812::A trtllm-gen MoE kernel for 10.x GPUs was chosen on a 12.x GPU

    forensics run.log --format github | tee -a "$GITHUB_STEP_SUMMARY"

Workflow commands are read line by line from a step's output; log text cannot make one (`_harmless`).
"""

from __future__ import annotations

from forensics.report.blocks import Quotes, View
from forensics.report.markdown import write as write_markdown

_LEVEL = {"healthy": "notice", "degraded": "warning", "unknown": "warning"}


def write(view: View, *, redacted: str = "") -> str:
    """Annotations and summary. redacted: what was replaced, in words."""
    report = write_markdown(view, explain=True, redacted=redacted)
    return "\n".join([_annotation(view), "", *map(_harmless, report.split("\n"))])


def _harmless(line: str) -> str:
    """A line that the runner does not take for a command: neither "::…" after blanks nor "##[" anywhere."""
    bare = line.lstrip()
    if bare.startswith("::"):
        line = line[: len(line) - len(bare)] + "\u200b" + bare
    return line.replace("##[", "##\u200b[")


def _annotation(view: View) -> str:
    section = view.section("evidence")
    quotes = (
        [quote for block in section.blocks if isinstance(block, Quotes) for quote in block.quotes] if section else []
    )
    fields = [f"title={_property(f'{view.status}: {view.category}')}"]
    if quotes:
        fields += [
            f"file={_property(quotes[0].source)}",
            f"line={quotes[0].first_line}",
            f"endLine={quotes[0].last_line}",
        ]
    return f"::{_LEVEL.get(view.status, 'error')} {','.join(fields)}::{_data(f'{view.title} ({view.confidence})')}"


def _data(text: str) -> str:
    """As the runner's toolkit escapes the message of a command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A").replace("##[", "##\u200b[")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
