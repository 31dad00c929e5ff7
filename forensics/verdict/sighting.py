"""One failure as one process showed it, before alike ones are folded. In: an `Event`; out: a `Sighting`. Sample:

Event(PYTHON, rank TP1, chain KeyError -> RuntimeError) -> Sighting(kind="python", type="RuntimeError", root_type="KeyError", …)
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache

from forensics.data import table
from forensics.ingest.compiled import pattern_of
from forensics.ingest.pattern import Pattern
from forensics.model.event import Event, EventKind, ProcessExit
from forensics.model.record import draft, field
from forensics.model.source import Rank, Span
from forensics.model.stack import Frame, RaisedException, StackTrace
from forensics.model.verdict import CausalRole
from forensics.parse.python.messages import named_in
from forensics.verdict.chains import root_of
from forensics.verdict.progress import said_in

#: how much a kind of event says by itself: 3 a failure for certain, 2 an error that a process printed, 1 the word of another,
#: 0 that somebody asked the job to stop
_WEIGHT = {
    EventKind.PYTHON: 3,
    EventKind.NATIVE: 3,
    EventKind.FATAL_SIGNAL: 3,
    EventKind.DEVICE_ASSERT: 3,
    EventKind.DEVICE_ERROR: 3,
    EventKind.COLLECTIVE_TIMEOUT: 3,
    EventKind.HARDWARE: 3,
    EventKind.OOM_KILL: 3,
    EventKind.MESSAGE: 2,
    EventKind.COMMUNICATION: 2,
    EventKind.LAUNCHER: 1,
    EventKind.PROCESS_EXIT: 1,
}

#: "Last error:" of NCCL >= 2.14 inside c10d's message
_LAST_ERROR = Pattern(r"^Last error:[ \t]*\n?((?:.{1,1000}\n?){1,4})", re.MULTILINE)
#: headings that only say that a traceback follows
_GENERIC = pattern_of(r"exception|traceback|^Process [\w:-]{1,80}:$|^\W*$", re.IGNORECASE)
_EXCEPTION = Pattern(r"(?:Error|Exception|Interrupt|Exit|OutOfMemory|OutOfResources|Timeout|Failure)$")
#: argparse's, with its program's name, and click's
_USAGE = pattern_of(
    r"[\w./-]{1,200}\.py: error: (?:argument \S|one of the arguments |the following arguments |unrecognized arguments|ambiguous option)"
    r"|(?:Error: )?(?:No such option: -|No such command '|Missing (?:option|argument) '|Invalid value for '|Got unexpected extra argument)"
)
#: how far apart two tellings of one crash can stand, in lines
_NEAR = 4_000
#: how a line of another writer begins
_FOREIGN = Pattern(
    r"\n(?=\[?[WEIF]\d{3,4} \d\d:|\[rank\d+\]:|##\[|[EWIF] external/|(?:\[[\w.-]{1,40}\] ?)?\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d"
    r"|(?:INFO|WARNING|ERROR|DEBUG)[ :]+\d\d-\d\d |\(\w+ pid=\d+\)|-{18,}\s*$|terminate called |Fatal Python error"
    r"|srun: |slurmstepd: |\*\*\* Aborted at |\[(?:State Transition|FailurePolicy)\])",
    re.MULTILINE,
)
_BUILD = Pattern(
    r"Ninja build failed|ninja: build stopped|Error building extension|returned non-zero exit status|nvcc|Error compiling"
)
#: the compiler's first complaint
_COMPILER = Pattern(r"^.{0,400}?\b(?:fatal )?error(?: [A-Z]?\d+)?: .{1,600}$", re.MULTILINE)

#: the rule of a failure that a user's own signature names: never dealt with, whatever stands around it
TAUGHT = "taught"
#: that of a caught exception which is only shown to those who debug
SHOWN = "shown"

_KIND = {
    EventKind.PYTHON: "python",
    EventKind.NATIVE: "native",
    EventKind.FATAL_SIGNAL: "fatal_signal",
    EventKind.DEVICE_ASSERT: "device_assert",
    EventKind.DEVICE_ERROR: "native",
    EventKind.COLLECTIVE_TIMEOUT: "collective_timeout",
    EventKind.HARDWARE: "hardware",
    EventKind.OOM_KILL: "oom_kill",
    EventKind.STACK: "python",
    EventKind.MESSAGE: "message",
    EventKind.COMMUNICATION: "message",
    EventKind.WARNING: "message",
    EventKind.LAUNCHER: "exit",
    EventKind.PROCESS_EXIT: "exit",
}


@draft
class Sighting:
    """A failure of one process. place: (source, line) of its first line; weight: see above; events: what it was made of."""

    kind: str
    type: str | None
    message: str
    root_type: str | None
    root_message: str
    rank: Rank | None
    time: float | None
    span: Span
    weight: int
    events: list[Event]
    chain: tuple[RaisedException, ...] = ()
    frames: tuple[Frame, ...] = ()
    heading: str = ""
    level: str | None = None
    stream: str = ""
    handled: bool = False
    count: int = 1
    role: CausalRole | None = None
    role_why: str = ""
    rule: str = ""
    #: a consequence only while something else explains it
    conditional: bool = False
    #: never the cause itself: where it comes first, the cause is outside the log
    outside: bool = False
    #: the exception inside a wrapper's text
    inner: tuple[str | None, str] | None = None
    spans: list[Span] = field(default_factory=list)
    #: where it was seen last, where alike ones were folded into the first
    last: Span | None = None

    @property
    def place(self) -> tuple[int, int]:
        """Where it stands in the log."""
        return (self.span.source, self.span.first_line)

    @property
    def torn(self) -> bool:
        """True for a traceback that ends before its exception."""
        return self.kind == "python" and not (self.type or self.message or self.root_type or self.root_message)

    @property
    def typed(self) -> bool:
        """True for an exception that was printed without its traceback."""
        return self.kind == "message" and self.type is not None and _EXCEPTION.search(self.type) is not None

    @property
    def refused(self) -> bool:
        """True for the last words of a program that leaves because of its arguments (argparse, click: exit status 2)."""
        return self.kind == "message" and self.type is None and _USAGE.match(self.message) is not None

    @property
    def texts(self) -> tuple[str, ...]:
        """Everything that was said, root first."""
        said = [self.root_message, *(link.message for link in self.chain), self.message, self.heading]
        return tuple(dict.fromkeys(text for text in said if text))

    @property
    def types(self) -> tuple[str, ...]:
        """Every exception type, root first."""
        said = [self.root_type, *(link.type for link in self.chain), self.type]
        return tuple(dict.fromkeys(name for name in said if name))

    def add(self, other: Sighting) -> None:
        """Takes another sighting of the same failure in."""
        self.events += other.events
        self.spans += other.spans
        self.count = max(self.count, other.count)
        if self.rank is None:
            self.rank = other.rank


def sight(event: Event) -> Sighting | None:
    """A sighting, or None for events that are no failures (lifecycle, stacks, collective states, warnings)."""
    weight = _WEIGHT.get(event.kind)
    if event.kind is EventKind.STACK and event.parser == "python" and event.fields.get("complete") is False:
        weight = 2  # frames of a traceback that the log cuts at both ends
    if event.kind is EventKind.COLLECTIVE_TIMEOUT and event.fields.get("what") == "stalled":
        weight = 2  # Horovod warns, and waits on
    if event.kind is EventKind.WARNING and event.fields.get("what") == "hung_task":
        weight = 2 if event.count > 1 else 1  # what was blocked once may have come back
    if event.kind is EventKind.COMMUNICATION and event.fields.get("what") == "mpi" and event.fields.get("fatal"):
        weight = 3  # MPI's own handler ends the process by it
    if event.kind is EventKind.LIFECYCLE and event.fields.get("phase") == "shutdown_requested" and event.type:
        weight = 0
    if event.kind is EventKind.LAUNCHER and event.parser == "supervisors" and event.fields.get("what") == "restart":
        weight = None  # that something is started again says nothing of how it ended
    if weight is None:
        return None
    seen = Sighting(
        kind=_KIND.get(event.kind, "exit"),
        type=event.type,
        message=own_words(event.message),
        root_type=event.type,
        root_message=own_words(event.message),
        rank=event.rank,
        time=event.time,
        span=_own_span(event),
        weight=weight,
        events=[event],
        level=event.level,
        stream=event.stream,
        count=event.count,
        spans=[_own_span(event)],
        last=event.last,
    )
    if event.chain is not None:
        chain = event.chain
        seen.chain = chain.exceptions
        seen.type, seen.message = chain.last.type, own_words(chain.last.message)
        root = root_of(chain)
        seen.root_type, seen.root_message = root.type, own_words(root.message)
        seen.frames = root.frames or next((link.frames for link in chain.exceptions if link.frames), ())
        seen.heading = chain.heading
        seen.handled = chain.handled
        seen.rank = seen.rank or chain.rank
        seen.time = seen.time if seen.time is not None else chain.time
        if seen.torn and (named := named_in(seen.heading)) is not None:
            seen.type, seen.message = seen.root_type, seen.root_message = named
        elif seen.torn:
            seen.message = seen.root_message = "" if _GENERIC.search(seen.heading) else seen.heading
            seen.weight = 2  # torn before its exception: it says where, whatever else was printed says what
    elif event.stacks:
        seen.frames = _crashing(event.stacks).frames
    if event.kind is EventKind.DEVICE_ASSERT:
        seen.root_type = "device-side assert"
        assertion = event.fields.get("assertion")
        if isinstance(assertion, str) and assertion not in seen.message:
            seen.root_message = seen.message = f"Assertion `{assertion}` failed."
    said = _LAST_ERROR.search(seen.root_message) if event.chain is not None or event.type else None
    if said is not None and said[1].strip():
        # NCCL puts its library's own words last; what stands before them is only the kind of call that failed.
        seen.root_message = said[1].strip()
    elif len(seen.root_message) > 600 or _BUILD.search(seen.root_message[:4_000]):
        built = (
            _COMPILER.search("\n".join([seen.root_message, seen.message])[:200_000])
            if _BUILD.search(seen.message[:4_000] + seen.root_message[:4_000])
            else None
        )
        if built is not None:
            seen.root_message = built[0].strip()
    exit_ = event.fields.get("exit")
    if isinstance(exit_, ProcessExit) and seen.type is None:
        seen.type = seen.root_type = (
            exit_.signal or signal_of(exit_.code) or (f"exit {exit_.code}" if exit_.code is not None else None)
        )
    elif isinstance(exit_, ProcessExit) and signal_of(exit_.code):
        seen.type = seen.root_type = signal_of(exit_.code)
    return seen


@lru_cache(maxsize=1)
def exits() -> dict[int, dict[str, object]]:
    """Exit codes with the signal behind them and what they mean."""
    return {code: row for row in table("verdict/signals")["exit"] for code in row["codes"]}


def signal_of(code: int | None) -> str | None:
    """SIGSEGV for -11 and 139; None for a code that is no signal."""
    row = exits().get(code) if code is not None else None
    return str(row["signal"]) if row is not None and row["signal"] else None


def own_words(message: str) -> str:
    """A message without the lines of other writers, and of the job going on, that ran into it."""
    foreign = _FOREIGN.search(message)
    message = message[: foreign.start()].rstrip() if foreign is not None else message
    if "\n" not in message:
        return message
    lines = message.split("\n")
    work = next((place for place, line in enumerate(lines[1:400], 1) if is_work_text(line)), None)
    return message if work is None else "\n".join(lines[:work]).rstrip()


#: characters of a line in which it says what it is; what stands behind them may be somebody's request
_TOLD_IN = 600


@lru_cache(maxsize=1)
def _work() -> re.Pattern[str]:
    return pattern_of("|".join(table("verdict/progress")["working"]))


def is_work_text(text: str) -> bool:
    """True for a line that shows a job at work."""
    return _works(text[:_TOLD_IN])


@lru_cache(maxsize=4_096)
def _works(text: str) -> bool:
    """What follows a failure is asked for again and again."""
    return _work().search(text) is not None and said_in("idle", "checks").search(text) is None


def _own_span(event: Event) -> Span:
    """The event's lines without those that `own_words` takes away from its end."""
    said = event.chain.last.message if event.chain is not None else event.message
    more = said.count("\n") - own_words(said).count("\n")
    span = event.span
    return Span(span.source, span.first_line, max(span.first_line, span.last_line - more)) if more > 0 else span


