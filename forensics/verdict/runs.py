"""One run of the job, concluded. In: a run's events and findings; out: an `Analysis`. Sample:

    TP1's CUDA out of memory, seven ranks that waited for it, the launcher's word   -> crashed, rank TP1, the others cascade
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.ingest.intake import Intake
from forensics.model.event import EventKind, HardwareFault, ProcessExit
from forensics.model.knowledge import Facts
from forensics.model.source import Note, Rank, Span
from forensics.model.verdict import Category, CausalRole, Confidence, Finding, OtherIncident, Status, Verdict
from forensics.verdict import explain
from forensics.verdict.analysis import Analysis
from forensics.verdict.category import Judgement, categorize
from forensics.verdict.consequences import cascades_of, mark, mark_alike, mark_dying, mark_unwound
from forensics.verdict.culprit import free, lost
from forensics.verdict.fold import Group, fold
from forensics.verdict.hang import explain_hang
from forensics.verdict.hardware import fault_of, of_the_program, only_noted
from forensics.verdict.incidents import Run, came_up
from forensics.verdict.join import join
from forensics.verdict.order import Order
from forensics.verdict.outcome import is_work, orderly_end, stalled_before
from forensics.verdict.quotes import Quotes
from forensics.verdict.ranks import tasks_alike, whose
from forensics.verdict.released import release
from forensics.verdict.requests import PERHAPS, QUOTED, quoted
from forensics.verdict.restarts import recovered
from forensics.verdict.roles import Cast, assign
from forensics.verdict.secondary import subordinate
from forensics.verdict.shown import only_shown
from forensics.verdict.sighting import SHOWN, Sighting, sight
from forensics.verdict.silent import hung
from forensics.verdict.stale import is_stale, job_began
from forensics.verdict.survival import earliest, interrupted, survived
from forensics.verdict.tasks import silent_task
from forensics.verdict.taught import overlooked, teach
from forensics.verdict.torn import finish
from forensics.verdict.unreported import of_hang
from forensics.verdict.watchdogs import add_dumps, mark_aborts

#: categories whose loudest rank is a victim: only a culprit is named
_WAITED = frozenset((Category.HANG_OR_WATCHDOG,))
#: error reports of a run that are compared with each other
_MOST_SIGHTINGS = 4_000
#: last lines that are asked whether the job was at work
_MOST_WORK = 5_000
_IDLE = " Nothing shows that the job was at work either."


def analyse(
    run: Run, intake: Intake, facts: Facts, findings: Sequence[Finding], quotes: Quotes, order: Order
) -> Analysis:
    """Concludes one run."""
    hang = explain_hang(run.events, intake.activity, facts.at_least)
    seen = _fewer(_sightings(run, findings, quotes, job_began(run.events, intake)), intake)
    told = hang is not None and any(e.span.overlaps(s.span) for e in hang.events for s in seen if s.weight >= 2)
    if hang is not None and hang.events and not told and not any(s.kind == "collective_timeout" for s in seen):
        seen.append(of_hang(hang))
    free(seen, hang, order)
    lost(seen, order)
    told_once = join(seen, run.events, order)
    finish(told_once)
    add_dumps(told_once, run.events, intake.activity)
    mark_aborts(told_once)
    groups = fold(subordinate(told_once, order, run.events))
    cast = assign(groups, order, quotes, hang.culprit if hang is not None else None)
    primary = cast.primary
    if primary is None:
        return _healthy(run, cast, findings, intake, quotes, seen)
    members = [m for g in cast.groups for m in g.members]
    if all(m.rule in QUOTED for m in members):
        doubtful = next((m for m in members if m.rule == PERHAPS), None)
        proof = quotes.near(doubtful.span, doubtful.message, "what may be a user's words") if doubtful is not None else None
        return _healthy(run, cast, findings, intake, quotes, seen, explain.perhaps_quoted(proof) if proof is not None else None)
    calm = survived(primary, cast, intake, quotes, run)
    if calm is None and recovered(run.events, members, quotes):
        calm = Status.DEGRADED
    if calm is Status.HEALTHY:
        return _healthy(run, cast, findings, intake, quotes, seen)
    from forensics.callpath import phase_of

    judgement = categorize(primary, findings, phase_of(primary.first.frames), cast.groups)
    if (
        primary.first.kind == "collective_timeout"
        and judgement.category in (Category.UNKNOWN, Category.NCCL)
        and judgement.finding is None
    ):
        judgement = Judgement(
            Category.HANG_OR_WATCHDOG, Confidence.ESTABLISHED, title="A collective waited until its time limit"
        )
    if hang is None and interrupted(primary):
        judgement = _stalled(primary, findings, quotes) or judgement
    if cast.outside and judgement.finding is None:
        judgement = Judgement(
            judgement.category,
            Confidence.HYPOTHESIS if judgement.category is not Category.UNKNOWN else Confidence.UNKNOWN,
            None,
            judgement.title,
            judgement.others,
        )
    named = silent_task(primary.first, intake.activity)
    owner = named or whose(primary.first, run.events, intake.activity, facts.at_least, intake.lines, intake.sources)
    alike = tasks_alike(primary, run.events)
    waited = judgement.category in _WAITED
    if not waited:
        hang = None
    rank = (hang.culprit if hang is not None else named) if waited else owner
    return Analysis(
        run=run,
        cast=cast,
        failed=True,
        status=calm or _status(judgement, primary),
        judgement=judgement,
        hang=hang,
        owner=owner,
        rank=rank,
        same=() if waited or named is not None else _same(cast, rank, alike),
        alike=alike,
        named=named is not None,
        alone=_is_alone(rank, run, intake),
        exits=_exits(run, rank),
        findings=findings,
    )


def _fewer(seen: list[Sighting], intake: Intake) -> list[Sighting]:
    """All of them, or of very many the first and the last: a log that repeats an error for hours is judged by its beginning
    and its end."""
    if len(seen) <= _MOST_SIGHTINGS:
        return seen
    half = _MOST_SIGHTINGS // 2
    left = len(seen) - 2 * half
    intake.notes.append(
        Note("verdict", f"{left} of {len(seen)} error reports in the middle of the log were not compared")
    )
    return [*seen[:half], *seen[-half:]]


def _sightings(run: Run, findings: Sequence[Finding], quotes: Quotes, began: float | None) -> list[Sighting]:
    cascades = cascades_of(findings)
    seen = [s for s in map(sight, run.events) if s is not None]
    for sighting in seen:
        pasted = "quoted" in sighting.events[0].fields
        rule = quoted(sighting, quotes) if pasted else ""
        if not rule:
            mark(sighting, cascades)
        if rule or ((sighting.role is None or sighting.conditional) and (rule := quoted(sighting, quotes))):
            sighting.role, sighting.conditional, sighting.rule = CausalRole.TEARDOWN, True, rule
            sighting.role_why = "text that passed through the job, not a failure of its own"
        if sighting.role is None and only_shown(sighting, quotes):
            sighting.role, sighting.conditional, sighting.rule = CausalRole.TEARDOWN, True, SHOWN
            sighting.role_why = "the exception was caught, and told only to those who debug"
        event = sighting.events[0]
        fault = fault_of(event) if event.kind is EventKind.HARDWARE else None
        told = _beside_others(fault) if fault is not None and sighting.role is None else None
        if told is not None:
            sighting.role, sighting.conditional = CausalRole.CASCADE, True
            sighting.role_why, sighting.rule = told
        if sighting.role is None and is_stale(event, began):
            sighting.role, sighting.conditional, sighting.rule = CausalRole.CASCADE, True, "before-the-job"
            sighting.role_why = "the kernel ended another job's process before this one began"
    mark_alike(seen, cascades)
    mark_dying(seen)
    mark_unwound(seen, quotes)
    release(seen, quotes)
    return teach(seen, findings, quotes)


def _beside_others(fault: HardwareFault) -> tuple[str, str] | None:
    """Why what the driver reports explains nothing where something else failed, and the rule's name; None where it may."""
    if of_the_program(fault):
        return "the driver reports the program's own error", "xid-of-the-program"
    if only_noted(fault):
        return "the driver notes what no process ends of", "xid-noted"
    return None


