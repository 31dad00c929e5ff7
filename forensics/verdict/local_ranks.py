"""Local ranks under their global numbers. In: events, activity and facts of a job; out: the same with the ranks joined. Sample:

"local rank 3" of attempt_0/3/error.json + the summary's "rank : 11 (local_rank: 3)"  -> rank 11
"local rank 3" of a job of one node (nnodes=1, or world size 4 and a local rank 3)     -> rank 3

A local rank is unique on its node only: where two nodes are in sight, or nothing says that there is one, it stays what it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from forensics.ingest.compiled import pattern_of
from forensics.model.event import Event
from forensics.model.knowledge import Facts
from forensics.model.record import replace
from forensics.model.source import Rank, RankActivity

#: launchers whose jobs have one node unless they are told otherwise
_ONE_BY_DEFAULT = pattern_of(r"\b(?:torchrun|torch\.distributed\.(?:run|launch))\b")
_SEVERAL = pattern_of(
    r"--n(?:um[-_]?)?nodes|--nnodes|--num_machines|--rdzv|--node_rank|--machine_rank|\bsrun\b|--hostfile"
)


def join_local(
    events: Sequence[Event], activity: Sequence[RankActivity], facts: Facts
) -> tuple[list[Event], tuple[RankActivity, ...]]:
    """Events and activity with global ranks in the place of the local ones that are known to be the same."""
    ranks = [r for r in (*(e.rank for e in events), *(a.rank for a in activity)) if r is not None]
    if not any(_is_local(rank) for rank in ranks):
        return list(events), tuple(activity)
    known = _told(ranks)
    alone = _one_node(ranks, facts)

    def joined(rank: Rank | None) -> Rank | None:
        if rank is None or not _is_local(rank):
            return rank
        local = rank.axis("local")
        home = known.get((rank.node, local)) or known.get((None, local))
        if home is not None:
            return Rank(home.label, home.number, home.axes, rank.node or home.node, rank.pid or home.pid)
        if alone:
            return Rank(f"rank {local}", local, rank.axes, rank.node, rank.pid)
        return rank

    own = [replace(e, rank=joined(e.rank)) if e.rank is not None and _is_local(e.rank) else e for e in events]
    acts = [replace(a, rank=joined(a.rank)) if _is_local(a.rank) else a for a in activity]
    return own, tuple(acts)


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
