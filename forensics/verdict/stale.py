"""What the kernel told before the job began. In: events and lines; out: the time of the job's first line, and who was killed before it.

dmesg "[Fri Feb 27 02:11:45] Out of memory: Killed process 99123 (python3)" beside a job log that begins on 2 March
-> another job's process: no cause while anything else explains the end
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind

#: seconds that a job may run before its first line
_SILENT = 600.0
#: seconds between a time and one that has no year
_NO_YEAR = 20 * 365 * 86400.0
#: lines of a source in which its first time is sought
_HEAD = 200
_KERNEL = frozenset(("oom_killer", "kernel_log", "kernel_trace"))
#: what the kernel tells of a process that ended
_ENDS = frozenset((EventKind.OOM_KILL, EventKind.FATAL_SIGNAL))


def job_began(events: Sequence[Event], intake: Intake) -> float | None:
    """The first dated time of the sources in which no kernel speaks; None where there is none, or no kernel speaks at all."""
    of_kernel = {e.span.source for e in events if e.kind in _ENDS and e.parser in _KERNEL}
    if not of_kernel:
        return None
    first: dict[int, float] = {}
    seen: dict[int, int] = {}
    for line in intake.lines:
        if line.source in of_kernel or line.source in first or seen.get(line.source, 0) >= _HEAD:
            continue
        seen[line.source] = seen.get(line.source, 0) + 1
        if line.time is not None and intake.sources[line.source].clock.kind == "wall":
            first[line.source] = line.time
    return min(first.values(), default=None)


def is_stale(event: Event, began: float | None) -> bool:
    """True for the kill or the fault of a process that had ended before the job began."""
    if event.kind not in _ENDS or event.parser not in _KERNEL or event.time is None or began is None:
        return False
    return _SILENT < began - event.time < _NO_YEAR
