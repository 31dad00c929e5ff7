"""Texts that a trainer prints as samples are not what happened to it."""

from __future__ import annotations

from typing import Any

import pytest

from forensics import analyze
from forensics.data import table
from forensics.model.verdict import Status

ROWS: list[dict[str, Any]] = table("verdict/samples")["sample"]
STEP = "{p}step:{n} - actor/loss:0.0{n} - critic/score/mean:0.{n} - timing_s/step:3{n}.2\n"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_failure_in_a_sample_is_nobodys(row: dict[str, Any]) -> None:
    assert row["examples"] and row["counterexamples"] and row["source"]
    for example in row["examples"]:
        assert analyze([example["text"].encode()]).status is Status.HEALTHY
    for example in row["counterexamples"]:
        assert example["because"]
        assert analyze([example["text"].encode()]).status is Status.CRASHED


def _log(prefix: str, sample: str, after: str) -> bytes:
    work = "".join(STEP.format(p=prefix, n=n) for n in range(1, 9))
    return (work + sample + after).encode()


@pytest.mark.parametrize("prefix", ["(TaskRunner pid=4711) ", ""])
def test_rollouts_are_read_over_whoever_prints_them(prefix: str) -> None:
    sample = ROWS[0]["examples"][0]["text"].lstrip("\n").replace("(TaskRunner pid=4711) ", prefix)
    assert analyze([_log(prefix, sample, "")]).status is Status.HEALTHY
    crash = f"{prefix}Traceback (most recent call last):\n{prefix}  File \"/app/fit.py\", line 3, in fit\n{prefix}    step()\n{prefix}ValueError: x\n"
    found = analyze([_log(prefix, sample, crash)])
    assert found.status is Status.CRASHED and found.primary is not None and found.primary.root_type == "ValueError"


def test_a_sample_whose_beginning_a_big_log_did_not_keep() -> None:
    """Of a big log some lines before a traceback are kept: not the question, far above it."""
    prefix = "(TaskRunner pid=4711) "
    work = "".join(STEP.format(p=prefix, n=n) for n in range(1, 4_000))
    question = "".join(f"{prefix}and then, {n} words later, it goes on\n" for n in range(90))
    text = ROWS[0]["examples"][0]["text"].lstrip("\n")
    sample = text.replace(f"{prefix}My program fails with\n", question)
    assert analyze([(work + sample).encode()]).status is Status.HEALTHY
    no_sample = text[text.index("(TaskRunner pid=4711) Traceback") : text.index("(TaskRunner pid=4711) [response]")]
    assert analyze([(work + question + no_sample).encode()]).status is Status.CRASHED


def test_a_sample_that_the_log_cuts_is_no_verdict() -> None:
    text = ROWS[0]["examples"][0]["text"]
    cut = text[: text.index("(TaskRunner pid=4711) [response]")]
    assert analyze([_log("(TaskRunner pid=4711) ", cut.lstrip("\n"), "")]).status is Status.UNKNOWN


def test_what_went_wrong_before_a_job_worked_on_is_no_crash() -> None:
    """verl's lines of metrics show a job at work."""
    crash = 'Traceback (most recent call last):\n  File "/app/reward.py", line 3, in score\n    f()\nValueError: x\n'
    assert analyze([_log("", crash, "".join(STEP.format(p="", n=n) for n in range(9, 14)))]).status in (Status.DEGRADED, Status.HEALTHY)
