"""Several runs in one log told apart. In: events and lines of a source in order; out: runs. Sample:

    start, CUDA out of memory, exit · start, serving, asked to stop -> two runs

A new run begins where a writer that had begun before begins again after something had failed, or where the log's first lines
stand again. A line that only looks like a beginning (a parent that prints its settings once more while it ends) begins none.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from forensics.data import table
from forensics.ingest.clock import moment
from forensics.ingest.compiled import pattern_of
from forensics.ingest.needles import needles_of_list
from forensics.ingest.pattern import Pattern
from forensics.model.event import Event, EventKind
from forensics.model.record import draft, field, replace
from forensics.model.source import LogLine, Span
from forensics.verdict.mended import mended
from forensics.verdict.openings import Opening
from forensics.verdict.sighting import is_work_text

_FAILS = frozenset(
    (
        EventKind.PYTHON,
        EventKind.NATIVE,
        EventKind.FATAL_SIGNAL,
        EventKind.PROCESS_EXIT,
        EventKind.LAUNCHER,
        EventKind.OOM_KILL,
        EventKind.COLLECTIVE_TIMEOUT,
    )
)
#: what is told by others than the process that failed
_TOLD = frozenset((EventKind.PROCESS_EXIT, EventKind.LAUNCHER))
#: a process number in a writer's name
_PID = pattern_of(r" ?\bpid=\d+")
#: processes of which an engine has one of each name
_ONE_OF_ITS_NAME = pattern_of(r"(?:^|/)(?:API|Api)Server(?:_\d+)?$|(?:^|/)EngineCore(?:_DP)?(?:_?\d+)?$|\b[TPDE]P\d")
#: seconds from Slurm's word that it ends a job until its last process is gone, at most (KillWait); what clocks differ by
_GONE, _SKEW = 1_800.0, 300.0
#: lines on each side of such a word in which a time is looked for; seconds since 1970 that a time with its year has at least
_ABOVE, _WITH_YEAR = 400, 9e8
#: a shell's prompt before a command that somebody typed
_TYPED = Pattern(r"^\s*(?:\([\w.\-]{1,40}\) )?(?:\[?[\w.\-]{1,40}@[\w.\-]{1,80}[: ][^$#@\n]{0,160})?[$#]")


@draft
class Run:
    """One run of the job. begins: the lines that began it, one in each source, none for the first run; events in log order; until: the
    lines that began the next one; others: sources that only other runs write."""

    begins: tuple[Span, ...] = ()
    events: list[Event] = field(default_factory=list)
    until: tuple[Span, ...] = ()
    others: frozenset[int] = frozenset()

    @property
    def begin(self) -> Span | None:
        """The line that began it in the first source, None for the first run."""
        return self.begins[0] if self.begins else None

    def holds(self, span: Span) -> bool:
        """True for a span between its first line and the next run's; in other sources than those that it begins in, any."""
        if span.source in self.others:
            return False
        after = all(span.source != begin.source or span.first_line >= begin.first_line for begin in self.begins)
        return after and all(span.source != next_.source or span.first_line < next_.first_line for next_ in self.until)


@lru_cache(maxsize=1)
def _begins() -> Pattern[str]:
    rows = table("verdict/progress")["began"]
    pattern = "|".join(f"(?P<b{place}>{row})" for place, row in enumerate(rows))
    return Pattern(pattern, needles=needles_of_list("verdict/progress", "began"))


def begun(line: LogLine) -> bool:
    """True for a line that a process of the job prints when it begins; a command that somebody typed is none."""
    return _begins().search(line.text[:400]) is not None and _TYPED.search(line.text[:400]) is None


def came_up(lines: Sequence[LogLine]) -> Span | None:
    """The first line that a process of the job printed when it began."""
    return next((Span(line.source, line.number, line.number) for line in lines if begun(line)), None)


