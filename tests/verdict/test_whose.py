"""Whose failure it was, where the line that tells of it names nobody."""

from __future__ import annotations

from forensics.model.verdict import Category

from .conftest import Told

TIME_LIMIT = """\
[2026-05-12 02:00:01,100] [INFO] [logging.py:128:log_dist] [Rank 0] step=100, skipped=0, lr=[1e-05], mom=[(0.9, 0.95)]
[2026-05-12 02:10:01,100] [INFO] [logging.py:128:log_dist] [Rank 0] step=200, skipped=0, lr=[1e-05], mom=[(0.9, 0.95)]
slurmstepd: error: *** JOB 77 ON node3 CANCELLED AT 2026-05-12T04:00:12 DUE TO TIME LIMIT ***
"""
MEMORY_MONITOR = """\
(RayTrainWorker pid=1001, ip=10.1.2.4) step 100 loss 1.92
(RayTrainWorker pid=1002, ip=10.1.2.5) step 100 loss 1.92
(raylet, ip=10.1.2.5) [2026-05-12 12:10:11,001 E 88 88] (raylet) node_manager.cc:3253: 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: 9a, IP: 10.1.2.5) over the last time period.
(RayTrainWorker pid=1001, ip=10.1.2.4) [rank0]:[E512 12:10:13.000 ProcessGroupNCCL.cpp:1896] [Rank 0] Process group watchdog thread terminated with exception: NCCL error: remote process exited or there was a network error
"""


def test_a_job_that_the_scheduler_ends_is_no_ranks_failure(told: Told) -> None:
    verdict = told(TIME_LIMIT).verdict
    assert verdict.category is Category.KILLED_EXTERNALLY
    assert verdict.rank is None


def test_a_kill_on_one_node_is_not_blamed_on_the_only_rank_of_another(told: Told) -> None:
    verdict = told(MEMORY_MONITOR).verdict
    assert verdict.category is Category.OOM_HOST
    assert verdict.signature == "launcher.ray-memory-monitor"
    assert verdict.rank is None


FAULT = "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f81a0b12345 (most recent call first):\n  File \"/j/data.py\", line 31 in read\n"


def test_a_fault_is_that_of_the_only_task_that_the_signal_ended(told: Told) -> None:
    ends = "srun: error: n2: task 9: Exited with exit code 1\nsrun: error: n4: task 21: Segmentation fault (core dumped)\nsrun: error: n1: task 4: Exited with exit code 1\n"
    incident = told("step 1 loss 2.0\n" + FAULT + ends)
    assert incident.verdict.rank is not None and incident.verdict.rank.number == 21
    two = ends + "srun: error: n4: task 22: Segmentation fault (core dumped)\n"
    assert told("step 1 loss 2.0\n" + FAULT + two).verdict.rank is None
