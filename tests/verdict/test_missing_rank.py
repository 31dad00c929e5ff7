"""Time-outs of collectives, and the rank that the others waited for had failed by itself."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, CausalRole, Incident, Status

from .conftest import Told

API = "torch/distributed/elastic/multiprocessing/api.py"


def timed_out(*ranks: int, clock: str = "10:31:05") -> str:
    work = "WorkNCCL(SeqNum=811, OpType=BARRIER, NumelIn=1, NumelOut=1, Timeout(ms)=600000)"
    return "".join(
        f"[rank{r}]:[E302 {clock}.10{r}771201 ProcessGroupNCCL.cpp:685] [Rank {r}] Watchdog caught collective operation timeout: {work} ran for 600042 milliseconds before timing out.\n"
        for r in ranks
    )


def steps(first: int, last: int, prefix: str = "") -> str:
    return "".join(f"{prefix}2026-03-02 10:20:{n:02d},123 step {n} loss 2.{n}\n" for n in range(first, last))


def raised(rank: int, what: str, function: str = "save") -> str:
    lines = ("Traceback (most recent call last):", '  File "/j/run.py", line 9, in main', "    go()", f'  File "/j/run.py", line 40, in {function}', "    f.write(b)", what)
    return "".join(f"[rank{rank}]: {line}\n" for line in lines)


def ended(rank: int, code: int, clock: str) -> str:
    agent = f"E0302 {clock}.000000 611 {API}:869] failed (exitcode: {code}) local_rank: {rank} (pid: 702) of binary: /usr/bin/python3"
    entry = ("time      : 2026-03-02_" + clock, "host      : n1", f"rank      : {rank} (local_rank: {rank})", f"exitcode  : {code} (pid: 702)")
    return "\n".join((agent, "Root Cause (first observed failure):", "[0]:", *(f"  {line}" for line in entry))) + "\n"


FULL = "OSError: [Errno 28] No space left on device: '/ckpt/30.pt'"


def blamed(incident: Incident) -> int | None:
    return incident.verdict.rank.number if incident.verdict.rank is not None else None


@pytest.mark.parametrize("order", ["above", "below"])
def test_its_own_failure_is_the_cause_wherever_it_stands(told: Told, order: str) -> None:
    own, others = raised(0, FULL), timed_out(2, 3)
    incident = told(steps(1, 9) + (own + others if order == "above" else others + own))
    assert incident.verdict.category is Category.STORAGE and incident.status is Status.CRASHED
    assert blamed(incident) == 0
    waited = [f for f in incident.failures if f.kind == "collective_timeout"]
    assert waited and all(f.role is CausalRole.CASCADE for f in waited)


def test_it_died_in_a_file_of_its_own(told: Told) -> None:
    crash = 'Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f81a0b12345 (most recent call first):\n  File "/j/data.py", line 31 in read\n'
    own = steps(1, 28, "[rank1]: ") + "".join(f"[rank1]: {line}\n" for line in crash.splitlines())
    incident = told(steps(1, 30) + timed_out(0), own, steps(1, 30) + timed_out(2))
    assert incident.primary is not None and incident.primary.type == "SIGSEGV"
    assert blamed(incident) == 1 and incident.status is Status.CRASHED


def test_a_kill_that_its_starter_saw_before_the_time_outs(told: Told) -> None:
    node = steps(1, 9) + ended(5, -9, "10:21:02")
    incident = told(steps(1, 30) + timed_out(0, 1), node)
    assert incident.primary is not None and incident.primary.type == "SIGKILL"
    assert blamed(incident) == 5


def test_a_kill_that_came_after_the_time_outs_is_the_launchers(told: Told) -> None:
    incident = told(steps(1, 30) + timed_out(0, 1), steps(1, 9) + ended(5, -9, "10:33:02"))
    assert incident.status is Status.HUNG


@pytest.mark.parametrize(
    "what",
    [
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2020, remote process exited or there was a network error, NCCL version 2.21.5",
        "ConnectionResetError: [Errno 104] Connection reset by peer",
        "KeyboardInterrupt",
    ],
)
def test_what_a_broken_connection_or_the_end_explains_is_no_cause(told: Told, what: str) -> None:
    assert told(steps(1, 9) + timed_out(2, 3) + raised(0, what, "_recv")).status is Status.HUNG


def test_a_rank_that_timed_out_itself_waited_too(told: Told) -> None:
    assert told(steps(1, 9) + timed_out(0, 2, 3) + raised(0, FULL)).status is Status.HUNG


def test_a_nameless_exception_below_time_outs_is_the_missing_ranks(told: Told) -> None:
    waits = "".join(
        f"[rank{n}]:[E1129 20:15:34.{n}00000000 ProcessGroupNCCL.cpp:632] [Rank {n}] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=88, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600031 milliseconds before timing out.\n"
        for n in (0, 1)
    )
    raised = 'Traceback (most recent call last):\n  File "/j/train.py", line 90, in {0}\n    batch = next(it)\n{1}\n'
    assert told(waits + raised.format("<module>", "KeyError: 'input_ids'")).verdict.category is Category.USER_CODE
    assert told(waits + raised.format("poll", "KeyError: 'input_ids'")).verdict.category is Category.HANG_OR_WATCHDOG
    lost = "torch.distributed.DistBackendError: NCCL communicator was aborted on rank 1"
    assert told(waits + raised.format("<module>", lost)).verdict.category is Category.HANG_OR_WATCHDOG