def _crashing(stacks: tuple[StackTrace, ...]) -> StackTrace:
    """The crashing thread's stack: the one called current, else the first that has frames."""
    with_frames = [stack for stack in stacks if stack.frames] or list(stacks)
    return next((s for s in with_frames if s.thread and pattern_of("current|crash", re.I).search(s.thread)), with_frames[0])


def same_process(one: Sighting, other: Sighting) -> bool:
    """True where nothing says that two sightings are of different processes."""
    if one.rank is not None and other.rank is not None:
        if (one.rank.number is None) != (other.rank.number is None):
            # "node7:4021" and "rank 3" may be the same process under two names.
            return not (one.rank.pid and other.rank.pid) or one.rank.pid == other.rank.pid
        if one.rank.number is not None and other.rank.number is not None:
            return one.rank.number == other.rank.number and (one.rank.node or other.rank.node) == (
                other.rank.node or one.rank.node
            )
        return one.rank.key == other.rank.key
    if one.stream and other.stream:
        return one.stream == other.stream
    return True


def close(one: Sighting, other: Sighting) -> bool:
    """True where two sightings stand near enough to be two tellings of one crash."""
    return one.span.source == other.span.source and abs(one.span.first_line - other.span.first_line) < _NEAR


class Near:
    """Sightings by their place, for looking around one of them without walking through all."""

    def __init__(self, seen: Iterable[Sighting]) -> None:
        self._seen = sorted(seen, key=lambda s: s.place)
        self._places = [s.place for s in self._seen]

    def around(self, place: tuple[int, int], count: int = 64) -> list[Sighting]:
        """At most `count` sightings on each side of a place, in log order."""
        middle = bisect_right(self._places, place)
        return self._seen[max(0, middle - count) : middle + count]

    def before(self, place: tuple[int, int], count: int = 64) -> list[Sighting]:
        """At most `count` sightings that begin at or above a place, the nearest first."""
        middle = bisect_right(self._places, place)
        return self._seen[max(0, middle - count) : middle][::-1]
