"""Local ranks under their global numbers. In: events, activity and facts of a job; out: the same with the ranks joined. Sample:

"local rank 3" of attempt_0/3/error.json + the summary's "rank : 11 (local_rank: 3)"  -> rank 11
"local rank 3" of a job of one node (nnodes=1, or world size 4 and a local rank 3)     -> rank 3
"local rank 3" of the one agent of a log in which rank 0 speaks (the first node, however many there are)  -> rank 3
"local rank 3" of the one agent of a log in which ranks 9 and 12 speak, 8 to a node     -> rank 11

"rank 3" of srun's label "3: " where torchrun starts several ranks in a task             -> task 3
"task 3 local rank 1" where task 3's agent, or those of tasks 2 and 5, tell their ranks' numbers, 4 in each  -> rank 13

A local rank is unique on its node only: where two nodes are in sight, or nothing says which one it is, it stays what it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from forensics.ingest.compiled import pattern_of
from forensics.model.event import Event, EventKind
from forensics.model.knowledge import Facts
from forensics.model.record import replace
from forensics.model.source import Rank, RankActivity

#: launchers whose jobs have one node unless they are told otherwise
_ONE_BY_DEFAULT = pattern_of(r"\b(?:torchrun|torch\.distributed\.(?:run|launch))\b")
_SEVERAL = pattern_of(
    r"--n(?:um[-_]?)?nodes|--nnodes|--num_machines|--rdzv|--node_rank|--machine_rank|\bsrun\b|--hostfile"
)

#: who speaks under srun's label of a task
_UNDER = pattern_of(r"rank (\d{1,6})$")
_MOST_TASKS = 4096


def join_local(
    events: Sequence[Event], activity: Sequence[RankActivity], facts: Facts
) -> tuple[list[Event], tuple[RankActivity, ...]]:
    """Events and activity with global ranks in the place of the local ones that are known to be the same."""
    events = [_under_label(event) for event in events]
    ranks = [r for r in (*(e.rank for e in events), *(a.rank for a in activity)) if r is not None]
    nodes = _tasks_are_nodes(events, ranks)
    if not nodes and not any(_is_local(rank) for rank in ranks):
        return list(events), tuple(activity)
    known = _told(ranks)
    homes = _of_tasks(ranks)
    several = len({rank.axis("task") for rank in ranks if rank.axis("task") is not None}) > 1
    alone = _one_node(ranks, facts)
    bases = {} if alone else _bases(events, activity, facts)

    def joined(rank: Rank | None, source: int) -> Rank | None:
        if rank is not None and nodes and _is_task(rank):
            return Rank(f"task {rank.number}", None, rank.axes, rank.node, rank.pid)
        if rank is not None and (home := _at_home(rank, homes)) is not None:
            return home
        if rank is None or not _is_local(rank) or (several and rank.axis("task") is not None):
            return rank
        local = rank.axis("local")
        home = known.get((rank.node, local)) or known.get((None, local))
        if home is not None:
            return Rank(home.label, home.number, home.axes, rank.node or home.node, rank.pid or home.pid)
        base = 0 if alone else bases.get(source)
        if base is not None and local is not None:
            return Rank(f"rank {base + local}", base + local, rank.axes, rank.node, rank.pid)
        return rank

    def touched(rank: Rank | None) -> bool:
        return rank is not None and (_is_local(rank) or (nodes and _is_task(rank)))

    own = [replace(e, rank=joined(e.rank, e.span.source)) if touched(e.rank) else e for e in events]
    acts = [replace(a, rank=joined(a.rank, a.source)) if touched(a.rank) else a for a in activity]
    return own, tuple(acts)


def _under_label(event: Event) -> Event:
    """A row of an agent's summary under srun's label of the agent's task: that task started the rank."""
    rank, under = event.rank, _UNDER.match(event.stream)
    if event.parser != "torchelastic" or not under or rank is None or rank.number is None or rank.axis("local") is None:
        return event
    axes = tuple(sorted({**dict(rank.axes), "task": int(under[1])}.items()))
    return replace(event, rank=Rank(rank.label, rank.number, axes, rank.node, rank.pid))


