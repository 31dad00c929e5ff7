"""Who waited, who was missing, who ran another collective. In: collective events of one run; out: a `Hang`. Sample:

    ranks 0, 2, 3 timed out in ALLREDUCE #6; rank 1 had enqueued 5
    -> Hang(culprit=rank 1, note="rank 1 never entered ALLREDUCE #6: it had enqueued 5 …", collective=CollectiveVerdict(…))

The rank that reports a time-out waited; the one that did not come is to blame. Without evidence nobody is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from forensics.model.event import Collective, Event, EventKind
from forensics.model.record import record
from forensics.model.source import Rank, RankActivity
from forensics.model.verdict import CollectiveVerdict, Confidence, Suspect
from forensics.verdict.recorder import of_dumps
from forensics.verdict.waiting import GroupState, Named, awaited, majority, of_events, rank_of, waits_for_peer


@record
class Hang:
    """culprit: None where nothing names one; confidence: of the culprit; events: the lines and dumps behind it, the culprit's
    first, then a waiting rank's."""

    culprit: Rank | None
    note: str
    confidence: Confidence
    collective: CollectiveVerdict
    events: tuple[Event, ...] = ()


def explain_hang(events: Sequence[Event], activity: Sequence[RankActivity], world_size: int | None) -> Hang | None:
    """The hang of a run, or None where no collective timed out and no report of one stands in the log."""
    groups = of_events(events)
    reports = [
        e
        for e in events
        if e.kind is EventKind.COLLECTIVE_STATE and e.fields.get("what") in ("desync", "mismatch", "monitored_barrier")
    ]
    timeouts = [e for e in events if e.kind is EventKind.COLLECTIVE_TIMEOUT]
    reports += [e for e in timeouts if e.fields.get("what") == "stalled"]
    known = {a.rank.number: a.rank for a in activity if a.rank.number is not None}
    for group in groups:
        for number, state in group.ranks.items():
            known.setdefault(number, state.rank)
    recorded = of_dumps(events, known)
    peers = waits_for_peer(events)
    if not timeouts and not reports and not peers and not any(g.waiting for g in groups) and recorded is None:
        return None
    stuck = [g for g in groups if g.waiting] or groups
    told = _first_stuck(stuck)
    named = _named_by_report(reports, known) or awaited(peers, known)
    if named is None and told is not None:
        named = _absent(told, groups, known) or _different(told, known) or _silent(told, known, world_size) or _apart(told)
    if recorded is not None:
        told = _completed(recorded[0], told)
        if recorded[1] is not None and (recorded[1].culprit is not None or named is None or named.culprit is None):
            named = recorded[1]
    return _told(told, named, timeouts, [*reports, *peers], known)


def _completed(recorded: GroupState, told: GroupState | None) -> GroupState:
    """The recorder's group with the text's time-outs in it."""
    if told is not None and (told.group in (None, recorded.group) or not recorded.ranks):
        for number, state in told.ranks.items():
            own = recorded.ranks.setdefault(number, state)
            own.timed_out = own.timed_out or state.timed_out
            own.events = [*own.events, *(e for e in state.events if e not in own.events)]
        if told.sample is not None:
            recorded.sample = told.sample
    return recorded


def _first_stuck(groups: Sequence[GroupState]) -> GroupState | None:
    """The group whose time-out was told first."""

    def when(group: GroupState) -> tuple[float, int]:
        found = [
            (e.time if e.time is not None else float("inf"), e.span.first_line)
            for s in group.ranks.values()
            if s.timed_out
            for e in s.events
            if e.kind is EventKind.COLLECTIVE_TIMEOUT
        ]
        return min(found, default=(float("inf"), 1 << 60))

    return min(groups, key=when, default=None)


def _named_by_report(reports: Sequence[Event], known: Mapping[int, Rank]) -> Named | None:
    """Reports of torch that name ranks themselves."""
    for event in reports:
        what = event.fields.get("what")
        if what == "desync":
            rows = [r for r in event.fields.get("culprits", ()) if isinstance(r, Mapping)]
            numbers = [n for row in rows for n in row.get("ranks", ()) if isinstance(n, int)]
            if numbers:
                ranks = tuple(rank_of(n, known) for n in dict.fromkeys(numbers))
                return Named(
                    ranks,
                    ranks[0],
                    f"the desync report says: {event.message}",
                    Confidence.ESTABLISHED,
                    _snapshot(event),
                    (event,),
                )
        if what in ("monitored_barrier", "stalled"):
            numbers = [n for n in event.fields.get("missing", ()) if isinstance(n, int)]
            if numbers:
                ranks = tuple(rank_of(n, known) for n in numbers)
                return Named(
                    ranks,
                    ranks[0] if len(ranks) == 1 else None,
                    f"the monitored barrier says: {event.message}"
                    if what == "monitored_barrier"
                    else f"Horovod waited for rank {', '.join(map(str, numbers[:16]))}",
                    Confidence.ESTABLISHED,
                    (),
                    (event,),
                )
    return _mismatch(reports, known)


