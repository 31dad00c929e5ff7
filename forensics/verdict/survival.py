"""Whether a job got over what went wrong. In: a run's primary failure and its cast; out: a status, or None where the job ended. Samples:

    an exception that was caught, then "step 41", "step 42"            -> HEALTHY
    a request that failed with a 500, then twenty that did not          -> DEGRADED
    a worker that was seen dead, then nothing but health checks         -> None
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.ingest.intake import Intake
from forensics.model.event import EventKind, ProcessExit
from forensics.model.source import Span
from forensics.model.verdict import CausalRole, Status
from forensics.verdict.fold import Group
from forensics.verdict.incidents import Run, came_up
from forensics.verdict.outcome import (
    aftermath,
    caught,
    comes_and_goes,
    ends_behind,
    exhausted,
    finished_before,
    gave_up,
    in_step,
    is_done,
    is_one_requests,
    is_work,
    logged_and_went_on,
    only_complains,
    orderly_end,
    refused,
    store_left_first,
    worked_before,
)
from forensics.verdict.quotes import Quotes
from forensics.verdict.released import of_shell
from forensics.verdict.roles import ENGINE_GONE, Cast, dropped
from forensics.verdict.sighting import Sighting

#: kinds of failure that a process does not survive
_FATAL = frozenset(("fatal_signal", "hardware", "oom_kill", "collective_timeout", "native", "device_assert"))
#: lines of a server at work that may be answers to health checks
_CHECKS = 20
#: lines of work that may still be written behind the scheduler's word that a job is cancelled
_FLUSHED = 2
#: seconds that a machine is left from the notice that it is taken back, at most (clouds give two minutes and less)
_NOTICE = 300.0
#: how often a program refuses its arguments until it does so each time that a script starts it
_EACH_TIME = 3
#: how a program sets off what it quotes; bars stand around exceptions that are its own, too
_SET_OFF = "> "
#: what ends nothing: a request taken back by the one who had sent it, an experiment tracker that closes its own connection, a list of
#: Python's resource tracker that lacks a name
_ENDS_NOTHING = ("teardown.request-aborted", "teardown.tracker-closed", "teardown.resource-tracker-main")
#: rules of consequences.toml for what a program tells as an error and does without
_DONE_WITHOUT = "harmless.done-without."
#: what Ray raises in the process that asked for a task
_REMOTE = ("ray.exceptions.RayTaskError", "ray.exceptions.RayActorError", "ray.exceptions.ActorDiedError", "RayTaskError")


def survived(primary: Group, cast: Cast, intake: Intake, quotes: Quotes, run: Run) -> Status | None:
    """HEALTHY where the error was dealt with and the job went on, DEGRADED where a server served on, None where it ended."""
    members = [m for g in cast.groups for m in g.members]
    if (outlived := _outlived_notice(members, quotes)) is not None:
        return outlived
    ends = [m for m in members if m.kind == "exit" and m.weight and _unexplained(m) and m.events[0].kind is not EventKind.LIFECYCLE]
    if any(_bad_exit(m) and not _of_another(m, quotes) for m in ends):
        return None
    if store_left_first(members, quotes):
        return Status.HEALTHY
    if all(m.rule in _ENDS_NOTHING for m in members):
        return Status.HEALTHY
    serious = [m for m in members if m.role is None and m.weight >= 2] or list(primary.members)
    if primary.first.rule == "cascade.abort-after" and primary.first.kind in _FATAL:
        serious = [*serious, *primary.members]  # what it came after is not what is told of the run: nothing was got over
    serious = [m for m in serious if not _said_afterwards(m, quotes)] or serious
    if interrupted(primary) and all(m.span.last_line < primary.first.span.first_line for m in serious):
        serious = list(primary.members)  # it had got over the rest, or it would not have been stopped by hand
    last = max(serious, key=lambda m: m.span.last_line)
    if only_complains(serious) or (all(_passed_on(m, quotes) for m in serious) and aftermath(quotes, last.span).ended):
        return Status.HEALTHY
    refused_before = {_place(m) for m in serious if refused(m, quotes)}
    live = [m for m in serious if not caught(m, quotes) and _place(m) not in refused_before]
    next_ = next((begin for begin in run.until if begin.source == last.span.source), None)
    later = aftermath(quotes, last.span, last.stream, next_, steady=True)
    if _asked_to_stop(primary) and _in_order(primary, last, intake, quotes, run):
        return Status.HEALTHY
    gone = [
        m
        for m in members
        if m.role is CausalRole.CASCADE
        and ((m.outside and not m.conditional and m in primary.members) or (m.rule in ENGINE_GONE and (m.outside or m.inner)))
    ]
    if gone:
        # A process that was seen dead is dead, at whatever level it was told; health checks are answered all the same.
        seen_dead = max(gone, key=lambda m: (m.span.source == last.span.source, m.span.last_line))
        behind = seen_dead if (seen_dead.span.source, seen_dead.span.last_line) > (last.span.source, last.span.last_line) else last
        return Status.DEGRADED if aftermath(quotes, behind.span, behind.stream, steady=True).working > _CHECKS else None
    if not later.working and _only_leaving(members) and finished_before(quotes, earliest(members, last.span.source)):
        return Status.HEALTHY
    if _only_dropped(members) and worked_before(quotes, earliest(members, last.span.source)):
        return Status.HEALTHY
    if live and all(of_shell(m) for m in live) and any(line.rank is not None for line in quotes.after(last.span)):
        return Status.HEALTHY  # a command that a script did not find, before it started the job
    if not live:
        without = all(m.rule.startswith(_DONE_WITHOUT) for m in serious)
        return Status.HEALTHY if without or later.working or later.ended or later.calm else None
    if _cancelled(primary) and later.working <= _FLUSHED:
        return None  # a bar that two jobs write into one file, or one that was still on its way, is no work after the end
    if all(m.weight <= 2 and not m.typed for m in live):
        # A program that ends in order after an error has ended because of it, unless it had been at work before.
        ended = later.ended and worked_before(quotes, primary.first.span) and not any(exhausted(m) for m in live)
        went_on = later.working or ended or later.done or later.calm >= 3
        # what the driver says of a device stays true of it, though the job went on; so does what a server says of a model
        lasting = any(m.kind == "hardware" or m.events[0].parser == "triton_server" for m in live)
        # a script goes on, whatever its programs said: one that refused its arguments each time did nothing at all
        lasting = lasting or sum(m.count for m in live if m.refused) >= _EACH_TIME
        if gave_up(quotes, last.span):
            return None
        return None if not went_on else Status.DEGRADED if lasting else Status.HEALTHY
    if all(m.kind in ("hardware", "oom_kill") for m in live) and later.working and (later.ended or later.done):
        return Status.DEGRADED  # it was another job's, or the driver dealt with it: this job came to its end
    if any(m.kind in _FATAL or _driver_ended(m) for m in live):
        # what the driver reports of a device may wait for its next reset, or be another job's: a job that works on has got over it
        told = not any(_driver_ended(m) or (m.kind in _FATAL and m.kind != "hardware") for m in live)
        return Status.DEGRADED if told and later.working > _CHECKS else None
    went_on = later.went_on or comes_and_goes(live, quotes) or logged_and_went_on(live, last, later, quotes) or in_step(live, last, quotes)
    went_on = went_on or all(is_one_requests(m) and worked_before(quotes, m.span) for m in live)
    return Status.DEGRADED if went_on else None


def _said_afterwards(seen: Sighting, quotes: Quotes) -> bool:
    """True for a bare message behind the line that says that all of the work is done: a script that clears up says it."""
    bare = seen.kind == "message" and seen.weight <= 2 and not seen.typed and seen.rank is None
    return bare and finished_before(quotes, seen.span) is not None


def _outlived_notice(members: Sequence[Sighting], quotes: Quotes) -> Status | None:
    """What became of a job where all that is told is that machines were taken back: others may have taken their place. None where neither
    the end of its work, before or behind the notice, nor work long after it shows that."""
    open_ = [m for m in members if m.role is None and m.weight >= 1]
    if not open_ or any(m.events[0].fields.get("by") != "cloud" for m in open_):
        return None
    last = max(open_, key=lambda m: m.span.last_line)
    later = quotes.after(last.span)
    if any(map(is_done, later)) or finished_before(quotes, last.span) is not None:
        return Status.HEALTHY
    gone = None if last.time is None else last.time + _NOTICE
    longer = gone is not None and any(line.time is not None and line.time > gone and is_work(line) for line in later)
    return Status.DEGRADED if longer else None


def _cancelled(primary: Group) -> bool:
    """True where the scheduler's word that it cancelled the job is all that is left to explain its end."""
    return any(e.kind is EventKind.LAUNCHER and e.fields.get("what") == "cancelled" for e in primary.first.events)


