"""What serving engines leave behind when they die: the telling line is chosen, whatever stands around it. Every case has a near
miss, which must not be taken for it."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, Confidence, Status

from .conftest import Told, primary

BANNER = "INFO 11-29 20:15:01 [api_server.py:1034] vLLM API server version 0.9.1\n"
FRAME = '  File "/srv/env/lib/python3.12/site-packages/'


# --- kills and signals

SCHEDULER_GONE = (
    "[2026-11-29 20:14:20] server_args=ServerArgs(model_path='org/model', tp_size=2)\n"
    "[2026-11-29 20:15:08] Rank 0 scheduler is dead. Please check if there are relevant logs.\n"
    "[2026-11-29 20:15:10] Exit code: {code}\n"
    "Traceback (most recent call last):\n"
    + FRAME
    + 'sglang/srt/entrypoints/engine.py", line 812, in _launch_subprocesses\n'
    "    data = scheduler_pipe_readers[i].recv()\n"
    '  File "/usr/lib/python3.12/multiprocessing/connection.py", line 399, in _recv\n'
    "    raise EOFError\n"
    "EOFError\n"
)


def test_an_exit_code_below_a_dead_scheduler_is_a_kill(told: Told) -> None:
    incident = told(SCHEDULER_GONE.format(code=-9))
    assert primary(incident).type == "SIGKILL"
    assert incident.status is Status.KILLED
    assert incident.verdict.category is Category.KILLED_EXTERNALLY
    assert [one.category for one in incident.verdict.alternatives] == [Category.OOM_HOST]
    assert incident.verdict.alternatives[0].confidence is Confidence.HYPOTHESIS
    assert "dmesg" in incident.verdict.next_steps[0]


def test_a_segfault_there_is_no_kill(told: Told) -> None:
    incident = told(SCHEDULER_GONE.format(code=-11))
    assert primary(incident).type == "SIGSEGV"
    assert incident.verdict.category is Category.SEGFAULT
    assert not incident.verdict.alternatives


@pytest.mark.parametrize(("code", "category"), [(-9, Category.KILLED_EXTERNALLY), (-3, Category.UNKNOWN)])
def test_a_scheduler_that_died_while_it_started(told: Told, code: int, category: Category) -> None:
    incident = told(
        "[2026-11-29 20:14:20] server_args=ServerArgs(model_path='org/model', tp_size=4)\nTraceback (most recent call last):\n"
        + FRAME
        + 'sglang/srt/entrypoints/engine.py", line 1277, in _wait\n    raise _scheduler_died_error(i, procs[i])\n'
        f"RuntimeError: Rank 2 scheduler died during initialization (exit code: {code}). If exit code is -9 (SIGKILL), a "
        "common cause is the OS OOM killer.\n"
    )
    assert incident.verdict.category is category


ABORTED = (
    BANNER + "(RayWorkerWrapper pid=336, ip=10.0.0.9) free(): double free detected in tcache 2\n"
    "(RayWorkerWrapper pid=336, ip=10.0.0.9) *** SIGABRT received at time=1795983320 on cpu 12 ***\n"
    "(RayWorkerWrapper pid=336, ip=10.0.0.9) Fatal Python error: Aborted\n"
    "(RayWorkerWrapper pid=336, ip=10.0.0.9) \n"
    "(RayWorkerWrapper pid=336, ip=10.0.0.9) Stack (most recent call first):\n"
    '(RayWorkerWrapper pid=336, ip=10.0.0.9)   File "/srv/vllm/distributed/pynccl.py", line 99 in __init__\n'
    '(RayWorkerWrapper pid=336, ip=10.0.0.9)   File "/srv/vllm/worker/worker.py", line 113 in init_device\n'
    "(RayWorkerWrapper pid=336, ip=10.0.0.9) \n"
)


def test_an_abort_is_no_consequence_of_a_later_kill(told: Told) -> None:
    incident = told(ABORTED + "Killed\n")
    assert "double free" in primary(incident).message
    assert incident.verdict.category is Category.SEGFAULT
    assert any(frame.function == "init_device" for frame in primary(incident).frames)


def test_a_kill_before_an_abort_stays_the_cause(told: Told) -> None:
    assert primary(told(BANNER + "Killed\n" + ABORTED.removeprefix(BANNER))).type == "SIGKILL"


@pytest.mark.parametrize(
    ("line", "signal"),
    [
        ("Segmentation fault: 11", "SIGSEGV"),
        ("./run.sh: line 53: 33476 Segmentation fault: 11  ./main -m model.gguf", "SIGSEGV"),
        (" Bus error (core dumped)", "SIGBUS"),
        ("Caught signal 11 (Segmentation fault: address not mapped to object at address 0x3)  ==== backtrace (tid: 4711) ====", "SIGSEGV"),
    ],
)
def test_signals_as_other_shells_and_cut_lines_tell_them(told: Told, line: str, signal: str) -> None:
    assert primary(told(f"llama_model_loader: loaded meta data\n{line}\n")).type == signal


@pytest.mark.parametrize("line", ["a Segmentation fault: 11 of them were seen", "Caught signal 15 (asked to stop), leaving"])
def test_sentences_about_signals_are_none(told: Told, line: str) -> None:
    assert told(f"llama_model_loader: loaded meta data\n{line}\n").primary is None


def test_a_note_on_sigterm_asks_nobody_to_stop(told: Told) -> None:
    note = (
        "INFO 11-29 20:15:27 [ray_executor.py:104] Shutting down Ray distributed executor. If you see error log from logging.cc "
        "regarding SIGTERM received, please ignore because this is the expected termination process in Ray.\n"
    )
    assert told(BANNER + note).primary is None
    asked = told(BANNER + "INFO 11-29 20:15:27 [launcher.py:70] SIGTERM received, draining\n")
    assert primary(asked).type == "SIGTERM"


# --- who saw what


def test_an_engine_seen_dead_is_not_healthy_because_the_server_left_in_order(told: Told) -> None:
    seen = (
        BANNER + "INFO 11-29 20:15:02 [engine.py:317] Added request a1.\n"
        "ERROR 11-29 20:15:12 [client.py:307] RuntimeError('Engine process (pid 4711) died.')\n"
        "ERROR 11-29 20:15:12 [client.py:307] NoneType: None\n"
        "ERROR 11-29 20:15:15 [serving_chat.py:897] Traceback (most recent call last):\n"
        f"ERROR 11-29 20:15:15 [serving_chat.py:897] {FRAME}vllm/engine/multiprocessing/client.py\", line 671, in _process_request\n"
        "ERROR 11-29 20:15:15 [serving_chat.py:897]     raise request_output\n"
        "ERROR 11-29 20:15:15 [serving_chat.py:897] vllm.engine.multiprocessing.MQEngineDeadError: Engine loop is not running.\n"
        "INFO:     Shutting down\nINFO:     Application shutdown complete.\nINFO:     Finished server process [4700]\n"
    )
    incident = told(seen)
    assert incident.status is not Status.HEALTHY
    assert "NoneType" not in (primary(incident).type or "")
    calm = told(BANNER + "INFO 11-29 20:15:02 [engine.py:317] Added request a1.\nINFO:     Finished server process [4700]\n")
    assert calm.status is Status.HEALTHY


def test_the_heading_of_a_report_gives_way_to_a_line_that_says_more(told: Told) -> None:
    heading = "ERROR 11-29 20:15:20 [core.py:515] EngineCore failed to start.\n"
    telling = "ERROR 11-29 20:15:21 [registry.py:410] Error in inspecting model architecture 'FooForCausalLM'\n"
    assert "inspecting" in primary(told(BANNER + heading + telling)).message
    assert "failed to start" in primary(told(BANNER + heading)).message


def test_a_port_that_is_taken_comes_before_the_connection_that_is_refused(told: Told) -> None:
    refused = (
        "[2026-11-29 20:17:25] Initialization failed. warmup error: Traceback (most recent call last):\n"
        + FRAME
        + 'requests/adapters.py", line 700, in send\n    raise ConnectionError(e, request=request)\n'
        "requests.exceptions.ConnectionError: HTTPConnectionPool(host='0.0.0.0', port=30017): Max retries exceeded\n"
    )
    taken = "[2026-11-29 20:15:24] ERROR:    [Errno 98] error while attempting to bind on address ('::', 30017, 0, 0): address already in use\n"
    incident = told("[2026-11-29 20:15:20 TP0] Load weight begin.\n" + taken + refused)
    assert primary(incident).type == "OSError"
    assert incident.verdict.category is Category.CONFIG_ERROR
    assert "ConnectionError" in (primary(told("[2026-11-29 20:15:20 TP0] Load weight begin.\n" + refused)).type or "")


def test_a_device_error_logged_above_its_traceback_is_the_traceback(told: Told) -> None:
    at = "ERROR 11-29 20:15:15 engine.py:366] "
    lines = [
        "HIP error: invalid argument",
        "HIP kernel errors might be asynchronously reported at some other API call.",
        "Traceback (most recent call last):",
        '  File "/srv/vllm/worker/worker.py", line 141, in init_device',
        "    free, total = torch.cuda.mem_get_info()",
        "RuntimeError: HIP error: invalid argument",
    ]
    incident = told(BANNER + "".join(f"{at}{line}\n" for line in lines))
    assert primary(incident).type == "RuntimeError"
    assert [frame.function for frame in primary(incident).frames] == ["init_device"]
    assert incident.verdict.category is not Category.CONFIG_ERROR


def test_an_unsigned_device_error_is_the_only_rank_that_tells_it(told: Told) -> None:
    printed = "Failed: Cuda error /srv/csrc/all_reduce.cuh:364 'uncorrectable ECC error encountered'\n"
    watchdog = (
        "[rank{r}]:[E1129 20:15:51.6 ProcessGroupNCCL.cpp:1595] [PG ID 2 PG GUID 3 Rank {r}] Process group watchdog thread "
        "terminated with exception: CUDA error: uncorrectable ECC error encountered\n"
    )
    one = told("[2026-11-29 20:15:20 TP0] Load weight begin.\n" + watchdog.format(r=1) + printed)
    assert one.verdict.rank is not None
    assert one.verdict.rank.number == 1
    two = told("[2026-11-29 20:15:20 TP0] Load weight begin.\n" + printed + watchdog.format(r=1) + watchdog.format(r=2))
    assert primary(two).rank is None or primary(two).rank.number is None  # type: ignore[union-attr]


# --- memory that others hold

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 3 has a total capacity of 79.11 GiB of which 1.02 GiB is free. "


def test_memory_of_another_process_is_evidence_and_advice(told: Told) -> None:
    incident = told(OOM + "Process 4711 has 41.20 GiB memory in use. Including non-PyTorch memory, this process has 36.80 GiB memory in use.\n")
    assert incident.verdict.signature == "torch.out-of-memory-beside-another"
    assert "41.20 GiB" in incident.verdict.title
    assert any("4711" in step for step in incident.verdict.next_steps)


def test_memory_of_this_process_alone_blames_nobody_else(told: Told) -> None:
    incident = told(OOM + "Including non-PyTorch memory, this process has 77.80 GiB memory in use.\n")
    assert incident.verdict.signature == "torch.cuda-out-of-memory"


# --- stopped by hand, nothing to read, fragments


def test_an_interrupt_on_all_ranks_was_by_hand(told: Told) -> None:
    lines = "".join(
        f'[rank{r}]: Traceback (most recent call last):\n[rank{r}]:   File "/srv/serve.py", line 30, in main\n'
        f"[rank{r}]:     wait()\n[rank{r}]: KeyboardInterrupt\n"
        for r in range(4)
    )
    incident = told("step 20 loss: 2.0\n" + lines)
    assert incident.verdict.category is Category.KILLED_EXTERNALLY
    assert "by hand" in incident.verdict.title
    assert "by hand" in incident.verdict.explanation
    assert not any("scheduler" in step for step in incident.verdict.next_steps)


@pytest.mark.parametrize("text", ["", "\n\n  \n"])
def test_an_empty_log_says_nothing(told: Told, text: str) -> None:
    incident = told(text)
    assert incident.status is Status.UNKNOWN
    assert incident.verdict.category is Category.UNKNOWN
    assert "nothing to read" in incident.verdict.explanation.lower()
    assert told("hello\n").verdict.category is Category.NONE


def test_torn_error_records_are_not_health(told: Told) -> None:
    torn = 'ERROR 11-29 20:15:43 [executor.py:487]   File "/srv/env/models/mixture.py", l\nine 743, in __init__\n'
    assert told(torn).status is Status.UNKNOWN
    worked = "INFO 11-29 20:16:00 [loggers.py:87] Avg prompt throughput: 10.0 tokens/s, Avg generation throughput: 3.0 tokens/s\n"
    assert told(torn + worked * 3).status is Status.HEALTHY


# --- compilers

PIPELINER = 'loc("/srv/env/decode_attention.py":402:9): error: operation scheduled before its operands\n'


def test_the_pipeliners_complaint_stops_nothing(told: Told) -> None:
    started = "[2026-11-29 20:15:20 TP0] Capture cuda graph begin. This can take up to several minutes.\n"
    assert told(started + PIPELINER * 2).primary is None
    failed = "/srv/env/decode_attention.py:36:0: note: Pipeline failed while executing [`ConvertTritonGPUToLLVM` on 'builtin.module' operation]\n"
    assert primary(told(started + PIPELINER + failed)).type == "MLIR error"


# --- JSON records
