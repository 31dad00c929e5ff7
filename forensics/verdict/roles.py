"""Who started it, and who only followed. In: groups of one run; out: the primary group and a role for each. Sample:

rank 2 "illegal memory access" 20:17:00 · rank 0 "NCCL … remote process exited" 20:17:04 · ChildFailedError
-> initiating · cascade · cascade
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from forensics.ingest.compiled import pattern_of
from forensics.ingest.pattern import Pattern
from forensics.model.record import draft, field
from forensics.model.source import Rank, Span
from forensics.model.verdict import CausalRole
from forensics.verdict.fold import Group, plain
from forensics.verdict.incidents import came_up
from forensics.verdict.missing import of_the_missing
from forensics.verdict.order import Order
from forensics.verdict.outcome import caught, works_on
from forensics.verdict.outlived import DEADLY, of_the_start, stopped_at_work, worked_between
from forensics.verdict.quotes import Quotes
from forensics.verdict.recorded import is_first, is_recorded
from forensics.verdict.sighting import Sighting

_COMMUNICATES = Pattern(
    r"[RN]CCL|[rn]ccl|[Gg]loo|TCPStore|c10d|collective|DistBackendError|DistStoreError|DistNetworkError|[Cc]onnection|socket"
    r"|[Bb]arrier|allreduce|all_reduce|[Ww]atchdog|timed out|Timeout|DeepEP"
)
#: errors that break a device context for good: whoever prints them, they are why
_HARD = Pattern(
    r"illegal memory access|device-side assert(?!ions)|unspecified launch failure|misaligned address|no kernel image"
    r"|uncorrectable (?:ECC|NVLink)|out of memory",
    re.I,
)


#: errors of the hardware itself: nothing behind them is hidden, whoever reports them
_DEVICE = Pattern(r"uncorrectable (?:ECC|NVLink)|fallen off the bus", re.I)

#: rules for a front end's exceptions about its engine
ENGINE_GONE = frozenset(
    ("cascade.worker-init", "cascade.engine-dead", "wrapper.engine-dead", "cascade.engine-core-init", "cascade.rank-dead")
)

#: a scheduler's word that it ended the job itself
_ENDED = pattern_of(
    r"DUE TO|[Pp]reempt|[Tt]ime limit|Evicted|OOMKilled|probe, will be restarted|[Ww]all(?:time|clock) |TERM_|enforced h_rt"
    r"|node was low on resource|^Eviction manager|^TaintManagerEviction|longer than specified deadline|^JobState=|operation timed out"
)

#: how Python begins to tell of an exception in a destructor or at exit, which it drops
_IGNORED = pattern_of(r"^\W{0,8}Exception ignored (?:in|on)\b")
#: what an engine's own watchdog says before it kills the engine's processes
_WATCHDOG = Pattern(r"^(?:\w{1,40} )?[Ww]atchdog timeout \(|^Hang detected on rank \d{1,6} in PyExecutor")
#: a watchdog that was told only to report
_SOFT = pattern_of(r"\bself\.soft=True")
#: lines between two programs that are asked which of them began there
_MOST_LINES = 5_000
#: rules for what a job goes on after, and for what it is refused because it is being ended
_EXPLAINS_LITTLE = ("harmless.", "teardown.step-of-ended-job")
_KILL = ("SIGKILL", "exit -9", "exit 137")
_GONE = ("The actor died unexpectedly", "Worker exit type: SYSTEM_ERROR")
#: Slurm's word that a step ended because somebody ended it
_CANCELLED = pattern_of(r"^\W*(?:STEP|JOB) [\d.+_]{1,40} ON \S{1,200} CANCELLED AT (?!.{0,60}DUE TO)")


@draft
class Cast:
    """The groups of a run in causal order with their roles. outside: the log holds only consequences; why: by index of group."""

    groups: list[Group]
    primary: Group | None
    roles: dict[int, CausalRole] = field(default_factory=dict)
    why: dict[int, str] = field(default_factory=dict)
    outside: bool = False

    def role(self, group: Group) -> CausalRole:
        """The role of one group."""
        return self.roles.get(id(group), CausalRole.UNKNOWN)


def assign(groups: Sequence[Group], order: Order, quotes: Quotes, culprit: Rank | None = None) -> Cast:
    """Chooses the failure that started it and gives every group its role. culprit: whom the others waited for, if that is known."""
    for group in groups:
        _lead_by_time(group, order)
    ordered = sorted(groups, key=lambda g: order.key(g.first.span, g.first.time))
    early = of_the_start(ordered, _HARD, quotes)
    primary, outside = _primary(ordered, quotes, early)
    gone = None
    if primary is not None and primary.first.kind == "collective_timeout":
        free = [g for g in ordered if g.first.role is None]
        gone = of_the_missing(free, culprit, order, [g for g in free if _speaks_of_connections(g.first)])
    primary = gone or primary
    cast = Cast(ordered, primary, outside=outside)
    if primary is None:
        return cast
    start = order.key(primary.first.span, primary.first.time)
    for group in ordered:
        role, why = _role(group, primary, start, order)
        if group in early and group is not primary and group.first.role is None:
            role, why = CausalRole.UNKNOWN, "it stood before the job was at work, which went on; nothing links the two"
        if gone is not None and group.first.kind == "collective_timeout":
            role, why = CausalRole.CASCADE, "it waited for a process that had failed"
        cast.roles[id(group)], cast.why[id(group)] = role, why
    # The contract's order: what started it, those that failed alike, then the rest as it came.
    rank = {CausalRole.INITIATING: 0, CausalRole.SAME: 1}
    cast.groups = sorted(ordered, key=lambda g: rank.get(cast.roles[id(g)], 2))
    return cast


def _lead_by_time(group: Group, order: Order) -> None:
    """Of alike failures the one that came first leads; a log that several ranks write does not hold them in that order."""
    timed = [m for m in group.members if m.time is not None]
    if group.first.time is None or len(timed) < 2 or group.first.kind == "exit":
        return
    earliest = min(timed, key=lambda m: order.key(m.span, m.time))
    if order.key(earliest.span, earliest.time) < order.key(group.first.span, group.first.time):
        group.first = earliest
        group.members = [earliest, *(m for m in group.members if m is not earliest)]


def _primary(ordered: Sequence[Group], quotes: Quotes, early: Sequence[Group]) -> tuple[Group | None, bool]:
    """The first of the best class that has one: certain failures, deadly exits, printed errors, consequences of the unseen.
    early: what the job outlived, which is no failure of it."""
    cut = [g for g in ordered if g.first.kind == "python" and not g.first.type]
    if cut and len(cut) < len(ordered) and all(g in cut or _is_ignored(g.first) for g in ordered):
        return cut[0], False  # what a destructor met is no cause beside a traceback whose end was cut off
    free = [g for g in ordered if g.first.role is None and g not in early]
    certain = [g for g in free if g.first.weight >= 3 or g.first.typed or g.first.refused]
    if certain and (stopped := stopped_at_work(certain, ordered, quotes)) is not None:
        return stopped, False
    if certain and not _outlived(certain, ordered, quotes):
        return _named(_first_recorded(_first_fatal(certain, quotes), certain), ordered), False
    printed = [g for g in free if g.first.weight == 2 and g.first.events[0].kind.value != "communication"]
    warned = [g for g in free if g.first.weight == 2 and g.first.events[0].kind.value == "communication"]
    warned.sort(key=lambda g: not any(_HARD.search(text) for text in g.first.texts))
    torn = [g for g in printed if g.first.torn]  # says nothing beside words
    printed = [g for g in printed if not g.first.torn]
    exits = [g for g in free if g.first.weight == 1]
    deadly = [
        g for g in exits if (g.first.type and DEADLY.search(g.first.type)) or _ENDED.search(g.first.message[:1_000]) or _is_gone(g.first)
    ]
    deadly, cancelled = _without_cleanup(deadly, exits, ordered)
    hung = _ended_by_watchdog(printed, deadly, ordered, quotes)
    conditional = [g for g in ordered if g.first.conditional and g not in early]
    # What a job goes on after explains less than what ended it, also where both may be consequences.
    conditional.sort(key=lambda g: g.first.rule.startswith(_EXPLAINS_LITTLE))
    hard = [g for g in conditional if any(_HARD.search(text) for text in g.first.texts)]
    # What a process met while it gave back what it had is no nearer than the printed refusal before it.
    refused = [g for g in printed if any(_HARD.search(text) for text in g.first.texts)]
    if hard and refused and hard[0].first.role is CausalRole.TEARDOWN and ordered.index(refused[0]) < ordered.index(hard[0]):
        hard = refused
    wrapped = [g for g in conditional if g.first.inner is not None]
    own = [g for g in conditional if g.first.weight >= 3 and g.first.inner is None]
    cascades = [g for g in own if g.first.role is CausalRole.CASCADE or g.first.rule == "handled"]
    # Only the word of those who saw an engine dead: what was raised last is what the log has to say.
    seen_dead = [g for g in ordered if g.first.outside and g.first.role is CausalRole.CASCADE and not g.first.torn]
    # A launcher's summary names the exit that it saw, and that exit is nearer.
    seen_dead = [g for g in seen_dead if g.first.rule not in ("cascade.child-failed", "cascade.mpi-primary-job")]
    asked = next((place for place, g in enumerate(ordered) if g.first.weight == 0 and (g.first.role is None or g.first.conditional)), None)
    if asked is not None:  # who died after it died of it
        behind = {id(g) for g in ordered[asked:]}
        seen_dead = [g for g in seen_dead if id(g) not in behind]
    # A parent that names the process that vanished is nearer than a front end that misses its engine.
    vanished = [g for g in seen_dead if g.first.kind == "exit" and "died unexpectedly" in g.first.message[:1_000]]
    gone = [g for g in seen_dead if g.first.weight >= 3 or g.first.typed]
    # A child's exit with its code, told before anybody saw its parent dead, is nearer than that word.
    ended = [g for g in exits if g.first.type and seen_dead and ordered.index(g) < ordered.index(seen_dead[0])] if not gone else []
    # The engine that missed its workers is nearer to them than the server that missed the engine.
    nearest = [g for g in gone if g.first.rule == "cascade.worker-init"]
    gone = nearest[-1:] or (gone[-1:] if gone and gone[-1].first.rule in ENGINE_GONE else gone)
    # What a library warned of before its connections broke is nearer to the cause than the broken connection.
    # An abort is no consequence of a kill that came after it.
    aborted = [g for g in own if g.first.rule == "cascade.abort-after" and g.first.kind in ("fatal_signal", "native")]
    if aborted and deadly and ordered.index(deadly[0]) < ordered.index(aborted[0]):
        aborted = []
    # A step is cancelled because of the task that had ended badly before.
    behind_exit = conditional and _CANCELLED.search(conditional[0].first.message[:300])
    failed = [g for g in exits if behind_exit and ordered.index(g) < ordered.index(conditional[0])]
    # A signal that torch's agent was sent says why the tracebacks end that the log cuts off.
    signalled = [g for g in exits if torn and g.first.events[0].fields.get("what") == "death_signal"]
    told = (hung, cancelled, deadly, cascades, printed, own, warned, ended, vanished, gone, seen_dead, failed, conditional, signalled, torn)
    classes = (hard, wrapped, aborted if deadly else [], *told)
    for choice in classes:
        if choice:
            first = choice[0].first
            # A broken pipe beside the word that a process had died is no more of a cause than that word.
            # Nor is a broken device that a process met itself the consequence of something unseen: who printed it makes no difference.
            own_fault = choice is hard and (first.kind == "native" or any(_DEVICE.search(text) for text in first.texts))
            return choice[0], not own_fault and (first.outside or (choice is cascades and bool(seen_dead)))
    left = [g for g in ordered if g.first.role is not CausalRole.TEARDOWN]
    for choice in (free, left, list(ordered)):
        if choice:
            return choice[0], choice[0].first.outside or choice[0].first.role is not None
    return None, False


def _is_ignored(seen: Sighting) -> bool:
    """True for an exception in a destructor or at exit that Python printed and dropped."""
    return seen.rule == "handled" and _IGNORED.match(seen.heading) is not None


def dropped(seen: Sighting) -> bool:
    """True for such an exception that tells of no broken device and of nobody who stopped the process: it went on as before."""
    stopped = (seen.type or "").rsplit(".", 1)[-1] == "KeyboardInterrupt"
    return _is_ignored(seen) and not stopped and not any(_HARD.search(text) for text in seen.texts)


def _without_cleanup(
    deadly: Sequence[Group], exits: Sequence[Group], ordered: Sequence[Group]
) -> tuple[list[Group], list[Group]]:
    """(deadly exits without the kills with which an engine or a scheduler ends what is left, what the scheduler cancelled for).

    SGLang's parent kills its whole process tree, itself too, once a child has told it of a failure; Slurm kills the tasks of a
    step that it cancels, and cancels a step whose task had failed. The end that made torchrun end the others is none of these.
    """
    kills = [
        g
        for g in deadly
        if g.first.type in _KILL and not _ENDED.search(g.first.message[:1_000]) and not any(map(is_first, g.members))
    ]
    if not kills:
        return list(deadly), []
    place = ordered.index(kills[0])
    before = ordered[:place]
    if any(g.first.rule == "teardown.sigquit" for g in before):
        return [g for g in deadly if ordered.index(g) < place or g not in kills], []
    at = next((i for i, g in enumerate(before) if g.first.conditional and _CANCELLED.search(g.first.message[:300])), None)
    if at is None:
        return list(deadly), []
    failed = [g for g in before[:at] if g in exits and g not in deadly and (g.first.type or "").startswith("exit ")]
    return list(deadly), (failed or [before[at]])[:1]


def _is_gone(seen: Sighting) -> bool:
    """Whether Ray says of a rank that its process ended without a word: those that it spoke with see broken connections before that."""
    return seen.rank is not None and seen.rank.number is not None and seen.message.startswith(_GONE)


def _ended_by_watchdog(
    printed: Sequence[Group], deadly: Sequence[Group], ordered: Sequence[Group], quotes: Quotes
) -> list[Group]:
    """The watchdog's words where the first deadly exit is the kill that follows them: the watchdog ends its own process tree."""
    if not deadly or deadly[0].first.type not in _KILL or _ENDED.search(deadly[0].first.message[:1_000]):
        return []
    kill = deadly[0]
    found = []
    for group in ordered[: ordered.index(kill)]:
        if group not in printed or not is_watchdog(group):
            continue
        if any(_SOFT.search(event.message) for member in group.members for event in member.events):
            continue
        last = max((m.span for m in group.members), key=lambda span: (span.source, span.last_line))
        if not worked_between(last, kill.first, quotes):
            found.append(group)
    return found


