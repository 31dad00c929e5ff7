"""Communication kernels that print whom they waited for, and trap: the device error is theirs, and the rank they name is to blame."""

from __future__ import annotations

from forensics.model.verdict import Category, CausalRole, Incident, Status

from .conftest import Told

HEAD = "[2026-11-29 20:14:01] server_args=ServerArgs(model_path='org/moe', tp_size=4, dp_size=4, ep_size=4, moe_a2a_backend='deepep')\n"
WORK = "".join(
    f"[2026-11-29 20:15:{10 + turn * 4 + rank:02d} DP{rank} TP{rank} EP{rank}] Decode batch. #running-req: 3, #token: 900, "
    "token usage: 0.11, gen throughput (token/s): 310.00, #queue-req: 0,\n"
    for turn in range(3)
    for rank in range(4)
)


def printed(rank: int, peer: int) -> str:
    return f"DeepEP timeout for dispatch receive, rank {rank}, local_expert_idx 1, src_rank {peer}\n"


def raised(rank: int, words: str = "unspecified launch failure") -> str:
    return (
        f"[2026-11-29 20:18:00 DP{rank} TP{rank} EP{rank}] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/opt/sglang/srt/managers/scheduler.py", line 2101, in run_scheduler_process\n'
        "    scheduler.event_loop_normal()\n"
        f"torch.AcceleratorError: CUDA error: {words}\n\n"
    )


def label(incident: Incident) -> str | None:
    return incident.verdict.rank.label if incident.verdict.rank is not None else None


def test_the_rank_that_the_kernels_waited_for_is_to_blame(told: Told) -> None:
    incident = told(HEAD + WORK + "".join(printed(r, 2) for r in (0, 1, 3)) + "".join(raised(r) for r in (0, 1, 3)))
    assert (incident.status, incident.verdict.category) == (Status.HUNG, Category.HANG_OR_WATCHDOG)
    assert incident.verdict.signature == "nccl.deepep-timeout"
    assert label(incident) == "DP2 TP2 EP2"
    assert incident.collective is not None and [r.number for r in incident.collective.waiting] == [0, 1, 3]
    assert "src_rank 2" in incident.verdict.evidence[0].quote
    assert incident.primary is not None and incident.primary.root_message.startswith("DeepEP timeout for dispatch receive, rank 0")
    assert len(incident.failures) == 1


def test_a_rank_without_a_complaint_of_its_own_takes_its_peers(told: Told) -> None:
    incident = told(HEAD + WORK + printed(0, 2) + raised(0) + raised(1))
    assert incident.verdict.category is Category.HANG_OR_WATCHDOG
    assert label(incident) == "DP2 TP2 EP2"


def test_ranks_that_waited_for_each_other_blame_nobody(told: Told) -> None:
    incident = told(HEAD + WORK + printed(0, 2) + printed(2, 0) + raised(0) + raised(2))
    assert incident.verdict.category is Category.HANG_OR_WATCHDOG
    assert label(incident) is None


def test_a_launch_failure_without_a_complaint_stays_one(told: Told) -> None:
    incident = told(HEAD + WORK + raised(0) + raised(1))
    assert incident.verdict.category is Category.ILLEGAL_MEMORY_ACCESS


def test_an_illegal_access_is_no_kernels_own_stop(told: Told) -> None:
    incident = told(HEAD + WORK + printed(0, 2) + raised(1, "an illegal memory access was encountered"))
    assert incident.primary is not None and "illegal memory access" in incident.primary.root_message


def test_the_peer_that_crashed_before_is_the_cause(told: Told) -> None:
    crash = (
        "[2026-11-29 20:16:00 DP2 TP2 EP2] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/opt/sglang/srt/managers/scheduler.py", line 2101, in run_scheduler_process\n'
        "    scheduler.event_loop_normal()\n"
        "KeyError: 'experts.3'\n\n"
    )
    incident = told(HEAD + WORK + crash + printed(0, 2) + printed(1, 2) + raised(0) + raised(1))
    assert incident.primary is not None and incident.primary.type == "KeyError"
    assert label(incident) == "DP2 TP2 EP2"
    waited = next(f for f in incident.failures if f.type == "torch.AcceleratorError")
    assert waited.role is CausalRole.CASCADE
