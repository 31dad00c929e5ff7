"""What each rank had enqueued and completed, group by group. In: collective events; out: `GroupState`s. Sample:

rank 2: time-out at ALLREDUCE #6, enqueued 6, completed 5 · rank 1: dump signal seen, enqueued 5, completed 5
-> GroupState(group="default_pg", stuck=6, ranks={1: RankState(enqueued=5), 2: RankState(enqueued=6, timed_out=True)})
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from forensics.model.event import Collective, Event, EventKind
from forensics.model.record import draft, field, record
from forensics.model.source import Rank
from forensics.model.verdict import Confidence


@record
class Named:
    """Who is to blame for a hang. ranks: all that are suspected; culprit: the one, where it is one; desync: what each ran."""

    ranks: tuple[Rank, ...]
    culprit: Rank | None
    why: str
    confidence: Confidence
    desync: tuple[Mapping[str, Any], ...] = ()
    events: tuple[Event, ...] = ()


def rank_of(number: int, known: Mapping[int, Rank]) -> Rank:
    """The rank of that number as the log calls it."""
    return known.get(number) or Rank(f"rank {number}", number)


@draft
class RankState:
    """One rank in one process group. at: the collective it waited in; known_from: where it was read."""

    rank: Rank
    enqueued: int | None = None
    completed: int | None = None
    at: Collective | None = None
    timed_out: bool = False
    observed: bool = False
    events: list[Event] = field(default_factory=list)

    def learn(self, collective: Collective) -> None:
        """Takes in what one line says; the latest counters win."""
        if collective.last_enqueued is not None:
            self.enqueued = max(self.enqueued or 0, collective.last_enqueued)
        if collective.last_completed is not None:
            self.completed = max(self.completed or 0, collective.last_completed)
        if collective.sequence is not None and (self.at is None or self.at.op is None):
            self.at = collective


@draft
class GroupState:
    """One process group. stuck: the sequence number that was waited in; sample: a collective with its fields."""

    group: str | None
    ranks: dict[int, RankState] = field(default_factory=dict)
    members: tuple[int, ...] = ()
    sample: Collective | None = None

    @property
    def stuck(self) -> int | None:
        """The lowest sequence number at which a rank timed out."""
        numbers = [s.at.sequence for s in self.ranks.values() if s.timed_out and s.at and s.at.sequence is not None]
        return min(numbers) if numbers else None

    @property
    def waiting(self) -> list[RankState]:
        """The ranks that timed out or had entered the stuck collective without finishing it."""
        stuck = self.stuck
        return [
            s
            for s in self.ranks.values()
            if s.timed_out
            or (
                stuck is not None
                and s.enqueued is not None
                and s.enqueued >= stuck
                and (s.completed is None or s.completed < stuck)
            )
        ]


def of_events(events: Iterable[Event]) -> list[GroupState]:
    """The groups in the order in which they were first named; lines that name none belong to the only one, else to "None"."""
    groups: dict[str | None, GroupState] = {}
    for event in events:
        if event.fields.get("operation") in ("recv", "send") and event.fields.get("what") == "gloo":
            _wait_of_gloo(event, groups)
        if event.kind not in (EventKind.COLLECTIVE_TIMEOUT, EventKind.COLLECTIVE_STATE):
            continue
        collective = event.fields.get("collective")
        if event.rank is None or event.rank.number is None or not isinstance(collective, Collective):
            continue
        if event.fields.get("what") in ("desync", "mismatch", "monitored_barrier", "flight_recorder"):
            continue
        group = groups.setdefault(collective.process_group, GroupState(collective.process_group))
        state = group.ranks.setdefault(event.rank.number, RankState(event.rank))
        state.learn(collective)
        state.events.append(event)
        if event.kind is EventKind.COLLECTIVE_TIMEOUT:
            state.timed_out = True
            if group.sample is None or (group.sample.sequence or 0) > (collective.sequence or 0):
                group.sample = collective
        elif event.fields.get("what") == "observed_dump":
            state.observed = True
    return _merged(groups)


def _wait_of_gloo(event: Event, groups: dict[str | None, GroupState]) -> None:
    """A rank whose part of a collective did not come: Gloo names neither the collective nor its group."""
    if event.rank is None or event.rank.number is None:
        return
    group = groups.setdefault(None, GroupState(None))
    state = group.ranks.setdefault(event.rank.number, RankState(event.rank))
    state.timed_out = True
    state.events.append(event)
    limit = str(event.fields.get("timeout", ""))
    if group.sample is None and limit.isdigit():
        group.sample = Collective(timeout_ms=int(limit))


def _merged(groups: dict[str | None, GroupState]) -> list[GroupState]:
    """Time-out lines of older torch name no group: they are the named group's where their ranks' counters say so."""
    nameless = groups.get(None)
    named = [group for name, group in groups.items() if name is not None]
    if nameless is None or not named:
        return list(groups.values())
    for number, state in nameless.ranks.items():
        stuck = state.at.sequence if state.at else None
        homes = [g for g in named if number in g.ranks]
        fitting = [
            g
            for g in homes
            if stuck is None
            or g.ranks[number].enqueued is None
            or (g.ranks[number].enqueued or 0) >= stuck > (g.ranks[number].completed or 0)
        ]
        home = (fitting or homes or named)[0]
        if home.sample is None or (state.timed_out and (home.sample.sequence or 0) > (stuck or 0)):
            home.sample = nameless.sample if state.at is None else state.at
        own = home.ranks.setdefault(number, RankState(state.rank))
        own.timed_out = own.timed_out or state.timed_out
        own.observed = own.observed or state.observed
        if state.at is not None and state.at.op is not None:
            own.at = state.at
        own.enqueued = own.enqueued if own.enqueued is not None else state.enqueued
        own.completed = own.completed if own.completed is not None else state.completed
        own.events += state.events
    return named


def majority(rows: Sequence[tuple[int, tuple[object, ...]]]) -> tuple[tuple[object, ...] | None, list[int]]:
    """What most ranks did, and the ranks that did something else; (None, []) where no side is larger."""
    votes: dict[tuple[object, ...], list[int]] = {}
    for number, did in rows:
        votes.setdefault(did, []).append(number)
    if len(votes) < 2:
        return (next(iter(votes), None), [])
    sizes = sorted(votes.items(), key=lambda pair: -len(pair[1]))
    if len(sizes[0][1]) == len(sizes[1][1]):
        return None, []
    return sizes[0][0], sorted(number for did, numbers in sizes[1:] for number in numbers)


def waits_for_peer(events: Iterable[Event]) -> list[Event]:
    """Time-outs of communication kernels that say which rank they waited for."""
    return [e for e in events if e.kind is EventKind.COMMUNICATION and isinstance(e.fields.get("awaited"), int)]


def awaited(waits: Sequence[Event], known: Mapping[int, Rank]) -> Named | None:
    """The rank that all of them waited for and that did not wait itself; several where they differ."""
    if not waits:
        return None
    waited = {e.fields["waits"] for e in waits if isinstance(e.fields.get("waits"), int)}
    numbers = list(dict.fromkeys(e.fields["awaited"] for e in waits))
    late = [n for n in numbers if n not in waited]
    if not late:
        why = "the kernels waited for ranks whose own kernels waited too: no line says who was late"
        return Named((), None, why, Confidence.UNKNOWN, (), tuple(waits[:2]))
    ranks = tuple(rank_of(n, known) for n in late)
    label = ", ".join(r.label for r in ranks[:8])
    count = len(waited) or len(waits)
    why = f"the kernels of {count} {'rank' if count == 1 else 'ranks'} waited for {label} until their time limit"
    return Named(ranks, ranks[0] if len(ranks) == 1 else None, why, Confidence.SUPPORTED, (), tuple(waits[:2]))