def _stalled(primary: Group, findings: Sequence[Finding], quotes: Quotes) -> Judgement | None:
    """That somebody interrupted a job whose engine had said for minutes that it waited; None where it had not."""
    stall = stalled_before(quotes, earliest(primary.members, primary.first.span.source))
    if stall is None:
        return None
    return hung(Confidence.SUPPORTED, stall, findings, "The workers did not answer until somebody interrupted the job")


def _healthy(
    run: Run,
    cast: Cast,
    findings: Sequence[Finding],
    intake: Intake,
    quotes: Quotes,
    seen: Sequence[Sighting],
    doubt: Verdict | None = None,
) -> Analysis:
    proven = overlooked(findings, seen, quotes) if doubt is None else None
    handled = tuple(
        OtherIncident(
            Status.HEALTHY,
            Category.NONE,
            f"handled: {(g.first.message or g.first.type or '').split(chr(10), 1)[0][:140]}",
            g.first.rank,
            g.first.time,
            (quotes.near(g.first.span, g.first.message, "an error that the job survived"),),
        )
        for g in cast.groups[:20]
        if g.first.weight >= 3 and g.first.rule not in QUOTED
    )
    end = orderly_end(intake)
    calm = f"No failure stands in {'them' if intake.left_out else 'the log'}."
    why = "The job ended in order." if end is not None else calm
    if handled:
        why = "What went wrong on the way was dealt with, and the job went on. " + why
    proof = (quotes.of(end, "an orderly end"),) if end is not None else ()
    work = next((line for line in reversed(intake.lines[-_MOST_WORK:]) if is_work(line)), None)
    worked = bool(handled) or end is not None or work is not None
    if not proof and work is not None:
        proof = (quotes.of(Span(work.source, work.number, work.number), "the job at work"),)
    if not worked:
        begun = came_up(intake.lines)
        proof = (quotes.of(begun, "the job began"),) if begun is not None else ()
        why += " It began; nothing shows that it was at work yet." if begun is not None else _IDLE
    if intake.left_out:
        why = f"Only the lines that {intake.left_out} asked for were looked at. {why}"
    return Analysis(
        run,
        cast,
        False,
        Status.HEALTHY,
        Judgement(Category.NONE, Confidence.SUPPORTED if worked else Confidence.HYPOTHESIS),
        findings=findings,
        handled=handled,
        healthy_why=why,
        healthy_evidence=proof,
        doubt=explain.perhaps(*proven) if proven is not None else doubt,
    )


