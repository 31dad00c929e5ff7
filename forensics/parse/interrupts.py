"""Ctrl-C as the terminal echoes it. In: an intake; out: LIFECYCLE events. Sample:

    srv  update_slots: all slots are idle
    ^C
    -> LIFECYCLE type "SIGINT", fields {"phase": "shutdown_requested", "state": "begin"}

Has no anchors, two characters are too weak for one: it reads the last lines of each source, which are always kept.
"""

from __future__ import annotations

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.parse.reading import Lazy, make

ANCHORS: tuple[Anchor, ...] = ()

#: lines at the end of a source that are looked at, and sources
TAIL, SOURCES = 150, 10_000
_CONTROL_C = Lazy(r"^\^C|\^C\s*$")


def parse(intake: Intake) -> list[Event]:
    """The interrupts at the ends of the sources."""
    events = []
    lines = intake.lines
    ends = [i for i, line in enumerate(lines) if i + 1 == len(lines) or lines[i + 1].source != line.source]
    for end in ends[:SOURCES]:
        source = lines[end].source
        for at in range(end, max(-1, end - TAIL - 1), -1):
            if lines[at].source != source:
                break
            text = lines[at].text
            if "^C" in text[-300:] and _CONTROL_C.search(text[-300:]):
                fields = {"phase": "shutdown_requested", "state": "begin"}
                events.append(
                    make(
                        EventKind.LIFECYCLE, lines[at], parser="interrupts", type="SIGINT", message=text, fields=fields
                    )
                )
    return events
