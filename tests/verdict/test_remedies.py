"""What a message itself says to do comes first, where no signature knows better."""

from __future__ import annotations

from typing import Any

import pytest

from forensics.data import table
from forensics.verdict.remedies import remedies_in

from .conftest import Told

ROWS: list[dict[str, Any]] = table("verdict/remedies")["remedy"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_remedy_is_read_from_its_examples_only(row: dict[str, Any]) -> None:
    assert row["examples"] and row["counterexamples"]
    for example in row["examples"]:
        assert remedies_in(example["text"]) == [example["step"]]
    for text in row["counterexamples"]:
        assert remedies_in(text) == []


def test_the_report_repeats_it(told: Told) -> None:
    log = (
        'Traceback (most recent call last):\n  File "/opt/venv/lib/python3.11/site-packages/megatron/training/arguments.py", line 9, in validate_args\n    raise\n'
        "RuntimeError: Using async all-reduce requires setting the environment variable CUDA_DEVICE_MAX_CONNECTIONS to 1\n"
    )
    assert told(log).verdict.next_steps[0] == "Set CUDA_DEVICE_MAX_CONNECTIONS=1 for every process."


def test_words_without_end_cost_no_more_than_their_text() -> None:
    for text in ("Please set " * 2_000, "Use a_b " * 2_000, "requires " * 2_000, "Set x_y.z" * 2_000):
        assert len(remedies_in(text)) <= len(ROWS)


RAISED = (
    'Traceback (most recent call last):\n  File "/srv/job/train.py", line 7, in <module>\n    main()\n  File "/srv/job/lib/loop.py", line 31, in step\n    f()\n'
    '  File "/usr/lib/python3.11/json/decoder.py", line 355, in raw_decode\n    x\n{said}\n'
)


@pytest.mark.parametrize(
    ("said", "has"),
    [
        ("KeyError: 'loss'", "innermost frame of the user's code (loop.py:31, step)"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/data/meta.jsonl'", "ls -ld PATH"),
    ],
)
def test_a_step_names_the_place_to_read(told: Told, said: str, has: str) -> None:
    steps = " ".join(told(RAISED.format(said=said)).verdict.next_steps)
    assert has in steps and "{" not in steps


def test_without_frames_no_place_is_named(told: Told) -> None:
    steps = " ".join(told("KeyError: 'loss'\n").verdict.next_steps)
    assert "{" not in steps and "()" not in steps
