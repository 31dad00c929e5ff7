"""From events, facts and findings to an `Incident`. In: what the lower floors found; out: one `Incident`. Sample:

    judge(intake, events, facts, findings, contradictions).verdict.category -> Category.ARCH_MISMATCH

split runs -> sight, mark, join, fold -> order and roles -> hang -> category -> words.
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.errors import UsageError
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.model.knowledge import Facts
from forensics.model.record import replace
from forensics.model.source import Evidence, LogLine, Span
from forensics.model.verdict import (
    Category,
    Confidence,
    Contradiction,
    Coverage,
    Failure,
    Finding,
    Incident,
    OtherIncident,
    Status,
)
from forensics.verdict import explain, hardware
from forensics.verdict.analysis import Analysis, came_back, choose
from forensics.verdict.attempts import attempts
from forensics.verdict.consequences import tells_of_nothing
from forensics.verdict.describe import describe
from forensics.verdict.incidents import Run, split
from forensics.verdict.jobs import Jobs
from forensics.verdict.launcher import with_launchers_word
from forensics.verdict.local_ranks import join_local
from forensics.verdict.not_finite import trains_on_nan
from forensics.verdict.order import Order
from forensics.verdict.outcome import finished_before, is_harmless, moved_until
from forensics.verdict.quotes import Quotes
from forensics.verdict.ranks import strip
from forensics.verdict.runs import analyse
from forensics.verdict.silent import left_in_start, standing_still
from forensics.verdict.watchdogs import with_quiet_rank

_MOST_FAILURES = 200
#: what torch adds below every CUDA error: the error itself may stand above the log's first line
_FOOTERS = ("Compile with `TORCH_USE_CUDA_DSA`", "CUDA kernel errors might be asynchronously", "HIP kernel errors might be asynchronously")


def judge(
    intake: Intake,
    events: Sequence[Event],
    facts: Facts,
    findings: Sequence[Finding],
    contradictions: Sequence[Contradiction],
    *,
    incident: int | None = None,
) -> Incident:
    """The incident that ended the job. incident: report this one of several instead (1-based, in the log's order); raises
    UsageError where there is none."""
    quotes, order = Quotes(intake), Order(intake)
    events, intake.activity = join_local(events, intake.activity, facts)
    runs = attempts(events, intake.sources) or split(events, intake.lines)
    analyses = [analyse(run, intake, facts, _inside(findings, run), quotes, order) for run in runs]
    analyses[-1] = standing_still(analyses[-1], intake, quotes) or trains_on_nan(analyses[-1], intake) or analyses[-1]
    analyses[-1].doubt = analyses[-1].doubt or left_in_start(analyses[-1], intake.lines, quotes)
    if incident is not None and not 1 <= incident <= len(analyses):
        raise UsageError(
            f"there is no incident {incident}",
            why=f"the log holds {len(analyses)}",
            help="leave --incident out for the one that ended the job",
        )
    jobs = Jobs(analyses, quotes)
    chosen = analyses[-1] if incident is None and jobs.last_decides(analyses) else choose(analyses, incident, jobs.differ)
    if came_back(chosen, analyses, quotes):
        chosen.status = Status.DEGRADED
    return _incident(chosen, analyses, intake, events, facts, findings, contradictions, quotes)


def _severe(intake: Intake, run: Run) -> Span | None:
    """The first line of a run that its logger calls an error, or that only an error's text ends with."""
    lines = (
        line
        for line in intake.lines
        if (line.level in ("ERROR", "CRITICAL", "FATAL") and line.origin and line.text.strip() and not _is_noise(line))
        or line.text.startswith(_FOOTERS)
    )
    spans = (Span(line.source, line.number, line.number) for line in lines)
    return next((span for span in spans if run.holds(span)), None)


def _is_noise(line: LogLine) -> bool:
    return is_harmless(line) or tells_of_nothing(line.text)


def _is_blank(intake: Intake) -> bool:
    """True where nothing that was read holds text; of an input of which nothing was kept its size tells, blank lines have two bytes."""
    if any(line.text.strip() for line in intake.lines):
        return False
    kept = {line.source for line in intake.lines}
    return not any(source.bytes > 2 * source.lines for place, source in enumerate(intake.sources) if place not in kept)


def _missing(intake: Intake) -> str:
    """In what a failure may stand that nobody looked at, in words; "" where all of the input was read and understood."""
    hidden = next((note.text for note in intake.notes if note.hides), "")
    if hidden:
        return hidden
    opened = {source.name for source in intake.sources}
    lost = next((one for one in intake.skipped if not one.harmless), None)
    if lost is None:
        return ""
    return f"{lost.name} was not read{' to its end' if lost.name in opened else ''}: {lost.why}"


def _inside(findings: Sequence[Finding], run: Run) -> list[Finding]:
    """The findings of one run, with what of their evidence stands between its first line and the next run's."""
    if not run.begins and not run.until:
        return list(findings)
    found = []
    for finding in findings:
        inside = tuple(proof for proof in finding.evidence if run.holds(proof.span))
        if inside or not finding.evidence:
            found.append(replace(finding, evidence=inside, spans=tuple(span for span in finding.spans if run.holds(span))))
    return found


def _incident(
    chosen: Analysis,
    analyses: Sequence[Analysis],
    intake: Intake,
    events: Sequence[Event],
    facts: Facts,
    findings: Sequence[Finding],
    contradictions: Sequence[Contradiction],
    quotes: Quotes,
) -> Incident:
    failures = _failures(chosen, facts, quotes)
    primary = failures[0] if chosen.failed and failures else None
    status = chosen.status
    if primary is None and (why := _missing(intake)):
        # What was not read cannot be called healthy.
        status, verdict = Status.UNKNOWN, explain.unread(why)
        against: Sequence[Contradiction] = ()
    elif primary is None and _is_blank(intake):
        status, verdict, against = Status.UNKNOWN, explain.nothing_to_read(), ()
    elif primary is None and chosen.judgement.confidence is Confidence.HYPOTHESIS and (said := _severe(intake, chosen.run)) is not None:
        status, verdict, against = Status.UNKNOWN, explain.only_fragments(quotes.of(said, "an error record")), ()
    elif primary is None and chosen.doubt is not None:
        status, verdict, against = Status.UNKNOWN, chosen.doubt, ()
    elif primary is None:
        before = sum(one.failed for one in analyses)
        verdict = explain.healthy(chosen.healthy_evidence, chosen.healthy_why, chosen.judgement.confidence, before)
        against = ()
    else:
        against = contradictions
        moving = bool(primary.evidence) and moved_until(quotes, primary.evidence[0].span)
        verdict = explain.verdict_of(primary, chosen, facts, against, _of_hang(chosen, quotes), moving, intake.left_out)
        done = finished_before(quotes, primary.evidence[0].span) if status is Status.UNKNOWN and primary.evidence else None
        if done is not None:
            verdict = explain.after_all_work(verdict, quotes.of(done, "the work was done"))
        verdict = with_quiet_rank(verdict, chosen.cast, chosen.hang, intake.activity)
        verdict = with_launchers_word(
            verdict,
            chosen.run.events,
            chosen.cast,
            chosen.hang is not None,
            intake.sources,
            quotes,
            status is Status.DEGRADED,
            analyses[-1].run.begin if chosen is not analyses[-1] else None,
        )
    others = tuple(_other(one, quotes) for one in analyses if one is not chosen and one.failed)
    return Incident(
        status=status,
        verdict=verdict,
        primary=primary,
        failures=tuple(failures) if primary is not None else (),
        contradictions=tuple(contradictions),
        collective=chosen.hang.collective if chosen.hang is not None and primary is not None else None,
        hardware=hardware.rows(events, quotes),
        facts=facts,
        ranks=strip(intake.activity, chosen.cast, chosen.hang, status, chosen.owner, chosen.alike, chosen.run.events, chosen.named)
        if primary is not None
        else strip(intake.activity, chosen.nobody, None, Status.HEALTHY),
        others=(*others, *chosen.handled),
        findings=tuple(findings),
        coverage=_coverage(intake, events),
        sources=intake.sources,
    )


def _of_hang(chosen: Analysis, quotes: Quotes) -> tuple[Evidence, ...]:
    """The lines and dumps that say who was missing."""
    if chosen.hang is None:
        return ()
    found = []
    for event in chosen.hang.events[:4]:
        proof = quotes.near(
            event.span,
            event.message,
            event.message[:120] if "dump" in event.fields else "who had entered, and who had not",
        )
        found.append(proof)
    return tuple(found)


def _failures(chosen: Analysis, facts: Facts, quotes: Quotes) -> list[Failure]:
    found = []
    lifecycle = [event for event in chosen.run.events if event.kind is EventKind.LIFECYCLE]
    for group in chosen.cast.groups[:_MOST_FAILURES]:
        rank = chosen.owner if group is chosen.cast.primary else None
        found.append(
            describe(
                group,
                chosen.cast.role(group),
                chosen.cast.why.get(id(group), ""),
                facts,
                lifecycle,
                quotes,
                rank,
            )
        )
    return found


def _other(one: Analysis, quotes: Quotes) -> OtherIncident:
    first = one.cast.primary.first if one.cast.primary is not None else None
    title = (
        one.judgement.finding.title
        if one.judgement.finding is not None
        else (first.message.split("\n", 1)[0][:160] if first else "")
    )
    return OtherIncident(
        one.status,
        one.judgement.category,
        title or (first.type if first and first.type else "something failed"),
        one.rank,
        first.time if first else None,
        (quotes.near(first.span, first.message, "another incident of this log"),) if first else (),
    )


def _coverage(intake: Intake, events: Sequence[Event]) -> Coverage:
    """What was read, and how many lines some parser took."""
    claimed: dict[int, list[Span]] = {}
    for event in events:
        claimed.setdefault(event.span.source, []).append(event.span)
    count = 0
    for spans in claimed.values():
        end = 0
        for span in sorted(spans, key=lambda s: (s.first_line, s.last_line)):
            first = max(span.first_line, end + 1)
            if span.last_line >= first:
                count += span.last_line - first + 1
                end = span.last_line
    return Coverage(
        bytes=sum(s.bytes for s in intake.sources),
        lines=sum(s.lines for s in intake.sources),
        claimed_lines=min(count, sum(s.lines for s in intake.sources)) if intake.sources else count,
        sources=intake.sources,
        skipped=intake.skipped,
        notes=tuple(intake.notes),
    )


__all__ = ["Category", "Status", "judge"]
