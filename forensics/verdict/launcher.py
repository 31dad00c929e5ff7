"""What the launcher's own words add to a verdict. In: a run's events and its cast; out: sentences and evidence. Samples:

"Worker group FAILED. 2/2 attempts left; will restart worker group", twice, and one IndexError between them each time
-> "The same failure in 3 of 3 attempts."
"Root Cause (first observed failure): … rank : 5", while rank 2's exception is what rank 5's follows from
-> "torchrun names rank 5 as the root cause, because …"
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from forensics.ingest.pattern import Pattern
from forensics.model.event import Event, ProcessExit
from forensics.model.record import replace
from forensics.model.source import Evidence, LogSource, Rank, Span
from forensics.model.verdict import CausalRole, Verdict
from forensics.verdict.outcome import aftermath
from forensics.verdict.quotes import Quotes
from forensics.verdict.restarts import restarts_of, who_restarted
from forensics.verdict.roles import Cast

#: torchrun keeps each attempt's output in a folder of its own
_FOLDER = Pattern(r"(?:^|[/\\!])attempt_(\d{1,3})[/\\]")


def with_launchers_word(
    verdict: Verdict,
    events: Sequence[Event],
    cast: Cast,
    hung: bool,
    sources: Sequence[LogSource],
    quotes: Quotes,
    went_on: bool = False,
    again: Span | None = None,
) -> Verdict:
    """The verdict with what restarts and the launcher's summary say of it. hung: a rank is blamed for what did not come;
    went_on: the job got over the failure; again: where its last run began, if that is another one."""
    told: list[str] = []
    proof: list[Evidence] = []
    words = (
        _attempts(events, cast, sources, quotes),
        _recovery(events, quotes, again) if went_on else None,
        _other_root(verdict, events, cast, hung, quotes),
    )
    for found in words:
        if found is not None:
            told.append(found[0])
            proof += found[1]
    if not told:
        return verdict
    return replace(
        verdict,
        explanation=" ".join((verdict.explanation, *told)).strip(),
        evidence=(*verdict.evidence[:1], *proof, *verdict.evidence[1:])[: max(6, len(verdict.evidence))],
    )


def _attempts(
    events: Sequence[Event], cast: Cast, sources: Sequence[LogSource], quotes: Quotes
) -> tuple[str, list[Evidence]] | None:
    """In how many attempts the failure came back."""
    restarts = restarts_of(events, quotes)
    lines: dict[int, list[int]] = {}
    for event in restarts:
        lines.setdefault(event.span.source, []).append(event.span.first_line)
    folders = {place: int(found[1]) for place, one in enumerate(sources) if "attempt_" in one.name and (found := _FOLDER.search(one.name))}
    count = max([len(own) + 1 for own in lines.values()] + [number + 1 for number in folders.values()], default=1)
    if count < 2 or cast.primary is None:
        return None

    def attempt(source: int, line: int) -> int | None:
        if source in folders:
            return folders[source]
        return bisect_left(sorted(lines[source]), line) if source in lines else None

    alike = {id(cast.primary), *(id(g) for g in cast.groups if cast.role(g) is CausalRole.SAME)}
    members = [m for g in cast.groups if id(g) in alike for m in g.members]
    failed = {n for m in members if (n := attempt(m.span.source, m.span.first_line)) is not None}
    if not failed:
        return None
    proof = [quotes.near(e.span, e.message, "the launcher starts the workers again") for e in restarts[:1]]
    if len(failed) > 1:
        return f"The same failure in {len(failed)} of {count} attempts.", proof
    return f"Only attempt {next(iter(failed)) + 1} of {count} failed this way.", proof


def _recovery(events: Sequence[Event], quotes: Quotes, again: Span | None) -> tuple[str, list[Evidence]] | None:
    """That the job got over it: what it did after the last restart."""
    restarts = restarts_of(events, quotes)
    begin = restarts[-1].span if restarts else again
    if begin is None:
        return None
    later = aftermath(quotes, begin)
    proof = [quotes.of(later.first_work, "the job at work again")] if later.first_work is not None else []
    how = "and it ended in order" if later.ended else "and it was at work again"
    return f"The job recovered: {who_restarted(restarts[-1]) if restarts else 'it was started again'}, {how}.", proof


def _other_root(
    verdict: Verdict, events: Sequence[Event], cast: Cast, hung: bool, quotes: Quotes
) -> tuple[str, list[Evidence]] | None:
    """Why the rank that torchrun calls the root cause is not the one that is blamed here."""
    ours = verdict.rank
    roots = [e for e in events if e.fields.get("first_observed") is True and e.rank is not None]
    if ours is None or ours.number is None or not roots:
        return None
    agreed = {ours.number, *(rank.number for rank in verdict.same_failure_ranks)}
    if any(e.rank is not None and e.rank.number in agreed for e in roots):
        return None
    root = roots[0]
    assert root.rank is not None
    why = _why_not(root.rank, ours, cast, hung)
    told = f"torchrun names {root.rank.label} as the root cause, because its process was the first that it saw end{_how(root)}; {why}."
    head = Span(root.span.source, root.span.first_line, min(root.span.last_line, root.span.first_line + 5))
    return told, [quotes.of(head, "torchrun's root cause: the first process that it saw end")]


def _how(root: Event) -> str:
    exit_ = root.fields.get("exit")
    if not isinstance(exit_, ProcessExit):
        return ""
    how = exit_.signal or (f"exit code {exit_.code}" if exit_.code is not None else "")
    return f" ({how})" if how else ""


def _why_not(root: Rank, ours: Rank, cast: Cast, hung: bool) -> str:
    if hung:
        return f"it had waited for {ours.label} and was ended by its own time limit"
    own = next((g for g in cast.groups if g.first.weight > 1 and any(r.number == root.number for r in g.ranks)), None)
    if own is not None and cast.role(own) in (CausalRole.CASCADE, CausalRole.TEARDOWN):
        reason = own.first.role_why or cast.why.get(id(own), "")
        return f"what it reported follows from the failure of {ours.label}" + (f" ({reason})" if reason else "")
    if own is not None:
        return f"{ours.label} had reported its failure before"
    return f"the log holds no error of its own, and that of {ours.label} explains the end of both"
