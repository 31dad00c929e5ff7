"""The ranks: a strip for one glance, lanes over time. In: an incident; out: sections. Sample:

ranks(incident, names).blocks[0] -> Strip((Cell("TP0", "same", "="), Cell("TP1", "initiating", "✗"), …), …)
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.model.source import Rank
from forensics.model.verdict import Failure, Incident, RankRow
from forensics.report.blocks import Cell, Lane, Mark, Section, Strip, Timeline
from forensics.report.naming import ROLES, Names
from forensics.report.text import one_line

_MOST_BLAMED = ("initiating", "missing", "same", "unknown", "cascade", "waiting", "silent", "teardown", "ok")


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
    """Ranks as lanes, failures as marks on them; None where the log has no times."""
    lanes = [_lane(row.rank, row, incident.failures, names) for row in incident.ranks]
    if not lanes and incident.failures:
        lanes = [_lane(None, None, incident.failures, names)]
    times = [mark.at for lane in lanes for mark in lane.marks]
    times += [at for lane in lanes for at in (lane.first, lane.last) if at is not None]
    if len(set(times)) < 2:
        return None
    start, end = min(times), max(times)
    ticks = tuple((at, names.time(at)) for at in (start + (end - start) * part / 4 for part in range(5)))
    return Section("timeline", "Timeline", (Timeline(tuple(lanes), start, end, ticks),), detail=True)


def _lane(rank: Rank | None, row: RankRow | None, failures: Sequence[Failure], names: Names) -> Lane:
    marks = []
    for failure in failures:
        if failure.time is not None and _is_of(failure, rank):
            told = one_line(f"{failure.type or failure.kind}: {failure.message}", 160)
            place = names.place(failure.evidence[0].span) if failure.evidence else ""
            marks.append(Mark(failure.time, failure.role.value, told, place))
    seen = row.activity if row else None
    return Lane(
        label=one_line(rank.label, 40) if rank else "log",
        role=row.outcome if row else "unknown",
        mark=ROLES.get(row.outcome if row else "unknown", ("~", ""))[0],
        first=seen.first_time if seen else None,
        last=seen.last_time if seen else None,
        marks=tuple(marks),
    )


def _is_of(failure: Failure, rank: Rank | None) -> bool:
    if rank is None:
        return True
    return any(one.key == rank.key for one in (*failure.ranks, *((failure.rank,) if failure.rank else ())))
