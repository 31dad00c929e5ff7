"""Several Slurm jobs in one file: the last one's outcome is the answer, what came before it stands among the incidents."""

from __future__ import annotations

from forensics.model.verdict import Category, Status
from tests.verdict.conftest import Told


def _job(number: int, body: str, node: str = "n17") -> str:
    return f"SLURM_JOB_ID={number} on {node}\nLoading modules: cuda/12.8 python/3.12\nStarting the evaluation of runs/ckpt-7\n{body}"


def _steps(first: int, last: int, day: int = 1) -> str:
    return "".join(f"2026-05-{day:02d} 10:{n // 60:02d}:{n % 60:02d} step {n} loss {3 - 0.001 * n:.3f}\n" for n in range(first, last))


def _items(count: int) -> str:
    return "".join(f"evaluated item {n} of {count}: score {n % 7}\n" for n in range(count))


def _cancelled(number: int, why: str = "") -> str:
    return f"slurmstepd: error: *** JOB {number} ON n17 CANCELLED AT 2026-05-01T10:05:00{why} ***\n"


KEY_ERROR = 'Traceback (most recent call last):\n  File "/j/train.py", line 4, in <module>\n    main()\nKeyError: \'b17\'\n'
DONE = "Success rate: 18.0%\n"
OVER = "srun: error: n17: task 3: Exited with exit code 1\nsrun: Terminating StepId=101.0\n"


def test_the_last_job_decides_and_the_others_are_told(told: Told) -> None:
    incident = told(_job(101, _items(30) + _cancelled(101, " DUE TO PREEMPTION")) + _job(102, _items(90) + DONE))
    assert incident.status is Status.HEALTHY and incident.verdict.category is Category.NONE
    assert "last job" in incident.verdict.title and "One run before it failed" in incident.verdict.explanation
    assert [other.category for other in incident.others] == [Category.KILLED_EXTERNALLY]
    raised = told(_job(101, KEY_ERROR + OVER) + _job(102, _steps(0, 40) + _cancelled(102)) + _job(103, _items(90) + DONE))
    assert raised.status is Status.HEALTHY
    assert [other.category for other in raised.others] == [Category.USER_CODE, Category.KILLED_EXTERNALLY]


def test_a_last_job_that_failed_is_the_verdict_though_an_earlier_one_failed_alike(told: Told) -> None:
    incident = told(_job(101, _items(90) + _cancelled(101)) + _job(102, _items(90) + _cancelled(102)))
    assert incident.status is Status.KILLED
    assert incident.primary is not None and "JOB 102" in incident.primary.evidence[0].quote


def test_the_next_jobs_number_stands_above_what_begins_its_run(told: Told) -> None:
    """A script prints its number first, and what is known to begin a run later: the number is not the earlier job's."""
    omp = "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default\n"
    first, second = (f"SLURM_JOB_ID={number}\n{omp}{_items(90)}{_cancelled(number)}" for number in (101, 102))
    incident = told(first + second)
    assert incident.primary is not None and "JOB 102" in incident.primary.evidence[0].quote


def test_a_last_job_that_only_began_says_nothing_yet(told: Told) -> None:
    assert told(_job(101, _items(30) + _cancelled(101)) + _job(102, "")).status is Status.KILLED


def test_a_job_that_came_back_from_the_queue_is_the_same_job(told: Told) -> None:
    incident = told(_job(101, _steps(0, 40) + _cancelled(101, " DUE TO PREEMPTION")) + _job(101, _steps(30, 70, 2) + "Training finished.\n"))
    assert incident.status is Status.DEGRADED and "Slurm put the job back" in incident.verdict.explanation


def test_another_job_that_writes_on_is_told_by_the_clock(told: Told) -> None:
    later = told(_steps(0, 40) + _cancelled(101) + _steps(0, 40, 2) + "Training finished.\n")
    assert later.status is Status.HEALTHY and len(later.others) == 1
    at_once = "2026-05-01 10:05:09 saving a checkpoint before the end\n"
    assert told(_steps(0, 40) + _cancelled(101) + at_once).status is Status.KILLED
    elsewhere = _steps(0, 40).replace("05-01 10:", "05-01 17:") + _cancelled(101) + at_once.replace("10:05", "17:05")
    assert told(elsewhere).status is Status.KILLED  # the log's clock is another time zone's


def test_an_end_above_the_work_that_was_cancelled_is_another_jobs(told: Told) -> None:
    assert told(_steps(0, 40) + "Training finished.\n" + _steps(0, 40, 2) + _cancelled(102)).status is Status.KILLED
    assert told(_steps(0, 40) + "Training finished.\n" + _cancelled(102)).status is Status.HEALTHY  # what was cancelled had ended


def test_a_choice_that_inductor_ignores_is_no_error_of_the_job(told: Told) -> None:
    head = "E0106 16:56:53.99 21 torch/_inductor/select_algorithm.py:2100] [7/0] "
    ignored = head + "{} error during autotuning: \n" + head + "No valid triton configs. OutOfResources: 7\n" + head + "Ignoring this choice.\n"
    assert told(ignored.format("Runtime")).status is Status.HEALTHY
    assert told(ignored.format("Fatal")).status is Status.UNKNOWN
