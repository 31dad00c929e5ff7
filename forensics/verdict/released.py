"""An end from outside after errors that the job had survived. In: the sightings of a run; changed in place. Sample:

ERROR: cache /srv/x.json not found · step 100 · step 200 · *** SIGTERM received by PID 412
-> the error is dealt with, and the SIGTERM is no consequence of it but the end
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.ingest.compiled import pattern_of
from forensics.model.verdict import CausalRole
from forensics.verdict.outcome import aftermath, answered, outlasts, printed_inside
from forensics.verdict.preamble import of_the_script
from forensics.verdict.quotes import Quotes
from forensics.verdict.sighting import Sighting

#: rules for an end from outside that follows where something else had failed
_ENDS = frozenset(("teardown.caught-term", "teardown.launcher-term", "teardown.interrupt"))
#: Slurm's word that all of a job is cancelled, not a step of which a task had failed, and not for a reason that it names
_JOB = pattern_of(r"\*\*\* JOB \d{1,12} ON \S{1,120} CANCELLED AT (?!.{0,60}DUE TO)")
#: Slurm's word that it took the job's node for another one: it asks that of jobs that run
_PREEMPTED = pattern_of(r"\*\*\* (?:JOB|STEP) \S{1,60} ON \S{1,120} CANCELLED AT .{0,60}DUE TO PREEMPTION")
#: what ends a thread and not its process
_IN_A_THREAD = pattern_of(r"Exception in thread \S")
#: lines of work that show that an error was survived; behind a command that a script did not find one is enough: the next one runs
_WORKED, _STARTED = 2, 1


def release(seen: Sequence[Sighting], quotes: Quotes) -> None:
    """Printed errors behind which the job worked on explain no end from outside: where they are all that failed, the end stands alone."""
    aside = of_the_script(seen, quotes)
    _stands_alone(aside, (), "a command of the job's script failed with it, and the ranks were started after it")
    ends = [
        s
        for s in seen
        if (s.rule in _ENDS and s.conditional) or (s.kind == "exit" and s.type == "SIGTERM" and (s.role is None or s.conditional))
    ]
    if not ends:
        return
    first = min(ends, key=lambda s: s.place)
    # a logger's record of the scheduler's word is no failure beside it
    open_ = [s for s in seen if s.role is None and s.weight >= 1 and not any(s is e or s.span == e.span for e in ends)]
    if _JOB.search(first.message[:400]) is not None:
        requests = [s for s in seen if (s.role is None or s.conditional) and answered(s) and not outlasts(s)]
        _stands_alone(requests, (), "a web server answered one request with it, and went on")
        aside += requests
        open_ = [s for s in open_ if s not in requests]
    if aside and not open_:
        _stands_alone((), ends, "")
        return
    before = [
        s
        for s in open_
        if s.weight == 2 and not s.typed and s.span.source == first.span.source and s.place < first.place
    ]
    lasting = any(outlasts(s) for s in open_)
    cancelled = _JOB.search(first.message[:400]) is not None and bool(open_) and not lasting
    if cancelled and all(printed_inside(s) and s.span.source == first.span.source and s.place < first.place for s in open_):
        _stands_alone(open_, ends, "the program caught and printed it, and lived until the whole job was cancelled")
        return
    if open_ and not lasting and any(_PREEMPTED.search(e.message[:400]) for e in ends) and all(_of_a_thread(s, first) for s in open_):
        _stands_alone(open_, ends, "a thread ended with it, and the job lived until another one took its place")
        return
    if not before or len(before) < len(open_):
        return
    last = max(before, key=lambda s: s.place)
    enough = _STARTED if all(of_shell(s) for s in before) and _JOB.search(first.message[:400]) else _WORKED
    if aftermath(quotes, last.span, last.stream, until=first.span, steady=True).working < enough:
        return
    _stands_alone(before, ends, "the job worked on after it")


def _of_a_thread(seen: Sighting, end: Sighting) -> bool:
    """True for an exception above the end that a thread had died of, and for a line about the same."""
    above = seen.span.source == end.span.source and seen.place < end.place
    return above and (seen.kind == "message" or (seen.kind == "python" and _IN_A_THREAD.match(seen.heading) is not None))


def of_shell(seen: Sighting) -> bool:
    """True for what a shell says of a command in its script: it goes on with the next one."""
    return seen.rank is None and seen.events[0].fields.get("program") == "shell"


def _stands_alone(before: Sequence[Sighting], ends: Sequence[Sighting], why: str) -> None:
    for survived in before:
        survived.role, survived.conditional, survived.rule = CausalRole.TEARDOWN, True, "handled"
        survived.role_why = why
    for end in ends:
        end.role, end.conditional, end.rule, end.role_why = None, False, "", ""
        end.weight = max(end.weight, 3)
