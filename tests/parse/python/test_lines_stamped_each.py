"""A traceback that a program hands to its logger line by line: the lines of one message have times of their own."""

from __future__ import annotations

from forensics.ingest import from_text
from forensics.parse import python

_LINES = (
    "Traceback (most recent call last):",
    '  File "/srv/job/loop.py", line 31, in run',
    "    session.run(step)",
    "job.errors.InvalidArgumentError: From /job:trainer/task:0:",
    "The graph holds an operation without a kernel",
    "\t [[while]]",
)


def _log(lines: tuple[str, ...], step_us: int, place: str = "loop.py:58") -> str:
    return "".join(f"E1129 20:15:20.{200_000 + n * step_us:06d} 4711 {place}] {line}\n" for n, line in enumerate(lines))


def _message(text: str) -> str:
    chains = [event.chain for event in python.parse(from_text(text)) if event.chain is not None]
    assert len(chains) == 1
    return chains[0].last.message


def test_a_message_goes_on_over_lines_that_were_stamped_each() -> None:
    assert _message(_log(_LINES, 40)) == "From /job:trainer/task:0:\nThe graph holds an operation without a kernel\n\t [[while]]"


def test_the_next_record_of_a_logger_is_no_part_of_it() -> None:
    one_record = _log(_LINES[:4], 0)
    next_record = "E1129 20:15:20.200900 4711 loop.py:58] The graph holds an operation without a kernel\n"
    assert _message(one_record + next_record) == "From /job:trainer/task:0:"
    # nor one of another place, nor one that came a moment later
    assert _message(_log(_LINES[:4], 40) + _log(_LINES[4:5], 40, "main.py:7")) == "From /job:trainer/task:0:"
    assert _message(_log(_LINES[:4], 40) + next_record.replace("20.200900", "20.900900")) == "From /job:trainer/task:0:"