def _status(judgement: Judgement, primary: Group) -> Status:
    if judgement.category is Category.HANG_OR_WATCHDOG or primary.first.events[0].fields.get("what") == "hung_task":
        return Status.HUNG
    evicted = primary.first.events[0].fields.get("what") == "evicted"
    if judgement.category is Category.KILLED_EXTERNALLY or primary.first.kind == "oom_kill" or evicted:
        return Status.KILLED
    if judgement.category is Category.UNKNOWN and primary.first.weight < 3:
        return Status.UNKNOWN
    return Status.CRASHED


def _same(cast: Cast, rank: Rank | None, alike: Sequence[Rank] = ()) -> tuple[Rank, ...]:
    found: dict[tuple[str, str | None], Rank] = {r.key: r for r in alike}
    for group in cast.groups:
        if group is cast.primary or cast.role(group) is CausalRole.SAME:
            for other in group.ranks:
                found.setdefault(other.key, other)
    if rank is not None:
        found.pop(rank.key, None)
    return tuple(found.values())


def _is_alone(rank: Rank | None, run: Run, intake: Intake) -> bool:
    """True where nobody but that rank has lines in the log, and no launcher tells who ended."""
    seen = {activity.rank.key for activity in intake.activity}
    told = any(e.fields.get("first_observed") or e.kind is EventKind.PROCESS_EXIT for e in run.events)
    return rank is not None and seen == {rank.key} and not told


def _exits(run: Run, rank: Rank | None) -> tuple[int, ...]:
    """The exit codes that say more than that something failed: those of the rank that is blamed, and of nobody in particular."""
    found = []
    for event in run.events:
        exit_ = event.fields.get("exit")
        if rank is not None and event.rank is not None and event.rank.number != rank.number:
            continue
        if isinstance(exit_, ProcessExit) and exit_.code not in (None, 0, 1):
            found.append(exit_.code)
    return tuple(code for code in dict.fromkeys(found) if code is not None)
