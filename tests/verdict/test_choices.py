"""The values that a refused setting may have are the first thing to do."""

from __future__ import annotations

from typing import Any

import pytest

from forensics.data import table
from forensics.verdict.choices import Choice, choice_in, step_for

from .conftest import Told

ROWS: list[dict[str, Any]] = table("verdict/choices")["choice"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_choice_is_read_from_its_examples_only(row: dict[str, Any]) -> None:
    assert row["examples"] and row["counterexamples"] and row["source"]
    for example in row["examples"]:
        assert choice_in(example["text"]) == Choice(example["setting"], example.get("got"), tuple(example["allowed"]))
    for text in row["counterexamples"]:
        assert choice_in(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: The size of tensor a (3) must match the size of tensor b (4)",
        "hidden_dim must be one of [64, 128, 256]",  # sizes of a model are not chosen
        "x_y must be in ['only']",
        "KeyError: 'a_b'",
        "param_a must be one of [<class 'int'>, <class 'float'>]",
    ],
)
def test_no_choice(text: str) -> None:
    assert choice_in(text) is None


def test_the_step_names_the_engines_flag() -> None:
    choice = Choice("attention_backend", "flashinfer", ("triton", "torch_native"))
    assert step_for(choice, "sglang") == "Set --attention-backend to one of: triton, torch_native (it is flashinfer)."
    assert step_for(choice, None).startswith("Set attention_backend to one of")
    assert step_for(Choice("my_own", None, ("a", "b")), "sglang") == "Set my_own to one of: a, b."
    assert step_for(Choice(None, None, tuple("abcdefghij")), None) == "Choose one of: a, b, c, d, e, f, g, h, …."


def test_the_report_says_what_to_set(told: Told) -> None:
    log = (
        '[2026-11-29 20:15:20 TP0] Scheduler hit an exception: Traceback (most recent call last):\n'
        '  File "/opt/sglang/srt/server_args.py", line 2800, in _handle_pool\n    assert ok, text\n'
        "AssertionError: The pool expects attention_backend to be one of ['triton', 'torch_native'], but got flashinfer\n"
    )
    steps = told(log).verdict.next_steps
    assert steps[0] == "Set --attention-backend to one of: triton, torch_native (it is flashinfer)."
    refused = "launch_server.py: error: argument --moe-runner-backend: invalid choice: 'turbo' (choose from 'auto', 'triton')\n"
    assert told(refused).verdict.next_steps[0] == "Set --moe-runner-backend to one of: auto, triton (it is turbo)."


def test_lists_without_end_cost_no_more_than_their_text() -> None:
    for text in ("a_b must be one of [" * 400, "attention heads (40) must be divisible by " * 400, "heads " * 1_500, "a_b to be one of 'x'" + ", 'x'" * 4_000, "Unknown a " * 1_000, "a_b " * 2_000, "a_" * 4_000):
        assert choice_in(text) is None or len(text) > 0
