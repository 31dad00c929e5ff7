"""Error reports that a program writes for its users to post: the exception above its stack, in the marks of a heading and a list. In: a
`Lane`; out: events of kind python. Sample (ComfyUI):

- **Node Type:** LoadThing
- **Exception Type:** ValueError
- **Exception Message:** no such device: 3

## Stack Trace
```
  File "/srv/app/execution.py", line 496, in execute
    output = get_output(node)
-> Event(PYTHON, type="ValueError", message="no such device: 3", frames of execution.py)
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.ingest.pattern import Pattern
from forensics.model.event import Event, EventKind
from forensics.model.source import Span
from forensics.model.stack import ExceptionChain, Frame, RaisedException, StackTrace
from forensics.parse.python.lanes import Item, Lane
from forensics.parse.python.shapes import FRAME, LOOK

_TYPE = Pattern(r"^\s{0,4}[-*] \*\*Exception Type:\*\* (?P<type>(?:[A-Za-z_]\w{0,80}\.){0,8}[A-Za-z_]\w{0,80})\s*$")
_SAID = Pattern(r"^\s{0,4}[-*] \*\*Exception Message:\*\* (?P<message>.{0,4000})")
#: lines of a message, and lines below it in which frames are read
_WORDS, _MOST = 8, 400


def reports(lane: Lane) -> list[Event]:
    """The reports of one lane."""
    starts = [at for at, item in enumerate(lane.items) if _TYPE.match(item.line.text[:LOOK])]
    return [event for at in starts if (event := _event(lane.items, at)) is not None]


def _event(items: Sequence[Item], at: int) -> Event | None:
    line = items[at].line
    named = _TYPE.match(line.text[:LOOK])
    said = _SAID.match(items[at + 1].line.text[:LOOK]) if at + 1 < len(items) else None
    if named is None or said is None:
        return None
    words, frames, last = [said["message"].strip()], [], items[at + 1].line
    below = at + 2
    while below < len(items) and len(words) < _WORDS and not _ends(items[below].line.text):
        words.append(items[below].line.text.strip())
        below += 1
    for item in items[below : below + _MOST]:
        found = FRAME.match(item.line.text[:LOOK])
        if found is not None:
            last = item.line
            frames.append(
                Frame(found["function"] or "", found["file"], int(found["line"]), log_line=item.line.number)
            )
        elif frames and item.line.text.startswith("#"):
            break  # the next heading
    span = Span(line.source, line.number, max(line.number, last.number))
    stack, message = tuple(frames), "\n".join(words).strip()
    raised = RaisedException(named["type"], message, stack, None, span)
    return Event(
        EventKind.PYTHON,
        span,
        rank=line.rank,
        time=line.time,
        type=named["type"],
        message=message,
        stacks=(StackTrace(stack, span),) if stack else (),
        chain=ExceptionChain((raised,), span, line.rank, line.time, stream=line.stream),
        level=line.level,
        parser="python",
        stream=line.stream,
        fields={"style": "report"},
    )


def _ends(text: str) -> bool:
    """True for a line that is no part of a message any more."""
    return not text.strip() or text.startswith(("#", "- **", "* **", "```"))
