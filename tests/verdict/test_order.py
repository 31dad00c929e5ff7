"""What came before what: one clock, mixed steps, no clock, newest first."""

from __future__ import annotations

from forensics.ingest.intake import Intake
from forensics.model.source import Clock, LogLine, LogSource, Span
from forensics.verdict.order import Order


def intake(*times: float | None, kind: str = "wall", dialects: tuple[str, ...] = ("a",)) -> Intake:
    lines = [LogLine(0, number, "x", "x", time=time, dialect=dialects[number % len(dialects)]) for number, time in enumerate(times, 1)]
    return Intake(sources=(LogSource("a", clock=Clock(kind)),), lines=lines)


def at(line: int) -> Span:
    return Span(0, line, line)


def test_times_count_before_lines() -> None:
    order = Order(intake(100.0, 109.0, 102.0))
    assert order.key(at(3), 102.0) < order.key(at(2), 109.0)


def test_within_the_coarsest_step_the_first_printed_counts() -> None:
    order = Order(intake(100.0, 100.3, 101.0, 100.7, dialects=("fine", "whole")))
    assert order.key(at(1), 100.0) < order.key(at(3), 100.7)
    assert order.key(at(2), 100.3) > order.key(at(1), 100.0)


def test_of_one_source_finer_stamps_keep_their_order_beside_whole_ones() -> None:
    order = Order(intake(100.0, 100.455, 100.0, 100.101, 101.0, dialects=("fine", "whole")))
    assert order.key(at(4), 100.101) < order.key(at(2), 100.455)
    assert order.key(at(2), 100.455) <= order.key(at(3), 100.0)  # a whole second stands behind what is above it


def test_of_several_sources_only_what_all_stamps_show_counts() -> None:
    lines = [LogLine(0, 1, "x", "x", time=100.9, dialect="fine"), LogLine(1, 1, "y", "y", time=100.0, dialect="whole")]
    order = Order(Intake(sources=(LogSource("a", clock=Clock("wall")), LogSource("b", clock=Clock("wall"))), lines=lines))
    assert order.key(Span(0, 1, 1), 100.9) < order.key(Span(1, 1, 1), 100.0)


def test_a_fine_stamp_may_show_a_whole_second() -> None:
    order = Order(intake(99.9, 100.0, 100.7))
    assert order.key(at(2), 100.33) < order.key(at(1), 100.9)


def test_a_line_without_a_time_has_the_one_above() -> None:
    order = Order(intake(100.0, None, 105.0))
    assert order.time_at(0, 2) == 100.0
    assert order.key(at(2), None) < order.key(at(3), 105.0)


def test_no_times_means_lines() -> None:
    order = Order(intake(None, None))
    assert order.key(at(1), None) < order.key(at(2), None)


def test_newest_first_is_turned_round() -> None:
    order = Order(intake(*[float(200 - n) for n in range(20)]))
    assert order.backwards(0)
    assert order.key(at(20), None) < order.key(at(1), None)
    assert order.key(at(7), 100.0) < order.key(at(6), 100.0)


def test_another_clock_is_not_compared() -> None:
    both = Intake(
        sources=(LogSource("a", clock=Clock("wall")), LogSource("b", clock=Clock("monotonic"))),
        lines=[LogLine(0, 1, "x", "x", time=1e9), LogLine(1, 1, "y", "y", time=12.0)],
    )
    order = Order(both)
    assert not order.one_clock
    assert order.key(Span(0, 1, 1), 1e9) < order.key(Span(1, 1, 1), 12.0)
