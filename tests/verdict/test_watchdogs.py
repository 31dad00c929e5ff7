"""An engine's watchdog, and the kill that it ends its processes with."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, CausalRole, Incident, Status

from .conftest import Told, primary

WORK = "".join(
    f"[2026-05-06 11:00:{n:02} TP{n % 4}] Decode batch. #running-req: 4, #token: {900 + n}, token usage: 0.05, gen throughput (token/s): 88.10, #queue-req: 0\n"
    for n in range(24)
)
KILLED = "Killed\n"


def watchdog(*ranks: int, soft: bool = False, clock: str = "11:06:00") -> str:
    return "".join(
        f"[2026-05-06 {clock} TP{n}] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft={soft})\n" for n in ranks
    )


def kill_of(incident: Incident) -> CausalRole:
    return next(f.role for f in incident.failures if f.type == "SIGKILL")


@pytest.mark.parametrize("kill", ["", KILLED, "run.sh: line 9:  4100 Killed                  python -m serve\n"])
def test_the_kill_behind_a_watchdog_is_its_own(told: Told, kill: str) -> None:
    incident = told(WORK + watchdog(0, 1, 3) + kill)
    assert incident.status is Status.HUNG and incident.verdict.category is Category.HANG_OR_WATCHDOG
    assert incident.verdict.rank is None
    assert "3 of 4 ranks report it; TP2 does not" in incident.verdict.explanation
    if kill:
        checks = 'INFO:     10.0.0.9:4000 - "GET /health HTTP/1.1" 200 OK\n' * 3
        assert told(WORK + watchdog(0, 1, 3) + checks + kill).status is Status.HUNG
        assert kill_of(incident) is CausalRole.CASCADE


def test_the_words_before_the_watchdogs_own_line_are_the_same_failure(told: Told) -> None:
    first = "".join(f"[2026-05-06 11:06:00 TP{n}] Watchdog timeout (self.watchdog_last_forward_ct=77)\n" + watchdog(n) for n in (0, 1, 3))
    incident = told(WORK + first + KILLED)
    assert incident.status is Status.HUNG and incident.verdict.signature == "sglang.scheduler-watchdog"


@pytest.mark.parametrize(
    "text",
    [
        WORK + KILLED,
        WORK + KILLED + watchdog(0, 1, 3),
        WORK + watchdog(0, 1, 3, soft=True) + KILLED,
        WORK + watchdog(0, 1, 3) + WORK.replace(" 11:00:", " 11:09:") + KILLED,
    ],
    ids=["alone", "before", "only reports", "went on"],
)
def test_another_kill_is_the_failure(told: Told, text: str) -> None:
    incident = told(text)
    assert incident.status is Status.KILLED and incident.primary is not None and incident.primary.type == "SIGKILL"


def test_the_kernels_word_beats_the_watchdogs(told: Told) -> None:
    oom = "[88123.4] Out of memory: Killed process 4100 (python) total-vm:90000000kB, anon-rss:60000000kB, file-rss:0kB\n"
    assert told(WORK + watchdog(0, 1, 3) + oom).verdict.category is Category.OOM_HOST


def test_where_all_or_few_report_nobody_is_pointed_at(told: Told) -> None:
    for ranks in ((0, 1, 2, 3), (0,), (0, 1)):
        assert "look there first" not in told(WORK + watchdog(*ranks)).verdict.explanation


HANG = "".join(f"[05/06/2026-11:08:00] [TRT-LLM] [RANK {n}] [E] Hang detected on rank {n} in PyExecutor.\n" for n in range(2))
START = "[05/06/2026-11:00:00] [TRT-LLM] [RANK {0}] [I] TensorRT-LLM version: 1.2.0\n"
BEGIN = START.format(0) + START.format(1)
ITERATIONS = "".join(
    f"[05/06/2026-11:01:{n:02}] [TRT-LLM] [RANK 0] [I] iter = {n}, global_rank = 0, rank = 0, host_step_time = 9.0ms\n" for n in range(30)
)


def phase(incident: Incident) -> str | None:
    assert incident.primary is not None
    return incident.primary.phase


def test_iterations_of_a_rank_are_past_the_start(told: Told) -> None:
    assert phase(told(BEGIN + ITERATIONS + HANG)) == "decode"
    assert phase(told(BEGIN + HANG)) == "startup"


FULL = (
    "[2026-05-06 11:02:00 TP2] Scheduler hit an exception: Traceback (most recent call last):\n"
    '  File "/opt/serve/python/sglang/srt/managers/scheduler.py", line 900, in event_loop_overlap\n    result = self.run_batch(batch)\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.25 GiB. GPU 2 has a total capacity of 79.10 GiB of which 1.00 GiB is free.\n\n"
)
ARGS = "[2026-05-06 10:59:00] server_args=ServerArgs(model_path='/m/x', tp_size=4)\n"


def test_work_of_another_rank_counts_too(told: Told) -> None:
    first = "".join(line for line in WORK.splitlines(keepends=True) if " TP0]" in line)
    assert phase(told(ARGS + first + FULL)) == "decode"
    assert phase(told(ARGS + first + FULL + first.replace(" 11:00:", " 11:03:"))) == "decode"


def test_work_behind_the_failure_does_not(told: Told) -> None:
    assert phase(told(ARGS + FULL)) == phase(told(ARGS + FULL + WORK.replace(" 11:00:", " 11:03:"))) != "decode"


def _spied(rank: int, call: str) -> str:
    return (
        f"Process {4000 + rank}: sglang::scheduler_TP{rank}\nPython v3.10.12 (/usr/bin/python3.10)\n\n"
        f'Thread {4800 + rank} (idle): "Thread-1 (watchdog_thread)"\n    dump (sglang/srt/utils.py:99)\n    _bootstrap (threading.py:973)\n'
        f'Thread {4000 + rank} (idle): "MainThread"\n    {call} (sglang/srt/layers/linear.py:222)\n'
        f"    event_loop_overlap (sglang/srt/managers/scheduler.py:640)\n    run_scheduler_process (sglang/srt/managers/scheduler.py:{'2' * (rank + 3)})\n"
    )


def _barked(*ranks: int) -> str:
    return "".join(f"[2026-03-02 10:05:06 TP{rank}] Watchdog timeout (self.watchdog_last_forward_ct=9, forward_ct=9)\n" for rank in ranks)


def _at(incident: Incident) -> list[str]:
    return [frame.function for frame in primary(incident).frames][-2:]


def test_the_path_of_a_watchdogs_hang_is_its_dumps_main_thread(told: Told) -> None:
    assert _at(told(_barked(0) + _spied(0, "gather"))) == ["event_loop_overlap", "gather"]
    assert _at(told(_barked(0, 1) + _spied(1, "reduce") + _spied(0, "gather"))) == ["event_loop_overlap", "gather"]
    dumped = (
        'Thread 0x00007f11 (most recent call first):\n  File "/opt/sglang/srt/utils.py", line 9 in watchdog_thread\n\n'
        'Thread 0x00007f12 (most recent call first):\n  File "/opt/sglang/srt/layers/linear.py", line 2 in gather\n'
        '  File "/opt/sglang/srt/managers/scheduler.py", line 640 in event_loop_overlap\n  File "<string>", line 1 in <module>\n'
    )
    assert _at(told(_barked(0) + dumped)) == ["event_loop_overlap", "gather"]


WAITS = (
    "Process 4000: sglang::scheduler_TP0\nPython v3.12.9 (/usr/bin/python3.12)\n\n"
    'Thread 4000 (idle): "MainThread"\n    wait (threading.py:655)\n    resolve_batch_result (tp_worker_overlap_thread.py:174)\n'
    "    event_loop_overlap (scheduler.py:639)\n    run_scheduler_process (scheduler.py:2011)\n"
    'Thread 4790 (idle): "Thread-2"\n    wait (threading.py:359)\n    run (tqdm/_monitor.py:60)\n'
)
MODEL = (
    'Thread 4791 (idle): "Thread-4 (forward_thread_func)"\n    acquire (filelock/_api.py:344)\n    load_cuda_ops (flashinfer/jit/core.py:122)\n'
    "    forward (sglang/srt/models/qwen2.py:169)\n    forward_batch_generation (sglang/srt/managers/tp_worker.py:200)\n"
)


def test_where_the_main_thread_waits_for_the_models_that_one_tells(told: Told) -> None:
    assert _at(told(_barked(0) + WAITS + MODEL)) == ["load_cuda_ops", "acquire"]
    assert _at(told(_barked(0) + WAITS)) == ["resolve_batch_result", "wait"]
    working = WAITS.replace("    wait (threading.py:655)\n", "    gather (sglang/srt/layers/linear.py:222)\n")
    assert _at(told(_barked(0) + working + MODEL)) == ["resolve_batch_result", "gather"]


def test_file_names_without_folders_in_an_engines_stack_are_its_own(told: Told) -> None:
    owners = {f.function: owner for f, owner in zip(*(lambda one: (one.frames, one.frame_owners))(primary(told(_barked(0) + WAITS))), strict=True)}
    assert owners == {"run_scheduler_process": "engine", "event_loop_overlap": "engine", "resolve_batch_result": "engine", "wait": "runtime"}
    raised = 'Traceback (most recent call last):\n  File "train.py", line 7, in <module>\n    main()\n  File "loop.py", line 3, in main\n    x\nNameError: x\n'
    assert set(primary(told(raised)).frame_owners) == {"user"}


def test_a_dump_of_another_process_gives_no_path(told: Told) -> None:
    assert _at(told(_barked(0) + _spied(1, "reduce"))) == []
    assert _at(told(_barked(0, 1) + _spied(0, "gather").replace("sglang::scheduler_TP0", "python serve.py"))) == []
    assert _at(told(_spied(0, "gather") + _barked(0))) == []  # asked for before


def outcomes(incident: Incident) -> dict[str, str]:
    return {row.rank.label: row.outcome for row in incident.ranks}


def test_a_rank_that_only_reports_a_hang_did_not_fail_first(told: Told) -> None:
    assert outcomes(told(WORK + watchdog(3))) == {"TP0": "silent", "TP1": "silent", "TP2": "silent", "TP3": "unknown"}
    raised = 'Traceback (most recent call last):\n  File "/srv/app/serve.py", line 8, in step\n    take(x)\nKeyError: 7\n'
    failed = "".join(f"[2026-05-06 11:06:00 TP3] {line}\n" for line in raised.splitlines())
    assert outcomes(told(WORK + failed))["TP3"] == "initiating"