def is_watchdog(group: Group) -> bool:
    """True for what an engine's watchdog says when its engine made no progress."""
    return any(map(is_watchdogs_word, (*group.first.texts[:2], *(e.message for e in group.first.events[:4]))))


def is_watchdogs_word(text: str) -> bool:
    """True for a message by which such a watchdog reports."""
    return _WATCHDOG.search(text) is not None


def _named(first: Group, ordered: Sequence[Group]) -> Group:
    """An abort that names no rank, or the traceback above it in which a rank met the same broken device while it was ending."""
    if first.first.kind != "native" or first.first.rank is not None:
        return first
    said = {m[0].lower() for text in first.first.texts for m in _HARD.finditer(text)}
    for group in ordered[: ordered.index(first)] if said else ():
        seen = group.first
        if seen.kind == "python" and seen.conditional and seen.rank is not None and seen.rule == "teardown.shutdown-frames":
            if any(m[0].lower() in said for text in seen.texts for m in _HARD.finditer(text)):
                for member in group.members:
                    if member.root_type == "SystemExit":  # how it was told to end, not what it met
                        member.root_type, member.root_message = member.type, member.message
                        member.frames = member.chain[-1].frames or member.frames
                return group
    return first


def _first_recorded(first: Group, certain: Sequence[Group]) -> Group:
    """The group, or, where no clock tells when it came and a launcher's summary shows its traceback, the one of that summary that it
    saw first: it knows when each was raised, and lists that one last."""
    if first.first.time is not None or not any(map(is_recorded, first.members)) or any(map(is_first, first.members)):
        return first
    return next((g for g in certain if any(is_recorded(m) and is_first(m) for m in g.members)), first)


