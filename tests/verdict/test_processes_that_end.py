"""How the processes of a serving job end: who vanished, who was told to stop, who only cleaned up."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, Status
from tests.verdict.conftest import Told

UP = 'INFO:     Application startup complete.\n(APIServer pid=9) INFO:     10.0.0.1:4000 - "POST /v1/completions HTTP/1.1" 200 OK\n'
SEEN_DEAD = (
    "(APIServer pid=9) ERROR 11-29 20:15:40 [async_llm.py:700] AsyncLLM output_handler failed.\n"
    "(APIServer pid=9) ERROR 11-29 20:15:40 [async_llm.py:700] Traceback (most recent call last):\n"
    '(APIServer pid=9) ERROR 11-29 20:15:40 [async_llm.py:700]   File "/srv/vllm/v1/engine/core_client.py", line 88, in get_output\n'
    "(APIServer pid=9) ERROR 11-29 20:15:40 [async_llm.py:700]     raise self._format(outputs) from None\n"
    "(APIServer pid=9) ERROR 11-29 20:15:40 [async_llm.py:700] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an "
    "issue. See stack trace (above) for the root cause.\n"
)
ASKED = (
    "(APIServer pid=9) INFO 11-29 20:15:40 [launcher.py:90] [shutdown] API server: shutdown triggered\n"
    "(EngineCore pid=71) INFO 11-29 20:15:40 [core.py:1300] [shutdown] EngineCore: trigger received signal=SIGTERM\n"
    "(Worker_TP0 pid=81) INFO 11-29 20:15:40 [multiproc_executor.py:790] Parent process exited, terminating worker queues\n"
)
LEFT = "(APIServer pid=9) INFO 11-29 20:15:41 [launcher.py:149] [shutdown] API server: shutting down FastAPI HTTP server\n"


def test_an_engine_missed_after_a_shutdown_was_asked_for_is_no_failure(told: Told) -> None:
    assert told(UP + ASKED + SEEN_DEAD + LEFT).status is Status.HEALTHY
    assert told(UP + SEEN_DEAD + LEFT).status is not Status.HEALTHY


def test_the_parents_word_of_who_vanished_is_nearer_than_the_front_ends(told: Told) -> None:
    gone = "(APIServer pid=9) ERROR 11-29 20:15:40 [core_client.py:600] Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.\n"
    incident = told(UP + gone + SEEN_DEAD)
    assert incident.primary is not None
    assert "EngineCore_DP0 died unexpectedly" in incident.primary.message
    assert any("dmesg" in step for step in incident.verdict.next_steps)
    caused = told(UP + "(Worker_TP1 pid=82) ERROR 11-29 20:15:39 [multiproc_executor.py:900] RuntimeError: no room for the table\n" + gone)
    assert caused.primary is not None
    assert "no room" in caused.primary.message


def _segfault(engine: str) -> str:
    return (
        UP
        + "(Worker_TP0 pid=81) INFO 11-29 20:15:39 [gpu_worker.py:80] step\n"
        + "(Worker_TP1 pid=82) INFO 11-29 20:15:39 [gpu_worker.py:80] step\n"
        + "!!!!!!! Segfault encountered !!!!!!!\n"
        + '  File "<unknown>", line 0, in gather_pages\n  File "<unknown>", line 0, in GOMP_parallel\n\n'
        + f"({engine} pid=71) ERROR 11-29 20:15:40 [multiproc_executor.py:283] Worker proc VllmWorker-6 died unexpectedly, shutting down "
        "executor.\n(Worker_TP0 pid=81) INFO 11-29 20:15:40 [multiproc_executor.py:790] Parent process exited, terminating worker queues\n"
    )


@pytest.mark.parametrize(("engine", "rank"), [("EngineCore", 6), ("EngineCore_DP0", 6), ("EngineCore_DP1", None)])
def test_a_native_crash_without_a_prefix_is_the_vanished_workers(told: Told, engine: str, rank: int | None) -> None:
    incident = told(_segfault(engine))
    assert incident.verdict.category is Category.SEGFAULT
    assert (incident.verdict.rank.number if incident.verdict.rank else None) == rank


CANCELLED = (
    "slurmstepd: error: *** STEP 991.1 ON node7 CANCELLED AT 2026-11-29T20:15:40 ***\n"
    "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\nsrun: error: node7: task 0: Killed\n"
)


def test_tasks_that_slurm_kills_in_a_step_it_cancelled_were_not_killed_by_the_kernel(told: Told) -> None:
    incident = told(UP + CANCELLED)
    assert incident.verdict.category is Category.KILLED_EXTERNALLY
    assert incident.primary is not None
    assert "CANCELLED AT" in incident.primary.message
    assert "kernel" not in incident.verdict.explanation
    # a kill before the step was cancelled is why it was
    first = told(UP + "srun: error: node7: task 2: Killed\n" + CANCELLED)
    assert first.primary is not None
    assert "task 2" in first.primary.message


REFUSED = (
    "[2026-11-29 20:15:40 TP5] Scheduler hit an exception: Traceback (most recent call last):\n"
    '  File "/srv/sglang/srt/managers/scheduler.py", line 2900, in run_scheduler_process\n    scheduler = Scheduler()\n'
    '  File "/srv/sglang/srt/distributed/device_communicators/pynccl_wrapper.py", line 370, in NCCL_CHECK\n    raise RuntimeError(text)\n'
    "RuntimeError: NCCL error: remote process exited or there was a network error\n\n"
)
SIGQUIT = "[2026-11-29 20:15:40] Received sigquit from a child process. It usually means the child failed.\n"


def test_the_shells_killed_behind_an_engine_that_kills_its_own_tree_is_no_cause(told: Told) -> None:
    incident = told(REFUSED + SIGQUIT + "Killed\n")
    assert incident.verdict.category is Category.NCCL
    assert incident.verdict.rank is not None
    assert incident.verdict.rank.number == 5
    alone = told("[2026-11-29 20:15:40 TP5] Load weight begin. avail mem=10.00 GB\n" + "Killed\n")
    assert alone.verdict.category is Category.KILLED_EXTERNALLY


def _store(remote: str, level: str = "W") -> str:
    return (
        f"[rank3]:[{level}529 20:15:40.007310452 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=100, addr=[{remote}]:35218, "
        f"remote=[{remote}]:41811): Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?\n"
        f'[rank3]:[{level}529 20:15:40.014281830 ProcessGroupNCCL.cpp:1826] [PG ID 0 PG GUID 0 Rank 3] Failed to check the "should dump" flag '
        "on TCPStore, (maybe TCPStore server has shut down too early), with error: Failed to recv, got 0 bytes.\n"
    )


WORK = "INFO 11-29 20:15:3{} [loggers.py:271] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 8.9 tokens/s\n"


@pytest.mark.parametrize(
    ("text", "healthy"),
    [
        (WORK.format(1) + WORK.format(2) + _store("localhost"), True),
        (WORK.format(1) + WORK.format(2) + _store("10.0.0.7"), False),
        (WORK.format(1) + WORK.format(2) + _store("localhost", "E"), False),
        (_store("localhost"), False),
    ],
)
def test_a_local_store_that_left_first_is_the_end_of_a_job_that_was_done(told: Told, text: str, healthy: bool) -> None:
    assert (told(text).status is Status.HEALTHY) is healthy
