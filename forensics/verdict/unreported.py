"""A hang that no rank has reported, as a failure: what the dumps show. In: a `Hang`; out: a `Sighting`. Sample:

dumps of ranks 0, 2, 3 end in all_reduce #6 unfinished -> "all_reduce #6 of group default_pg was entered by rank 0, … and never finished"
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.model.event import Event
from forensics.model.source import Span
from forensics.model.stack import Frame
from forensics.verdict.hang import Hang
from forensics.verdict.sighting import Sighting


def of_hang(hang: Hang) -> Sighting:
    """The failure of a hang that no rank has reported: what the dumps show that was entered and never left."""
    collective = hang.collective
    names = ", ".join(rank.label for rank in collective.waiting)
    what = f"{collective.op or 'a collective'}{f' #{collective.sequence}' if collective.sequence is not None else ''}"
    group = f" of group {collective.process_group}" if collective.process_group else ""
    event = hang.events[-1] if hang.events else None
    span = event.span if event is not None else Span(0, 1, 1)
    message = f"{what}{group} was entered by {names or 'no rank'} and never finished"
    return Sighting(
        kind="collective_timeout",
        type=None,
        message=message,
        root_type=None,
        root_message=message,
        rank=event.rank if event is not None else None,
        time=None,
        span=span,
        weight=3,
        events=list(hang.events),
        frames=_waiting_frames(hang.events),
        spans=[e.span for e in hang.events],
    )


def _waiting_frames(events: Sequence[Event]) -> tuple[Frame, ...]:
    """Where a rank stood that had not finished, from its dump."""
    for event in reversed(events):
        for entry in reversed(event.fields.get("entries", ())):
            if not entry.done and entry.frames:
                return tuple(entry.frames)
    return ()