def _outlived(certain: Sequence[Group], ordered: Sequence[Group], quotes: Quotes) -> bool:
    """True where all that was raised had been caught, and the process was killed later: who is killed has lived until then."""
    exits = [g for g in ordered if g.first.role is None and g.first.weight == 1]
    kills, _ = _without_cleanup([g for g in exits if g.first.type in _KILL], exits, ordered)
    if not kills or ordered.index(kills[0]) < ordered.index(certain[-1]):
        return False
    return all(g.first.kind == "python" and all(caught(m, quotes) for m in g.members) for g in certain)


def _first_fatal(certain: Sequence[Group], quotes: Quotes) -> Group:
    """The first failure, unless its process went on and another one failed later: then it was not what stopped the job."""
    for place, group in enumerate(certain[:-1]):
        first = group.first
        if first.kind in ("hardware", "oom_kill", "fatal_signal"):
            return group
        if _another_attempt(first, certain[place + 1].first, quotes):
            continue
        following = next((g for g in certain[place + 1 :] if g.first.span.source == first.span.source), None)
        if not (works_on(quotes, first.span, first.stream, following.first.span if following else None) or caught(first, quotes)):
            return _first_alike(certain, place)
    return _first_alike(certain, len(certain) - 1)


def _first_alike(certain: Sequence[Group], place: int) -> Group:
    """The group there, or the one before it that failed alike: other ranks' same failure, of which the log holds other frames."""
    while place and _alike(certain[place - 1].first, certain[place].first):
        place -= 1
    return certain[place]