def split(events: Sequence[Event], lines: Sequence[LogLine]) -> list[Run]:
    """The runs, in the log's order, each with where the next one begins."""
    runs = _split(events, lines)
    for run, next_ in pairwise(runs):
        run.until = next_.begins
    return runs


def _split(events: Sequence[Event], lines: Sequence[LogLine]) -> list[Run]:
    """The runs, in the log's order; one where nothing begins twice. Several files of one job are split where each begins as often
    as the others: processes that write into files of their own, start after start."""
    by_source: dict[int, tuple[list[Event], list[LogLine]]] = {}
    for line in lines:
        by_source.setdefault(line.source, ([], []))[1].append(line)
    if len(by_source) < 2:
        return _split_source(events, lines)
    elsewhere: list[Event] = []
    for event in events:
        (by_source[event.span.source][0] if event.span.source in by_source else elsewhere).append(event)
    runs: list[Run] = []
    for told, own in by_source.values():
        found = _split_source(told, own)
        if len(found) < 2 or (runs and len(found) != len(runs)):
            return [Run((), list(events))]
        runs = runs or [Run() for _ in found]
        for run, part in zip(runs, found, strict=True):
            run.begins += part.begins
            run.events += part.events
    runs[-1].events += elsewhere
    return runs


def _split_source(events: Sequence[Event], lines: Sequence[LogLine]) -> list[Run]:
    """The runs in one source."""
    fails = sorted(e.span.first_line for e in events if e.kind in _FAILS or (e.kind is EventKind.MESSAGE and e.type))
    if not fails or not lines:
        return [Run((), list(events))]
    ends = sorted(e.span.first_line for e in events if e.kind in _TOLD)
    told = {n for e in events if e.kind in _TOLD for n in range(e.span.first_line + 1, min(e.span.last_line, e.span.first_line + 40) + 1)}
    found = _with_next_jobs(_real(_boundaries(lines, fails, ends, told), events, lines), events, lines)
    runs = [Run(), *(Run((span,)) for span in found)]
    numbers = [span.first_line for span in found]
    for event in events:
        place = bisect_right(numbers, event.span.first_line) if event.span.source >= 0 else 0
        nearest = numbers[place] if place < len(numbers) else None
        again = event.last if nearest is not None and event.last is not None and event.last.first_line >= nearest else None
        if again is not None:  # alike ones of several runs were folded into the first: the last of them belongs to its own
            runs[bisect_right(numbers, again.first_line)].events.append(replace(event, span=again, last=None, count=1, time=None))
            event = replace(event, last=None, count=event.count - 1)
        runs[place].events.append(event if nearest is None or event.span.last_line < nearest else _cut(event, nearest))
    for run in runs:
        run.events.sort(key=lambda e: e.span.first_line)
    return runs


def _with_next_jobs(found: list[Span], events: Sequence[Event], lines: Sequence[LogLine]) -> list[Span]:
    """The beginnings, and where another job writes on in the file of one that Slurm had ended: by the clock long after that; and where a
    program comes further that could not be compiled above."""
    numbers = [line.number for line in lines]
    for event in events:
        ended = moment(str(event.fields.get("at", ""))) if event.fields.get("what") == "cancelled" else None
        if ended is None or str(event.fields.get("unit", "")).upper() != "JOB":
            continue
        here = event.span.first_line
        place = bisect_right(numbers, here)
        above = next((line.time for line in reversed(lines[max(0, place - _ABOVE) : place]) if _dated(line)), None)
        if above is None or above > ended[0] + _SKEW:
            continue  # the log's clock is not Slurm's
        below = next((line for line in lines[place : place + _ABOVE] if _dated(line)), None)
        if below is None or below.time is None or below.time < ended[0] + _GONE:
            continue
        if not any(here < span.first_line <= below.number for span in found):
            found.append(Span(below.source, below.number, below.number))
    known = {span.first_line for span in found}
    found += [span for span in mended(events, lines) if span.first_line not in known]
    return sorted(found, key=lambda span: span.first_line)


