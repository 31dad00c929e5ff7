"""The rank that the others waited for had failed by itself. In: the groups of a run; out: its failure, or None. Sample:

rank 2, 3 "Watchdog caught collective operation timeout: … BARRIER" · rank 0 "No space left on device" in save()
-> rank 0's failure: it never came to the barrier, and nothing else says why

A watchdog reports minutes after its peer had gone, and the peer's words may stand in another file, or below it in a buffered one. So
their order says little; what counts is that the rank itself reports no time-out, and that its failure is none that a broken
connection or the end of the job explains. A kill that only its starter tells must have come before, for starters kill, too. An
exception that names no rank and no time is the missing one's: who waits raises none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from forensics.model.source import Rank
from forensics.parse.signals import FAULTS
from forensics.verdict.fold import Group
from forensics.verdict.order import Order
from forensics.verdict.sighting import Sighting

_MOST = 512


def of_the_missing(free: Sequence[Group], culprit: Rank | None, order: Order, communicates: Sequence[Group]) -> Group | None:
    """The failure of a rank that timed out in no collective while others did. free: groups that nothing explains, in order; culprit:
    whom the collectives' own reports name, if any; communicates: the groups that speak of connections."""
    waited = [m for g in free if g.first.kind == "collective_timeout" for m in g.members]
    numbers = {m.rank.number for m in waited if m.rank is not None and m.rank.number is not None}
    if not numbers:
        return None
    begin = min(order.key(m.span, m.time)[:2] for m in waited)
    told = min((m.time for m in waited if m.time is not None), default=None)
    places: dict[int, int] = {}
    for member in waited:
        places[member.span.source] = min(member.span.first_line, places.get(member.span.source, member.span.first_line))
    for group in free:
        if group.first.kind == "collective_timeout" or group in communicates:
            continue
        for member in group.members[:_MOST]:
            rank = member.rank
            if rank is None and culprit is None and member.span.source in places and _uncaught(member):
                return group
            if rank is None or rank.number is None or rank.number in numbers:
                continue
            if culprit is not None and culprit.number != rank.number:
                continue
            if _before(member, begin, told, places, order):
                return group
    return None


def _uncaught(seen: Sighting) -> bool:
    """True for an exception without a time or a name that ended a program: a rank that waits in a collective raises none by itself."""
    if seen.kind != "python" or seen.weight < 3 or seen.time is not None or seen.stream or not seen.chain:
        return False
    outermost = seen.chain[-1].frames[:1]
    return bool(outermost) and outermost[0].function in ("<module>", "_run_module_as_main")


def _before(seen: Sighting, begin: tuple[int, float], told: float | None, places: Mapping[int, int], order: Order) -> bool:
    """True where a failure may have come before the time-outs. begin: when they came, in the input's order; told: on their clock;
    places: source -> the first of their lines."""
    line = places.get(seen.span.source)
    key = order.key(seen.span, seen.time)[:2]
    earlier = key < begin or (seen.time is None and line is not None and seen.span.first_line < line)
    if seen.kind == "exit":
        if seen.type in FAULTS and seen.time is None:
            return True  # a starter kills what is left over, but it does not make it fault
        return seen.type in (*FAULTS, "SIGKILL") and earlier
    if seen.weight < 3 and not seen.typed:
        return False
    if seen.time is not None and told is not None:
        return seen.time <= told
    return earlier or line is not None or key == begin
