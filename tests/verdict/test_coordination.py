"""JAX's coordination service and its allocator: whom they name, and what a log shows that ends with their lines."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, Incident, Status
from tests.verdict.conftest import Told, number

WORK = "I0503 10:00:01.100000  2100 train.py:80] step 100 loss 2.31\n"
TASK = "/job:jax_worker/replica:0/task:"
RAISED = '[rank0]: Traceback (most recent call last):\n[rank0]:   File "/j/train.py", line 8, in <module>\n[rank0]:     step()\n[rank0]: '


@pytest.mark.parametrize(
    "said",
    [
        f"{RAISED}jaxlib._jax.XlaRuntimeError: UNAVAILABLE: Task {TASK}3 heartbeat timeout. This indicates that the remote task has failed.\n",
        f"E0503 10:14:22.8  2177 service.cc:15] Stopping coordination service as heartbeat has timed out for {TASK}3 and there is none\n",
        f"E0503 10:14:22.8  2177 service.cc:15] {TASK}3 has been set to ERROR in coordination service: UNAVAILABLE: Task {TASK}3 heartbeat timeout.\n",
        "jax.errors.JaxRuntimeError: UNAVAILABLE: The following tasks are unhealthy (stopped sending heartbeats):\n3\nThe tasks have crashed.\n",
        "F0503 10:14:22.9  2180 client.h:7] absl::Status: INTERNAL: Barrier failed. Task 3 heartbeat timeout.\n",
    ],
)
def test_the_task_that_fell_silent_is_blamed_and_not_who_tells_of_it(told: Told, said: str) -> None:
    incident = told(WORK + said)
    assert number(incident) == 3
    assert not incident.verdict.same_failure_ranks
    assert "printed first" not in incident.verdict.explanation
    outcomes = {row.rank.number: row.outcome for row in incident.ranks}
    assert outcomes[3] == "initiating" and outcomes.get(0) in (None, "cascade")


def _barrier(reached: str, *missing: int) -> str:
    names = "".join(f"{TASK}{n}\n" for n in missing)
    return (
        f"{RAISED}jaxlib._jax.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: ckpt::3. Please look at the task logs.\n"
        f"[rank0]: # of tasks that reached the barrier: {reached}.\n"
        f"[rank0]: The first task at the barrier: {TASK}0. Some timed out task names:\n" + "".join(f"[rank0]: {line}\n" for line in names.splitlines())
    )


def test_who_alone_did_not_come_to_a_barrier_is_named(told: Told) -> None:
    incident = told(_barrier("7/8", 6))
    assert incident.status is Status.HUNG and number(incident) == 6
    assert number(told(_barrier("6/8", 6, 7))) is None  # either
    assert number(told(_barrier("5/8", 6))) is None  # others are not listed


def test_a_task_that_only_asked_is_not_blamed(told: Told) -> None:
    fatal = "F0503 10:14:22.9  2180 client.h:7] Terminating process because the JAX distributed service detected fatal errors. absl::Status: "
    incident = told(WORK + fatal + f"INTERNAL: Coordination service has stopped. RecordHeartbeat() from task: {TASK}2 failed.\n")
    assert incident.status is Status.CRASHED and number(incident) != 2


FULL = "2026-05-03 10:00:09.4: W external/xla/xla/tsl/framework/bfc_allocator.cc:482] Allocator ({}) ran out of memory trying to allocate 12.50GiB"
DUMP = """\
2026-05-03 10:00:09.4: I external/xla/xla/tsl/framework/bfc_allocator.cc:1039] BFCAllocator dump for GPU_0_bfc
2026-05-03 10:00:09.4: I external/xla/xla/tsl/framework/bfc_allocator.cc:1046] Bin (256): 	Total Chunks: 40, Chunks in use: 40.
2026-05-03 10:00:09.4: I external/xla/xla/tsl/framework/bfc_allocator.cc:1107] Sum Total of in-use chunks: 58.20GiB
"""


def test_an_allocator_that_gave_up_at_the_logs_end(told: Told) -> None:
    full = FULL.format("GPU_0_bfc") + " (rounded to 13421772800)requested by op \n"
    incident = told(WORK + full + DUMP)
    assert incident.verdict.category is Category.OOM_GPU and incident.status is Status.CRASHED
    assert len(incident.failures) == 1  # the dump is part of it
    assert told(DUMP).verdict.category is Category.OOM_GPU  # the line above it is not in the log
    host = FULL.format("gpu_host_bfc") + " (rounded to 13421772800)requested by op \n"
    assert told(WORK + host).verdict.category is Category.OOM_HOST


def _healthy(incident: Incident) -> bool:
    return incident.status is Status.HEALTHY and incident.primary is None


def test_an_allocator_that_tried_and_a_job_that_went_on(told: Told) -> None:
    tried = FULL.format("GPU_0_bfc") + " with freed_by_count=0. The caller indicates that this is not a failure, but it may be slower.\n"
    assert _healthy(told(WORK + tried))
    full = FULL.format("GPU_0_bfc") + " (rounded to 13421772800)requested by op \n"
    more = "".join(WORK.replace("step 100", f"step {n}") for n in range(101, 105))
    assert _healthy(told(WORK + full + DUMP + more))


SCHEDULER = """\
[2026-05-03 10:00:09 TP2] Scheduler hit an exception: Traceback (most recent call last):
  File "/usr/lib/python3/dist-packages/sglang/srt/managers/scheduler.py", line 900, in event_loop_overlap
    self.process()
KeyError: 'b17'
"""


def test_of_one_ranks_lines_nobody_knows_who_was_first(told: Told) -> None:
    assert "only TP2 has lines in this log" in told(SCHEDULER).verdict.explanation
    calm = "".join(f"[2026-05-03 10:00:07 TP{n}] max_total_num_tokens=100\n" for n in (0, 1))
    assert "TP2 failed first." in told(calm + SCHEDULER).verdict.explanation
    single = "[2026-05-03 10:00:07] server_args=ServerArgs(model_path='/m', tp_size=1, dp_size=1)\n" + SCHEDULER.replace("TP2", "TP0")
    explanation = told(single).verdict.explanation
    assert "failed first" not in explanation and "has lines" not in explanation  # there is no other


def test_the_map_of_the_hosts_memory_tells_of_the_host(told: Told) -> None:
    dump = "2026-05-03 10:00:09.4: I external/xla/xla/tsl/framework/bfc_allocator.cc:1039] BFCAllocator dump for {}\n"
    assert told(dump.format("xla_gpu_host_bfc")).verdict.category is Category.OOM_HOST
    assert told(dump.format("GPU_0_bfc")).verdict.category is Category.OOM_GPU
