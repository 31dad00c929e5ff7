"""The coordination service's list of tasks, found by its literals among many lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from forensics.ingest import from_text
from forensics.parse import xla

HEAD = "absl::Status: UNAVAILABLE: The following tasks are unhealthy (stopped sending heartbeats):\n"
TASK = "/job:jax_worker/replica:0/task:{}\n"


class Counted(list[Any]):
    """Lines that count how often somebody walks through all of them."""

    walks = 0

    def __iter__(self) -> Iterator[Any]:
        self.walks += 1
        return super().__iter__()


def test_the_list_below_is_read_without_walking_through_the_log() -> None:
    calm = "step 3 loss 2.1\n" * 200
    intake = from_text(calm + HEAD + TASK.format(5) + TASK.format(7) + calm + TASK.format(9), anchors=xla.ANCHORS)
    intake.lines = lines = Counted(intake.lines)
    (event,) = xla.parse(intake)
    assert event.fields["tasks"] == (5, 7)  # the ninth stands in no list
    assert (event.span.first_line, event.span.last_line) == (201, 203)
    assert lines.walks == 0


def test_a_list_of_one_names_its_rank() -> None:
    (event,) = xla.parse(from_text(HEAD + TASK.format(5) + "step 4\n", anchors=xla.ANCHORS))
    assert event.rank is not None and event.rank.number == 5


def _said(text: str) -> list[str]:
    return [event.message or "" for event in xla.parse(from_text(text, anchors=xla.ANCHORS))]


def test_a_tpu_drivers_last_word_names_its_device() -> None:
    line = "!!!! FATAL ERROR !!!! for [device /dev/accel3] the chip does not answer"
    (event,) = xla.parse(from_text("F1129 20:15:20 4711 driver.cc:99] " + line + "\n", anchors=xla.ANCHORS))
    assert event.level == "ERROR" and event.fields["device"] == "device /dev/accel3"
    assert _said("grep '!!!! FATAL ERROR !!!!' found nothing in the driver's log\n") == []  # spoken of, of no device


def test_a_coordination_service_that_stops_is_not_one_that_registers() -> None:
    stops = "Stopping coordination service as cluster registration failed. This may be due to a port that is taken."
    assert _said("E1129 20:15:20 4711 service.cc:99] " + stops + "\n") == [stops]
    assert _said("I1129 20:15:20 4711 service.cc:99] Coordination service: cluster registration succeeded\n") == []
