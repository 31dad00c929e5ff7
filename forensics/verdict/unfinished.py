"""A process that ended in the middle of its start, and nothing says why. In: a run's events, the intake; out: where it ended. Sample:

    Capture CUDA graph begin. This can take up to several minutes.
    …/resource_tracker.py:279: UserWarning: resource_tracker: There appear to be 2 leaked semaphore objects to clean up at shutdown
    -> the span of the first line: a step that began, did not end, and below it what is left of a process that is no more

A log that merely stops there was copied while the process was still at it; the tracker's word is what tells the two apart.
"""

from __future__ import annotations

from forensics.ingest.intake import Intake
from forensics.ingest.pattern import Pattern
from forensics.model.event import EventKind
from forensics.model.source import Span
from forensics.verdict.incidents import Run

#: steps of a start that say when they begin and when they end
_STEPS = ("weight_load", "graph_capture", "warmup")
_LEAKED = Pattern(r"resource_tracker: There appear to be \d{1,6} leaked \w{1,20} objects to clean up at shutdown")
#: last lines in which the tracker's word stands: a warning, and the source line below it
_LAST = 4


def left_in_the_middle(run: Run, intake: Intake) -> Span | None:
    """The step of its start in which a process ended that left things behind; None for every other log."""
    steps = [e for e in run.events if e.kind is EventKind.LIFECYCLE]
    last = max(steps, key=lambda e: (e.span.source, e.span.last_line), default=None)
    if last is None or last.fields.get("state") != "begin" or last.fields.get("phase") not in _STEPS:
        return None
    ends = [line for line in intake.lines[-_LAST:] if line.source == last.span.source and _LEAKED.search(line.text[:20_000])]
    return last.span if ends else None
