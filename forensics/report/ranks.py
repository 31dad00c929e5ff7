"""The ranks: a strip for one glance, lanes over time. In: an incident; out: sections. Sample:

ranks(incident, names).blocks[0] -> Strip((Cell("TP0", "same", "="), Cell("TP1", "initiating", "✗"), …), …)
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.model.source import Rank
from forensics.model.verdict import Failure, Incident, RankRow
from forensics.report.blocks import Cell, Lane, Mark, Section, Strip, Timeline
from forensics.report.naming import ROLES, Names
from forensics.report.text import clock_time, one_line

_MOST_BLAMED = ("initiating", "missing", "same", "unknown", "cascade", "waiting", "silent", "unobserved", "teardown", "ok")


def ranks(incident: Incident, names: Names) -> Section | None:
    """Every rank with its outcome; None for a single process."""
    rows = incident.ranks
    if len(rows) < 2:
        return None
    cells = tuple(_cell(row) for row in rows)
    legend = []
    for role in sorted({cell.role for cell in cells}, key=_blame):
        mark, told = ROLES.get(role, ("~", role))
        who = names.ranks(row.rank for row in rows if row.outcome == role)
        legend.append((mark, told, who))
    return Section("ranks", "Ranks", (Strip(cells, tuple(legend)),))


def _blame(role: str) -> int:
    return _MOST_BLAMED.index(role) if role in _MOST_BLAMED else len(_MOST_BLAMED)


def _cell(row: RankRow) -> Cell:
    return Cell(one_line(row.rank.label, 40), row.outcome, ROLES.get(row.outcome, ("~", ""))[0], row.rank.number)


def timeline(incident: Incident, names: Names) -> Section | None:
    """Ranks as lanes, failures as marks on them, over time; over line numbers where the log has no times."""
    for clock in (_clock(names), "line"):
        lanes = [_lane(row.rank, row, incident.failures, names, clock) for row in incident.ranks]
        if not lanes and incident.failures:
            lanes = [_lane(None, None, incident.failures, names, clock)]
        times = [mark.at for lane in lanes for mark in lane.marks]
        times += [at for lane in lanes for at in (lane.first, lane.last) if at is not None]
        if len(set(times)) > 1:
            start, end = min(times), max(times)
            ticks = tuple((at, clock_time(at, clock)) for at in (start + (end - start) * part / 4 for part in range(5)))
            return Section("timeline", "Timeline", (Timeline(tuple(lanes), start, end, ticks, clock),), detail=True)
    return None


def _clock(names: Names) -> str:
    kind = names.sources[0].clock.kind if names.sources else "wall"
    return "wall" if kind == "none" else kind


def _lane(rank: Rank | None, row: RankRow | None, failures: Sequence[Failure], names: Names, clock: str) -> Lane:
    marks = [mark for failure in failures for mark in _marks(failure, rank, names, clock)]
    seen = row.activity if row else None
    lines = clock == "line"
    return Lane(
        label=one_line(rank.label, 40) if rank else "log",
        role=row.outcome if row else "unknown",
        mark=ROLES.get(row.outcome if row else "unknown", ("~", ""))[0],
        first=None if seen is None else seen.first_line if lines else seen.first_time,
        last=None if seen is None else seen.last_line if lines else seen.last_time,
        marks=tuple(marks),
    )


def _marks(failure: Failure, rank: Rank | None, names: Names, clock: str) -> list[Mark]:
    """When (by the clock "line", where) this rank had the failure: its own events where they are known, else the failure's first one."""
    lines = clock == "line"
    told = one_line(f"{failure.type or failure.kind}: {failure.message}", 160)
    role = failure.role.value
    if role == "initiating" and rank is not None and failure.rank is not None and failure.rank.key != rank.key:
        role = "same"
    placed = [(event.span.first_line if lines else event.time, event) for event in failure.events[:1000]]
    own = [
        Mark(at, role, told, names.place(event.span))
        for at, event in placed
        if at is not None and (rank is None or (event.rank is not None and event.rank.key == rank.key))
    ]
    first = failure.time if not lines else failure.evidence[0].span.first_line if failure.evidence else None
    if own or first is None:
        return own
    whose = (*failure.ranks, *((failure.rank,) if failure.rank else ()))
    if rank is not None and all(one.key != rank.key for one in whose):
        return []
    return [Mark(first, role, told, names.place(failure.evidence[0].span) if failure.evidence else "")]
