"""A job that stands still and says nothing of it; a job that moves must not be called so."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, Confidence, Status

from .conftest import Told

START = "(EngineCore_DP0 pid=88) INFO 03-02 09:58:09 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='m'\n"
REPORT = (
    "(APIServer pid=7) INFO 03-02 10:0{minute}:{second}2 [loggers.py:127] Engine 00{engine}: Avg prompt throughput: 0.0 tokens/s, "
    "Avg generation throughput: {rate} tokens/s, Running: {running} reqs, Waiting: 0 reqs, GPU KV cache usage: 1.9%, Prefix cache hit rate: 0.0%\n"
)
WAIT = "(EngineCore_DP0 pid=88) INFO 03-02 10:1{}:12 [shm_broadcast.py:466] No available shared memory broadcast block found in 60 seconds.\n"


def _reports(count: int, running: int = 2, rate: str = "0.0", engines: int = 1) -> str:
    return "".join(
        REPORT.format(minute=n // 6, second=n % 6, engine=engine, rate=rate, running=running) for n in range(count) for engine in range(engines)
    )


def test_requests_of_which_no_token_comes_until_the_log_ends(told: Told) -> None:
    incident = told(START + _reports(3, rate="41.2") + _reports(5))
    assert (incident.status, incident.verdict.category) == (Status.HUNG, Category.HANG_OR_WATCHDOG)
    assert incident.verdict.confidence is Confidence.HYPOTHESIS and "long prompt" in (incident.verdict.must_not_prove or "")
    assert incident.verdict.rank is None and "Running: 2 reqs" in incident.verdict.evidence[0].quote


@pytest.mark.parametrize(
    "end",
    [
        _reports(3),  # no longer than a long prompt takes
        _reports(8, running=0),  # nobody asks for anything
        _reports(5) + _reports(1, rate="12.5"),  # it went on
        _reports(3, engines=2),  # two engines tell more often than one
        _reports(5) + '(APIServer pid=7) INFO:     10.0.0.9:51234 - "POST /v1/completions HTTP/1.1" 200 OK\n',
        _reports(5) + "(APIServer pid=7) INFO:     Application shutdown complete.\n",
    ],
)
def test_a_server_that_moves_idles_or_ended_does_not_hang(told: Told, end: str) -> None:
    assert told(START + _reports(3, rate="41.2") + end).status is Status.HEALTHY


PROBE = '(APIServer pid=7) INFO:     10.0.0.9:51234 - "GET /{} HTTP/1.1" 200 OK\n'


@pytest.mark.parametrize("path", ["health", "metrics", "v1/models"])
def test_a_server_answers_probes_without_its_engine(told: Told, path: str) -> None:
    probed = "".join(f"{report}\n{PROBE.format(path)}" for report in _reports(5).splitlines())
    assert told(START + _reports(3, rate="41.2") + probed).status is Status.HUNG
    served = PROBE.replace("GET /{}", "POST /v1/completions")
    assert told(START + _reports(3, rate="41.2") + probed + served).status is Status.HEALTHY
    assert told(START + PROBE.format(path) * 20).status is Status.HEALTHY


def test_workers_that_do_not_answer_while_requests_run(told: Told) -> None:
    waits = "".join(map(WAIT.format, range(3)))
    incident = told(START + _reports(1) + waits)
    assert (incident.status, incident.verdict.confidence) == (Status.HUNG, Confidence.SUPPORTED)
    assert "No available shared memory" in incident.verdict.evidence[0].quote
    # a reader that waits while a model compiles, or while nobody asks
    for above in ("", _reports(1, running=0)):
        assert told(START + above + waits).status is Status.HEALTHY
    assert told(START + _reports(1) + WAIT.format(1)).status is Status.HEALTHY
    # right below its work two minutes are enough for a guess; with another line between them the job may do something else
    worked = START + _reports(1, rate="41.2")
    guessed = told(worked + waits[: len(waits) * 2 // 3])
    assert (guessed.status, guessed.verdict.confidence) == (Status.HUNG, Confidence.HYPOTHESIS)
    assert guessed.verdict.signature == incident.verdict.signature == "vllm.no-broadcast-block"
    between = "(EngineCore_DP0 pid=88) INFO 03-02 10:10:40 [w.py:3] Compiling 3 graphs for other sizes\n"
    assert told(worked + between + waits[: len(waits) * 2 // 3]).status is Status.HEALTHY


LONG_WAIT = "(EngineCore_DP0 pid=88) INFO 03-02 10:{:02d}:12 [shm_broadcast.py:466] No available shared memory broadcast block found in 60 seconds.\n"


@pytest.mark.parametrize(
    ("minutes", "between", "status"),
    [
        (range(1, 13), "", Status.HUNG),
        (range(1, 10), "", Status.HEALTHY),  # no longer than a big model compiles
        (range(1, 25, 3), "", Status.HEALTHY),  # told seldom
        (range(1, 13), "(EngineCore_DP0 pid=88) INFO 03-02 10:12:40 [w.py:3] Compiling 3 graphs for other sizes\n", Status.HEALTHY),
    ],
)
def test_workers_that_do_not_answer_while_an_engine_starts(told: Told, minutes: range, between: str, status: Status) -> None:
    incident = told(START + "".join(map(LONG_WAIT.format, minutes)) + between)
    assert incident.status is status
    if status is Status.HUNG:
        assert incident.verdict.confidence is Confidence.HYPOTHESIS and incident.verdict.evidence[0].span.first_line == 2


DUMP = """\
Process 4711: /opt/venv/bin/python train.py
Python v3.12.9 (/usr/bin/python3.12)

