"""What signatures are tried on: every event's text, and every retained line. In: an `Intake`, its `Event`s; out: `Subjects`.
Sample:

    Subject(text="torch.AcceleratorError: CUDA error: an illegal memory access was encountered\nSearch for …", kind="python",
            types=("torch.AcceleratorError",), span=Span(0, 59, 82), rank=Rank("TP2", 2, …), event=0)

The scan says which literal stands in which line. Other texts lie joined in one string, so that one `find` a literal replaces a loop.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from forensics.ingest.asked import begins, closing, complains, may_quote
from forensics.ingest.compiled import pattern_of
from forensics.ingest.intake import Intake
from forensics.ingest.shape import zeroed
from forensics.model.event import Event, EventKind
from forensics.model.source import LogLine, Rank, Span
from forensics.model.stack import Frame

#: "torch.OutOfMemoryError: …", "RuntimeError", with the prefixes loggers put before it (patterns are compiled when first used)
RAISED = r"(?:[\w.]{1,80}\.)?[A-Z]\w{2,60}(?:Error|Exception|Warning|Exit|Interrupt|Failure|Fault)\b"
#: a program's word that it met an error on its way and goes on without what the error is about
_SET_ASIDE = r"^\W{0,8}(?:[Ii]gnor(?:e|ed|ing)|[Ss]kip(?:ped|ping)?)\b[^:]{0,120}?\b(?:error|exception|import|load)\w{0,3}\b"
#: what a quotation begins with, of which the end is looked for
_OPENING = (b"'", b'"', b"(", b"[", b"{")
#: characters of a line in which its level stands
_LEVEL = 80
#: the joined text of lines uses a separator that no line holds
_LINE_END = "\n"
_TEXT_END = "\x00"
#: at most so many characters of one text, and lines of one event, are looked at
LONGEST = 20_000
MOST_LINES = 1_000


class Subject(NamedTuple):
    """A text to try signatures on. kind: the event's kind, or "line"; types: exception types in it, innermost first;
    event: index into the events, None for a line; line: index into `intake.lines`, None for an event."""

    text: str
    kind: str
    span: Span
    rank: Rank | None = None
    types: tuple[str, ...] = ()
    frames: tuple[Frame, ...] = ()
    event: int | None = None
    line: int | None = None
    stream: str = ""


class Joined:
    """Many texts in one string. whole: what they say but for their numbers, each once, with `end` between; starts: where each begins;
    members: the texts that say it; words: all of theirs; marks: where each literal stands, where a scan found that out already."""

    __slots__ = ("marks", "members", "starts", "texts", "whole", "words")

    def __init__(self, texts: list[str], end: str, marks: Mapping[bytes, list[int]] | None = None) -> None:
        self.texts, self.marks = texts, marks
        if marks is not None:
            self.whole, self.starts, self.words, self.members = "", [], frozenset[str](), []
            return
        said: dict[str, list[int]] = {}
        for index, text in enumerate(texts):
            said.setdefault(zeroed(text), []).append(index)
        self.whole = end.join(said)
        self.members = list(said.values())
        self.starts = list(accumulate((len(text) + 1 for text in list(said)[:-1]), initial=0)) if said else []
        self.words = frozenset(pattern_of(r"[A-Za-z0-9_]{4,}").findall(self.whole))

    def holding(self, literal: str, word: str = "", most: int = 2000) -> list[int]:
        """Indices of the texts that hold a literal, or it with other digits, each once, at most `most`."""
        if self.marks is not None:
            return self.marks.get(literal.encode(), [])[:most]
        if word and zeroed(word) not in self.words:
            return []
        found: list[int] = []
        literal = zeroed(literal)
        at = self.whole.find(literal)
        while at >= 0:
            index = bisect_right(self.starts, at) - 1
            found += self.members[index]
            following = self.starts[index + 1] if index + 1 < len(self.starts) else len(self.whole)
            at = self.whole.find(literal, following)
        return sorted(found)[:most]


class Subjects:
    """The texts of one input. Built once and shared by all signatures."""

    def __init__(self, intake: Intake, events: Sequence[Event]) -> None:
        self.intake, self.events = intake, events
        self._event_subjects: dict[int, Subject] = {}
        self._places: list[tuple[int, int]] | None = None
        self.event_texts = Joined([self._text_of(event) for event in events], _TEXT_END)
        marks = intake.marks if intake.scanned else None
        self.line_texts = Joined([line.text for line in intake.lines], _LINE_END, marks)
        self._code = self._code_lines()

    def _text_of(self, event: Event) -> str:
        """What an event says; of one that is no exception its first line too, which holds what its parser took apart."""
        text = text_of(event)
        if event.chain is not None:
            return text
        first, last = self._around(Span(event.span.source, event.span.first_line, event.span.first_line), 0)
        line = self.intake.lines[first].text if first < last else ""
        return text if line in text else f"{line}\n{text}"

    def event_subject(self, index: int) -> Subject:
        """The subject of an event."""
        if index not in self._event_subjects:
            event = self.events[index]
            self._event_subjects[index] = Subject(
                text=self.event_texts.texts[index][:LONGEST],
                kind=str(event.kind),
                span=event.span,
                rank=event.rank,
                types=types_of(event),
                frames=tuple(frames_of(event)),
                event=index,
                stream=event.stream,
            )
        return self._event_subjects[index]

    def line_subject(self, index: int) -> Subject | None:
        """The subject of a line; None for source code shown in a traceback, which is not what the program said."""
        line = self.intake.lines[index]
        if index in self._code or _is_frame(line.text):
            return None
        text = line.text[:LONGEST]
        kind = pattern_of(RAISED).match(text)
        return Subject(
            text=text,
            kind="line",
            span=Span(line.source, line.number, line.number),
            rank=line.rank,
            types=(kind[0],) if kind else (),
            line=index,
            stream=line.stream,
        )

    def near(self, subject: Subject, window: int) -> str:
        """The text of the retained lines up to `window` lines before and after a subject."""
        first, last = self._around(subject.span, window)
        return "\n".join(self.line_texts.texts[first:last])

    def lines_of(self, span: Span, stream: str = "") -> list[LogLine]:
        """The retained lines of a span, those of other writers left out where the stream is known."""
        first, last = self._around(span, 0)
        lines = self.intake.lines[first : min(last, first + MOST_LINES)]
        return [line for line in lines if not stream or line.stream in ("", stream)]

    def _around(self, span: Span, window: int) -> tuple[int, int]:
        if self._places is None:
            self._places = [(line.source, line.number) for line in self.intake.lines]
        first = bisect_right(self._places, (span.source, span.first_line - window - 1))
        return first, bisect_right(self._places, (span.source, span.last_line + window))

    def _code_lines(self) -> frozenset[int]:
        """Indented lines inside tracebacks: frames, code, carets."""
        found: set[int] = set()
        seen = -1  # events come by their first lines; woven ones share most of their lines
        for event in self.events:
            if event.kind in (EventKind.PYTHON, EventKind.STACK) and event.span.last_line > event.span.first_line:
                first, last = self._around(event.span, 0)
                found.update(i for i in range(max(first, seen), last) if self.intake.lines[i].text[:2] == "  ")
                seen = max(seen, last)
        return frozenset(found)


def text_of(event: Event) -> str:
    """Everything an event says: each exception of its chain as "type: message" with notes, or its message and its type."""
    if event.chain is None:
        return f"{event.type}: {event.message}" if event.type and event.type not in event.message else event.message
    parts = [event.chain.heading] if event.chain.heading else []
    for one in event.chain.exceptions:
        parts.append(f"{one.type}: {one.message}" if one.message else one.type)
        parts += one.notes
    text = "\n".join(parts)
    if "gnor" in text or "kip" in text:  # lines of others that came between
        return "\n".join(line for line in text.split("\n") if not set_aside(line))
    return text


def types_of(event: Event) -> tuple[str, ...]:
    """The exception types of an event, innermost first, or its one type."""
    if event.chain is not None:
        return tuple(one.type for one in event.chain.exceptions)
    return (event.type,) if event.type else ()


def frames_of(event: Event) -> Iterable[Frame]:
    """Every frame of an event: of all its exceptions, then of its stacks."""
    if event.chain is not None:
        for one in event.chain.exceptions:
            yield from one.frames
    for stack in event.stacks:
        yield from stack.frames


def shows_a_user(text: str) -> bool:
    """True for a line that holds a logged prompt or request body."""
    return may_quote(text) and pattern_of(begins()).search(text) is not None


def quotes_a_user(text: str, at: int) -> bool:
    """True where what stands at a position was probably written by a user of the service: a logged prompt or request body that is open
    there."""
    if not may_quote(text):
        return False
    before = b""
    end = 0
    severe = complains(text[: min(at, _LEVEL)])
    for found in pattern_of(begins(severe)).finditer(text, 0, at):
        before = before or text[:at].encode("latin-1", "replace")  # a byte a character
        begin = found.end()
        if begin <= end:
            continue
        opener = before[begin - 1 : begin]
        if opener not in _OPENING:  # what it opens follows
            begin, opener = begin + 1, before[begin : begin + 1]
        if not opener or opener not in _OPENING:
            return True
        end = closing(before, begin, len(before))
        if end >= len(before):
            return True
    return False


def set_aside(text: str) -> bool:
    """True for a line in which a program says that it ignores an error, or leaves out what could not be imported or loaded."""
    return pattern_of(_SET_ASIDE).match(text) is not None


def _is_frame(text: str) -> bool:
    return text.startswith('  File "') or text.lstrip().startswith(("raise ", "^^^", "assert "))
