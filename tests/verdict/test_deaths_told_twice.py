"""One death told in several ways, and ends that follow nothing: aborts and faults of a broken device, a launcher's last word."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, Status

from .conftest import Told

WATCHDOG = (
    "[rank1]:[E1129 20:15:46.546600506 ProcessGroupNCCL.cpp:1896] [PG ID 2 PG GUID 3 Rank 1] Process group watchdog thread terminated with "
    "exception: CUDA error: an illegal memory access was encountered\n"
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\n"
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
)
ABORTED = 'Fatal Python error: Aborted\n\nThread 0x00007f1 (most recent call first):\n  File "/usr/lib/python3.12/threading.py", line 359 in wait\n\n'
FAULTED = ABORTED.replace("Aborted", "Segmentation fault")
RAISED = (
    "(VllmWorker rank=0 pid=71) ERROR 11-29 20:15:47 [multiproc_executor.py:522] Traceback (most recent call last):\n"
    '(VllmWorker rank=0 pid=71) ERROR 11-29 20:15:47 [multiproc_executor.py:522]   File "/opt/vllm/v1/worker/gpu_worker.py", line 80, in execute_model\n'
    "(VllmWorker rank=0 pid=71) ERROR 11-29 20:15:47 [multiproc_executor.py:522] RuntimeError: CUDA error: an illegal memory access was encountered\n"
)
WAITED = (
    "(EngineCore_0 pid=43) ERROR 11-29 20:16:26 [core.py:491] Traceback (most recent call last):\n"
    '(EngineCore_0 pid=43) ERROR 11-29 20:16:26 [core.py:491]   File "/opt/vllm/distributed/shm_broadcast.py", line 443, in acquire_read\n'
    "(EngineCore_0 pid=43) ERROR 11-29 20:16:26 [core.py:491] TimeoutError\n"
    "(EngineCore_0 pid=43) ERROR 11-29 20:16:26 [core.py:491] \n"
    "(EngineCore_0 pid=43) ERROR 11-29 20:16:26 [core.py:491] The above exception was the direct cause of the following exception:\n"
    "(EngineCore_0 pid=43) ERROR 11-29 20:16:26 [core.py:491] \n"
    "(EngineCore_0 pid=43) ERROR 11-29 20:16:26 [core.py:491] Traceback (most recent call last):\n"
    '(EngineCore_0 pid=43) ERROR 11-29 20:16:26 [core.py:491]   File "/opt/vllm/v1/executor/multiproc_executor.py", line 221, in collective_rpc\n'
    "(EngineCore_0 pid=43) ERROR 11-29 20:16:26 [core.py:491] TimeoutError: RPC call to execute_model timed out.\n"
)


def test_a_fault_while_an_abort_is_reported_is_not_the_cause(told: Told) -> None:
    incident = told(ABORTED + FAULTED + RAISED)
    assert incident.primary is not None and incident.primary.type == "RuntimeError"
    assert incident.verdict.category is Category.ILLEGAL_MEMORY_ACCESS


def test_a_fault_without_an_abort_is(told: Told) -> None:
    incident = told(FAULTED)
    assert incident.primary is not None and incident.primary.type == "SIGSEGV"


def test_who_waited_for_a_broken_device_is_not_the_cause(told: Told) -> None:
    incident = told(WATCHDOG + "terminate called after throwing an instance of 'c10::DistBackendError'\n" + WATCHDOG + ABORTED + WAITED)
    assert incident.verdict.category is Category.ILLEGAL_MEMORY_ACCESS
    assert incident.verdict.rank is not None and incident.verdict.rank.number == 1
    assert "outside this log" not in incident.verdict.explanation


def test_who_waited_in_vain_is_all_there_is(told: Told) -> None:
    incident = told(WAITED)
    assert incident.status is Status.HUNG
    assert incident.primary is not None and "execute_model" in (incident.primary.message or "")


STEPS = "".join(f" {n}%|#         | {n}0/1000 [00:0{n}<25:38,  1.75it/s]\n" for n in range(1, 8))
CLOSED = (
    "[2026-11-29 19:34:17,654] [INFO] [launch.py:315:sigkill_handler] Killing subprocess 3261\n"
    "[2026-11-29 19:34:28,588] [ERROR] [launch.py:321:sigkill_handler] ['/usr/bin/python', '-u', 'train.py', '--local_rank=1'] "
    "exits with return code = -15\n"
)


@pytest.mark.parametrize("before", ["", "ERROR: fused kernels not found! The slow ones are used.\n"])
def test_a_job_that_was_ended_at_work_is_not_healthy(told: Told, before: str) -> None:
    incident = told(before + STEPS + CLOSED)
    assert incident.status is Status.KILLED
    assert incident.verdict.category is Category.KILLED_EXTERNALLY
    assert incident.verdict.rank is None  # the launcher prints the command that it started last


def test_pdsh_puts_the_host_before_the_rank(told: Told) -> None:
    text = 'Traceback (most recent call last):\n  File "/home/u/train.py", line 3, in <module>\n    f()\nValueError: x\n'
    incident = told("".join(f"10.0.0.2: [rank4]: {line}\n" for line in text.splitlines()) + "10.0.0.1: [rank0]: step 3\n")
    assert incident.verdict.rank is not None
    assert (incident.verdict.rank.number, incident.verdict.rank.node) == (4, "10.0.0.2")


GDB = 'Thread 4 "server" received signal SIGABRT, Aborted.\n__pthread_kill_implementation (no_tid=0, signo=6) at ./nptl/pthread_kill.c:44\n'
WORDS = (
    "CUDA error: operation failed due to a previous error during capture\n"
    "  current device: 1, in function ggml_cuda_op at /src/ggml/src/ggml-cuda/ggml-cuda.cu:1600\n  cudaGetLastError()\n"
)


def test_a_debuggers_session_above_the_programs_words_is_the_same_abort(told: Told) -> None:
    incident = told(GDB + "(gdb) bt\n\n" + WORDS)
    assert incident.verdict.category is Category.GRAPH_CAPTURE
    assert [f.message.split("\n")[0] for f in incident.failures] == ["CUDA error: operation failed due to a previous error during capture"]


def test_an_abort_of_which_two_programs_may_speak_is_left_alone(told: Told) -> None:
    other = WORDS.replace("operation failed due to a previous error during capture", "an illegal memory access was encountered")
    incident = told(GDB + "(gdb) bt\n\n" + WORDS + "step 3\n" * 30 + other)
    assert len(incident.failures) == 3


def test_an_end_that_a_launcher_prints_and_logs(told: Told) -> None:
    said = "Global rank 1 (PID 4711) exited with code {0}\nERROR:composer.cli.launcher:Global rank 1 (PID 4711) exited with code {0}\n"
    for code, name, category in ((1, "exit 1", Category.UNKNOWN), (-11, "SIGSEGV", Category.SEGFAULT)):
        incident = told("Building trainer...\n" + said.format(code))
        assert incident.primary is not None and (incident.primary.kind, incident.primary.type) == ("exit", name)
        assert incident.verdict.category is category
        assert incident.verdict.rank is not None and incident.verdict.rank.number == 1
        assert len(incident.failures) == 1
