"""An end from outside after errors that the job had survived. In: the sightings of a run; changed in place. Sample:

ERROR: cache /srv/x.json not found · step 100 · step 200 · *** SIGTERM received by PID 412
-> the error is dealt with, and the SIGTERM is no consequence of it but the end
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.ingest.compiled import pattern_of
from forensics.model.verdict import CausalRole
from forensics.verdict.outcome import aftermath, printed_inside
from forensics.verdict.quotes import Quotes
from forensics.verdict.sighting import Sighting

#: rules for an end from outside that follows where something else had failed
_ENDS = frozenset(("teardown.caught-term", "teardown.launcher-term", "teardown.interrupt"))
#: Slurm's word that all of a job is cancelled, not a step of which a task had failed, and not for a reason that it names
_JOB = pattern_of(r"\*\*\* JOB \d{1,12} ON \S{1,120} CANCELLED AT (?!.{0,60}DUE TO)")
#: lines of work that show that an error was survived
_WORKED = 2


def release(seen: Sequence[Sighting], quotes: Quotes) -> None:
    """Printed errors behind which the job worked on explain no end from outside: where they are all that failed, the end stands alone."""
    ends = [
        s
        for s in seen
        if (s.rule in _ENDS and s.conditional) or (s.kind == "exit" and s.type == "SIGTERM" and (s.role is None or s.conditional))
    ]
    if not ends:
        return
    first = min(ends, key=lambda s: s.place)
    open_ = [s for s in seen if s.role is None and s.weight >= 1 and s not in ends]
    before = [
        s
        for s in open_
        if s.weight == 2 and not s.typed and s.span.source == first.span.source and s.place < first.place
    ]
    cancelled = _JOB.search(first.message[:400]) is not None and bool(open_)
    if cancelled and all(printed_inside(s) and s.span.source == first.span.source and s.place < first.place for s in open_):
        _stands_alone(open_, ends, "the program caught and printed it, and lived until the whole job was cancelled")
        return
    if not before or len(before) < len(open_):
        return
    last = max(before, key=lambda s: s.place)
    if aftermath(quotes, last.span, last.stream, until=first.span, steady=True).working < _WORKED:
        return
    _stands_alone(before, ends, "the job worked on after it")


def _stands_alone(before: Sequence[Sighting], ends: Sequence[Sighting], why: str) -> None:
    for survived in before:
        survived.role, survived.conditional, survived.rule = CausalRole.TEARDOWN, True, "handled"
        survived.role_why = why
    for end in ends:
        end.role, end.conditional, end.rule, end.role_why = None, False, "", ""
        end.weight = max(end.weight, 3)
