"""Alike events are one, with their number and where the last of them stands; what was let go is counted at the last copy kept."""

from __future__ import annotations

import pytest

from forensics.ingest import from_text
from forensics.model.event import Event, EventKind
from forensics.parse import parse

WARN = "node7:4{0}:4{0} [{0}] NCCL WARN NET/IB : Got completion from peer {1}\n"


def warned(text: str, **repeats: int) -> list[Event]:
    """The library's warnings in a text; repeats: n9=40 means that the ninth line was seen 40 times more."""
    intake = from_text(text)
    intake.repeats = {(0, int(name[1:])): count for name, count in repeats.items()}
    return [event for event in parse(intake) if event.parser == "nccl"]


def test_alike_ones_stand_at_the_first_and_end_at_the_last() -> None:
    (event,) = warned(WARN.format(1, "a") + "step 3\n" * 9 + WARN.format(1, "a") + "step 4\n")
    assert (event.count, event.span.first_line) == (2, 1)
    assert event.last is not None and event.last.first_line == 11
    (alone,) = warned(WARN.format(1, "a"))
    assert alone.last is None


def test_those_far_apart_are_two() -> None:
    events = warned(WARN.format(1, "a") + "step 3\n" * 500 + WARN.format(1, "a"))
    assert [(event.count, event.last) for event in events] == [(1, None), (1, None)]


@pytest.mark.parametrize(("seen", "counts"), [("n12", [42, 1]), ("n1", [2, 1]), ("n6", [2, 41]), ("n7", [2, 1])])
def test_what_was_let_go_belongs_to_the_event_that_ends_at_its_last_copy(seen: str, counts: list[int]) -> None:
    text = WARN.format(1, "a") + "step 3\n" * 4 + WARN.format(2, "b") + "step 4\n" * 5 + WARN.format(1, "a")
    events = warned(text, **{seen: 40})
    assert [event.count for event in events] == counts


def test_what_hundreds_complain_of_hides_nobodys_failure() -> None:
    """So many complaints are kept; words and exceptions that are new come behind them, copies of what is known do not."""
    noise = "".join(f"[2026-11-29 20:15:{n % 60:02d} TP{n}] ERROR cannot open cache {'abcdefgh'[n % 8]}\n" for n in range(400))
    last = "[2026-11-29 20:16:00 TP7] {}\n"
    kept = {n: errors(noise + last.format(said)) for n, said in enumerate(("ERROR the link went down", "ValueError: bad length"))}
    assert [events[-1].message for events in kept.values()] == ["ERROR the link went down", "bad length"]
    assert all(300 <= len(events) < 340 for events in kept.values())


def errors(text: str) -> list[Event]:
    return [event for event in parse(from_text(text)) if event.kind is EventKind.MESSAGE]