def _another_attempt(first: Sighting, following: Sighting, quotes: Quotes) -> bool:
    """True where two programs ended one after the other: each traceback begins in a script of its own, and no process is named, or
    the second is of a rank of a job that was started between them."""
    if first.rank is not None or first.kind != "python" or following.kind != "python":
        return False
    if following.rank is not None:
        if first.span.source != following.span.source:
            return False
        between = Span(first.span.source, first.span.last_line + 1, max(first.span.last_line + 1, following.span.first_line - 1))
        alive = came_up(quotes.lines(between, _MOST_LINES)) is not None
        if not alive and not _before_all_ranks(first, following.rank, following.span.first_line, quotes):
            return False
    tops = [s.chain[-1].frames[0] if s.chain and s.chain[-1].frames else None for s in (first, following)]
    if any(top is None or top.function not in ("<module>", "_run_module_as_main") for top in tops):
        return False
    return tops[0].file != tops[1].file  # type: ignore[union-attr]


def _before_all_ranks(first: Sighting, rank: Rank, before: int, quotes: Quotes) -> bool:
    """True where no line above names a rank, and that rank's process spoke between the two: a step of the job's script, whose lines no
    launcher labels, had failed before the job was started."""
    above = quotes.lines(Span(first.span.source, 0, first.span.last_line))
    if any(line.rank is not None for line in above[-_MOST_LINES:]):
        return False
    below = quotes.after(first.span)[:_MOST_LINES]
    return any(line.rank is not None and line.rank.key == rank.key and line.number < before for line in below)


