"""One run of the job, concluded. In: a run's events and findings; out: an `Analysis`; then the one that is the verdict. Sample:

run 1 crashed (out of memory), run 2 crashed (out of memory again) -> run 1 is the verdict, run 2 repeats it
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.ingest.intake import Intake
from forensics.model.event import EventKind, ProcessExit
from forensics.model.knowledge import Facts
from forensics.model.record import draft, field
from forensics.model.source import Evidence, Note, Rank, Span
from forensics.model.verdict import Category, CausalRole, Confidence, Finding, OtherIncident, Status, Verdict
from forensics.verdict import explain
from forensics.verdict.category import Judgement, categorize
from forensics.verdict.consequences import cascades_of, mark, mark_alike
from forensics.verdict.fold import Group, fold
from forensics.verdict.hang import Hang, explain_hang
from forensics.verdict.hardware import fault_of, of_the_program
from forensics.verdict.incidents import Run, came_up
from forensics.verdict.join import join
from forensics.verdict.order import Order
from forensics.verdict.outcome import (
    aftermath,
    caught,
    comes_and_goes,
    finished_before,
    is_work,
    orderly_end,
    stalled_before,
    store_left_first,
    worked_before,
)
from forensics.verdict.quotes import Quotes
from forensics.verdict.ranks import tasks_alike, whose
from forensics.verdict.released import release
from forensics.verdict.requests import PERHAPS, QUOTED, quoted
from forensics.verdict.restarts import recovered
from forensics.verdict.roles import ENGINE_GONE, Cast, assign
from forensics.verdict.secondary import subordinate
from forensics.verdict.sighting import Sighting, sight
from forensics.verdict.stale import is_stale, job_began
from forensics.verdict.taught import overlooked, teach
from forensics.verdict.unreported import of_hang

_UNKNOWN = Judgement(Category.UNKNOWN, Confidence.UNKNOWN)
#: categories whose loudest rank is a victim: only a culprit is named
_WAITED = frozenset((Category.HANG_OR_WATCHDOG,))
#: kinds of failure that a process does not survive
_FATAL = frozenset(("fatal_signal", "hardware", "oom_kill", "collective_timeout", "native", "device_assert"))
#: lines of a server at work that may be answers to health checks
_CHECKS = 20
#: error reports of a run that are compared with each other
_MOST_SIGHTINGS = 4_000
#: last lines that are asked whether the job was at work
_MOST_WORK = 5_000
_IDLE = " Nothing shows that the job was at work either."
#: what Ray raises in the process that asked for a task
_REMOTE = ("ray.exceptions.RayTaskError", "ray.exceptions.RayActorError", "ray.exceptions.ActorDiedError", "RayTaskError")


@draft
class Analysis:
    """What one run came to. failed: False for a run that is healthy; owner: whose the primary failure was; rank: who is blamed;
    alike: the tasks that failed in the same way, by srun's word alone; doubt: what is said of a run in which no failure was seen and
    a line that may be one."""

    run: Run
    cast: Cast
    failed: bool
    status: Status
    judgement: Judgement
    hang: Hang | None = None
    owner: Rank | None = None
    rank: Rank | None = None
    same: tuple[Rank, ...] = ()
    alike: tuple[Rank, ...] = ()
    exits: tuple[int, ...] = ()
    findings: Sequence[Finding] = ()
    handled: tuple[OtherIncident, ...] = ()
    healthy_why: str = "No failure stands in the log."
    healthy_evidence: tuple[Evidence, ...] = ()
    doubt: Verdict | None = None
    nobody: Cast = field(default_factory=lambda: Cast([], None))


def analyse(
    run: Run, intake: Intake, facts: Facts, findings: Sequence[Finding], quotes: Quotes, order: Order
) -> Analysis:
    """Concludes one run."""
    hang = explain_hang(run.events, intake.activity, facts.world_size)
    seen = _fewer(_sightings(run, findings, quotes, job_began(run.events, intake)), intake)
    told = hang is not None and any(e.span.overlaps(s.span) for e in hang.events for s in seen if s.weight >= 2)
    if hang is not None and not told and not any(s.kind == "collective_timeout" for s in seen):
        seen.append(of_hang(hang))
    groups = fold(subordinate(join(seen, run.events, order), order))
    cast = assign(groups, order, quotes, hang.culprit if hang is not None else None)
    primary = cast.primary
    if primary is None:
        return _healthy(run, cast, findings, intake, quotes, seen)
    members = [m for g in cast.groups for m in g.members]
    if all(m.rule in QUOTED for m in members):
        doubtful = next((m for m in members if m.rule == PERHAPS), None)
        proof = quotes.near(doubtful.span, doubtful.message, "what may be a user's words") if doubtful is not None else None
        return _healthy(run, cast, findings, intake, quotes, seen, explain.perhaps_quoted(proof) if proof is not None else None)
    calm = _survived(primary, cast, intake, quotes)
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
    if hang is None and _interrupted(primary):
        judgement = _stalled(primary, findings, quotes) or judgement
    if cast.outside and judgement.finding is None:
        judgement = Judgement(
            judgement.category,
            Confidence.HYPOTHESIS if judgement.category is not Category.UNKNOWN else Confidence.UNKNOWN,
            None,
            judgement.title,
            judgement.others,
        )
    owner = whose(primary.first, run.events, intake.activity, facts.world_size, intake.lines)
    alike = tasks_alike(primary, run.events)
    waited = judgement.category in _WAITED
    if not waited:
        hang = None
    rank = (hang.culprit if hang is not None else None) if waited else owner
    return Analysis(
        run=run,
        cast=cast,
        failed=True,
        status=calm or _status(judgement, primary),
        judgement=judgement,
        hang=hang,
        owner=owner,
        rank=rank,
        same=() if waited else _same(cast, rank, alike),
        alike=alike,
        exits=_exits(run),
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
        if rule or (sighting.role is None and (rule := quoted(sighting, quotes))):
            sighting.role, sighting.conditional, sighting.rule = CausalRole.TEARDOWN, True, rule
            sighting.role_why = "text that passed through the job, not a failure of its own"
        event = sighting.events[0]
        fault = fault_of(event) if event.kind is EventKind.HARDWARE else None
        if fault is not None and of_the_program(fault) and sighting.role is None:
            sighting.role, sighting.conditional = CausalRole.CASCADE, True
            sighting.role_why, sighting.rule = "the driver reports the program's own error", "xid-of-the-program"
        if sighting.role is None and is_stale(event, began):
            sighting.role, sighting.conditional, sighting.rule = CausalRole.CASCADE, True, "before-the-job"
            sighting.role_why = "the kernel ended another job's process before this one began"
    mark_alike(seen, cascades)
    release(seen, quotes)
    return teach(seen, findings, quotes)


def _survived(primary: Group, cast: Cast, intake: Intake, quotes: Quotes) -> Status | None:
    """HEALTHY where the error was dealt with and the job went on, DEGRADED where a server served on, None where it ended."""
    members = [m for g in cast.groups for m in g.members]
    if any(m.kind == "exit" and m.weight and _bad_exit(m) and m.role is None and not _of_another(m, quotes) for m in members):
        return None
    if store_left_first(members, quotes):
        return Status.HEALTHY
    serious = [m for m in members if m.role is None and m.weight >= 2] or list(primary.members)
    live = [m for m in serious if not caught(m, quotes)]
    last = max(serious, key=lambda m: m.span.last_line)
    later = aftermath(quotes, last.span, last.stream, steady=True)
    if _asked_to_stop(primary) and orderly_end(intake) is not None:
        return Status.HEALTHY
    if any(
        m.outside and not m.conditional and m.role is CausalRole.CASCADE and (m in primary.members or m.rule in ENGINE_GONE)
        for m in members
    ):
        # A process that was seen dead is dead, at whatever level it was told; health checks are answered all the same.
        return Status.DEGRADED if later.working > _CHECKS else None
    if not later.working and _only_leaving(members) and finished_before(quotes, _earliest(members, last.span.source)):
        return Status.HEALTHY
    if not live:
        return Status.HEALTHY if later.working or later.ended or later.calm else None
    if all(m.weight <= 2 and not m.typed for m in live):
        # A program that ends in order after an error has ended because of it, unless it had been at work before.
        ended = later.ended and worked_before(quotes, primary.first.span)
        went_on = later.working or ended or later.calm >= 3
        # what the driver says of a device stays true of it, though the job went on
        return None if not went_on else Status.DEGRADED if any(m.kind == "hardware" for m in live) else Status.HEALTHY
    if any(m.kind in _FATAL or _driver_ended(m) for m in live):
        return None
    return Status.DEGRADED if later.went_on or comes_and_goes(live, quotes) else None


def _earliest(members: Sequence[Sighting], source: int) -> Span:
    """Where the first of them stands in a source that has at least one."""
    return min((m.span for m in members if m.span.source == source), key=lambda span: span.first_line)


def _only_leaving(members: Sequence[Sighting]) -> bool:
    """True where nothing more was seen than how processes take themselves apart: destructors, broken pipes to those gone before."""
    return all(m.role is CausalRole.TEARDOWN or (m.role is CausalRole.CASCADE and m.weight <= 2 and not m.typed) for m in members)


def _driver_ended(seen: Sighting) -> bool:
    """True for an exception that went through the whole of a Ray driver: what its actors print afterwards was on its way."""
    chains = [e.chain for e in seen.events if e.chain is not None and not e.chain.handled and "pid=" not in e.stream]
    remote = [chain.last for chain in chains if chain.last.type and chain.last.type.startswith(_REMOTE)]
    return any(frame.function == "<module>" for raised in remote for frame in raised.frames[:4])


def _asked_to_stop(primary: Group) -> bool:
    """True for the exception or signal with which a person or a launcher asks a process to stop."""
    name = (primary.first.type or "").rsplit(".", 1)[-1]
    return name in ("KeyboardInterrupt", "CancelledError", "SIGINT", "SIGTERM", "SystemExit")


def _of_another(seen: Sighting, quotes: Quotes) -> bool:
    """True for an end that only a shell tells, of nobody knows which process, while the job worked on without beginning anew."""
    if seen.events[0].fields.get("by") != "shell" or seen.rank is not None:
        return False
    return aftermath(quotes, seen.span, steady=True).working > _CHECKS and came_up(quotes.after(seen.span)) is None


def _interrupted(primary: Group) -> bool:
    """True for a Ctrl-C."""
    return (primary.first.type or "").rsplit(".", 1)[-1] in ("KeyboardInterrupt", "SIGINT")


def _stalled(primary: Group, findings: Sequence[Finding], quotes: Quotes) -> Judgement | None:
    """That somebody interrupted a job whose engine had said for minutes that it waited; None where it had not."""
    stall = stalled_before(quotes, _earliest(primary.members, primary.first.span.source))
    if stall is None:
        return None
    said = next((f for f in findings if any(stall.overlaps(proof.span) for proof in f.evidence)), None)
    return Judgement(Category.HANG_OR_WATCHDOG, Confidence.SUPPORTED, said, "The workers did not answer until somebody interrupted the job")


def _bad_exit(sighting: Sighting) -> bool:
    exit_ = sighting.events[0].fields.get("exit")
    return not (isinstance(exit_, ProcessExit) and exit_.code == 0)


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
    why = "The job ended in order." if end is not None else "No failure stands in the log."
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
    if judgement.category is Category.KILLED_EXTERNALLY or primary.first.kind == "oom_kill":
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


def _exits(run: Run) -> tuple[int, ...]:
    found = []
    for event in run.events:
        exit_ = event.fields.get("exit")
        if isinstance(exit_, ProcessExit) and exit_.code not in (None, 0, 1):
            found.append(exit_.code)
    return tuple(code for code in dict.fromkeys(found) if code is not None)


def choose(analyses: Sequence[Analysis], incident: int | None) -> Analysis:
    """The run that is the verdict: the last that failed, unless it repeats or follows from an earlier one; of those
    that did not fail the last in doubt."""
    if incident is not None and 1 <= incident <= len(analyses):
        return analyses[incident - 1]
    failed = [a for a in analyses if a.failed]
    if not failed:
        return next((a for a in reversed(analyses) if a.doubt is not None), analyses[-1])
    last = failed[-1]
    for earlier in failed[:-1]:
        if _repeats(last, earlier):
            if earlier.status is Status.DEGRADED:  # it came back, and the job ended of it
                earlier.status = last.status
            return earlier
    return last


def came_back(chosen: Analysis, analyses: Sequence[Analysis], quotes: Quotes) -> bool:
    """True where the job was started again after the run that is the verdict, and went well from then on."""
    if not chosen.failed or chosen.status not in (Status.CRASHED, Status.HUNG):
        return False
    later = analyses[[one is chosen for one in analyses].index(True) + 1 :]
    begin = later[-1].run.begin if later else None
    return begin is not None and not any(one.failed for one in later) and aftermath(quotes, begin).went_on


def _repeats(last: Analysis, earlier: Analysis) -> bool:
    one, other = last.cast.primary, earlier.cast.primary
    if one is None or other is None:
        return False
    if one.fingerprint == other.fingerprint:
        return True
    follows = last.judgement.category in (Category.NCCL, Category.CONFIG_ERROR) and "in use" in " ".join(
        one.first.texts
    )
    return follows or (
        last.judgement.category is earlier.judgement.category is not Category.UNKNOWN
        and one.first.root_type == other.first.root_type
    )
