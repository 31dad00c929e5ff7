"""A hang's stack tells what the process waits for."""

from __future__ import annotations

from typing import Any

import pytest

from forensics.data import table
from forensics.model.stack import Frame
from forensics.verdict.stuck import stuck_in

from .conftest import Told

ROWS: list[dict[str, Any]] = table("verdict/stuck")["stuck"]


def _frames(places: list[str]) -> list[Frame]:
    return [Frame(function=function, file=file) for file, _, function in (place.rpartition(":") for place in places)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_stack_stands_in_its_examples_only(row: dict[str, Any]) -> None:
    assert row["examples"] and row["counterexamples"] and row["source"] and row["says"].startswith("The process waits")
    for places in row["examples"]:
        found = stuck_in(_frames(places))
        assert found is not None and found.id == row["id"]
    for places in row["counterexamples"]:
        found = stuck_in(_frames(places))
        assert found is None or found.id != row["id"]


def test_what_waits_far_outside_says_nothing_of_the_innermost_frames() -> None:
    deep = ["torch/distributed/distributed_c10d.py:all_reduce", *["app/work.py:compute"] * 9]
    assert stuck_in(_frames(deep)) is None and stuck_in([]) is None


DUMP = (
    "[2026-11-29 20:15:34 TP1] Watchdog timeout (self.watchdog_timeout=300)\n[2026-11-29 20:15:34 TP1] Pyspy dump for PID 4711:\n"
    "Process 4711: sglang::scheduler_TP1\nPython v3.12.9 (/usr/bin/python3.12)\n\n"
    'Thread 4711 (idle): "MainThread"\n    {inner}\n    event_loop_normal (sglang/srt/managers/scheduler.py:640)\n'
    "    run_scheduler_process (sglang/srt/managers/scheduler.py:2011)\n"
)


def test_the_report_says_what_it_waits_for(told: Told) -> None:
    lock = "acquire (filelock/_api.py:344)\n    __enter__ (filelock/_api.py:376)\n    load_cuda_ops (flashinfer/jit/core.py:122)"
    verdict = told(DUMP.format(inner=lock)).verdict
    assert "lock on a folder of kernels" in verdict.explanation and "delete the lock files" in " ".join(verdict.next_steps)
    verdict = told(DUMP.format(inner="gather (sglang/srt/layers/linear.py:222)")).verdict
    assert "The process waits" not in verdict.explanation and verdict.next_steps


def test_an_interrupted_run_says_what_it_waited_for(told: Told) -> None:
    log = (
        'Traceback (most recent call last):\n  File "/srv/job/train.py", line 9, in <module>\n    main()\n'
        '  File "/opt/venv/lib/python3.11/site-packages/torch/utils/cpp_extension.py", line 1711, in _jit_compile\n    baton.wait()\n'
        '  File "/opt/venv/lib/python3.11/site-packages/torch/utils/file_baton.py", line 49, in wait\n    time.sleep(self.wait_seconds)\n'
        "KeyboardInterrupt\n"
    )
    verdict = told(log).verdict
    assert "lock on a folder of kernels" in verdict.explanation and "delete the lock files" in " ".join(verdict.next_steps)


STEPS = "".join(f"2026-11-29 20:15:{n:02d} INFO step {n} | loss: 2.5\n" for n in range(10, 30))
BARRIER = (
    'Traceback (most recent call last):\n  File "/srv/job/train.py", line 9, in <module>\n    main()\n'
    '  File "/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 2810, in all_reduce\n    work.wait()\n'
    "KeyboardInterrupt\n"
)


@pytest.mark.parametrize(
    ("above", "waits"),
    [(STEPS, False), (STEPS.replace("2026-11-29 20:15", "worker"), False), (STEPS + "2026-11-29 20:58:02 INFO stopping\n", True), ("", True)],
    ids=["at work", "at work, no times", "silent for long", "never at work"],
)
def test_a_stack_is_no_hang_where_the_job_was_at_work_until_it_was_stopped(told: Told, above: str, waits: bool) -> None:
    assert ("The process waits in a collective" in told(above + BARRIER).verdict.explanation) is waits
