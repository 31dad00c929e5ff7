"""Whose fault an exception is: a serving engine's own files, the user's; and whom Paddle's launcher names."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category
from tests.verdict.conftest import Told, number

PACKAGES = "/usr/lib/python3.12/site-packages/"


def _raised(path: str, error: str) -> str:
    head = f'Traceback (most recent call last):\n  File "{PACKAGES}vllm/v1/engine/core.py", line 10, in run_engine_core\n    engine_core.run_busy_loop()\n'
    return f'{head}  File "{path}", line 20, in update\n    step(request)\n{error}\n'


@pytest.mark.parametrize(
    "error",
    [
        "KeyError: 'req-9'",
        "AttributeError: 'NoneType' object has no attribute 'blocks'",
        "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
        "RecursionError: maximum recursion depth exceeded",
        "NameError: name 'q' is not defined",
    ],
)
def test_what_a_serving_engine_raises_in_its_own_files_is_no_users_code(told: Told, error: str) -> None:
    for engine in ("vllm/v1/core/sched/scheduler.py", "sglang/srt/managers/schedule_batch.py"):
        verdict = told(_raised(PACKAGES + engine, error)).verdict
        assert verdict.category is Category.UNKNOWN and "engine's own code" in verdict.title
        assert all(one.category is not Category.USER_CODE for one in verdict.alternatives)
    assert told(_raised("/app/plugin.py", error)).verdict.category is Category.USER_CODE  # the user's, called by the engine


ABORT = "ERROR 2026-05-03 10:02:02,100 launch_utils.py:642] ABORT!!! Out of all 8 trainers, the trainer process with rank=[{}] was aborted. Please check its log.\n"


def test_paddles_launcher_names_all_ranks_that_it_saw_end(told: Told) -> None:
    incident = told(ABORT.format("2, 5, 7"))
    assert number(incident) == 2 and [rank.number for rank in incident.verdict.same_failure_ranks] == [5, 7]
    assert "printed first" not in incident.verdict.explanation and "One line tells that 3 ranks ended" in incident.verdict.explanation
    one = told(ABORT.format("5"))
    assert number(one) == 5 and not one.verdict.same_failure_ranks
