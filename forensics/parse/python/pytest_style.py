"""Failures as pytest prints them. In: a `Lane`; out: events of kind python. Samples:

______________________ TestLoad.test_shard ______________________
    def test_shard(self):
>       load(3)

tests/test_load.py:12:
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _
    def load(n):
>       raise ValueError("bad shard")
E       ValueError: bad shard

src/load.py:5: ValueError

tests/test_load.py:12: in test_shard                      (--tb=short)
    load(3)
src/load.py:5: in load
    raise ValueError("bad shard")
E   ValueError: bad shard

!!!!!!!!!!!!!!!!!!! KeyboardInterrupt !!!!!!!!!!!!!!!!!!!
/srv/src/load.py:142: KeyboardInterrupt
"""

from __future__ import annotations

from forensics.ingest.pattern import Pattern
from forensics.model.event import Event, EventKind
from forensics.model.record import draft, field, replace
from forensics.model.source import Span
from forensics.model.stack import ExceptionChain, Frame, RaisedException, StackTrace
from forensics.parse.python.lanes import Item, Lane
from forensics.parse.python.shapes import LOOK, raised

_SECTION = Pattern(r"^_{3,80} (?P<title>\S.{0,200}?) _{3,80}$")
_ENDS = Pattern(r"^={3,200}(?: .{0,200})?$|^_{3,80} ")
_PLACE = Pattern(r"^(?P<file>[^\s:]{1,500}\.pyx?):(?P<line>\d{1,8}): ?(?:in (?P<function>\S{1,200}))?$")
_LAST_PLACE = Pattern(r"^(?P<file>[^\s:]{1,500}\.pyx?):(?P<line>\d{1,8}): (?P<type>[A-Z][\w.]{2,200})$")
_DEF = Pattern(r"^ {4,80}(?:async )?def (?P<name>\w{1,200})\(")
_SAID = Pattern(r"^E {3,12}(?P<text>.*)$")
_INTERRUPTED = Pattern(r"^!{5,80} (?P<type>KeyboardInterrupt|_pytest\.outcomes\.Exit\b.{0,200}?) !{5,80}$")


@draft
class _Failure:
    """One failure being read."""

    title: str = ""
    items: list[Item] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    type: str = ""
    function: str = ""
    code: str | None = None
    short: bool = False


def pytest_failures(lane: Lane) -> list[Event]:
    """The failures of one lane."""
    events: list[Event] = []
    now = _Failure()
    for item in lane.items:
        text = item.line.text[:LOOK]
        section = _SECTION.match(text)
        if section or _ENDS.match(text):
            _close(now, events)
            now = _Failure(title=section["title"] if section else "")
            continue
        last = _LAST_PLACE.match(text)
        if last and (now.said or now.type):
            now.items.append(item)
            now.frames.append(
                Frame(now.function or "?", last["file"], int(last["line"]), now.code, log_line=item.line.number)
            )
            now.type = now.type or last["type"]
            _close(now, events)
            now = _Failure(title=now.title)
            continue
        interrupted = _INTERRUPTED.match(text)
        if interrupted:
            _close(now, events)
            now = _Failure(type=interrupted["type"].split(":")[0], items=[item])
        elif now.said and now.short and not text.startswith("E "):
            _close(now, events)
            now = _Failure(title=now.title)
        elif _take(now, item, text):
            now.items.append(item)
    _close(now, events)
    return events


def _take(now: _Failure, item: Item, text: str) -> bool:
    """True where the line says something about the failure."""
    place = _PLACE.match(text)
    if place:
        now.short = bool(place["function"])
        function = place["function"] or now.function or "?"
        code = None if now.short else now.code
        now.frames.append(Frame(function, place["file"], int(place["line"]), code, log_line=item.line.number))
        now.function, now.code = "", None
        return True
    said = _SAID.match(text)
    if said:
        now.said.append(said["text"])
        return True
    if text.startswith(">  "):
        now.code = text[1:].strip()
        return True
    if now.short and now.frames and now.frames[-1].code is None and text.startswith("    "):
        now.frames[-1] = replace(now.frames[-1], code=text.strip())
        return True
    found = _DEF.match(text)
    if found:
        now.function = found["name"]
    return False


def _close(now: _Failure, events: list[Event]) -> None:
    """Turns a failure into an event where it has an exception."""
    first = next((n for n, text in enumerate(now.said) if raised(text)), None)
    if first is not None:
        found = raised(now.said[first])
        assert found is not None
        name, message = found[0], "\n".join((found[1], *now.said[first + 1 :])).strip()
    elif now.type and (now.said or now.frames):
        name, message = now.type, "\n".join(now.said).strip()
    else:
        return
    if not now.frames or not now.items:
        return
    lines = [item.line for item in now.items]
    span = Span(lines[0].source, min(line.number for line in lines), max(line.number for line in lines))
    frames = tuple(now.frames)
    chain = ExceptionChain(
        (RaisedException(name, message, frames, None, span),),
        span,
        lines[0].rank,
        lines[0].time,
        now.title,
        stream=lines[0].stream,
    )
    events.append(
        Event(
            EventKind.PYTHON,
            span,
            rank=lines[0].rank,
            time=lines[0].time,
            type=name,
            message=message,
            stacks=(StackTrace(frames, span),),
            chain=chain,
            parser="python",
            stream=lines[0].stream,
            fields={"style": "pytest"},
        )
    )
