"""Python tracebacks of every dialect, and error lines that are none. Public names: `ANCHORS`, `parse`.

Lines become lanes (one writer, one prefix: lanes.py), lanes become blocks (one traceback with its chain: blocks.py, woven
ones taken apart in weave.py), blocks become exceptions (body.py) and events (events.py).
"""

from __future__ import annotations

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event
from forensics.parse.python.blocks import blocks_of
from forensics.parse.python.events import event_of
from forensics.parse.python.lanes import lanes_of, regions

__all__ = ["ANCHORS", "parse"]

ANCHORS: tuple[Anchor, ...] = (
    Anchor(b"Traceback (most recent call last)", before=3, after=80, owner="python"),
    Anchor(b'", line ', before=2, after=80, owner="python"),
    Anchor(b"Exception ignored in", before=1, after=20, owner="python"),
)


def parse(intake: Intake) -> list[Event]:
    """Events of kind python, stack and message."""
    events: list[Event] = []
    for first, end in regions(intake.lines):
        for lane in lanes_of(intake.lines, first, end):
            for block in blocks_of(lane):
                event = event_of(block)
                if event:
                    events.append(event)
    return events
