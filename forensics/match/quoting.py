"""Quotations from a log. In: subjects, a span, what to look for; out: `Evidence`. Sample:

    evidence(subjects, event.span, ("Kernel: bmm_",), "built for sm_100f") -> Evidence(Span(0, 88, 88), "RuntimeError: …", …)
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.match.subject import Subjects
from forensics.model.source import Evidence, Span

LONGEST_QUOTE = 2000
MOST_LINES = 12


def evidence(subjects: Subjects, span: Span, wanted: Sequence[str], shows: str, stream: str = "") -> Evidence:
    """The first run of lines in a span that hold one of the wanted texts (code lines of tracebacks last), else its last line."""
    lines = subjects.lines_of(span, stream) or subjects.lines_of(span)
    holding = [line for line in lines if any(text in line.text for text in wanted)]
    said = [line for line in holding if not line.text.startswith("  ")]
    # what a c10 stack belongs to stands above it; its last frame says nothing
    chosen = said or holding or (lines[:1] if lines and lines[-1].text.startswith("frame #") else lines[-1:])
    if not chosen:
        return Evidence(span, "", shows)
    run = chosen[:1]
    for line in chosen[1:MOST_LINES]:
        if line.number != run[-1].number + 1:
            break
        run.append(line)
    quote = "\n".join(line.raw for line in run)[:LONGEST_QUOTE]
    return Evidence(Span(run[0].source, run[0].number, run[-1].number), quote, shows)
