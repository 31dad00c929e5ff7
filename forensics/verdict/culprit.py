"""What the culprit of a hang said when it died. In: sightings, the hang; changed in place. Sample:

    09:21:03 [rank19]: DistBackendError: NCCL error … remote process exited or there was a network error
    09:30:59 [rank0]: Watchdog caught collective operation timeout …      the others, all but rank 19, nine minutes later
    -> rank 19's exception follows from none of these: it is where things began

An exception about a peer is a consequence while something else explains it. Time-outs of those that waited for its rank do not, if it
came before them; where they ended first, it may be what their end looked like from its side.
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.model.verdict import CausalRole
from forensics.verdict.hang import Hang
from forensics.verdict.order import Order
from forensics.verdict.sighting import Sighting

#: kinds that tell that others waited
_WAITED = frozenset(("collective_timeout",))
#: seconds that a time-out lasts at least
_LONG = 60.0


def free(seen: Sequence[Sighting], hang: Hang | None, order: Order) -> None:
    """Takes the role of a consequence from the own exception of the culprit, or of the only suspect that has one, where all that failed
    besides are time-outs, later ones."""
    if hang is None:
        return
    blamed = {hang.culprit.key} if hang.culprit is not None else {suspect.rank.key for suspect in hang.collective.suspects}
    told = {s.rank.key for s in seen if s.rank is not None and s.rank.key in blamed and s.kind == "python" and not s.handled}
    if len(told) != 1:
        return
    own = [s for s in seen if s.rank is not None and s.rank.key in told and s.kind == "python" and s.conditional and not s.handled]
    others = [s for s in seen if s not in own and s.weight >= 3 and s.role is None]
    if own and others and all(s.kind in _WAITED for s in others) and _before(own[0], others, order):
        own[0].role, own[0].conditional, own[0].rule, own[0].role_why = None, False, "", ""


def lost(seen: Sequence[Sighting], order: Order) -> None:
    """Time-outs behind the scheduler's word that a node failed are of those that waited for it."""
    gone = [s for s in seen if s.kind == "exit" and str(s.events[0].fields.get("reason", "")).startswith("node failure")]
    others = [s for s in seen if s.weight >= 3 and s.role is None]
    if not gone or not others or not all(s.kind in _WAITED for s in others):
        return
    first = min(gone, key=lambda s: order.key(s.span, s.time))
    if all(order.key(first.span, first.time) < order.key(s.span, s.time) for s in others):
        first.weight = max(first.weight, 3)
        for sighting in others:
            sighting.role, sighting.conditional, sighting.role_why = CausalRole.CASCADE, True, "it waited for the node that had failed"


def _before(first: Sighting, others: Sequence[Sighting], order: Order) -> bool:
    """By the clock; where it has no time of its own, by its place above a time-out in the same source, and by the clock above it."""
    times = [s.time if s.time is not None else order.time_at(s.span.source, s.span.first_line) for s in others]
    known = [time for time in times if time is not None]
    if len(known) < len(times) or not order.one_clock:
        return False
    if first.time is not None:
        return first.time + _LONG < min(known)
    here = [s for s in others if s.span.source == first.span.source]
    above = order.time_at(first.span.source, first.span.first_line)
    below = bool(here) and all(s.place > first.place for s in here) and not order.backwards(first.span.source)
    return below and above is not None and above + _LONG < min(known)
