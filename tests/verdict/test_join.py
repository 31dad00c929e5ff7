"""One failure told several times is one failure."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, CausalRole

from . import logs
from .conftest import Told


def test_a_device_assert_and_the_traceback_it_surfaced_in(told: Told) -> None:
    incident = told(logs.DEVICE_ASSERT)
    primary = incident.primary
    assert primary is not None
    assert primary.kind == "device_assert"
    assert primary.type == "RuntimeError"
    assert "srcIndex < srcSelectDimSize" in primary.root_message
    assert [frame.function for frame in primary.frames] == ["<module>", "forward"]
    assert primary.call_path.gaps
    assert incident.verdict.category is Category.DEVICE_ASSERT
    assert all(f.role is not CausalRole.INITIATING for f in incident.failures[1:])


def test_the_librarys_own_words_are_the_root(told: Told) -> None:
    incident = told(logs.NCCL_WARNING)
    primary = incident.primary
    assert primary is not None
    assert primary.root_message.startswith("Error while creating shared memory segment")
    assert primary.message.startswith("NCCL error in")


def test_last_error_inside_the_message_is_the_root(told: Told) -> None:
    text = (
        logs.NCCL_WARNING.split("\n", 1)[1]
        + "ncclSystemError: System call or external library call failed.\nLast error:\nnvmlInit_v2() failed: Driver/library version mismatch\n"
    )
    primary = told(text).primary
    assert primary is not None
    assert primary.root_message == "nvmlInit_v2() failed: Driver/library version mismatch"


def test_an_exception_raised_again_behind_a_prefix_keeps_its_root(told: Told) -> None:
    text = """\
Traceback (most recent call last):
  File "/work/serve.py", line 5, in build
    compile()
RuntimeError: the tile does not fit into this kernel
<torn>
Traceback (most recent call last):
  File "/work/serve.py", line 9, in <module>
    capture()
Exception: Capture failed: the tile does not fit into this kernel
"""
    incident = told(text)
    primary = incident.primary
    assert primary is not None
    assert (primary.type, primary.root_type) == ("Exception", "RuntimeError")
    assert len(incident.failures) == 1


def test_lines_of_other_writers_are_not_the_message(told: Told) -> None:
    text = """\
[rank0]: Traceback (most recent call last):
[rank0]:   File "/work/train.py", line 9, in <module>
[rank0]:     step()
[rank0]: ValueError: the schedule has no steps
[rank0]:[W512 20:34:04.42 ProcessGroupNCCL.cpp:1476] Warning: WARNING: destroy_process_group() was not called before program exit
"""
    primary = told(text).primary
    assert primary is not None
    assert primary.message == "the schedule has no steps"
    assert primary.role is CausalRole.INITIATING


@pytest.mark.parametrize("srun_first", [True, False])
def test_who_ended_a_slurm_step_is_told_in_either_order(told: Told, srun_first: bool) -> None:
    srun = "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n"
    daemon = "slurmstepd: error: *** STEP 551.0 ON gpu1 CANCELLED AT 2026-05-12T09:00:00 DUE TO TIME LIMIT ***\n"
    incident = told("[rank0]: step 100 loss 1.31\n" + (srun + daemon if srun_first else daemon + srun))
    assert incident.verdict.category is Category.KILLED_EXTERNALLY
    assert incident.verdict.rank is None
    assert incident.primary is not None
    assert "TIME LIMIT" in incident.primary.message


def test_a_line_that_two_parsers_read_is_one_failure(told: Told) -> None:
    text = (
        "[2026-11-29 20:15:20 TP0] Decode batch. #running-req: 1, #token: 7, gen throughput: 91.2\n"
        "[2026-11-29 20:15:20 TP0] ERROR request 0 failed: CUDA error: an illegal memory access was encountered\n"
    )
    incident = told(text)
    assert [(one.kind, one.count) for one in incident.failures] == [("native", 1)]
    later = told(text + "[2026-11-29 20:15:21 TP0] ERROR request 1 failed: the engine is dead\n")
    assert len(later.failures) == 2  # another line is another failure


def test_an_error_of_hours_before_is_not_the_tracebacks(told: Told) -> None:
    early = "[2026-11-29 02:15:20 TP0] CUDA error: an illegal memory access was encountered at step 7\n"
    crash = (
        "[2026-11-29 20:15:20 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/srv/engine/scheduler.py", line 68, in run_scheduler_process\n    scheduler.event_loop_overlap()\n'
        "RuntimeError: CUDA error: an illegal memory access was encountered\n"
    )
    apart = told(early + crash)
    assert [(one.kind, one.count) for one in apart.failures] == [("native", 1), ("python", 1)]
    together = told(early.replace("02:15:20", "20:14:50") + crash)
    assert [(one.kind, one.count) for one in together.failures] == [("python", 1)]
