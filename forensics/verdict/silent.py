"""A job that stands still and says nothing of it, or no more than that it waits. In: the analysis of a log's last run, in which nothing
failed; out: another one, or None. Samples:

    Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, Running: 2 reqs …     (for half a minute, to
    the log's end)                                                  -> hung: requests run, and no token comes
    (EngineCore_DP0 pid=88) INFO … No available shared memory broadcast block found in 60 seconds.      (below work, to the log's end)
                                                                    -> hung: the workers do not answer
    … No available shared memory broadcast block found in 60 seconds.       (below the engine's start, for ten minutes, and nothing else)
                                                                    -> hung, as a guess: the workers do not answer
    Waiting in store based barrier … (world_size=4, worker_count=2, …)      (time and again, to the log's end)
                                                                    -> hung: it waits for processes that do not come
    Process 4711: trainer · Thread 4711 (idle): "MainThread" · backward (torch/autograd/__init__.py:266)        (nothing works below it)
                                                                    -> hung, as a guess: nobody takes stacks of a job that moves
    Timeout (0:05:00)! · Thread 0x00007f2e8b7fe740 (most recent call first): …      (nothing works below it)
                                                                    -> hung, as a guess: nobody had stopped the timer

A log that ends so is no proof: the engine may compute one long prompt. So none of it is more than a guess, unless the engine itself says
that it waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from forensics.ingest.compiled import pattern_of
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.model.source import LogLine, Span
from forensics.model.stack import Frame
from forensics.model.verdict import Category, CausalRole, Confidence, Finding, Status, Verdict
from forensics.verdict import explain
from forensics.verdict.analysis import Analysis
from forensics.verdict.category import Judgement
from forensics.verdict.fold import fold
from forensics.verdict.outcome import aftermath, is_end, is_work
from forensics.verdict.progress import said_in
from forensics.verdict.quotes import Quotes
from forensics.verdict.roles import Cast
from forensics.verdict.sighting import Sighting
from forensics.verdict.watchdogs import telling

#: last lines that are looked at
_LAST = 400
#: lines of a start that are asked whether the engine had answered before
_START = 5_000
#: reports of an engine, one each ten seconds, in which nothing came of the requests that it holds
_REPORTS = 4
#: how often an engine says that it waits for its workers, a minute each time: while it holds requests, and right below its work
_WAITS, _WAITS_BELOW_WORK = 3, 2
#: how often, and for how many seconds, it says nothing else while it starts: compiling and loading take minutes, and tell of themselves
_WAITS_IN_START, _LONG = 10, 600.0
#: how often a process says that it waits for others, ten seconds each time or more
_CALLS = 4
#: where a program's own thread begins, among its outermost frames
_PROGRAMS, _OUTER = frozenset(("<module>", "main", "_start", "Py_RunMain", "Py_BytesMain")), 12
#: lists of lines that an engine prints while it starts, and what it does there
_STAGES = (
    ("loading", "was loading its weights"),
    ("compiling", "was compiling its model"),
    ("building", "waited for a kernel that another process builds"),
    ("capturing", "was capturing its graphs"),
    ("profiling", "was laying out its memory"),
)
_ENGINE = pattern_of(r"\b[Ee]ngine (\d{1,4})\b")


def _says(key: str, line: LogLine) -> bool:
    """True for a line that fits one of the rows of that list in progress.toml."""
    return said_in(key).search(line.text[:2_000]) is not None


def standing_still(last: Analysis, intake: Intake, quotes: Quotes) -> Analysis | None:
    """What the last run of a log came to where it did not fail, and does not move either."""
    if last.failed or last.doubt is not None or last.handled or not intake.lines:
        return None
    found = _engine(intake.lines, last.findings) or _alone(intake.lines) or _dumped(last.run.events, last.findings, quotes)
    if found is None:
        return None
    sighting, judgement = found
    group = fold([sighting])[0]
    cast = Cast([group], group)
    cast.roles[id(group)] = CausalRole.INITIATING
    return Analysis(last.run, cast, True, Status.HUNG, judgement, findings=last.findings)


def hung(confidence: Confidence, span: Span, findings: Sequence[Finding], title: str) -> Judgement:
    """A hang, with what a signature says of the lines in which a process waits."""
    said = next((f for f in findings if any(span.overlaps(proof.span) for proof in f.evidence)), None)
    return Judgement(Category.HANG_OR_WATCHDOG, confidence, said, title)


def left_in_start(last: Analysis, lines: Sequence[LogLine], quotes: Quotes) -> Verdict | None:
    """What is said of a serving engine whose log ends, with a whole line, while it starts: nobody knows whether it hangs, was killed or
    goes on; where Python's resource tracker cleans up below, it is gone. None where it had answered or trained before, or the log's copy
    was cut within a line."""
    if last.failed or last.doubt is not None:
        return None
    gone: LogLine | None = None
    end: LogLine | None = None
    for line in reversed(lines[-_LAST:]):
        if not line.text.strip() or _says("leftovers_code", line):
            continue
        if not _says("leftovers", line):
            end = line
            break
        gone = line
    what = next((words for key, words in _STAGES if end is not None and _says(key, end)), "")
    if end is None or not what:
        return None
    for line in reversed(lines[-_START:]):
        if last.run.holds(Span(line.source, line.number, line.number)) and _says("ready", line):
            return None
    proofs = [quotes.of(Span(end.source, end.number, end.number), "the last of it" if gone else "the log's last line")]
    if gone is not None:
        proofs.append(quotes.of(Span(gone.source, gone.number, gone.number), "printed once the others are gone"))
    return explain.left_in_start(what, tuple(proofs), gone=gone is not None)


def _engine(lines: Sequence[LogLine], findings: Sequence[Finding]) -> tuple[Sighting, Judgement] | None:
    """An engine of which nothing was heard until the log's end but that it waits for its workers, or holds requests."""
    reports: Counter[str] = Counter()
    first: LogLine | None = None
    waits: list[LogLine] = []
    worked = others = False
    alone = 0  # waits behind which nothing else stands
    for line in reversed(lines[-_LAST:]):
        if _says("holds", line):
            engine = _ENGINE.search(line.text[:400])
            reports[engine[1] if engine is not None else ""] += 1
            first = line
        elif _says("stalled", line):
            waits.append(line)
            alone += not others
        elif (worked := is_work(line)) or is_end(line):
            break
        elif line.text.strip() and said_in("idle", "checks").search(line.text[:2_000]) is None:
            others = True
    seen = _sighted(waits[-1], ()) if waits else None
    if seen is not None and first is not None and len(waits) >= _WAITS:
        return seen, hung(Confidence.SUPPORTED, seen.span, findings, "The workers did not answer while requests ran")
    if seen is not None and worked and not others and len(waits) >= _WAITS_BELOW_WORK:
        return seen, hung(Confidence.HYPOTHESIS, seen.span, findings, "The workers did not answer any more where the log ends")
    if not worked and first is None and alone >= _WAITS_IN_START and _lasted(waits[alone - 1], waits[0]) >= _LONG:
        seen = _sighted(waits[alone - 1], ())
        return seen, hung(Confidence.HYPOTHESIS, seen.span, findings, "The workers did not answer while the engine started")
    if first is not None and max(reports.values()) >= _REPORTS:
        return _sighted(first, ()), Judgement(Category.HANG_OR_WATCHDOG, Confidence.HYPOTHESIS, title="No token comes while requests run")
    return None


