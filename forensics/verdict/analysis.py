"""What one run of the job came to, and which of several runs is the verdict. In: analyses in order; out: one of them. Sample:

    choose([run 1 crashed (out of memory), run 2 crashed (out of memory again)], None, …) -> run 1: run 2 repeats it
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from forensics.model.record import draft, field
from forensics.model.source import Evidence, Rank
from forensics.model.verdict import Category, Finding, OtherIncident, Status, Verdict
from forensics.verdict.category import Judgement
from forensics.verdict.hang import Hang
from forensics.verdict.incidents import Run
from forensics.verdict.outcome import aftermath
from forensics.verdict.quotes import Quotes
from forensics.verdict.roles import Cast


@draft
class Analysis:
    """What one run came to. failed: False for a run that is healthy; owner: whose the primary failure was; rank: who is blamed;
    alike: the tasks that failed in the same way, by srun's word alone; named: others tell that the rank fell silent or did not come;
    alone: no other rank has lines in the log; doubt: what is said of a run in which no failure was seen and a line that may be one."""

    run: Run
    cast: Cast
    failed: bool
    status: Status
    judgement: Judgement
    hang: Hang | None = None
    owner: Rank | None = None
    rank: Rank | None = None
    same: tuple[Rank, ...] = ()
    alike: tuple[Rank, ...] = ()
    named: bool = False
    alone: bool = False
    exits: tuple[int, ...] = ()
    findings: Sequence[Finding] = ()
    handled: tuple[OtherIncident, ...] = ()
    healthy_why: str = "No failure stands in the log."
    healthy_evidence: tuple[Evidence, ...] = ()
    doubt: Verdict | None = None
    nobody: Cast = field(default_factory=lambda: Cast([], None))


def choose(analyses: Sequence[Analysis], incident: int | None, differ: Callable[[Analysis, Analysis], bool]) -> Analysis:
    """The run that is the verdict: the last that failed, or the first of those right before it that it repeats or follows from; of
    those that did not fail the last in doubt. differ: says of two runs, the earlier first, that they are of different jobs."""
    if incident is not None and 1 <= incident <= len(analyses):
        return analyses[incident - 1]
    failed = [a for a in analyses if a.failed]
    if not failed:
        return next((a for a in reversed(analyses) if a.doubt is not None), analyses[-1])
    first = last = failed[-1]
    for earlier in reversed(failed[:-1]):  # as far back as nothing else went wrong in between
        if differ(earlier, first) or not _repeats(first, earlier):
            break
        first = earlier
    if first.status is Status.DEGRADED:  # it came back, and the job ended of it
        first.status = last.status
    return first


def came_back(chosen: Analysis, analyses: Sequence[Analysis], quotes: Quotes) -> bool:
    """True where the job was started again after the run that is the verdict, and went well from then on."""
    if not chosen.failed or chosen.status not in (Status.CRASHED, Status.HUNG, Status.KILLED):
        return False
    later = analyses[[one is chosen for one in analyses].index(True) + 1 :]
    if not later or any(one.failed for one in later):
        return False
    return any(aftermath(quotes, begin).went_on for begin in later[-1].run.begins)


def _repeats(last: Analysis, earlier: Analysis) -> bool:
    one, other = last.cast.primary, earlier.cast.primary
    if one is None or other is None:
        return False
    if one.fingerprint == other.fingerprint:
        return True
    follows = last.judgement.category in (Category.NCCL, Category.CONFIG_ERROR) and "in use" in " ".join(
        one.first.texts
    )
    return follows or (
        last.judgement.category is earlier.judgement.category is not Category.UNKNOWN
        and one.first.root_type == other.first.root_type
        and _alike(last, earlier)
    )


def _alike(last: Analysis, earlier: Analysis) -> bool:
    """True where two failures of one type are the same by more than that: by the signature that names both, or by their place."""
    one, other = (analysis.judgement.finding for analysis in (last, earlier))
    if one is not None or other is not None:
        return one is not None and other is not None and one.id == other.id
    frames = [a.cast.primary.first.frames[-1:] for a in (last, earlier) if a.cast.primary is not None]
    return [(f.file, f.function) for f in frames[0]] == [(f.file, f.function) for f in frames[1]]
