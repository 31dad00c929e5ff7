"""Python tracebacks of every dialect, and error lines that are none. Public names: `ANCHORS`, `parse`."""

from __future__ import annotations

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event

ANCHORS: tuple[Anchor, ...] = (Anchor(b"Traceback (most recent call last)", before=2, after=60, owner="python"),)


def parse(intake: Intake) -> list[Event]:
    """Events of kind python, stack and message."""
    return []
