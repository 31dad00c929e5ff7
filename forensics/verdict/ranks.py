"""The ranks strip and whose failure it was. In: activity, groups, launcher events; out: `RankRow`s and a rank. Sample:

TP0 cascade · TP1 initiating · TP2 same · TP3 silent
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from forensics.ingest.compiled import pattern_of
from forensics.ingest.pattern import Pattern
from forensics.model.event import Event, EventKind, ProcessExit
from forensics.model.source import LogLine, LogSource, Rank, RankActivity
from forensics.model.verdict import CausalRole, RankRow, Status
from forensics.verdict.fold import Group
from forensics.verdict.hang import Hang
from forensics.verdict.roles import Cast, is_watchdog
from forensics.verdict.sighting import Sighting, signal_of

#: a message that names the rank it is about: "… Device acquire failed. rank=0"; "in use by rank 3" speaks of another one
_SAYS = Pattern(
    r"(?<!LoRA )(?<!lora )(?<!\bby )(?<!\bfrom )(?<!\bto )(?<!\bwith )\b[Rr]ank(?:ID)?[ =:#]{1,3}(\d{1,6})\b"
    r"|/task:(\d{1,6}) (?:has been set to ERROR|heartbeat timeout)"
)
#: a rank within a process group is not the job's
_IN_GROUP = pattern_of(r"\[PG [^\]\n]{1,200}\]")
#: how torch.multiprocessing.spawn names the process that it saw end
_INDEX = pattern_of(r"\b[Pp]rocess (\d{1,5}) terminated with (?:the following error|exit code|signal)")
#: what shows that a job has several nodes
_SEVERAL = Pattern(
    r"\b(?:n(?:um[_-]?)?(?:nodes|machines)|node[_-]?rank|machine[_-]?rank)['\"]?[=: ]{1,3}(?:[2-9]|1\d)"
    r"|\bnode[_-]?rank['\"]?[=: ]{1,3}1\b",
    re.IGNORECASE,
)
#: lines in which a program says who it is
_IS = Pattern(
    r"\bLOCAL_RANK: (\d{1,6})\b|\b(?:GLOBAL_RANK|[Gg]lobal rank): (\d{1,6})\b"
    r"|\b[Rr]ank(?:/world[-_ ]size)?\)?:? (\d{1,6})/\d{1,6}\b|\bRANK=(\d{1,6})\b"
)

#: what a process says of its own end or of its parent's: nothing of a failure of its own
_NO_FAULT = frozenset(("parent_gone", "closing"))
_MOST_LINES = 5_000
#: of several things said of one rank, the first counts
_LOUD = ("missing", "initiating", "waiting", "same", "cascade", "unknown", "teardown", "ok", "silent", "unobserved")

#: what a process prints of its own failure
_OWN_FAILURES = (EventKind.PYTHON, EventKind.NATIVE, EventKind.FATAL_SIGNAL, EventKind.DEVICE_ASSERT, EventKind.DEVICE_ERROR)

#: roles that say whose the failure is
_STARTED = (CausalRole.INITIATING, CausalRole.SAME)
_WEIGHT = {
    CausalRole.INITIATING: 5,
    CausalRole.SAME: 4,
    CausalRole.CASCADE: 3,
    CausalRole.UNKNOWN: 2,
    CausalRole.TEARDOWN: 1,
}


def strip(
    activity: Sequence[RankActivity],
    cast: Cast,
    hang: Hang | None,
    status: Status,
    first: Rank | None = None,
    alike: Sequence[Rank] = (),
    events: Sequence[Event] = (),
    named: bool = False,
) -> tuple[RankRow, ...]:
    """One row for each rank that was seen, by number, then by label. status: of the run; it says what became of the others; alike:
    those that failed in the same way, though nothing that they printed names them, and which of them was first; events: of the run;
    named: the first is one of which only others tell, and those follow it."""
    seen: dict[tuple[str, str | None], Rank] = {a.rank.key: a.rank for a in activity}
    acts = {a.rank.key: a for a in activity}
    outcome: dict[tuple[str, str | None], CausalRole] = {}
    for group in cast.groups:
        role = cast.role(group)
        for place, rank in enumerate(group.ranks):
            seen.setdefault(rank.key, rank)
            own = CausalRole.SAME if role is CausalRole.INITIATING and place else role
            if hang is None and own in _STARTED and is_watchdog(group):
                own = CausalRole.UNKNOWN  # it tells that it did not get on; whether it or another is why, nothing says
            if _WEIGHT[own] > _WEIGHT.get(outcome.get(rank.key, CausalRole.TEARDOWN), 0):
                outcome[rank.key] = own
    words = {key: role.value for key, role in outcome.items()}
    words.update({rank.key: CausalRole.SAME.value for rank in alike})
    if named and first is not None:
        seen.setdefault(first.key, first)
        words = {key: CausalRole.CASCADE.value if word == CausalRole.INITIATING.value else word for key, word in words.items()}
        words[first.key] = CausalRole.INITIATING.value
    if first is not None and (alike or words.get(first.key) == CausalRole.CASCADE.value):
        words[first.key] = CausalRole.INITIATING.value
    if hang is not None:
        for rank in (*hang.collective.waiting, *hang.collective.missing):
            seen.setdefault(rank.key, rank)
        words.update({r.key: "waiting" for r in hang.collective.waiting})
        words.update({r.key: "missing" for r in hang.collective.missing})
        telling = {event.stream.rpartition("/")[2] for event in hang.events if event.fields.get("what") == "stalled"}
        for rank in seen.values():  # who tells that it waits for others
            if rank.label in telling:
                words.setdefault(rank.key, "waiting")
        if hang.culprit is not None:
            seen.setdefault(hang.culprit.key, hang.culprit)
            words[hang.culprit.key] = "missing" if hang.collective.missing else "initiating"
    if status in (Status.HEALTHY, Status.DEGRADED):
        others = "ok"
    else:  # a failure that names no rank says of none that it did not fail
        others = "silent" if words else "unobserved"
        if status is Status.KILLED and cast.primary is not None and _from_outside(cast.primary.first):
            others = CausalRole.TEARDOWN.value  # who ran when the scheduler ended the job was ended with it
        for event in events:
            if event.rank is not None and event.fields.get("what") in _NO_FAULT:
                words.setdefault(event.rank.key, CausalRole.TEARDOWN.value)
    rows = [RankRow(rank, words.get(key, others), acts.get(key)) for key, rank in seen.items()]
    rows = _without_nameless(_one_each(rows))
    told = [*(a.rank for a in activity), *(r for g in cast.groups for r in g.ranks), *(e.rank for e in events if e.rank is not None)]
    rows = _without_agents(rows, {rank.axis("task") for rank in told if rank.axis("local") is not None})
    rows.sort(key=lambda row: (row.rank.number is None, row.rank.number or 0, row.rank.axis("task") or 0, row.rank.label))
    return tuple(rows)


def _without_agents(rows: list[RankRow], homes: set[int | None]) -> list[RankRow]:
    """A task's launcher is no rank beside the ranks that it started. homes: the tasks of which such ranks are known; a task that stands
    alone started all that have a number."""
    blamed = ("initiating", "missing", "waiting")
    agents = {task for row in rows if row.rank.number is None and len(row.rank.axes) == 1 and (task := row.rank.axis("task")) is not None}
    if len(agents) == 1 and not homes - {None} and any(row.rank.number is not None for row in rows):
        homes = {*agents, *homes}
    return [r for r in rows if len(r.rank.axes) != 1 or r.rank.axis("task") not in homes - {None} or r.outcome in blamed]


def _without_nameless(rows: list[RankRow]) -> list[RankRow]:
    """NCCL's lines name a host and a pid ("node7:4021"): beside ranks with numbers those are the same processes once more."""
    if not any(row.rank.number is not None for row in rows):
        return rows
    blamed = ("initiating", "missing", "waiting")
    return [r for r in rows if r.rank.number is not None or r.rank.axes or r.rank.pid is None or r.outcome in blamed]


