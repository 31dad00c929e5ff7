"""Failures as they come in, one line each, while a log is still being written. In: marked `LogLine`s; out: lines of text. Sample:

    Ticker(known, print).told([LogLine(0, 812, "torch.OutOfMemoryError: CUDA out of memory. Tried …", rank=TP1, …)])
    -> 20:15:20  TP1  line 812: torch.OutOfMemoryError: CUDA out of memory. Tried …  [torch.cuda-out-of-memory]

What a line means for the whole is for the report to say: here stands only that it was written. Each known failure is told once for
each rank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from forensics.ingest.intake import Intake
from forensics.model.knowledge import Facts
from forensics.model.source import LogLine
from forensics.model.verdict import Finding, SignatureRole
from forensics.pipeline import rank_names
from forensics.report.text import clock_time
from forensics.visible import visible

#: a reader follows no more than this; the report has the rest
MOST = 200
#: of a line
_WIDTH = 160
_TOLD = frozenset((SignatureRole.ROOT, SignatureRole.CASCADE))
_WARM = "RuntimeError: CUDA error: an illegal memory access was encountered"


class Ticker:
    """known: signatures; say: takes one line of text; hide: secrets and names are replaced in it; rank: only lines of this one, and
    of nobody in particular."""

    def __init__(
        self, known: Sequence[Any], say: Callable[[str], None], hide: bool = False, rank: str | None = None
    ) -> None:
        self._known, self._say, self._rank = known, say, None if rank is None else rank.lower()
        self._clean: Callable[[str], str] = str
        if hide:
            from forensics.redact import Redactor

            self._clean = Redactor().text
        self._told: set[tuple[str, str]] = set()
        # what the first line needs is loaded while there is none
        self._findings([LogLine(0, 1, _WARM, _WARM)])

    def told(self, lines: list[LogLine]) -> None:
        """Says what is new in these lines."""
        if len(self._told) >= MOST:
            return
        if self._rank is not None:
            lines = [line for line in lines if line.rank is None or self._rank in rank_names(line.rank)]
        named: dict[int, tuple[LogLine, str]] = {}
        for finding in self._findings(lines):
            if finding.role not in _TOLD:
                continue
            for span in finding.spans or tuple(quote.span for quote in finding.evidence):
                line = next((line for line in lines if line.number == span.first_line), None)
                if line is not None:
                    named.setdefault(line.number, (line, finding.id))
        for number in sorted(named):
            line, name = named[number]
            key = (name, line.rank.label if line.rank else line.stream)
            if key not in self._told:
                self._told.add(key)
                self._say(_row(line, name, self._clean))
        if len(self._told) >= MOST:
            self._say("more came; the report will have it")

    def _findings(self, lines: list[LogLine]) -> list[Finding]:
        from forensics.match import match

        return match(Intake(lines=lines), [], Facts(), self._known)


def _row(line: LogLine, name: str, clean: Callable[[str], str]) -> str:
    text = clean(line.text.strip())  # before it is cut: half a secret is not known for one
    when = _clock(line.time)
    who = clean(line.rank.label) if line.rank else ""
    said = text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
    return visible("  ".join(part for part in (when, who, f"line {line.number}: {said}", f"[{name}]") if part))


def _clock(time: float | None) -> str:
    """Time of day on the log's clock; nothing where it has none."""
    if time is None or time < 1e8:
        return ""
    return clock_time(int(time), "time_of_day")
