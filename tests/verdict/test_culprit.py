"""The exception of the rank for which the others waited."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, Status

from .conftest import Told

STEP = "2026-11-29 20:{:02d}:35 INFO train.py:71 step {} loss 2.1\n"
DIED = """\
[rank3]: Traceback (most recent call last):
[rank3]:   File "/srv/app/train.py", line 201, in train_step
[rank3]:     loss.backward()
[rank3]: torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:2300, remote process exited or there was a network error, NCCL version 2.27.5
[rank3]: ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.
[rank3]: Last error:
[rank3]: NET/IB: Got completion from peer 10.0.1.9<41021> with status=12
"""
WAITED = (
    "[rank{r}]:[E1129 20:{m}:59.20{r}000000 ProcessGroupNCCL.cpp:632] [Rank {r}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=71, "
    "OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600021 milliseconds before timing out.\n"
)
STEPS = "".join(STEP.format(10 + n, n) for n in range(10))


def _waited(minute: int) -> str:
    return "".join(WAITED.format(r=rank, m=minute) for rank in range(3))


def test_it_is_where_things_began(told: Told) -> None:
    incident = told(STEPS + DIED + _waited(30))
    assert (incident.status, incident.verdict.category) == (Status.CRASHED, Category.NCCL)
    assert incident.verdict.rank is not None and incident.verdict.rank.number == 3


@pytest.mark.parametrize("text", [STEPS + _waited(30) + DIED, STEPS + DIED + _waited(19)])
def test_behind_the_time_outs_or_right_with_them_it_may_be_their_end(told: Told, text: str) -> None:
    assert told(text).verdict.category is Category.HANG_OR_WATCHDOG


@pytest.mark.parametrize(("words", "rank"), [("slot still in use by rank 3", None), ("message from rank 3 was cut", None), ("acquire failed on rank 3", 3)])
def test_a_rank_that_did_something_to_the_failing_process_is_not_it(told: Told, words: str, rank: int | None) -> None:
    incident = told(f"F1129 20:15:20.500000 1203 pool.cc:212] Check failed: slot->count == 0 (1 vs. 0) {words}\n")
    assert (incident.verdict.rank and incident.verdict.rank.number) == rank


LOST = "slurmstepd: error: *** STEP 71.0 ON n1 CANCELLED AT 2026-11-29T20:{}:23 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\n"


def test_time_outs_behind_a_lost_node_waited_for_it(told: Told) -> None:
    assert told(STEPS + LOST.format(24) + _waited(30)).verdict.category is Category.DRIVER_OR_HARDWARE
    assert told(STEPS + _waited(30) + LOST.format(31)).verdict.category is Category.HANG_OR_WATCHDOG
