"""Python tracebacks of every dialect, and error lines that are none. Public names: `ANCHORS`, `parse`.

Lines become lanes (one writer, one prefix: lanes.py), lanes become blocks (one traceback with its chain: blocks.py, woven
ones taken apart in weave.py), blocks become exceptions (body.py) and events (events.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event
from forensics.model.source import LogLine
from forensics.parse.python.blocks import Block, blocks_of
from forensics.parse.python.dumps import dumps_of
from forensics.parse.python.events import event_of
from forensics.parse.python.lanes import Lane, lanes_of, regions, squeezed
from forensics.parse.python.messages import messages_of
from forensics.parse.python.windows import windows, woven_blocks

__all__ = ["ANCHORS", "parse"]

ANCHORS: tuple[Anchor, ...] = (
    Anchor(b"Traceback (most recent call last)", before=3, after=80, owner="python"),
    Anchor(b'", line ', before=2, after=80, owner="python"),
    Anchor(b"Exception ignored in", before=1, after=20, owner="python"),
    Anchor(b"(most recent call first)", before=3, after=200, owner="python"),
    Anchor(b"Fatal Python error: ", before=1, after=80, owner="python"),
    Anchor(b"Error: ", after=12, owner="python"),
    Anchor(b"Exception: ", after=12, owner="python"),
    Anchor(b"Error(", after=12, owner="python"),
    Anchor(b"error: ", after=12, owner="python"),
    Anchor(b"ERROR", after=12, owner="python"),
    Anchor(b"FATAL", after=12, owner="python"),
    Anchor(b"CRITICAL", after=12, owner="python"),
    Anchor(b"KeyboardInterrupt", after=2, owner="python"),
    Anchor(b"Watchdog timeout", after=2, owner="python"),
    Anchor(b' (active): "', before=4, after=200, owner="python"),
    Anchor(b' (active+gil): "', before=4, after=200, owner="python"),
    Anchor(b' (idle): "', before=4, after=200, owner="python"),
)


def parse(intake: Intake) -> list[Event]:
    """Events of kind python, stack, fatal_signal and message."""
    events: list[Event] = []
    for lane in _lanes(intake.lines):
        events += dumps_of(lane)
        events += (event for block in _blocks(lane) if (event := event_of(block)) is not None)
    claimed = {(e.span.source, n) for e in events for n in range(e.span.first_line, e.span.last_line + 1)}
    events += messages_of(intake.lines, claimed)
    return events


def _blocks(lane: Lane) -> Iterator[Block]:
    """The lane's blocks: woven windows taken apart, what lies between them read from top to bottom."""
    start = 0
    for first, end in windows(lane.items):
        yield from blocks_of(Lane(lane.prefix, lane.bare, lane.items[start:first]))
        yield from woven_blocks(lane.items, first, end)
        start = end
    yield from blocks_of(Lane(lane.prefix, lane.bare, lane.items[start:]) if start else lane)


def _lanes(lines: Sequence[LogLine]) -> Iterator[Lane]:
    """The lanes of all regions, tracebacks squeezed into one line among them."""
    for first, end in regions(lines):
        for at in range(first, end):
            lane = squeezed(lines[at], at)
            if lane is not None:
                yield lane
        yield from lanes_of(lines, first, end)