def _snapshot(event: Event) -> tuple[Mapping[str, Any], ...]:
    rows = []
    for row in event.fields.get("snapshot", ()):
        if isinstance(row, Mapping):
            for number in row.get("ranks", ()):
                rows.append(
                    {
                        "rank": number,
                        "op": row.get("op"),
                        "sequence": row.get("sequence"),
                        "numel_in": None,
                        "numel_out": None,
                    }
                )
    return tuple(rows[:1024])


def _mismatch(reports: Sequence[Event], known: Mapping[int, Rank]) -> Named | None:
    seen: dict[int, tuple[object, ...]] = {}
    numbers: dict[int, object] = {}
    used = []
    for event in reports:
        if event.fields.get("what") != "mismatch":
            continue
        used.append(event)
        for row in event.fields.get("rows", ()):
            if isinstance(row, Mapping) and isinstance(row.get("rank"), int):
                seen[row["rank"]] = (row.get("op"), row.get("shape"), row.get("dtype"))
                numbers[row["rank"]] = row.get("sequence")
    if not seen:
        return None
    _, odd = majority(list(seen.items()))
    desync = tuple(
        {
            "rank": n,
            "op": did[0],
            "sequence": numbers[n],
            "numel_in": None,
            "numel_out": None,
            "shape": did[1],
            "dtype": did[2],
        }
        for n, did in seen.items()
    )
    ranks = tuple(rank_of(n, known) for n in odd)
    why = "the ranks ran different collectives at the same point"
    if len(ranks) == 1:
        why = f"{ranks[0].label} ran another collective than the others"
    return Named(
        ranks,
        ranks[0] if len(ranks) == 1 else None,
        why,
        Confidence.SUPPORTED if ranks else Confidence.UNKNOWN,
        desync,
        tuple(used),
    )


def _absent(group: GroupState, groups: Sequence[GroupState], known: Mapping[int, Rank]) -> Named | None:
    """Ranks whose counters show that they never entered the collective; one that waits in another group passes the blame on."""
    followed: set[int] = set()
    while True:
        stuck = group.stuck
        if stuck is None:
            return None
        behind = {
            n: s for n, s in group.ranks.items() if not s.timed_out and s.enqueued is not None and s.enqueued < stuck
        }
        if not behind:
            return None
        lowest = min(s.enqueued or 0 for s in behind.values())
        late = [n for n, s in behind.items() if s.enqueued == lowest]
        culprit = late[0] if len(late) == 1 else None
        elsewhere = next(
            (
                g
                for g in groups
                if g is not group and culprit is not None and culprit in g.ranks and g.ranks[culprit].timed_out
            ),
            None,
        )
        if elsewhere is not None and culprit is not None and culprit not in followed:
            followed.add(culprit)
            deeper = elsewhere
            if any(
                not s.timed_out and s.enqueued is not None and deeper.stuck is not None and s.enqueued < deeper.stuck
                for s in deeper.ranks.values()
            ):
                group = deeper
                continue
        op = (group.sample.op if group.sample else None) or "the collective"
        label = ", ".join(rank_of(n, known).label for n in late)
        verb = "had" if len(late) == 1 else "had each"
        why = f"{label} never entered {op} #{stuck}, in which the others waited: it {verb} enqueued {lowest}"
        ranks = tuple(rank_of(n, known) for n in behind)
        events = tuple(e for n in late for e in group.ranks[n].events[:2])
        return Named(
            ranks, rank_of(culprit, known) if culprit is not None else None, why, Confidence.ESTABLISHED, (), events
        )


def _table(waited: Sequence[tuple[int, Collective]]) -> list[dict[str, Any]]:
    return [{"rank": n, "op": at.op, "sequence": at.sequence, "numel_in": at.numel_in, "numel_out": at.numel_out} for n, at in waited]


def _apart(group: GroupState) -> Named | None:
    """Nobody to blame, but the ranks timed out at different sequence numbers: what each was in."""
    waited = [(n, s.at) for n, s in sorted(group.ranks.items()) if s.at is not None and s.at.sequence is not None and s.timed_out]
    if len({at.sequence for _, at in waited}) < 2:
        return None
    return Named((), None, "the ranks waited in collectives of different numbers", Confidence.UNKNOWN, tuple(_table(waited)))


def _different(group: GroupState, known: Mapping[int, Rank]) -> Named | None:
    """Ranks that timed out in another operation or size at the same sequence number."""
    waited = [(n, s.at) for n, s in sorted(group.ranks.items()) if s.at is not None and s.timed_out]
    rows = [(n, (at.op, at.numel_in, at.numel_out, at.dtype)) for n, at in waited]
    table = _table(waited)
    sequences = {row["sequence"] for row in table}
    if len(sequences) > 1:
        # Counters apart: the rank that is behind holds the others up, whatever it waits in itself.
        _, odd = majority([(r["rank"], (r["sequence"],)) for r in table])
        if len(odd) == 1:
            rank = rank_of(odd[0], known)
            return Named(
                (rank,),
                rank,
                f"{rank.label} waited at another sequence number than the others",
                Confidence.SUPPORTED,
                tuple(table),
            )
        return None
    did, odd = majority(rows)
    if len({d for _, d in rows}) < 2:
        return None
    ranks = tuple(rank_of(n, known) for n in odd)
    if len(ranks) == 1 and did is not None:
        own = dict(rows)[odd[0]]
        why = f"{ranks[0].label} ran {own[0]} of {own[1]} elements where the others ran {did[0]} of {did[1]}"
        return Named(ranks, ranks[0], why, Confidence.SUPPORTED, tuple(table), tuple(group.ranks[odd[0]].events[:2]))
    return Named(
        (),
        None,
        "the ranks waited in different collectives, and neither side is larger",
        Confidence.UNKNOWN,
        tuple(table),
    )


