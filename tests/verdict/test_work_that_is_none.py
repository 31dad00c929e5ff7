"""Jobs that seem fine and are not, and jobs that seem broken and are not: steps on NaN, what a compiler could not do and warned of, the
last words of LSF and of MLPerf's records."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, Confidence, Status
from tests.verdict.conftest import Told, primary

_STEP = " iteration {:8}/  500 | elapsed time per iteration (ms): 41.9 | loss scale: 1.0 | grad norm: {} | number of skipped iterations: {:3} |\n"
_TRAINER = "{{'loss': {}, 'grad_norm': {}, 'learning_rate': 1e-05, 'epoch': 0.{}}}\n"


def _steps(*norms: str, skipped: int = 0) -> str:
    return "".join(_STEP.format(number, norm, skipped) for number, norm in enumerate(norms, 71))


@pytest.mark.parametrize(
    "log",
    [
        _steps("1.21", "nan", "nan", "nan"),
        "".join(_TRAINER.format("0.0", "nan", n) for n in range(4)),
        "".join(f"step: {n} loss: nan\n" for n in range(4)),
        _steps("1.21") + "".join(f"WARNING loop.py:9 loss is NaN at step {n}, skipping batch\n" for n in range(40)),
    ],
)
def test_a_job_that_trains_on_nan_is_not_fine(told: Told, log: str) -> None:
    incident = told(log)
    assert (incident.status, incident.verdict.category) == (Status.DEGRADED, Category.NUMERICS)
    assert incident.verdict.confidence is Confidence.SUPPORTED
    assert "nan" in primary(incident).message.lower()


@pytest.mark.parametrize(
    "log",
    [
        _steps("nan", "nan", "nan", "1.21"),  # it came back
        _steps("1.21", "nan", "nan"),  # two steps only
        _steps("nan", "nan", "nan", skipped=1),  # a loss scale that is sought
        _steps("1.21") + "".join(f"WARNING loop.py:9 loss is NaN at step {n}, skipping batch\n" for n in range(5)),
        "".join(f"WARNING loop.py:9 loss is NaN at step {n}, skipping batch\n" for n in range(40)) + _steps("1.21", "1.20"),
        "".join(f"step: {n} loss: 2.{n} eval_loss: nan\n" for n in range(5)),
        "".join(f"epoch {n} validation loss: nan\n" for n in range(5)),
        "".join(f"step: {n} loss: nanoGPT\n" for n in range(5)),
    ],
)
def test_a_job_that_came_back_or_measures_nothing_is_fine(told: Told, log: str) -> None:
    assert told(log).status is Status.HEALTHY


def test_a_job_that_died_of_something_else_is_told_of_that(told: Told) -> None:
    died = 'Traceback (most recent call last):\n  File "/job/go.py", line 9, in <module>\n    main()\nValueError: no such part: 7\n'
    assert primary(told(_steps("nan", "nan", "nan") + died)).type == "ValueError"


_WARNED = "".join(
    f"[2026-11-29 20:15:20,330] torch._dynamo.convert_frame: [WARNING] {text}\n"
    for text in (
        "WON'T CONVERT forward /job/net.py line 12",
        "due to:",
        "Traceback (most recent call last):",
        '  File "/opt/python/lib/python3.10/concurrent/futures/_base.py", line 403, in __get_result',
        "    raise self._exception",
        "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:",
        "FileNotFoundError: [Errno 2] No such file or directory: 'g++'",
    )
)
_LSF = "\nYour job looked like:\n\npython go.py\n\n{}\n\nResource usage summary:\n\n    CPU time :   36786.88 sec.\n"
_RAISED = (
    'Traceback (most recent call last):\n  File "/job/go.py", line 9, in <module>\n    main()\n'
    "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\nFileNotFoundError: [Errno 2] No such file or directory: 'g++'\n"
)


def test_what_dynamo_would_not_convert_and_warned_of_ended_nothing(told: Told) -> None:
    work = "Epoch [1/2], Loss: 0.9\nEpoch [2/2], Loss: 0.8\n"
    assert told(_WARNED + work + _LSF.format("Successfully completed.")).status is Status.HEALTHY
    assert told(_WARNED + _LSF.format("Successfully completed.")).status is Status.HEALTHY


def test_a_script_that_ends_with_0_may_have_held_a_program_that_failed(told: Told) -> None:
    assert told(_RAISED + _LSF.format("Successfully completed.")).verdict.category is Category.JIT_COMPILE
    assert told(_WARNED.replace("[WARNING]", "[ERROR]") + _LSF.format("Exited with exit code 1.")).status is Status.CRASHED


@pytest.mark.parametrize(
    "end",
    [
        ':::MLL 1795983320.100 run_stop: {"value": null, "metadata": {"status": "success", "lineno": 93}}\n',
        ':::MLLOG {"namespace": "", "time_ms": 15, "event_type": "INTERVAL_END", "key": "run_stop", "value": null, "metadata": {"status": "success"}}\n',
        ':::MLPv0.5.0 gnmt 1541.2 (train.py:88) run_stop: {"success": true}\n',
    ],
)
def test_mlperfs_records_tell_a_good_end(told: Told, end: str) -> None:
    assert "ended in order" in told(end).verdict.explanation
    broken = told(end.replace('"success"', '"aborted"').replace("true", "false"))
    assert "ended in order" not in broken.verdict.explanation


def test_mlperfs_records_tell_work(told: Told) -> None:
    record = ':::MLLOG {"namespace": "", "time_ms": 15, "event_type": "POINT_IN_TIME", "key": "eval_accuracy", "value": 0.7}\n'
    assert told(record * 2).verdict.confidence is Confidence.SUPPORTED
    assert told(record.replace("eval_accuracy", "submission_org")).verdict.confidence is Confidence.HYPOTHESIS