Thread 4711 (idle): "MainThread"
    acquire_read (engine/distributed/shm_broadcast.py:612)
    dequeue (engine/distributed/shm_broadcast.py:794)
    main (train.py:40)
    <module> (train.py:51)
Thread 4790 (idle): "Thread-1"
    wait (threading.py:359)
"""


def test_nobody_takes_stacks_of_a_job_that_moves(told: Told) -> None:
    incident = told(DUMP)
    assert (incident.status, incident.verdict.confidence) == (Status.HUNG, Confidence.HYPOTHESIS)
    assert incident.primary is not None and incident.primary.frames[-1].function == "acquire_read"
    assert "waits for the message of another process" in incident.verdict.explanation
    assert told(DUMP.partition("\n\n")[2]).status is Status.HUNG  # the line of the process was not pasted


def test_stacks_among_the_steps_of_a_job_are_a_profile(told: Told) -> None:
    steps = "".join(f"step {n} loss: 2.{n}\n" for n in range(10, 14))
    assert told(steps + DUMP + steps.replace("step 1", "step 2")).status is Status.HEALTHY
    crash = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    main()\nKeyError: \'labels\'\n'
    assert told(DUMP + crash).status is Status.CRASHED


TIMER = """\
Timeout (0:05:00)!
Thread 0x00007f2e8b7fe740 (most recent call first):
  File "/opt/venv/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py", line 2700 in all_reduce
  File "train.py", line 40 in main
  File "train.py", line 51 in <module>