def _dated(line: LogLine) -> bool:
    """True for a line whose time has a date and a year; Slurm's own lines tell when they were ended."""
    return line.time is not None and line.time > _WITH_YEAR and " CANCELLED AT " not in line.raw


@draft
class _Begin:
    """A line that may begin a run. sure: the run's writers have more such lines, or the log's first lines stand here again."""

    span: Span
    sure: bool


def _boundaries(lines: Sequence[LogLine], fails: Sequence[int], ends: Sequence[int], told: set[int]) -> list[_Begin]:
    """told: the lines of reports of ends, behind their first: no opening."""
    found: list[_Begin] = []
    seen: set[tuple[str | None, str]] = set()
    names: set[tuple[str | None, str]] = set()
    kinds: set[str | None] = set()  # of the beginnings of this run
    before = 0  # how many kinds the run before had
    pattern = _begins()
    opening = Opening(lines, fails[0])
    since = 0
    for place, line in enumerate(lines):
        match = pattern.search(line.text[:400])
        kind: str | None = match.lastgroup if match is not None else None
        again = match is None and line.number > fails[0] and line.number not in told and opening.stands_at(place)
        if match is None and not again:
            continue
        failed = bisect_right(fails, line.number) > bisect_right(fails, since)
        ended = bisect_right(ends, line.number) > bisect_right(ends, since)
        name = _PID.sub("", line.stream)
        writer = (kind, line.stream)
        known = writer in seen or ((kind, name) in names and (ended or _ONE_OF_ITS_NAME.search(name) is not None))
        again = again and failed and (ended or (opening.alone and not _worked(lines, place, fails)))
        if failed and (known or again):
            found.append(_Begin(Span(line.source, line.number, line.number), again))
            before = len(kinds)
            for known_of in (seen, names, kinds):
                known_of.clear()
            since = line.number
        elif match is None:
            continue
        seen.add(writer)
        names.add((kind, name))
        kinds.add(kind)
        if found and (len(kinds) > 1 or before < 2):
            found[-1].sure = True
    return found


def _worked(lines: Sequence[LogLine], place: int, fails: Sequence[int]) -> bool:
    """True where the job was at work between the last failure above a line and the line: then nothing had ended."""
    last = fails[bisect_right(fails, lines[place].number) - 1]
    for line in lines[place - 1 :: -1] if place else ():
        if line.number <= last:
            return False
        if is_work_text(line.text):
            return True
    return False


def _real(begins: Sequence[_Begin], events: Sequence[Event], lines: Sequence[LogLine]) -> list[Span]:
    """The beginnings behind which something happened that only a new run explains: more of its kind, a failure, work."""
    numbers = [begin.span.first_line for begin in begins]
    alive = set()
    unsure = {place for place, begin in enumerate(begins) if not begin.sure}
    if unsure:
        alive = {bisect_right(numbers, e.span.first_line) - 1 for e in events if e.kind in _FAILS - _TOLD}
        for line in reversed(lines):
            place = bisect_right(numbers, line.number) - 1
            if place < 0:
                break
            if place in unsure and place not in alive and is_work_text(line.text):
                alive.add(place)
    return [begin.span for place, begin in enumerate(begins) if begin.sure or place in alive]


def _cut(event: Event, begin: int) -> Event:
    """An event without the lines from `begin` on: what the next run printed is no part of the last one's message."""
    more = event.span.last_line - begin + 1
    span = Span(event.span.source, event.span.first_line, begin - 1)
    chain = event.chain
    if chain is not None:
        last = replace(chain.last, message=_without(chain.last.message, more))
        chain = replace(chain, exceptions=(*chain.exceptions[:-1], last), span=span)
    return replace(event, span=span, message=_without(event.message, more), chain=chain)


def _without(message: str, more: int) -> str:
    """A message without its last lines; its first one stays."""
    parts = message.split("\n")
    return "\n".join(parts[: max(1, len(parts) - more)]).rstrip()
