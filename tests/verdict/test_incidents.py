"""Several runs in one log."""

from __future__ import annotations

from forensics.model.verdict import Category, Status

from . import logs
from .conftest import Told

START = "[2025-06-01 {} TP{}] Load weight begin. avail mem=78.00 GB\n"
OOM = "Not enough memory. Please try to increase --mem-fraction-static."


def run(clock: str, kind: str, message: str) -> str:
    return (
        START.format(f"10:0{clock}:00", 0)
        + START.format(f"10:0{clock}:00", 1)
        + logs.scheduler(1, f"10:0{clock}:30", kind, message)
    )


def test_a_restart_that_repeats_the_failure_points_at_the_first(told: Told) -> None:
    incident = told(run("0", "RuntimeError", OOM) + run("2", "RuntimeError", OOM))
    assert incident.verdict.category is Category.OOM_GPU
    assert incident.primary is not None
    assert incident.primary.evidence[0].span.first_line < 10
    assert len(incident.others) == 1


def test_a_run_that_ends_of_what_ended_the_one_before_is_no_recovery(told: Told) -> None:
    """Lines alike are one event, at the first of them; the last of them belongs to its own run."""

    def attempt(minute: int, said: str = "") -> str:
        work = "".join(f"[2025-06-01 10:0{minute}:1{n} TP0] Decode batch. #running-req: {n}, gen throughput: 91.2\n" for n in range(9))
        return "".join(START.format(f"10:0{minute}:00", rank) for rank in (0, 1)) + work + said

    error = "[rank1]: RuntimeError: CUDA error: an illegal memory access was encountered\n"
    first = attempt(0, error + "srun: error: node7: task 1: Exited with exit code 1\n")
    assert told(first + attempt(2)).status is Status.DEGRADED
    incident = told(first + attempt(2, error))
    assert incident.status is Status.CRASHED
    assert [proof.span.first_line for other in incident.others for proof in other.evidence] == [25]
    assert incident.failures[0].count == 1


def test_another_failure_ends_the_job(told: Told) -> None:
    incident = told(run("0", "RuntimeError", OOM) + run("2", "KeyError", "'lm_head'"))
    assert incident.primary is not None
    assert incident.primary.type == "KeyError"
    assert [other.category for other in incident.others] == [Category.OOM_GPU]


def test_one_of_them_can_be_asked_for(told: Told) -> None:
    incident = told(run("0", "RuntimeError", OOM) + run("2", "KeyError", "'lm_head'"), incident=1)
    assert incident.primary is not None
    assert incident.primary.type == "RuntimeError"


def test_ranks_that_start_one_after_the_other_are_one_run(told: Told) -> None:
    text = (
        START.format("10:00:00", 6)
        + logs.scheduler(6, "10:00:01", "RuntimeError", "CUDA error: invalid device ordinal")
        + START.format("10:00:02", 0)
    )
    incident = told(text)
    assert incident.status is Status.CRASHED
    assert incident.verdict.rank is not None
    assert incident.verdict.rank.number == 6
    assert not incident.others