def _of_tasks(ranks: Iterable[Rank]) -> dict[int, int]:
    """Task -> the global rank of its local rank 0, as the summaries of torchrun's agents say under srun's labels, and lines that bear a
    rank's number behind its task and its local rank; where two or more of them agree on how many ranks a task has, for every task."""
    bases: dict[int, int] = {}
    for rank in ranks:
        local, task = rank.axis("local"), rank.axis("task")
        if rank.number is not None and local is not None and task is not None:
            bases.setdefault(task, rank.number - local)
    sizes = {base / task for task, base in bases.items() if task}
    if len(bases) < 2 or len(sizes) != 1 or bases.get(0, 0) != 0:
        return bases
    size = sizes.pop()
    return {task: int(task * size) for task in range(_MOST_TASKS)} if size >= 1 and size == int(size) else bases


def _at_home(rank: Rank, homes: dict[int, int]) -> Rank | None:
    """A task's local rank under its global number, where the task's first one is known."""
    task, local = rank.axis("task"), rank.axis("local")
    if not _is_local(rank) or task is None or local is None or task not in homes:
        return None
    number = homes[task] + local
    return Rank(f"rank {number}", number, rank.axes, rank.node, rank.pid)


def _is_task(rank: Rank) -> bool:
    """True for a rank of which only the label of its task is known."""
    return rank.number is not None and rank.axes == (("task", rank.number),)


def _tasks_are_nodes(events: Sequence[Event], ranks: Sequence[Rank]) -> bool:
    """True where a task is one of torchrun's agents that started several ranks: srun's labels then number the agents."""
    tasks = [rank.number for rank in ranks if _is_task(rank)]
    if not tasks or not any(e.parser == "torchelastic" and e.rank is not None and _is_task(e.rank) for e in events):
        return False
    return any((rank.axis("local") or 0) > 0 for rank in ranks)


def _is_local(rank: Rank) -> bool:
    return rank.number is None and rank.axis("local") is not None


def _told(ranks: Iterable[Rank]) -> dict[tuple[str | None, int | None], Rank]:
    """(node, local rank) -> the global rank that a launcher names with it; without a node where all of them agree."""
    found: dict[tuple[str | None, int | None], dict[int, Rank]] = {}
    for rank in ranks:
        local = rank.axis("local")
        if rank.number is not None and local is not None:
            for node in {rank.node, None}:
                found.setdefault((node, local), {}).setdefault(rank.number, rank)
    return {key: next(iter(by.values())) for key, by in found.items() if len(by) == 1}


def _one_node(ranks: Sequence[Rank], facts: Facts) -> bool:
    """True where the job is known to have one node."""
    if len({rank.node for rank in ranks if rank.node}) > 1:
        return False
    nodes = facts.setting("nnodes")
    if nodes is not None and nodes.value is not None:
        return set(str(nodes.value).split(":")) == {"1"}
    locals_ = [local for rank in ranks if (local := rank.axis("local")) is not None]
    stated = facts.setting("world_size")  # what is only reckoned from processes a node says nothing of nodes
    if stated is not None and locals_ and str(max(locals_) + 1) == stated.value:
        return True  # several nodes would share the world's ranks, and none of them would count that far
    command = facts.command or ""
    return _ONE_BY_DEFAULT.search(command) is not None and _SEVERAL.search(command) is None


def _bases(events: Sequence[Event], activity: Sequence[RankActivity], facts: Facts) -> dict[int, int]:
    """Source -> the global rank of its local rank 0: a source with one of torchrun's agents in it holds the ranks of one node, and
    an agent numbers its ranks in a row (torch.distributed.run, contiguous assignment)."""
    agents: dict[int, set[str]] = {}
    for event in events:
        if event.parser == "torchelastic" or (event.kind is EventKind.LIFECYCLE and event.message.startswith("Setting OMP_NUM_THREADS")):
            agents.setdefault(event.span.source, set()).add(event.stream)
    own: dict[int, list[Rank]] = {}
    for place, rank in [(e.span.source, e.rank) for e in events] + [(a.source, a.rank) for a in activity]:
        if rank is not None and place in agents and len(agents[place]) == 1 and "" not in agents[place]:
            own.setdefault(place, []).append(rank)
    found: dict[int, int] = {}
    each = facts.setting("nproc_per_node")
    size = int(each.value) if each is not None and each.value and each.value.isascii() and each.value.isdigit() else 0
    for place, ranks in own.items():
        numbers = {rank.number for rank in ranks if rank.number is not None}
        locals_ = {local for rank in ranks if _is_local(rank) and (local := rank.axis("local")) is not None}
        if not numbers or not locals_ or len({rank.node for rank in ranks if rank.node}) > 1:
            continue
        if min(numbers) == 0 or max(numbers) <= max(locals_):
            found[place] = 0
        elif size and len({number // size for number in numbers}) == 1:
            found[place] = min(numbers) // size * size
    return found
