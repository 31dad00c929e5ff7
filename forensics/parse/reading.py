"""Find the block, then read the line: what the native parsers share. In: an `Intake`; out: candidate lines, stacks by number,
events. Parsers stand above this file and do not know one another. Sample:

    hits(intake, "NCCL WARN") -> [3, 17]                      (indices into intake.lines)
    numbered_stacks(intake, [4], read, 80) -> {4: [(5, Frame("ucs_handle_error", …)), …]}

Everything is linear in the retained lines and bounded: candidate lines by MAX_HITS, a line by CLIP
characters, a block by its window.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from forensics.ingest.compiled import pattern_of
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.model.record import replace
from forensics.model.source import LogLine, Rank, Span
from forensics.model.stack import Frame, StackTrace
from forensics.parse.cxxnames import demangle

#: candidate lines one call reads at most: half from the beginning of the log, half from its end
MAX_HITS = 8_000
#: characters of a line a pattern may see
CLIP = 6_000
#: characters kept of a message
MESSAGE_CHARS = 8_000
#: line numbers that may be missing between two lines of one block (blank lines, fences, hard wraps)
HOLE = 60


class Lazy:
    """A pattern that is compiled when first used: a log of one dialect must not pay for the others."""

    __slots__ = ("_compiled", "flags", "pattern")

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self.pattern = pattern
        self.flags = flags
        self._compiled: re.Pattern[str] | None = None

    @property
    def compiled(self) -> re.Pattern[str]:
        """The compiled pattern."""
        if self._compiled is None:
            self._compiled = pattern_of(self.pattern, self.flags)
        return self._compiled

    def search(self, text: str) -> re.Match[str] | None:
        """The first place where it matches in the first CLIP characters, or None."""
        return self.compiled.search(text, 0, CLIP)

    def match(self, text: str) -> re.Match[str] | None:
        """The match at the start of the text, or None."""
        return self.compiled.match(text, 0, CLIP)

    def findall(self, text: str) -> list[Any]:
        """All matches in the first CLIP characters."""
        return self.compiled.findall(text, 0, CLIP)


def hits(intake: Intake, *literals: str) -> list[int]:
    """Indices (0-based, ascending) of the retained lines that hold one of the literals; at most MAX_HITS.

    Uses the scan's marks; an intake that was not scanned (made by hand) is searched line by line."""
    found: set[int] = set()
    if intake.scanned:
        for literal in literals:
            found.update(intake.marks.get(literal.encode(), ()))
    else:
        for index, line in enumerate(intake.lines):
            raw = line.raw
            if any(literal in raw for literal in literals):
                found.add(index)
    ordered = sorted(found)
    if len(ordered) > MAX_HITS:
        ordered = ordered[: MAX_HITS // 2] + ordered[-MAX_HITS // 2 :]
    return ordered


def clipped(text: str, literal: str) -> str:
    """The text, or the CLIP characters around the literal where it is longer (progress bars glued to a message)."""
    if len(text) <= CLIP:
        return text
    at = max(0, text.find(literal) - CLIP // 6)
    return text[at : at + CLIP]


def same_writer(start: LogLine, other: LogLine) -> bool:
    """True where nothing says that the two lines come from different processes."""
    return start.stream == other.stream or not start.stream or not other.stream


def of_nobody(line: LogLine) -> LogLine:
    """A line without its writer: what another process wrote into it is not the writer's whom its prefix names."""
    return line._replace(rank=None, stream="")


def following(intake: Intake, index: int, limit: int) -> Iterator[tuple[int, LogLine]]:
    """(index, line) of up to `limit` lines after `index` by the same writer, as far as the retained lines have no hole."""
    lines = intake.lines
    start = previous = lines[index]
    for at in range(index + 1, min(index + 1 + limit, len(lines))):
        line = lines[at]
        if line.source != start.source or line.number - previous.number > HOLE:
            return
        previous = line
        if same_writer(start, line):
            yield at, line


def preceding(intake: Intake, index: int, limit: int) -> Iterator[tuple[int, LogLine]]:
    """(index, line) of up to `limit` lines before `index`, nearest first, by the same writer."""
    lines = intake.lines
    start = previous = lines[index]
    for at in range(index - 1, max(index - 1 - limit, -1), -1):
        line = lines[at]
        if line.source != start.source or previous.number - line.number > HOLE:
            return
        previous = line
        if same_writer(start, line):
            yield at, line


def run_of(
    intake: Intake, index: int, read: Callable[[str], Frame | None], limit: int, patience: int = 0
) -> list[tuple[int, Frame]]:
    """The frames right after `index`, for stacks without numbers: stops after more than `patience` lines that are no frame."""
    frames: list[tuple[int, Frame]] = []
    strange = 0
    for at, line in following(intake, index, limit):
        frame = read(line.text)
        if frame is not None:
            frames.append((at, located(frame, line)))
            strange = 0
        elif line.text.strip():
            strange += 1
            if strange > patience:
                break
    return frames


def numbered_stacks(
    intake: Intake, headers: Sequence[int], read: Callable[[str], tuple[int, Frame] | None], window: int
) -> dict[int, list[tuple[int, Frame]]]:
    """Numbered frames given back to the header (index) they belong to, in the order printed.

    Frames of several processes may be woven: a frame goes to the stack of its writer that waits for exactly this number, the
    one extended last where several do; first numbers (0, 1, 2) open the oldest header still without frames. A stack may skip
    up to three numbers (torn logs). window: lines a header's frames may reach."""
    result: dict[int, list[tuple[int, Frame]]] = {header: [] for header in headers}
    weave = _Weave(intake)
    queue = iter(sorted(result))
    nxt = next(queue, None)
    reach = -1
    at = nxt if nxt is not None else len(intake.lines)
    while at < len(intake.lines):
        if at == nxt:
            weave.waiting.append(at)
            reach = at + window
            nxt = next(queue, None)
        if at > reach:
            if nxt is None:
                break
            at = nxt
            continue
        line = intake.lines[at]
        found = read(line.text)
        if found is not None:
            number, frame = found
            home = weave.home(line, at, number)
            if home is not None:
                result[home].append((at, located(frame, line)))
        at += 1
    return result


class _Weave:
    """Which of the open stacks takes a frame. waiting: headers without frames; open: header -> (number expected, last index)."""

    #: lines of other writers that may stand between two frames of one stack
    REACH = 40
    #: stacks open at once; the oldest are closed
    MOST = 64

    def __init__(self, intake: Intake) -> None:
        self.lines = intake.lines
        self.waiting: list[int] = []
        self.open: dict[int, tuple[int, int]] = {}

    def home(self, line: LogLine, at: int, number: int) -> int | None:
        """The header whose stack this frame extends, or None."""
        for header in [h for h, (_, last) in self.open.items() if at - last > self.REACH]:
            del self.open[header]
        del self.waiting[: -self.MOST]
        choice = self._waits_for(line, number, 0)
        if choice is None and number <= 2:
            choice = next((h for h in self.waiting if self._fits(h, line)), None)
        for slack in (1, 2, 3):
            choice = self._waits_for(line, number, slack) if choice is None else choice
        if choice is not None:
            self.open.pop(choice, None)
            self.open[choice] = (number + 1, at)
            if choice in self.waiting:
                self.waiting.remove(choice)
            while len(self.open) > self.MOST:
                del self.open[next(iter(self.open))]
        return choice

    def _waits_for(self, line: LogLine, number: int, slack: int) -> int | None:
        ready = [h for h, (expected, _) in self.open.items() if expected + slack == number and self._fits(h, line)]
        return ready[-1] if ready else None  # insertion order is the order of the last extension

    def _fits(self, header: int, line: LogLine) -> bool:
        return self.lines[header].source == line.source and same_writer(self.lines[header], line)


def located(frame: Frame, line: LogLine) -> Frame:
    """The frame with its line number in the log, and with the C++ name behind a mangled one as its `code`."""
    code = frame.code
    if code is None and frame.function.startswith(("_Z", "__Z")):
        decoded = demangle(frame.function)
        code = decoded if decoded != frame.function else None
    return Frame(frame.function, frame.file, frame.line, code, frame.module, frame.address, line.number)


def stack_of(
    intake: Intake, frames: Sequence[tuple[int, Frame]], thread: str | None = None, complete: bool = True
) -> tuple[StackTrace, ...]:
    """A native stack from frames as printed (innermost first), turned outermost first; empty without frames."""
    if not frames:
        return ()
    span = span_of(intake.lines[frames[0][0]], intake.lines[frames[-1][0]])
    return (StackTrace(tuple(f for _, f in reversed(frames)), span, thread, "native", complete),)


def span_of(first: LogLine, last: LogLine | None = None) -> Span:
    """The span from one line to another of the same source."""
    return Span(first.source, first.number, max(first.number, (last or first).number))


def make(
    kind: EventKind,
    first: LogLine,
    last: LogLine | None = None,
    *,
    parser: str,
    type: str | None = None,
    message: str = "",
    rank: Rank | None = None,
    stacks: tuple[StackTrace, ...] = (),
    fields: Mapping[str, Any] | None = None,
    level: str | None = None,
    count: int = 1,
) -> Event:
    """An event of those lines; rank, time, level and stream are the first line's where not given."""
    return Event(
        kind,
        span_of(first, last),
        rank or first.rank,
        first.time,
        type,
        message.strip()[:MESSAGE_CHARS],
        stacks,
        None,
        level or first.level,
        count,
        parser,
        first.stream,
        dict(fields or {}),
    )


def fold(events: Iterable[Event], within: int = 400) -> list[Event]:
    """Alike events (kind, type, message, rank, writer, fields) at most `within` lines apart become the first, with their count and
    where the last of them stands."""
    kept: dict[tuple[Any, ...], list[Any]] = {}  # the first, how many, the lines of the last
    done: list[Event] = []
    for item in events:
        key = (
            item.kind,
            item.type,
            item.message,
            item.rank.key if item.rank else None,
            item.stream,
            item.span.source,
            repr(item.fields),
        )
        old = kept.get(key)
        if old is not None and item.span.first_line - old[2].last_line <= within:
            old[1] += item.count
            old[2] = item.span
        else:
            if old is not None:
                done.append(counted(*old))
            kept[key] = [item, item.count, item.span]
    done += [counted(*row) for row in kept.values()]
    return sorted(done, key=lambda e: (e.span.source, e.span.first_line))


def counted(first: Event, count: int, last: Span) -> Event:
    """The event that stands for so many alike ones, the last of them there."""
    return first if last is first.span else replace(first, count=count, last=last)