"""


def test_a_timer_that_nobody_stopped(told: Told) -> None:
    steps = "".join(f"step {n} loss: 2.{n}\n" for n in range(10, 14))
    incident = told(steps + TIMER)
    assert (incident.status, incident.verdict.confidence) == (Status.HUNG, Confidence.HYPOTHESIS)
    assert incident.verdict.signature == "python.faulthandler-timeout"
    assert told(steps + TIMER + steps.replace("step 1", "step 2")).status is Status.HEALTHY
    assert told(steps + TIMER.partition("\n")[2]).status is Status.HEALTHY  # who asked for it, and why, is not told


STORE = "INFO:torch.distributed.distributed_c10d:Waiting in store based barrier to initialize process group for rank: 0, key: store_based_barrier_key:1 (world_size=4, worker_count=2, timeout=0:30:00)\n"
RAY = "INFO 03-02 18:5{}:03 [ray_utils.py:233] Waiting for creating a placement group of specs for {} seconds. specs=[{{'GPU': 1.0}}, {{'GPU': 1.0}}]. Check `ray status` to see if you have enough resources.\n"


@pytest.mark.parametrize("waits", [[STORE] * 5, [RAY.format(n, 10 * 2**n) for n in range(5)]])
def test_a_process_that_waits_for_others_until_the_log_ends(told: Told, waits: list[str]) -> None:
    start = "nohup: ignoring input\n"
    incident = told(start + "".join(waits))
    assert (incident.status, incident.verdict.confidence) == (Status.HUNG, Confidence.HYPOTHESIS)
    assert "missing" in incident.verdict.next_steps[1] and incident.verdict.rank is None
    assert told(start + "".join(waits[:3])).status is Status.HEALTHY  # the others may still come
    came = "INFO:torch.distributed.distributed_c10d:Rank 0: Completed store-based barrier for key:store_based_barrier_key:1 with 4 nodes.\n"
    assert told(start + "".join(waits) + came).status is Status.HEALTHY


BOOT = "(EngineCore pid=88) INFO 03-02 09:58:09 [core.py:77] Initializing a V1 LLM engine (v0.25.0) with config: model='m'\n"
SHARDS = "(EngineCore pid=88) Loading safetensors checkpoint shards:  40% Completed | 2/5 [00:31<00:46, 15.52s/it]\n"
TRACKED = (
    "/usr/lib/python3.12/multiprocessing/resource_tracker.py:301: UserWarning: resource_tracker: There appear to be 3 leaked semaphore "
    "objects to clean up at shutdown\n  warnings.warn('resource_tracker: There appear to be %d '\n"
)
CAPTURED = "\r  0%|          | 0/36 [00:00<?, ?it/s]\rCapturing num tokens (num_tokens=4096 avail_mem=9.31 GB):   0%|          | 0/36 [00:00<?, ?it/s]"
SERVES = "(APIServer pid=7) INFO:     Application startup complete.\n"


@pytest.mark.parametrize("end", [SHARDS + TRACKED, CAPTURED + TRACKED, SHARDS + TRACKED.partition("\n")[0] + "\n"])
def test_an_engine_that_is_gone_while_it_starts(told: Told, end: str) -> None:
    incident = told(BOOT + end)
    assert (incident.status, incident.verdict.confidence) == (Status.UNKNOWN, Confidence.HYPOTHESIS)
    assert incident.verdict.category is Category.KILLED_EXTERNALLY and "was gone" in incident.verdict.title
    assert Category.OOM_HOST in [other.category for other in incident.verdict.alternatives]
    assert "leaked semaphore" in incident.verdict.evidence[-1].quote


@pytest.mark.parametrize(
    "end",
    [
        SERVES + TRACKED,  # it had answered
        SHARDS + SERVES + "(APIServer pid=7) INFO:     Application shutdown complete.\n" + TRACKED,  # an orderly end
        "all 12 prompts written to out.jsonl\n" + TRACKED,  # a script at its end leaves semaphores, too
    ],
)
def test_semaphores_are_left_behind_by_who_ends_in_order_too(told: Told, end: str) -> None:
    assert told(BOOT + end).status is Status.HEALTHY


@pytest.mark.parametrize(
    ("end", "what"),
    [
        (SHARDS, "loading its weights"),
        ("(EngineCore pid=88) INFO 03-02 09:59:11 [monitor.py:53] torch.compile took 41.07 s in total\n", "compiling its model"),
        ("(EngineCore pid=88) INFO 03-02 09:59:01 [backends.py:1148] Dynamo bytecode transform time: 7.02 s\n", "compiling its model"),
        ("(Worker_TP1 pid=91) [aiter] waiting for baton release at /srv/aiter/jit/build/lock_module_norm\n", "kernel that another process"),
        ("[aiter] waiting for baton release at /srv/aiter/jit/build/lock_module_norm (timeout=600s)\n", "kernel that another process"),
        ("(EngineCore pid=88) INFO 03-02 09:59:20 [kv_cache_utils.py:1229] GPU KV cache size: 120,400 tokens\n", "laying out its memory"),
    ],
)
def test_a_log_that_ends_while_an_engine_starts(told: Told, end: str, what: str) -> None:
    incident = told(BOOT + end)
    assert (incident.status, incident.verdict.category) == (Status.UNKNOWN, Category.UNKNOWN)
    assert what in incident.verdict.title
    assert told(BOOT + end + SERVES).status is Status.HEALTHY
    assert told(BOOT + SERVES + end).status is Status.HEALTHY  # a kernel that the first request needs