def _role(group: Group, primary: Group, start: tuple[int, float, int, int], order: Order) -> tuple[CausalRole, str]:
    first = group.first
    if group is primary:
        return CausalRole.INITIATING, "it came first, and nothing before it explains it"
    if first.role is not None:
        return first.role, first.role_why
    if _alike(first, primary.first):
        return CausalRole.SAME, "the same failure, raised by this process itself"
    later = order.key(first.span, first.time) >= start
    if later and first.rank is not None and primary.first.rank is not None and first.rank.key == primary.first.rank.key:
        return CausalRole.CASCADE, "the same process, after its first failure"
    if later and _speaks_of_connections(first):
        return CausalRole.CASCADE, "communication broke after another process had failed"
    if later and first.weight == 0:
        return CausalRole.TEARDOWN, "the process was asked to stop"
    if later and first.weight < 3:
        return CausalRole.CASCADE, "reported after the first failure"
    return CausalRole.UNKNOWN, "the log does not say how it belongs to the first failure"


def _speaks_of_connections(seen: Sighting) -> bool:
    return any(_COMMUNICATES.search(text) for text in (*seen.types, *seen.texts))


def _alike(one: Sighting, other: Sighting) -> bool:
    if (one.root_type or "").rsplit(".", 1)[-1] != (other.root_type or "").rsplit(".", 1)[-1] or one.kind != other.kind:
        return False
    # The beginning says what failed; sizes, processes and advice behind it differ from rank to rank.
    return plain(one.root_message.split("\n", 1)[0])[:60] == plain(other.root_message.split("\n", 1)[0])[:60]
