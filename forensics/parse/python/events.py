"""Blocks -> events. In: a `Block`; out: an `Event` of kind python with its `ExceptionChain`. Sample: see blocks.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from forensics.ingest.compiled import pattern_of
from forensics.model.event import Event, EventKind
from forensics.model.record import replace
from forensics.model.source import LogLine, Rank, Span
from forensics.model.stack import ExceptionChain, Frame, RaisedException, StackTrace
from forensics.parse.python.blocks import Block
from forensics.parse.python.body import Raised, read_body
from forensics.parse.python.shapes import HEADER, Kind, raised_name

_HANDLED = pattern_of(
    r"^(?:Exception ignored (?:in|on|while)|--- Logging error ---|Error in sys\.excepthook|Exception in callback .{0,200}__del__)"
)


#: torch.distributed.checkpoint gathers the tracebacks of all ranks and marks each at its header
_GATHERED = pattern_of(r"Traceback \(most recent call last\): \(RANK (\d{1,6})\)[ \t]*$")


def event_of(block: Block) -> Event | None:
    """The event of a block, None where it holds neither frames nor an exception."""
    lines = [item.line for item in block.items]
    texts = tuple(line.text for line in lines)
    found: Sequence[Raised] = read_body(texts)
    if any("+ Exception Group Traceback" in text for text in texts):
        from forensics.parse.python.groups import read_grouped

        found = read_grouped(texts)
    exceptions = [_exception(r, lines) for r in _with_quoted(found)]
    if not exceptions:
        return None
    told_type = any(e.type for e in exceptions)
    first = block.heading_item.line if block.heading_item else lines[0]
    told = next((line for line in lines if line.rank), first if first.rank else lines[0])
    numbers = [number for line in (first, *_trimmed(lines)) for number in (line.number, line.number + line.joined)]
    span = Span(lines[0].source, min(numbers), max(numbers))
    time = next((line.time for line in (first, *lines) if line.time is not None), None)
    gathered = _GATHERED.search(lines[0].text) if block.headed else None
    rank = Rank(f"rank {int(gathered[1])}", int(gathered[1])) if gathered else told.rank
    chain = ExceptionChain(
        tuple(exceptions),
        span,
        rank,
        time,
        block.heading,
        bool(_HANDLED.match(block.heading)) or block.items[0].asked,
        block.ambiguous,
        told.stream,
    )
    last = next((e for e in reversed(exceptions) if e.type), chain.last)
    complete = block.headed and block.raised
    if not told_type and (not block.headed or block.ambiguous):
        return Event(
            EventKind.STACK,
            span,
            rank=rank,
            time=time,
            stacks=tuple(StackTrace(e.frames, e.span or span, complete=False) for e in exceptions),
            parser="python",
            stream=told.stream,
            fields=_fields(block, complete),
        )
    return Event(
        EventKind.PYTHON,
        span,
        rank=rank,
        time=time,
        type=last.type or None,
        message=last.message,
        stacks=tuple(StackTrace(e.frames, e.span or span, complete=complete) for e in exceptions if e.frames),
        chain=chain,
        level=first.level,
        count=max((i.repeated for i in block.items if i.kind in (Kind.HEAD, Kind.RAISED)), default=1),
        parser="python",
        stream=told.stream,
        fields=_fields(block, complete),
    )


def _fields(block: Block, complete: bool) -> dict[str, Any]:
    """complete: False where header or exception line are missing; indistinguishable: that many woven tracebacks are alike;
    quoted: "request" where somebody pasted the traceback into a request to a model (handled is True then)."""
    fields: dict[str, Any] = {} if complete else {"complete": False}
    if block.items[0].asked:
        fields["quoted"] = "request"
    if block.alike:
        fields["indistinguishable"] = block.alike
    return fields


def _with_quoted(found: Sequence[Raised]) -> list[Raised]:
    """Adds what an exception's message quotes in one line, before the exception that quotes it."""
    whole: list[Raised] = []
    for raised in found:
        if HEADER in raised.text and "\\n" in raised.text:
            from forensics.parse.python.expand import expanded

            inner = expanded(raised.text) or []
            for quoted in read_body(tuple(inner)):
                at = raised.last
                frames = [replace(frame, log_line=at) for frame in quoted.frames]
                whole.append(replace(quoted, frames=frames, first=at, last=at))
            raised = replace(raised, link="cause")
        whole.append(raised)
    return whole


def _trimmed(lines: list[LogLine]) -> list[LogLine]:
    end = len(lines)
    while end > 1 and not lines[end - 1].text.strip():
        end -= 1
    return lines[:end]


def _exception(raised: Raised, lines: list[LogLine]) -> RaisedException:
    frames = tuple(_placed(frame, lines) for frame in raised.frames)
    code = (frames[-1].code or "") if frames else ""
    name = raised.type or raised_name(code) or ""
    part = lines[raised.first : raised.last + 1]
    numbers = [number for line in part for number in (line.number, line.number + line.joined)]
    span = Span(lines[0].source, min(numbers), max(numbers)) if numbers else None
    message = raised.text
    if not message and name == "AssertionError" and code.startswith("assert "):
        message = code  # a bare assert says nothing else
    return RaisedException(name, message, frames, raised.link, span)


def _placed(frame: Frame, lines: list[LogLine]) -> Frame:
    return replace(frame, log_line=lines[frame.log_line].number) if frame.log_line is not None else frame
