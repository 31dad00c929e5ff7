"""A hang read from flight recorder dumps. In: one event a dump; out: the stuck group and who is to blame. Sample:

    dumps of ranks 0, 2, 3 end with all_reduce #6 unfinished; rank 1's ends with #5 completed
    -> (GroupState("0", …), Named(culprit=rank 1, why="rank 1 never entered all_reduce #6 …"))

Groups are compared by their own sequence numbers. Blame moves on where a missing rank itself waits in another group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from forensics.model.event import Collective, Event, EventKind
from forensics.model.record import draft, field
from forensics.model.source import Rank
from forensics.model.verdict import Confidence
from forensics.verdict.waiting import GroupState, Named, RankState, majority, rank_of

#: operations whose sizes may differ from rank to rank
_UNEVEN = ("all_to_all", "alltoall", "gather", "scatter", "broadcast", "coalesced", "allgatherv")


@draft
class _Group:
    name: str
    desc: str = ""
    members: tuple[int, ...] = ()
    #: rank -> sequence -> entry
    entries: dict[int, dict[int, Any]] = field(default_factory=dict)
    events: dict[int, Event] = field(default_factory=dict)
    enqueued: dict[int, int] = field(default_factory=dict)

    def unfinished(self, rank: int) -> int | None:
        """The first sequence number a rank entered and did not leave."""
        return min((n for n, e in self.entries.get(rank, {}).items() if not e.done), default=None)

    @property
    def stuck(self) -> int | None:
        return min((n for n in (self.unfinished(r) for r in self.entries) if n is not None), default=None)

    def behind(self, sequence: int) -> list[int]:
        """Ranks with a dump that never entered a sequence number."""
        return sorted(
            r for r in self.events if (not self.members or r in self.members) and self.enqueued.get(r, 0) < sequence
        )


def of_dumps(events: Sequence[Event], known: Mapping[int, Rank]) -> tuple[GroupState, Named | None] | None:
    """The stuck group of the dumps with its blame, or None where there are no dumps or all of them are finished."""
    dumps = [
        e
        for e in events
        if e.kind is EventKind.COLLECTIVE_STATE
        and e.fields.get("what") == "flight_recorder"
        and e.rank is not None
        and e.rank.number is not None
    ]
    if not dumps:
        return None
    groups = _groups(dumps)
    stuck = [g for g in groups.values() if g.stuck is not None]
    pairs = _unmatched(dumps, known)
    if not stuck:
        return (GroupState(None), pairs) if pairs is not None else None
    group = min(stuck, key=_when)
    named = pairs if pairs is not None and not stuck else _blame(group, groups, known, set())
    if named is None and pairs is not None:
        named = pairs
    return _state(group), named


def _groups(dumps: Sequence[Event]) -> dict[str, _Group]:
    groups: dict[str, _Group] = {}
    members: dict[str, tuple[str, tuple[int, ...]]] = {}
    for dump in dumps:
        for key, row in dump.fields.get("groups", {}).items():
            ranks = tuple(n for n in row.get("ranks", ()) if isinstance(n, int))
            if len(ranks) >= len(members.get(key, ("", ()))[1]):
                members[key] = (row.get("desc", ""), ranks)
    for dump in dumps:
        number = dump.rank.number if dump.rank else None
        if number is None:
            continue
        for entry in dump.fields.get("entries", ()):
            if entry.is_p2p or entry.sequence is None:
                continue
            group = groups.setdefault(entry.group, _Group(entry.group, entry.desc))
            group.entries.setdefault(number, {})[entry.sequence] = entry
            group.enqueued[number] = max(group.enqueued.get(number, 0), entry.sequence)
    for name, group in groups.items():
        # Gloo leaves the default group's name out of its configuration.
        desc, ranks = members.get(name) or (members.get("", ("", ())) if group.desc in ("", "default_pg") else ("", ()))
        group.desc, group.members = group.desc or desc, ranks or tuple(sorted(group.entries))
        for dump in dumps:
            number = dump.rank.number if dump.rank else None
            if number is not None and (number in group.members or number in group.entries):
                group.events[number] = dump
                status = dump.fields.get("status", {}).get(name, {})
                enqueued = status.get("enqueued") if isinstance(status, Mapping) else None
                if isinstance(enqueued, int) and number not in group.entries:
                    group.enqueued[number] = enqueued
    return groups


def _when(group: _Group) -> tuple[float, str]:
    """When the stuck collective was first entered."""
    stuck = group.stuck
    times = [e.created_ns for rows in group.entries.values() for n, e in rows.items() if n == stuck and e.created_ns]
    return (min(times, default=float("inf")), group.name)


def _blame(group: _Group, groups: Mapping[str, _Group], known: Mapping[int, Rank], seen: set[str]) -> Named | None:
    """Who kept a group waiting; a rank that waits elsewhere hands the blame to those it waits for."""
    seen.add(group.name)
    stuck = group.stuck
    if stuck is None:
        return None
    there = {r: rows[stuck] for r, rows in group.entries.items() if stuck in rows}
    sample = next(iter(there.values()), None)
    op = sample.op if sample is not None else "the collective"
    title = f"{op} #{stuck} of group {group.desc or group.name}"
    late = group.behind(stuck)
    gone = [r for r in group.members if r not in group.events]
    for rank in late:
        other = next((g for g in groups.values() if g.name not in seen and g.unfinished(rank) is not None), None)
        if other is not None:
            deeper = _blame(other, groups, known, seen)
            if deeper is not None and deeper.culprit is not None and deeper.culprit.number != rank:
                return deeper
    different = _different(there, group, known, title)
    if late:
        lowest = min(group.enqueued.get(r, 0) for r in late)
        last = [r for r in late if group.enqueued.get(r, 0) == lowest]
        labels = ", ".join(rank_of(r, known).label for r in last)
        why = f"{labels} never entered {title}, in which the others waited; its dump ends at #{lowest}"
        culprit = rank_of(last[0], known) if len(last) == 1 else None
        return Named(
            tuple(rank_of(r, known) for r in late),
            culprit,
            why,
            Confidence.ESTABLISHED,
            (),
            tuple(group.events[r] for r in last),
        )
    if different is not None:
        return different
    if gone and there and len(gone) <= max(1, len(there)):
        labels = ", ".join(rank_of(r, known).label for r in gone)
        why = f"{labels} left no dump, and the others waited for it in {title}"
        ranks = tuple(rank_of(r, known) for r in gone)
        return Named(ranks, ranks[0] if len(ranks) == 1 else None, why, Confidence.SUPPORTED)
    return None


def _different(there: Mapping[int, Any], group: _Group, known: Mapping[int, Rank], title: str) -> Named | None:
    """Ranks that recorded another operation, size or type at the same sequence number."""
    rows = []
    for rank, entry in sorted(there.items()):
        uneven = any(word in entry.op for word in _UNEVEN)
        rows.append(
            (
                rank,
                (
                    entry.op,
                    None if uneven else entry.numel_in,
                    None if uneven else entry.numel_out,
                    entry.dtypes_in[:1],
                ),
            )
        )
    if len({did for _, did in rows}) < 2:
        return None
    table = tuple(
        {
            "rank": r,
            "op": e.op,
            "sequence": e.sequence,
            "numel_in": e.numel_in,
            "numel_out": e.numel_out,
            "dtype": (e.dtypes_in or (None,))[0],
        }
        for r, e in sorted(there.items())
    )
    did, odd = majority(rows)
    if did is None:
        return Named(
            (),
            None,
            f"the ranks recorded different operations at {title}, and neither side is larger",
            Confidence.UNKNOWN,
            table,
        )
    ranks = tuple(rank_of(r, known) for r in odd)
    own = dict(rows)[odd[0]]
    labels = ", ".join(r.label for r in ranks)
    why = f"{labels} recorded {_words(own)} where the others recorded {_words(did)} at #{next(iter(there.values())).sequence}"
    return Named(
        ranks,
        ranks[0] if len(ranks) == 1 else None,
        why,
        Confidence.ESTABLISHED,
        table,
        tuple(group.events[r] for r in odd if r in group.events),
    )


def _words(did: tuple[object, ...]) -> str:
    op, numel, _, dtypes = did
    size = f" of {numel} elements" if numel is not None else ""
    kind = f" in {dtypes[0]}" if isinstance(dtypes, tuple) and dtypes else ""
    return f"{op}{size}{kind}"


def _unmatched(dumps: Sequence[Event], known: Mapping[int, Rank]) -> Named | None:
    """A send or receive that waits for a partner that never came: the partner is missing."""
    waits: list[tuple[int, int, Any]] = []
    posted: set[tuple[int, str, int | None]] = set()
    for dump in dumps:
        number = dump.rank.number if dump.rank else None
        for entry in dump.fields.get("entries", ()):
            if not entry.is_p2p or number is None or not entry.peer:
                continue
            ends = [int(part) for part in entry.peer.replace("<-", "->").split("->") if part.strip().isdigit()]
            if len(ends) != 2:
                continue
            partner = ends[1] if ends[0] == number else ends[0]
            posted.add((number, entry.op, partner))
            if not entry.done:
                waits.append((number, partner, entry))
    for number, partner, entry in waits:
        answer = "recv" if entry.op.startswith("send") else "send"
        if (partner, answer, number) not in posted or not any(w[0] == partner and w[1] == number for w in waits):
            why = f"{rank_of(partner, known).label} never answered the {entry.op} of {rank_of(number, known).label} ({entry.peer})"
            rank = rank_of(partner, known)
            return Named((rank,), rank, why, Confidence.SUPPORTED)
    return None


def _state(group: _Group) -> GroupState:
    """The group as the hang's other half reads it."""
    stuck = group.stuck
    state = GroupState(group.desc or group.name, members=group.members)
    for number, rows in group.entries.items():
        entry = rows.get(stuck) if stuck is not None else None
        event = group.events.get(number)
        rank = event.rank if event is not None and event.rank is not None else Rank(f"rank {number}", number)
        at = _collective(entry, group) if entry is not None else None
        state.ranks[number] = RankState(
            rank,
            group.enqueued.get(number),
            None,
            at,
            entry is not None and not entry.done,
            False,
            [event] if event else [],
        )
        if at is not None and state.sample is None and entry is not None and not entry.done:
            state.sample = at
    return state


def _collective(entry: Any, group: _Group) -> Collective:
    return Collective(
        entry.op,
        entry.sequence,
        group.desc or group.name,
        entry.numel_in,
        entry.numel_out,
        (entry.dtypes_in or (None,))[0],
        entry.timeout_ms,
        None,
        None,
        None,
        None,
        entry.state,
    )
