"""Jobs that their scheduler took away: behind errors that they had outlived, in a file that two jobs wrote, told for the step and the job."""

from __future__ import annotations

from forensics.model.verdict import Category, CausalRole, Status
from tests.verdict.conftest import Told, primary

_MISSED = "/var/spool/slurm/job711/slurm_script: line 4: module: command not found\n"
_BAR = "".join(f" {n}%|{'█' * n}| {n}/99 [00:0{n}<00:30, 3.1it/s]\n" for n in (1, 2, 3))
_JOB = "slurmstepd: error: *** JOB 711 ON node3 CANCELLED AT 2026-11-29T20:15:20{} ***\n"
_STEP = "slurmstepd: error: *** STEP 711.0 ON node3 CANCELLED AT 2026-11-29T20:12:02 ***\n"
_THREAD = (
    "Exception in thread Thread-3:\nTraceback (most recent call last):\n"
    '  File "/opt/conda/lib/python3.11/threading.py", line 1045, in _bootstrap_inner\n    self.run()\n'
    '  File "/home/u/job/worlds.py", line 31, in load\n    return store.read(part)\n'
    "RuntimeError: the archive ends too early\n"
)


def test_a_command_that_was_not_found_is_no_reason_for_a_cancellation(told: Told) -> None:
    one = _BAR.splitlines(keepends=True)[0]
    incident = told(_MISSED + one + _JOB.format(""))
    assert (incident.status, incident.verdict.category) == (Status.KILLED, Category.KILLED_EXTERNALLY)
    assert "CANCELLED" in primary(incident).message
    assert next(f for f in incident.failures if "not found" in f.message).role is CausalRole.TEARDOWN


def test_without_work_in_between_nothing_is_known_to_have_outlived_it(told: Told) -> None:
    assert "not found" in primary(told(_MISSED + _JOB.format(""))).message


def test_a_bar_of_another_job_in_the_same_file_is_no_work_after_the_end(told: Told) -> None:
    torn = " 2%|█| 2/99 [00:09<00:30, 3.1it/s]" + _STEP + _JOB.format("").replace("711", "712") + "\r 9%|██| 9/99 [00:08<00:30, 3.1it/s]\n"
    incident = told(_BAR + torn)
    assert (incident.status, incident.verdict.category) == (Status.KILLED, Category.KILLED_EXTERNALLY)


def test_a_job_that_had_finished_is_healthy_though_its_allocation_was_taken_back(told: Told) -> None:
    assert told(_BAR + "Training completed\n" + _JOB.format("")).status is Status.HEALTHY


def test_preemption_ends_a_job_whose_thread_had_died(told: Told) -> None:
    incident = told(_THREAD + _STEP + _JOB.format(" DUE TO PREEMPTION"))
    assert (incident.status, incident.verdict.category) == (Status.KILLED, Category.KILLED_EXTERNALLY)
    assert incident.verdict.signature == "launcher.slurm-cancelled"
    assert "PREEMPTION" in primary(incident).message
    # the step's line, which says no reason, is told with the job's
    assert sum("CANCELLED" in f.message for f in incident.failures) == 1


def test_what_breaks_the_whole_process_is_not_one_threads(told: Told) -> None:
    """After an illegal access nothing works on the GPU any more, in no thread: the job only had not ended yet."""
    broken = _THREAD.replace("the archive ends too early", "CUDA error: an illegal memory access was encountered")
    incident = told(broken + _STEP + _JOB.format(" DUE TO PREEMPTION"))
    assert incident.verdict.category is Category.ILLEGAL_MEMORY_ACCESS


def test_a_program_that_had_died_was_not_preempted(told: Told) -> None:
    died = _THREAD.removeprefix("Exception in thread Thread-3:\n")
    assert primary(told(died + _JOB.format(" DUE TO PREEMPTION"))).type == "RuntimeError"
    # nor does a cancellation without a reason excuse a thread: somebody may have seen the job hang
    assert primary(told(_THREAD + _STEP)).type == "RuntimeError"


def test_steps_of_other_jobs_stay_apart(told: Told) -> None:
    incident = told(_BAR + _STEP.replace("711", "699") + _JOB.format(" DUE TO PREEMPTION"))
    assert not any("STEP" in e.quote for f in incident.failures[:1] for e in f.evidence)


def test_a_row_of_slurms_accounting_tells_of_the_node(told: Told) -> None:
    rows = "JobID  JobName  Partition  State  ExitCode\n8123  pretrain  gpu  {}  1:0\n8123.batch  batch    CANCELLED  0:15\n"
    lost = told(rows.format("NODE_FAIL"))
    assert lost.verdict.signature == "launcher.slurm-accounting-node-failed"
    assert lost.verdict.category is Category.DRIVER_OR_HARDWARE
    assert told(rows.format("OUT_OF_ME+")).verdict.category is Category.OOM_HOST
    assert told("JobID  JobName  Partition  State  ExitCode\n8123  pretrain  gpu  COMPLETED  0:0\n").status is Status.HEALTHY
    # what the job itself printed is nearer than the row
    own = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.25 GiB of which 1.5 GiB is free.\n\n$ sacct -j 8123\n"
    assert told(own + rows.format("NODE_FAIL")).verdict.category is Category.OOM_GPU
