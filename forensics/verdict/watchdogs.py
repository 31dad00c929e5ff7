"""Which rank's own watchdog kept quiet. In: a hang's verdict and its cast; out: a sentence more. Sample:

"Watchdog timeout (self.watchdog_timeout=300)" of TP0, TP1 and TP3, while TP2 had been seen at work before
-> "3 of 4 ranks report it; TP2 does not: …"

That names where to look, not whose fault it is: the rank stays unnamed in the verdict.
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.model.record import replace
from forensics.model.source import Rank, RankActivity
from forensics.model.verdict import Verdict
from forensics.verdict.hang import Hang
from forensics.verdict.roles import Cast, is_watchdog


def with_quiet_rank(verdict: Verdict, cast: Cast, hang: Hang | None, activity: Sequence[RankActivity]) -> Verdict:
    """The verdict with the ranks whose watchdog said nothing, where most of the job's said that it ran out."""
    if hang is not None or cast.primary is None or not is_watchdog(cast.primary):
        return verdict
    told = {r.number for g in cast.groups if is_watchdog(g) for r in g.ranks if r.number is not None}
    quiet: dict[int, Rank] = {}
    for one in activity:
        if one.rank.number is not None and one.rank.number not in told:
            quiet.setdefault(one.rank.number, one.rank)
    if not quiet or len(told) < 2 or len(quiet) * 2 > len(told):
        return verdict
    names = ", ".join(quiet[number].label for number in sorted(quiet)[:8])
    does = "does" if len(quiet) == 1 else "do"
    note = (
        f"{len(told)} of {len(told) + len(quiet)} ranks report it; {names} {does} not: look there first, "
        "the others may only have waited."
    )
    return replace(verdict, explanation=f"{verdict.explanation} {note}".strip())
