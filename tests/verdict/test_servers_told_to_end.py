"""Servers that were told to end, processes that only tidy up, and a memory that was full before the end. Every case has a near miss."""

from __future__ import annotations

from forensics.model.verdict import Category, Status

from .conftest import Told, number, primary

UP = "(APIServer pid=90) INFO:     Application startup complete.\n"
SERVED = '(APIServer pid=90) INFO:     10.0.0.7:50100 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
DOWN = "(APIServer pid=90) INFO:     Shutting down\n(APIServer pid=90) INFO:     Application shutdown complete.\n"

# --- a memory of the device that was full, and then nothing but the end


def _full(rank: int) -> str:
    return (
        f"[rank{rank}]:[E716 20:15:4{5 - rank}.324568983 shim_common.cpp:523] Exception in aoti_torch: CUDA out of memory. "
        f"Tried to allocate 3.00 GiB. GPU {rank} has a total capacity of 79.00 GiB of which 1.20 GiB is free.\n"
        "Exception raised from malloc at /pytorch/c10/cuda/CUDACachingAllocator.cpp:1500 (most recent call first):\n"
        "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0xc8 (0x4000d9056 in /srv/env/libc10.so)\n"
    )


def test_a_server_that_only_ends_after_its_memory_was_full_has_not_got_over_it(told: Told) -> None:
    incident = told(UP + _full(3) + _full(1) + DOWN)
    assert incident.verdict.category is Category.OOM_GPU
    assert number(incident) == 3


def test_a_server_that_works_on_has(told: Told) -> None:
    assert told(UP + _full(3) + SERVED * 30 + DOWN).status is not Status.CRASHED
    quiet = "[rank3]:[E716 20:15:40.324568983 shim_common.cpp:523] Exception in aoti_torch: the plan was made anew\n"
    assert told(UP + SERVED * 3 + quiet + DOWN).status is Status.HEALTHY


# --- vLLM's first engine, stopped by hand


OLD_UP = "INFO:     Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)\n"
OLD_WORK = "INFO 04-11 20:14:0{0} metrics.py:455] Avg prompt throughput: 31.0 tokens/s, Avg generation throughput: 9.{0} tokens/s, Running: 1 reqs\n"
ASKED = """\
INFO 04-11 20:15:01 launcher.py:59] Shutting down FastAPI HTTP server.
ERROR 04-11 20:15:01 engine.py:389] MQLLMEngine terminated
ERROR 04-11 20:15:01 engine.py:389] Traceback (most recent call last):
ERROR 04-11 20:15:01 engine.py:389]   File "/srv/env/lib/python3.12/site-packages/vllm/engine/multiprocessing/engine.py", line 371, in signal_handler
ERROR 04-11 20:15:01 engine.py:389]     raise KeyboardInterrupt("MQLLMEngine terminated")
ERROR 04-11 20:15:01 engine.py:389] KeyboardInterrupt: MQLLMEngine terminated
"""
WORKER = "ERROR 04-11 20:15:02 multiproc_worker_utils.py:124] Worker VllmWorkerProcess pid 471 died, exit code: {0}\n"
KILLING = "INFO 04-11 20:15:02 multiproc_worker_utils.py:128] Killing local vLLM worker processes\n"
OLD_DOWN = "INFO:     Shutting down\nINFO:     Application shutdown complete.\n"


def test_workers_that_an_engine_takes_along_when_it_is_stopped(told: Told) -> None:
    work = OLD_UP + "".join(OLD_WORK.format(n) for n in range(5))
    assert told(work + ASKED + WORKER.format(-15) + KILLING + OLD_DOWN).status is Status.HEALTHY
    died = told(work + WORKER.format(-9) + KILLING + OLD_DOWN)
    assert died.status is not Status.HEALTHY
    assert "471" in primary(died).message


# --- SGLang's handlers keep the requests


DUMPED = "ERROR:srt.managers.tokenizer_manager:Dumping requests before crash. crash_dump_folder=None\n"
TERM = "[2026-04-11 20:15:40] SIGTERM received. signum=None frame=None. Draining requests and shutting down...\n"
WORKED = "".join(f"[2026-04-11 20:14:{n}] Decode batch. #running-req: 3, gen throughput (token/s): 310.00, #queue-req: 0\n" for n in range(10, 20))


def test_requests_that_are_kept_because_the_server_ends(told: Told) -> None:
    stopped = told(WORKED + TERM + DUMPED)
    assert stopped.primary is None or "Dumping" not in stopped.primary.message
    failed = told(WORKED + "ERROR:srt.managers.tokenizer_manager:Dumping the weights failed: no space\n")
    assert "Dumping the weights" in primary(failed).message


# --- the resource tracker's own list


TRACKER = (
    "Traceback (most recent call last):\n"
    '  File "/usr/lib/python3.12/multiprocessing/resource_tracker.py", line 239, in main\n'
    "    cache[rtype].remove(name)\n"
    "KeyError: '{0}'\n"
)


def test_a_name_that_the_resource_tracker_has_not_got(told: Told) -> None:
    assert told("3 passed, 2 warnings in 41.07s\n" + TRACKER.format("/mp-k3v0a1qz")).status is Status.HEALTHY
    own = TRACKER.format("learning_rate").replace("/usr/lib/python3.12/multiprocessing/resource_tracker.py", "/home/ann/train.py")
    assert told(own).verdict.category is Category.USER_CODE


def test_tests_that_passed_with_warnings_are_done(told: Told) -> None:
    leaves = "ERROR:root:could not remove the folder\n"
    assert told(leaves + "12 passed, 1 skipped, 3 warnings in 3.21s\n").status is Status.HEALTHY
    assert told(leaves + "1 failed, 12 passed, 3 warnings in 3.21s\n").status is not Status.HEALTHY


# --- a class that an engine keeps to itself


LACKS = (
    "(EngineCore pid=91) Traceback (most recent call last):\n"
    '(EngineCore pid=91)   File "/opt/vllm/v1/core/sched/scheduler.py", line 361, in schedule\n'
    "(EngineCore pid=91)     view.load()\n"
    "(EngineCore pid=91) AttributeError: '{0}' object has no attribute '{1}'\n"
)


def test_a_private_class_tells_of_no_other_package(told: Told) -> None:
    assert told(LACKS.format("_BlockView", "_slots")).verdict.category is Category.UNKNOWN
    assert told(LACKS.format("PretrainedConfig", "slots")).verdict.category is Category.VERSION_MISMATCH


def test_a_server_that_drains_its_requests_ends_in_order(told: Told) -> None:
    drained = "[2026-04-11 20:15:44] Gracefully exiting... Remaining number of requests {0}. Remaining requests remaining_rids=[].\n"
    assert told(WORKED + TERM + drained.format(0)).status is Status.HEALTHY
    assert told(WORKED + TERM + drained.format(7)).status is not Status.HEALTHY


# --- what an assembler advises


def test_advice_of_ptxas_stops_no_build(told: Told) -> None:
    line = "#18 604.0   ptxas /tmp/tmpxft_000001-11_es.compute_90.ptx, line 169; {0}: '.multicast::cluster' should be used on another target\n"
    assert told(line.format("warning : Advisory") * 3 + "#18 700.1 build finished\n").status is Status.HEALTHY
    assert told(line.format("error   ")).verdict.category is Category.JIT_COMPILE