def _passed_on(seen: Sighting, quotes: Quotes) -> bool:
    """True for a line that a program sets off as somebody else's, as one that reads another job's log does."""
    lines = quotes.lines(seen.span, 1)
    return seen.rank is None and bool(lines) and lines[0].text.lstrip().startswith(_SET_OFF)


def _unexplained(seen: Sighting) -> bool:
    """True for an end that nothing else explains; a launcher's word of one is a consequence only where something was raised."""
    return seen.role is None or (seen.conditional and seen.role is CausalRole.CASCADE and seen.outside)


def _place(seen: Sighting) -> tuple[str, str | None, str | None, str]:
    """Who raised what where: of copies folded together not every access line is kept, and the check that refused one request refuses the
    next."""
    frame = seen.frames[-1] if seen.frames else None
    return seen.stream, seen.type, frame.file if frame else None, frame.function if frame else seen.message[:80]


def earliest(members: Sequence[Sighting], source: int) -> Span:
    """Where the first of them stands in a source that has at least one."""
    return min((m.span for m in members if m.span.source == source), key=lambda span: span.first_line)


def _only_leaving(members: Sequence[Sighting]) -> bool:
    """True where nothing more was seen than how processes take themselves apart: destructors, broken pipes to those gone before."""
    return all(m.role is CausalRole.TEARDOWN or (m.role is CausalRole.CASCADE and m.weight <= 2 and not m.typed) for m in members)


