"""Python tracebacks of every dialect, and error lines that are none. Public names: `ANCHORS`, `parse`.

Lines become lanes (one writer, one prefix: lanes.py), lanes become blocks (one traceback with its chain: blocks.py, woven
ones taken apart in weave.py), blocks become exceptions (body.py) and events (events.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event
from forensics.model.source import LogLine
from forensics.parse.python.blocks import Block, blocks_of
from forensics.parse.python.events import event_of
from forensics.parse.python.lanes import REPORT, Lane, is_dump_line, is_test_line, lanes_of, regions, squeezed
from forensics.parse.python.messages import messages_of
from forensics.parse.python.shapes import HEADER, Kind

__all__ = ["ANCHORS", "parse"]

ANCHORS: tuple[Anchor, ...] = (
    Anchor(b"Traceback (most recent call last)", before=3, after=80, owner="python"),
    Anchor(b'", line ', before=2, after=80, owner="python"),
    Anchor(b"Exception ignored in", before=1, after=20, owner="python"),
    Anchor(b"(most recent call first)", before=3, after=200, owner="python"),
    Anchor(b"Fatal Python error: ", before=1, after=80, owner="python"),
    Anchor(b".py(", before=12, after=12, owner="python"),
    Anchor(REPORT.encode(), before=4, after=80, owner="python"),
    Anchor(b"E       ", before=60, after=6, owner="python"),
    Anchor(b"!!!!!!!! KeyboardInterrupt !!!!!!!!", after=2, owner="python"),
    Anchor(b"Error: ", before=12, after=12, owner="python"),
    Anchor(b"Exception: ", after=12, owner="python"),
    Anchor(b"Error(", after=12, owner="python"),
    Anchor(b"error: ", after=12, owner="python"),
    Anchor(b"ERROR", after=12, owner="python"),
    Anchor(b"FATAL", after=12, owner="python"),
    Anchor(b"CRITICAL", after=12, owner="python"),
    Anchor(b"KeyboardInterrupt", after=2, owner="python"),
    Anchor(b"atchdog timeout", after=2, owner="python"),
    Anchor(b' (active): "', before=4, after=200, owner="python"),
    Anchor(b' (active+gil): "', before=4, after=200, owner="python"),
    Anchor(b' (idle): "', before=4, after=200, owner="python"),
)


def parse(intake: Intake) -> list[Event]:
    """Events of kind python, stack, fatal_signal and message."""
    events: list[Event] = []
    claimed: set[tuple[int, int]] = set()
    for first, end in regions(intake.lines):
        for lane in lanes_of(intake.lines, first, end):
            if any(a.kind is Kind.HEAD and b.line.text.startswith("   ") for a, b in pairwise(lane.items)):
                from forensics.parse.python.indent import dedent

                dedent(lane.items)
            rarer = _rarer(lane, intake.lines)
            for event in rarer:
                claimed.update((event.span.source, n) for n in range(event.span.first_line, event.span.last_line + 1))
            taken: list[Event] = []
            _take(lane, taken, claimed)
            reported = [event.span for event in rarer if event.fields.get("style") == "report"]
            events += [*rarer, *(e for e in taken if not any(e.span.overlaps(span) for span in reported))]
        for at in range(first, end):
            line = intake.lines[at]
            if HEADER in line.text and (line.source, line.number) not in claimed:
                single = squeezed(line, at)
                if single is not None:
                    _take(single, events, claimed)
    events += messages_of(intake.lines, claimed, intake.repeats)
    return events


def _take(lane: Lane, events: list[Event], claimed: set[tuple[int, int]]) -> None:
    """Adds the events of a lane's blocks; claimed gets (source, number) of their lines."""
    for block in _blocks(lane):
        event = event_of(block)
        if event is not None:
            events.append(event)
            items = [block.heading_item, *block.items] if block.heading_item else block.items
            lines = [item.line for item in items]
            claimed.update((line.source, line.number + n) for line in lines for n in range(line.joined + 1))


def _rarer(lane: Lane, lines: Sequence[LogLine]) -> list[Event]:
    """Events of the dialects that most logs have none of; their modules are loaded when a line asks for them."""
    texts = [item.line.text for item in lane.items]
    events: list[Event] = []
    if any(map(is_dump_line, texts)):
        from forensics.parse.python.dumps import dumps_of

        events += dumps_of(lane)
    if any(text.strip() == "At:" for text in texts):
        from forensics.parse.python.at_lists import at_lists

        events += at_lists(lane, lines)
    if any(REPORT in text for text in texts):
        from forensics.parse.python.reports import reports

        events += reports(lane)
    if any(map(is_test_line, texts)):
        from forensics.parse.python.pytest_style import pytest_failures

        events += pytest_failures(lane)
    return events


def _blocks(lane: Lane) -> Iterator[Block]:
    """The lane's blocks: woven windows taken apart, what lies between them read from top to bottom."""
    if sum(item.kind is Kind.HEAD for item in lane.items) < 2:
        yield from blocks_of(lane)
        return
    from forensics.parse.python.windows import MOST, one_by_one, windows, woven_blocks

    start = 0
    for number, (first, end) in enumerate(windows(lane.items)):
        yield from blocks_of(Lane(lane.prefix, lane.bare, lane.items[start:first]))
        if number < MOST:
            apart = woven_blocks(lane.items, first, end)
            if not apart and one_by_one(lane.items[first:end]):
                apart = blocks_of(Lane(lane.prefix, lane.bare, lane.items[first:end]))
            yield from apart
        start = end
    yield from blocks_of(Lane(lane.prefix, lane.bare, lane.items[start:]) if start else lane)