def _one_each(rows: Sequence[RankRow]) -> list[RankRow]:
    """ "TP1", "rank 1", "local rank 1" of pid 71 and "rank 1" of pid 71 are one process where nothing says that they are two."""
    numbers: dict[int, set[int]] = {}
    nodes: dict[int | str, set[str]] = {}
    for row in rows:
        if row.rank.pid is not None and row.rank.number is not None:
            numbers.setdefault(row.rank.pid, set()).add(row.rank.number)

    def name(rank: Rank) -> int | str:
        known = numbers.get(rank.pid, set()) if rank.number is None and rank.pid is not None else set()
        number = next(iter(known)) if len(known) == 1 else rank.number
        return number if number is not None else rank.label

    for row in rows:
        if row.rank.node:
            nodes.setdefault(name(row.rank), set()).add(row.rank.node)
    found: dict[tuple[int | str, str | None], RankRow] = {}
    for row in rows:
        own = name(row.rank)
        places = nodes.get(own, set())
        # A number is global: only two hosts that both claim it make two processes of it.
        key = (own, (row.rank.node or min(places)) if len(places) > 1 else None)
        old = found.get(key)
        if old is None:
            found[key] = row
            continue
        louder = min((old, row), key=lambda r: _LOUD.index(r.outcome) if r.outcome in _LOUD else len(_LOUD))
        rank = row.rank if old.rank.number is None and row.rank.number is not None else old.rank
        found[key] = RankRow(rank, louder.outcome, old.activity or row.activity)
    return list(found.values())