def _only_dropped(members: Sequence[Sighting]) -> bool:
    """True where Python dropped all that was raised, in destructors and handlers at exit, and besides it processes only left."""
    others = [m for m in members if not dropped(m)]
    return len(others) < len(members) and _only_leaving(others)


def _driver_ended(seen: Sighting) -> bool:
    """True for an exception that went through the whole of a Ray driver: what its actors print afterwards was on its way."""
    chains = [e.chain for e in seen.events if e.chain is not None and not e.chain.handled and "pid=" not in e.stream]
    remote = [chain.last for chain in chains if chain.last.type and chain.last.type.startswith(_REMOTE)]
    return any(frame.function == "<module>" for raised in remote for frame in raised.frames[:4])


def _asked_to_stop(primary: Group) -> bool:
    """True for the exception or signal with which a person or a launcher asks a process to stop."""
    name = (primary.first.type or "").rsplit(".", 1)[-1]
    return name in ("KeyboardInterrupt", "CancelledError", "SIGINT", "SIGTERM", "SystemExit")


def _in_order(primary: Group, last: Sighting, intake: Intake, quotes: Quotes, run: Run) -> bool:
    """True where the run ended in order: behind what asked it to stop, or above that, and no work stands between them."""
    asked = primary.first.span
    end = orderly_end(intake)
    if end is not None and run.holds(end):
        if end.source != asked.source or end.first_line > asked.first_line:
            return True
        between = quotes.lines(Span(asked.source, end.last_line + 1, asked.first_line - 1))
        if not any(is_work(line) for line in between):
            return True
    behind = ends_behind(quotes, last.span)
    return behind is not None and run.holds(behind)


def _of_another(seen: Sighting, quotes: Quotes) -> bool:
    """True for an end that only a shell tells, of nobody knows which process, while the job worked on without beginning anew."""
    if seen.events[0].fields.get("by") != "shell" or seen.rank is not None:
        return False
    return aftermath(quotes, seen.span, steady=True).working > _CHECKS and came_up(quotes.after(seen.span)) is None


def interrupted(primary: Group) -> bool:
    """True for a Ctrl-C."""
    return (primary.first.type or "").rsplit(".", 1)[-1] in ("KeyboardInterrupt", "SIGINT")


def _bad_exit(sighting: Sighting) -> bool:
    exit_ = sighting.events[0].fields.get("exit")
    return not (isinstance(exit_, ProcessExit) and exit_.code == 0)
