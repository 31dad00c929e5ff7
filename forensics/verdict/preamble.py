"""Commands of a batch script that failed before the ranks were started. In: sightings, the lines; out: those that ended no job. Sample:

    Traceback (most recent call last):                    a tracker's command, under the node's own Python
      …
    ModuleNotFoundError: No module named 'contextvars'
    job.sh: line 71: module: command not found
     0: loaded plugin alpha                               srun labels what all of its tasks write: the ranks run
    12: loaded plugin alpha
    -> the traceback and the shell's word

A launcher that labels each line of its ranks (srun --label) tells apart what the script itself printed. Without a label nobody knows
whose a traceback is.
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.model.source import LogLine
from forensics.verdict.quotes import Quotes
from forensics.verdict.sighting import Sighting

#: lines of ranks, and different ranks, that show that the launcher labels them
_LINES, _RANKS = 20, 2


def of_the_script(seen: Sequence[Sighting], quotes: Quotes) -> list[Sighting]:
    """The failures above the first labelled line of their source, where an exception is among them: what a shell says of a command that it
    does not find, it says of a script that goes on."""
    asked = [s for s in seen if s.role is None and s.rank is None and s.kind in ("python", "message") and not s.stream]
    starts = {source: _start(quotes.of_source(source)) for source in {s.span.source for s in asked}}
    found = [s for s in asked if s.span.last_line < (starts[s.span.source] or 0)]
    return found if any(s.kind == "python" for s in found) else []


def _start(lines: Sequence[LogLine]) -> int | None:
    """The number of the first labelled line, where many follow of several tasks; None where none is labelled, or too few."""
    labelled = [line for line in lines if line.rank is not None and line.rank.axis("task") is not None]
    if len(labelled) < _LINES or len({line.rank.label for line in labelled if line.rank}) < _RANKS:
        return None
    return labelled[0].number