def whose(
    first: Sighting,
    events: Sequence[Event],
    activity: Sequence[RankActivity],
    world_size: int | None,
    lines: Sequence[LogLine],
    sources: Sequence[LogSource] = (),
) -> Rank | None:
    """Whose failure it was, where its own lines do not say: the only rank of the job, peers that saw one local rank go, another report of
    it or a message that names one rank, the only process that the same signal ended, the launcher's word, srun's first ended task, and last
    the only rank that any line names, where all lines are at hand."""
    if first.rank is not None and first.rank.number is not None:
        return first.rank
    if _from_outside(first):
        return None
    waited = {e.rank.number for e in events if e.kind is EventKind.COLLECTIVE_TIMEOUT and e.rank is not None and e.rank.number is not None}
    only = activity[0].rank if len(activity) == 1 and world_size in (None, 1) else None
    if only is not None and only.number not in (None, *waited) and not _of_another_node(first, only, lines):
        return only
    own = first.rank
    gone = {e.fields["closed_by_local_rank"] for e in events if isinstance(e.fields.get("closed_by_local_rank"), int)}
    if len(gone) == 1 and first.kind in ("fatal_signal", "exit", "native"):
        number = gone.pop()
        return Rank(
            f"local rank {number}", number, (("local", number),), own.node if own else None, own.pid if own else None
        )
    told = {e.rank.number: e.rank for e in first.events if e.rank is not None and e.rank.number is not None}
    if own is None and len(told) == 1:  # the line above its report, say: "Failed to initialize executor on rank 2: …"
        return next(iter(told.values()))
    words = (_IN_GROUP.sub("", text[:2_000]) for text in (first.root_message, first.message))
    said = {int(n) for text in words for found in _SAYS.findall(text) for n in found if n}
    if len(said) == 1:
        number = said.pop()
        return Rank(f"rank {number}", number)
    if own is None and (spawned := _spawned(first, lines)) is not None:
        return spawned
    ended = [e for e in events if e.kind in (EventKind.LAUNCHER, EventKind.PROCESS_EXIT) and _failed(e)]
    ended = [e for e in ended if not _dead_before(e, first) and not _taken_along(e, first)]
    named = [e.rank for e in ended if e.rank is not None and e.rank.number not in waited and not _in_a_crowd(e, ended)]
    mine = [r for r in named if own is not None and own.pid is not None and r.pid == own.pid]
    if mine:
        return mine[0]
    by_signal = {e.rank.key: e.rank for e in events if e.rank is not None and first.kind == "fatal_signal" and _ended_by(e, first.type)}
    if by_signal and own is None:  # of several nobody says which one spoke
        return next(iter(by_signal.values())) if len(by_signal) == 1 else None
    keys = {r.key for r in named}
    if named and (len(keys) == 1 or first.kind == "exit"):
        return named[0]
    if own is None and (seen_first := _first_observed(first, events)) is not None:
        return seen_first
    if own is None and (task := _first_task(first, events)) is not None:
        return task
    if world_size == 1 and own is None:
        return Rank("rank 0", 0)
    if own is None and not activity and not _has_holes(sources, lines):
        names = {
            int(next(filter(None, m.groups()))) for line in lines[:_MOST_LINES] for m in _IS.finditer(line.text[:400])
        }
        if len(names) == 1:
            number = names.pop()
            return Rank(f"rank {number}", number)
    return own


def _has_holes(sources: Sequence[LogSource], lines: Sequence[LogLine]) -> bool:
    """True where lines were not kept: another rank may name itself in one of them."""
    return sum(source.lines for source in sources) > len({(line.source, line.number) for line in lines})


def _spawned(first: Sighting, lines: Sequence[LogLine]) -> Rank | None:
    """The process that torch's `spawn` saw end, by its index on this node: its rank, unless a line speaks of several nodes."""
    if not any(name.startswith("torch.multiprocessing.spawn.Process") for name in first.types):
        return None
    found = next((m for text in (first.message, *first.texts) if (m := _INDEX.search(text[:400])) is not None), None)
    if found is None:
        return None
    index = int(found[1])
    several = any(_SEVERAL.search(line.text[:2_000]) for line in lines[:_MOST_LINES])
    return Rank(f"local rank {index}" if several else f"rank {index}", None if several else index, (("local", index),))


def _ended_by(event: Event, signal: str | None) -> bool:
    """True where a launcher says that the signal ended a process."""
    exit_ = event.fields.get("exit") if event.kind is EventKind.PROCESS_EXIT else None
    return isinstance(exit_, ProcessExit) and signal is not None and signal in (exit_.signal, signal_of(exit_.code))