def _silent(group: GroupState, known: Mapping[int, Rank], world_size: int | None) -> Named | None:
    """Ranks of the job that never said a word about the time-out."""
    spoke = {n for n, s in group.ranks.items() if s.timed_out}
    if not spoke:
        return None
    world = (
        set(group.members) or (set(range(world_size)) if world_size and world_size <= 65_536 else set()) or set(known)
    )
    if max(spoke) >= len(world) and not world >= spoke:
        return None
    silent = sorted(n for n in world - spoke if n not in group.ranks or not group.ranks[n].observed)
    if not silent or len(silent) > max(1, len(spoke)):
        return None
    ranks = tuple(rank_of(n, known) for n in silent)
    if len(silent) == 1 and (len(spoke) >= 2 or world_size is not None):
        why = f"{ranks[0].label} is the only rank that reported no time-out: it did not wait in this collective, or it was dead"
        return Named(ranks, ranks[0], why, Confidence.SUPPORTED if len(spoke) >= 2 else Confidence.HYPOTHESIS)
    return Named(ranks, None, "several ranks reported no time-out", Confidence.HYPOTHESIS)


def _told(
    group: GroupState | None,
    named: Named | None,
    timeouts: Sequence[Event],
    reports: Sequence[Event],
    known: Mapping[int, Rank],
) -> Hang:
    sample = group.sample if group else None
    if sample is None:
        found = next(
            (
                e.fields.get("collective")
                for e in (*timeouts, *reports)
                if isinstance(e.fields.get("collective"), Collective)
            ),
            None,
        )
        printed = next((e.fields["operation"] for e in reports if "awaited" in e.fields and e.fields.get("operation")), None)
        sample = found if isinstance(found, Collective) else Collective(op=f"DeepEP {printed}" if printed else None)
    waiting = {s.rank.key: s.rank for s in (group.waiting if group else ())}
    for event in timeouts:
        if event.rank is not None and (group is None or not waiting):
            waiting.setdefault(event.rank.key, event.rank)
    for event in reports:
        if isinstance(event.fields.get("waits"), int):
            own = rank_of(event.fields["waits"], known)
            waiting.setdefault(own.key, own)
        for row in event.fields.get("timeouts", ()):
            if isinstance(row, Mapping) and isinstance(row.get("rank"), int):
                rank = rank_of(row["rank"], known)
                waiting.setdefault(rank.key, rank)
    culprits = named.ranks if named else ()
    blamed = {r.key for r in culprits}
    suspects = [Suspect(r, named.why, named.confidence) for r in culprits] if named else []
    started = _started(timeouts, sample)
    verdict = CollectiveVerdict(
        process_group=group.group if group else sample.process_group,
        op=sample.op,
        sequence=sample.sequence,
        numel_in=sample.numel_in,
        numel_out=sample.numel_out,
        dtype=sample.dtype,
        timeout_ms=sample.timeout_ms,
        started_time=started,
        waiting=tuple(r for r in waiting.values() if r.key not in blamed),
        missing=tuple(culprits) if named and not named.desync else (),
        desync=named.desync if named else (),
        suspects=tuple(suspects),
        known_from=_known_from(
            (*timeouts, *reports, *(e for s in (group.ranks.values() if group else ()) for e in s.events))
        ),
    )
    note = (
        named.why
        if named
        else "no line names a rank that was missing or late; the ranks that reported the time-out are its victims"
    )
    confidence = named.confidence if named else Confidence.UNKNOWN
    waited = tuple(e for s in (group.waiting if group else ()) for e in s.events[:1])[:1]
    behind = (*(named.events if named else ()), *waited) or tuple(reports[:1])
    return Hang(named.culprit if named else None, note, confidence, verdict, behind)


def _started(timeouts: Sequence[Event], sample: Collective) -> float | None:
    """When the waiting began: the first time-out minus what had gone by."""
    times = []
    for event in timeouts:
        collective = event.fields.get("collective")
        if event.time is not None and isinstance(collective, Collective):
            waited = collective.elapsed_ms or collective.timeout_ms or sample.timeout_ms
            if waited is not None:
                times.append(event.time - waited / 1000)
    return min(times, default=None)


def _known_from(events: Sequence[Event]) -> tuple[str, ...]:
    found = {
        "flight_recorder"
        if e.fields.get("source") == "flight_recorder" or e.fields.get("what") == "flight_recorder"
        else "text"
        for e in events
    }
    return tuple(sorted(found, reverse=True))