def _lasted(first: LogLine, last: LogLine) -> float:
    """Seconds between two lines; 0 where one of them has no time."""
    return last.time - first.time if first.time is not None and last.time is not None else 0.0


def _alone(lines: Sequence[LogLine]) -> tuple[Sighting, Judgement] | None:
    """A process that begins, and of which nothing but that others are missing was heard until the log's end."""
    waits: list[LogLine] = []
    for line in reversed(lines[-_LAST:]):
        if _says("alone", line):
            waits.append(line)
        elif line.text.strip() and not (waits and line.text[:1].isspace()):
            break
    if len(waits) < _CALLS:
        return None
    title = "It waits for processes or devices that do not come"
    return _sighted(waits[0], ()), Judgement(Category.HANG_OR_WATCHDOG, Confidence.HYPOTHESIS, title=title)


def _dumped(events: Sequence[Event], findings: Sequence[Finding], quotes: Quotes) -> tuple[Sighting, Judgement] | None:
    """The stack that somebody took of a process, or a timer that nobody had stopped, where nobody saw it at work afterwards."""
    timed = [proof.span for f in findings if f.category is Category.HANG_OR_WATCHDOG for proof in f.evidence]
    dumps = [
        (event, frames)
        for event in events
        if event.kind is EventKind.STACK
        and (_taken(event) or any(span.overlaps(event.span) for span in timed))
        and (frames := _frames(event))
    ]
    if not dumps or (later := aftermath(quotes, dumps[-1][0].span)).working or later.ended:
        return None
    event, frames = next((one for one in dumps if any(frame.function in _PROGRAMS for frame in one[1][:_OUTER])), dumps[0])
    line = next(iter(quotes.lines(event.span, 1)), None)
    if line is None:
        return None
    taken = _taken(event)
    title = "Somebody took stacks of a process, and nothing shows that it moved on" if taken else ""
    return _sighted(line, frames, event), hung(Confidence.HYPOTHESIS, event.span, findings, title)


def _frames(event: Event) -> tuple[Frame, ...]:
    """Of a dump the frames that tell where the process stands; a debugger prints each thread as a stack of its own."""
    if event.parser == "debugger":
        return event.stacks[0].frames if event.stacks else ()
    return telling(event)


def _taken(event: Event) -> bool:
    """True for a stack that somebody took of a living process from outside."""
    return event.parser == "debugger" or event.fields.get("tool") in ("py-spy", "pystack")


def _sighted(line: LogLine, frames: tuple[Frame, ...], event: Event | None = None) -> Sighting:
    """A line as the failure that nobody has told."""
    span = event.span if event is not None else Span(line.source, line.number, line.number)
    message = line.text.strip()[:500]
    event = event or Event(EventKind.MESSAGE, span, parser="silent", message=message, rank=line.rank, time=line.time, stream=line.stream)
    return Sighting(
        kind="message",
        type=None,
        message=message,
        root_type=None,
        root_message=message,
        rank=line.rank,
        time=line.time,
        span=span,
        weight=3,
        events=[event],
        frames=frames,
        stream=line.stream,
        spans=[span],
    )