def _dead_before(end: Event, first: Sighting) -> bool:
    """True for a process that was killed above the exception: it raised nothing any more, however late its lines were written."""
    above = end.span.source == first.span.source and end.span.first_line < first.span.first_line
    return first.kind == "python" and above and _ended_by(end, "SIGKILL")


def _taken_along(end: Event, first: Sighting) -> bool:
    """True for the end of a process of which the one that had raised the exception tells below it: it took its workers along."""
    below = end.span.source == first.span.source and end.span.first_line > first.span.last_line
    return first.kind == "python" and below and bool(first.stream) and end.stream == first.stream


def _in_a_crowd(end: Event, ended: Sequence[Event]) -> bool:
    """True for a task that ended as several others had ended before it: srun names one and counts the rest."""
    tasks = [e for e in ended if e.rank is None and e.type == end.type and isinstance(e.fields.get("tasks"), (list, tuple))]
    return any(e.span.source == end.span.source and e.span.first_line < end.span.first_line for e in tasks)


def _first_observed(first: Sighting, events: Sequence[Event]) -> Rank | None:
    """The rank whose end torch's agent saw first, where all that was printed is one failure, by processes that do not name themselves."""
    told = [e.rank for e in events if e.fields.get("first_observed") and e.rank is not None and e.rank.number is not None and _failed(e)]
    own = [e for e in events if e.kind in _OWN_FAILURES and not (e.type or "").endswith("ChildFailedError")]
    # of tracebacks that several processes wrote into each other the last line may be all that can be read
    if len(told) != 1 or not (first.kind == "python" or (first.kind == "message" and first.typed and not own)):
        return None
    if not own:
        return told[0]
    said = {(e.type, e.message.partition("\n")[0][:60]) for e in own}
    return told[0] if len(said) == 1 else None


def _first_task(first: Sighting, events: Sequence[Event]) -> Rank | None:
    """The task whose end srun reports first, where only one failure had been printed until then: that was its own."""
    source, line = first.place
    ends = [e for e in events if e.kind is EventKind.PROCESS_EXIT and e.parser == "slurm" and e.span.source == source]
    end = min(ends, key=lambda e: e.span.first_line, default=None)
    if end is None or end.rank is None or not _failed(end) or end.span.first_line < line:
        return None
    before = [e for e in events if e.kind in _OWN_FAILURES and e.span.source == source and e.span.first_line < end.span.first_line]
    return end.rank if len(before) == 1 else None


def tasks_alike(group: Group, events: Sequence[Event]) -> tuple[Rank, ...]:
    """The processes that a launcher saw end in the same way, srun its tasks and torch's agent its workers, where as many alike
    failures were printed that name no process: theirs."""
    if group.first.kind not in ("python", "native") or len(group.members) < 2 or any(m.rank is not None for m in group.members):
        return ()
    source = group.first.span.source
    for parser in ("slurm", "torchelastic"):
        ends = [e for e in events if e.kind is EventKind.PROCESS_EXIT and e.parser == parser and e.span.source == source]
        found = {e.rank.key: e.rank for e in ends if e.rank is not None and e.rank.number is not None and _failed(e)}
        if len(found) == len(group.members) and len({e.type for e in ends}) == 1:
            return tuple(found.values())
    return ()


def _from_outside(first: Sighting) -> bool:
    """True where a scheduler ended the whole job, or a signal torch's agent: that is no rank's failure."""
    if first.types and first.types[0].endswith("SignalException"):
        return True
    return any(e.kind is EventKind.LAUNCHER and e.fields.get("what") == "cancelled" for e in first.events)


def _of_another_node(first: Sighting, rank: Rank, lines: Sequence[LogLine]) -> bool:
    """True where who told of the failure stands on another node ("10.0.0.5/raylet pid=88") or in another pod than the rank."""
    node, slash, _ = first.stream.partition("/")
    if not slash:
        return False
    if rank.node is not None:
        return node != rank.node
    own = (line.stream for line in lines[:_MOST_LINES] if line.rank is not None and line.rank.key == rank.key)
    homes = {stream.partition("/")[0] for stream in own if "/" in stream}
    return bool(homes) and node not in homes


def _failed(event: Event) -> bool:
    """True where a launcher names a process that ended with an error of its own, not one that it ended itself."""
    exit_ = event.fields.get("exit")
    if isinstance(exit_, ProcessExit):
        if exit_.code is None:
            return exit_.signal not in (None, "SIGTERM") or (exit_.signal is None and "died unexpectedly" in event.message)
        return exit_.code not in (0, -15, 143)
    return event.kind is EventKind.LAUNCHER and event.fields.get("what") not in _NO_FAULT
