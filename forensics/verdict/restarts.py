"""Did a job that was started again get over the failure? In: a run's events and failures; out: yes or no. Samples:

ValueError of rank 3 · "Worker group FAILED. 2/3 attempts left; will restart worker group" · steps 20 … 199
"worker group successfully finished"            -> the second attempt did the work: degraded, not crashed
"CANCELLED AT … DUE TO NODE FAILURE" after step 400 · steps 350, 351 …     -> Slurm put the job back into its queue, and it went on

A failure that comes back after the last restart was not got over. Who restarts: torchrun's agent, systemd, docker, supervisord,
Ray Train, Horovod's elastic driver, Slurm. A node failure and a preemption end a job or put it back into the queue: only a new
beginning tells which.
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.model.event import Event, EventKind
from forensics.model.source import LogLine, Span
from forensics.model.verdict import CausalRole
from forensics.verdict.incidents import begun
from forensics.verdict.outcome import aftermath, caught, is_launchers_end, is_work, step_of
from forensics.verdict.quotes import Quotes
from forensics.verdict.sighting import Sighting

_MOST_LINES = 20_000
#: why Slurm ends a job that it starts again, and why it may
_REQUEUED, _PERHAPS = "job requeue", ("node failure", "preemption")
#: steps that are compared on each side of an end
_FEW = 40
#: who starts a job again, in words
_WHO = {
    "systemd": "systemd started the service again",
    "docker": "docker started the container again",
    "supervisord": "supervisord started the program again",
    "ray": "Ray Train started the workers again",
    "lightning": "the job was put back into Slurm's queue and started again",
    "horovod": "Horovod's elastic driver went on with the other hosts",
    "slurm": "Slurm put the job back into its queue and started it again",
}


def restarts_of(events: Sequence[Event], quotes: Quotes) -> list[Event]:
    """The lines that say that the job is started again, as they came."""
    return [e for e in events if _restarts(e, quotes)]


def who_restarted(event: Event) -> str:
    """Who started the job again, as a sentence without its end."""
    by = "slurm" if event.parser == "slurm" else str(event.fields.get("by"))
    return _WHO.get(by, "the launcher started the workers again")


def _restarts(event: Event, quotes: Quotes) -> bool:
    if event.kind is EventKind.PROCESS_EXIT:
        return event.fields.get("restarts") is True
    if event.kind is not EventKind.LAUNCHER:
        return False
    if event.fields.get("what") == "restart":
        return True
    reason = event.fields.get("reason") if event.fields.get("what") == "cancelled" else None
    return reason == _REQUEUED or (reason in _PERHAPS and _begins_anew(event.span, quotes))


def _begins_anew(span: Span, quotes: Quotes) -> bool:
    """True where a process begins behind an end, or where the steps behind it are not those that would have come next."""
    later = quotes.after(span)[:_MOST_LINES]
    if any(begun(line) for line in later):
        return True
    before = _steps(quotes.lines(Span(span.source, 1, span.first_line))[::-1])
    after = _steps(later)
    return bool(before) and bool(after) and min(after) <= max(before)


def _steps(lines: Sequence[LogLine]) -> list[int]:
    """The first few steps that the lines tell."""
    found: list[int] = []
    for line in lines[:_MOST_LINES]:
        step = step_of(line) if is_work(line) else None
        if step is not None:
            found.append(step)
            if len(found) == _FEW:
                break
    return found


def recovered(events: Sequence[Event], members: Sequence[Sighting], quotes: Quotes) -> bool:
    """True where every failure stands before the last restart of its log and the job was at work after that."""
    last: dict[int, Span] = {}
    for event in restarts_of(events, quotes):
        where = event.last or event.span
        held = last.get(where.source)
        if held is None or where.first_line > held.first_line:
            last[where.source] = where
    fatal = [m for m in members if _fatal(m)]
    if not last or not fatal or any(m.span.source not in last for m in fatal):
        return False
    behind = [m for m in fatal if _ends(m, quotes).first_line > last[m.span.source].last_line and not caught(m, quotes)]
    if any(m.kind == "exit" for m in behind):
        return False
    if behind:  # the old workers' last words may come late; only the launcher's own word then says that all went well
        return all(_finished(_ends(m, quotes), quotes) for m in behind)
    later = [aftermath(quotes, span) for span in last.values()]
    return any(one.went_on or one.ended for one in later)


def _fatal(seen: Sighting) -> bool:
    """True for what can end a job: no line of a teardown, and no error that was only printed."""
    return seen.role is not CausalRole.TEARDOWN and (seen.weight >= 3 or seen.typed or (seen.kind == "exit" and seen.weight > 0))


def _ends(seen: Sighting, quotes: Quotes) -> Span:
    """Where it was seen last; where it was seen first if the job worked on behind the last, too."""
    return seen.span if seen.last is None or aftermath(quotes, seen.last).went_on else seen.last


def _finished(span: Span, quotes: Quotes) -> bool:
    return any(is_launchers_end(line) for line in quotes.after(span)[:_MOST_LINES])
