"""Several Slurm jobs that wrote into one file, one after another. In: the analyses of its runs; out: which job each belongs to, and
whether the last one decides. Sample:

    … *** JOB 101 ON n17 CANCELLED AT … DUE TO PREEMPTION *** · SLURM_JOB_ID=102 … Success rate: 18.0%      -> job 102 decides
    … *** JOB 101 ON n17 CANCELLED AT … DUE TO PREEMPTION *** · step 30 … step 69, Training finished        -> job 101 again

A job that was put back into the queue keeps its number, and what it comes to is one story; a job with another number is another story.
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.ingest.pattern import Pattern
from forensics.model.event import Event
from forensics.model.source import Span
from forensics.verdict.analysis import Analysis
from forensics.verdict.outcome import aftermath
from forensics.verdict.quotes import Quotes

#: why Slurm ends a job that may be started again under the same number
_MAY_COME_BACK = frozenset(("job requeue", "node failure", "preemption"))
#: how a job's script prints its own number
_OWN = Pattern(r"\b(?:SLURM_JOB_?ID|SLURM_ARRAY_JOB_ID|[Ss]lurm [Jj]ob(?: ?ID)?)[\"']?[ :=]{1,3}(\d{1,10})\b")
#: lines at a run's beginning in which it is looked for
_HEAD = 400
#: lines of a run that has come further than its opening
_LIVED = 50


class Jobs:
    """Which jobs the runs of a log belong to."""

    def __init__(self, analyses: Sequence[Analysis], quotes: Quotes) -> None:
        self._quotes = quotes
        self._ids: dict[int, set[str]] = {}
        handed: set[str] = set()
        for one in analyses if len(analyses) > 1 else ():
            own, beyond = self._of(one)
            self._ids[id(one)] = own | handed
            handed = beyond

    def differ(self, one: Analysis, later: Analysis) -> bool:
        """True where two runs are of different jobs for certain: by their numbers, else because the first job was ended for good."""
        first, second = self._ids[id(one)], self._ids[id(later)]
        if first and second:
            return not first & second
        return any(_over(event) for event in one.run.events)

    def last_decides(self, analyses: Sequence[Analysis]) -> bool:
        """True where the last run did not fail, came further than its beginning, and is of another job than the last that failed."""
        last = analyses[-1]
        failed = [one for one in analyses if one.failed]
        if last.failed or last.doubt is not None or not failed or not self.differ(failed[-1], last):
            return False
        return any(self._lived(begin) for begin in last.run.begins)

    def _lived(self, begin: Span) -> bool:
        lines = self._quotes.after(begin)
        later = aftermath(self._quotes, begin)
        return later.went_on or later.ended or later.done or sum(bool(line.text.strip()) for line in lines[: 2 * _LIVED]) >= _LIVED

    def _of(self, one: Analysis) -> tuple[set[str], set[str]]:
        """The numbers of a run's jobs, as Slurm's daemons and the job's script print them; and those that are printed behind the end of
        the job, which are the next one's: its script begins a little above what is known to begin a run."""
        own = {number for event in one.run.events if (number := _number(event))}
        beyond: set[str] = set()
        begins = {begin.source: begin.first_line for begin in one.run.begins}
        for source in begins.keys() | {event.span.source for event in one.run.events}:
            begin = begins.get(source, 1)
            ends = [event.span.first_line for event in one.run.events if event.span.source == source and _cancels(event)]
            own |= self._printed(one, Span(source, begin, min([begin + _HEAD, *ends])))
            if ends:
                beyond |= self._printed(one, Span(source, max(ends) + 1, max(ends) + _HEAD))
        return own, beyond

    def _printed(self, one: Analysis, span: Span) -> set[str]:
        lines = (line for line in self._quotes.lines(span) if one.run.holds(Span(line.source, line.number, line.number)))
        return {number for line in lines for number in _OWN.findall(line.text[:400])}


def _number(event: Event) -> str:
    if event.parser != "slurm":
        return ""
    told = event.fields.get("job") or event.fields.get("step")
    return str(told).partition(".")[0].partition("+")[0] if told else ""


def _cancels(event: Event) -> bool:
    """True for Slurm's word that it has ended a whole job."""
    return event.parser == "slurm" and event.fields.get("what") == "cancelled" and str(event.fields.get("unit", "")).upper() == "JOB"


def _over(event: Event) -> bool:
    """True for Slurm's word that it has ended the job, or its time limit did, for good."""
    return _cancels(event) and event.fields.get("reason") not in _MAY_COME_BACK
