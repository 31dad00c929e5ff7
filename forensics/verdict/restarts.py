"""Did a job that its launcher started again get over the failure? In: a run's events and failures; out: yes or no. Sample:

ValueError of rank 3 · "Worker group FAILED. 2/3 attempts left; will restart worker group" · steps 20 … 199
"worker group successfully finished"            -> the second attempt did the work: degraded, not crashed

A failure that comes back after the last restart was not got over.
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.ingest.pattern import Pattern
from forensics.model.event import Event, EventKind
from forensics.model.source import Span
from forensics.model.verdict import CausalRole
from forensics.verdict.outcome import aftermath, caught
from forensics.verdict.quotes import Quotes
from forensics.verdict.sighting import Sighting

_FINISHED = Pattern(r"worker group successfully finished")
_MOST_LINES = 20_000


def restarts_of(events: Sequence[Event]) -> list[Event]:
    """The launcher's lines that it starts the workers again, as they came."""
    return [e for e in events if e.kind is EventKind.LAUNCHER and e.fields.get("what") == "restart"]


def recovered(events: Sequence[Event], members: Sequence[Sighting], quotes: Quotes) -> bool:
    """True where every failure stands before the last restart of its log and the job was at work after that."""
    last: dict[int, Span] = {}
    for event in restarts_of(events):
        held = last.get(event.span.source)
        if held is None or event.span.first_line > held.first_line:
            last[event.span.source] = event.span
    fatal = [m for m in members if _fatal(m)]
    if not last or not fatal or any(m.span.source not in last for m in fatal):
        return False
    behind = [m for m in fatal if m.span.first_line > last[m.span.source].last_line and not caught(m, quotes)]
    if any(m.kind == "exit" for m in behind):
        return False
    if behind:  # the old workers' last words may come late; only the launcher's own word then says that all went well
        return all(_finished(m.span, quotes) for m in behind)
    later = [aftermath(quotes, span) for span in last.values()]
    return any(one.went_on or one.ended for one in later)


def _fatal(seen: Sighting) -> bool:
    """True for what can end a job: no line of a teardown, and no error that was only printed."""
    return seen.role is not CausalRole.TEARDOWN and (seen.weight >= 3 or seen.typed or (seen.kind == "exit" and seen.weight > 0))


def _finished(span: Span, quotes: Quotes) -> bool:
    return any(_FINISHED.search(line.text[:400]) for line in quotes.after(span)[:_MOST_LINES])
