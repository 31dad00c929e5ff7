"""Logs that end without an error: stacks of whole processes, a machine that is taken back, an engine in the middle of its start."""

from __future__ import annotations

import pytest

from forensics.ingest import from_text
from forensics.model.event import EventKind
from forensics.model.verdict import Category, Status
from forensics.parse import pystack
from tests.verdict.conftest import Told

STEPS = "".join(f"2026-05-03 10:00:{n:02d} step {n} loss 2.31\n" for n in range(1, 5))
PYSTACK = """\
Traceback for thread 4711 (python) [] (most recent call last):
    (C) File "../sysdeps/x86_64/start.S", line 115, in _start (/usr/bin/python3.11)
    (Python) File "/app/train.py", line 99, in <module>
        main()
    (Python) File "/usr/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 2800, in all_reduce
        work.wait()
    (C) File "???", line 0, in c10d::Work::wait(std::chrono::duration<long>) (/usr/lib/libtorch_cpu.so)

Traceback for thread 4720 (python) [Has the GIL] (most recent call last):
    (Python) File "/usr/lib/python3.11/threading.py", line 320, in wait
        waiter.acquire()
"""
GDB = """\
[Thread debugging using libthread_db enabled]

Thread 3 (Thread 0x7f00 (LWP 4721) "pt_nccl_watchdg"):
#0  0x00007f2 in __futex_abstimed_wait_common64 () from /lib/x86_64-linux-gnu/libc.so.6
#1  0x00007f4 in c10d::ProcessGroupNCCL::watchdogHandler() () from /usr/lib/libtorch_cuda.so

Thread 1 (Thread 0x7f10 (LWP 4711) "python"):
#0  0x00007f5 in sched_yield () from /lib/x86_64-linux-gnu/libc.so.6
#1  0x00007f7 in at::cuda::CUDAEvent::synchronize() const () from /usr/lib/libtorch_cuda.so
#2  0x00007f8 in main ()
[Inferior 1 (process 4711) detached]
"""


def test_pystacks_threads_are_one_event() -> None:
    (event,) = pystack.parse(from_text(PYSTACK, anchors=pystack.ANCHORS))
    assert event.kind is EventKind.STACK and len(event.stacks) == 2
    assert [frame.function for frame in event.stacks[0].frames][:2] == ["_start", "<module>"]
    assert event.stacks[0].frames[-1].module == "/usr/lib/libtorch_cpu.so" and event.fields["states"] == ("", "Has the GIL")


def test_a_core_files_stacks_are_those_of_an_end(told: Told) -> None:
    incident = told("The process died due receiving signal SIGABRT\n" + PYSTACK)
    assert incident.status is Status.CRASHED and incident.primary is not None and incident.primary.type == "SIGABRT"


@pytest.mark.parametrize("dump", [PYSTACK, GDB])
def test_somebody_took_stacks_of_a_process_that_does_not_move(told: Told, dump: str) -> None:
    for text in (dump, STEPS + dump):
        incident = told(text)
        assert incident.status is Status.HUNG and incident.verdict.category is Category.HANG_OR_WATCHDOG
        assert incident.verdict.confidence.value == "hypothesis" and "Nothing failed" in incident.verdict.explanation
    assert told(dump + STEPS).status is Status.HEALTHY  # it moved on


def test_of_pystacks_threads_the_programs_own_tells_where_it_waits(told: Told) -> None:
    assert "waits in a collective" in told(PYSTACK).verdict.explanation


@pytest.mark.parametrize(
    "notice",
    [
        "Spot instance interruption notice received: instance i-0abc will be terminated at 2026-05-03T10:02:00Z",
        '{"time":"2026-05-03T10:00:09Z","detail-type":"EC2 Spot Instance Interruption Warning","detail":{"instance-action":"terminate"}}',
        "Instance was preempted. Shutting down.",
        "The TPU VM trainer-0 has been preempted",
        "WARNING watcher: received preemption notice, 30 s left",
        "INFO PreemptionHandler: Received preemption notice; requesting a checkpoint, the VM may stop in 30 s",
        '{"DocumentIncarnation": 3, "Events": [{"EventType": "Preempt", "NotBefore": "Mon, 03 May 2026 10:00:30 GMT"}]}',
        "Pod was terminated in response to imminent node shutdown.",
    ],
)
def test_a_machine_that_is_taken_back(told: Told, notice: str) -> None:
    incident = told(STEPS + notice + "\n")
    assert incident.status is Status.KILLED and incident.verdict.category is Category.KILLED_EXTERNALLY
    assert "taken back" in incident.verdict.title and "checkpoint" in incident.verdict.next_steps[0] and incident.verdict.rank is None


TAKEN = "2026-05-03 10:00:05 WARNING Node worker-7 was preempted, another one takes its place\n"
LONG_AFTER = "".join(f"2026-05-03 10:{n:02d}:00 step {n} loss 1.9\n" for n in range(6, 15))


@pytest.mark.parametrize(
    ("behind", "status"),
    [
        (LONG_AFTER + "2026-05-03 10:15:00 Training completed\n", Status.HEALTHY),
        ("Training completed\n" + TAKEN, Status.HEALTHY),
        (LONG_AFTER, Status.DEGRADED),
        ("2026-05-03 10:00:06 step 6 loss 2.2\n2026-05-03 10:00:40 step 7 loss 2.1\n", Status.KILLED),
    ],
    ids=["to its end", "which was reached before", "longer than such a machine is left", "until the machine was gone"],
)
def test_a_job_may_go_on_without_a_machine_that_was_taken_back(told: Told, behind: str, status: Status) -> None:
    assert told(STEPS + TAKEN + behind).status is status


@pytest.mark.parametrize(
    "calm",
    [
        "INFO watcher: polling for spot instance interruption notice every 5 s",
        "No spot interruption notice received",
        "WARNING scheduler.py:1484] Sequence group 63 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space.",
        "The job goes on if the instance was preempted",
        "INFO scheduler: request 71 on node 3 was preempted",
    ],
)
def test_who_looks_out_for_a_notice_has_none(told: Told, calm: str) -> None:
    assert told(STEPS + calm + "\n").status is Status.HEALTHY


VLLM = "INFO 05-03 10:00:01 [api_server.py:1043] vLLM API server version 0.11.0\nINFO 05-03 10:00:21 [runner.py:26] Starting to load model /m/qwen...\n"
BAR = "Loading safetensors checkpoint shards:  33% Completed | 10/30 [00:11<00:22,  1.12s/it]\n"
SGLANG = """\
[2026-05-03 10:00:01] server_args=ServerArgs(model_path='/m', tp_size=2, dp_size=1)
[2026-05-03 10:00:13 TP0] Load weight begin. avail mem=78.58 GB
[2026-05-03 10:00:54 TP0] Capture cuda graph bs [1, 2, 4, 8]
Capturing batches (bs=8 avail_mem=9.05 GB):  25%|██▌       | 1/4 [00:02<00:07,  2.44s/it]
"""
READY = "INFO:     Application startup complete.\n"


def test_an_engine_that_never_came_up_is_not_called_healthy(told: Told) -> None:
    for text, what in ((VLLM, "weights"), (VLLM + BAR, "weights"), (SGLANG, "graphs")):
        incident = told(text)
        assert incident.status is Status.UNKNOWN and incident.verdict.category is Category.UNKNOWN
        assert what in incident.verdict.title and incident.verdict.evidence
        assert {one.category for one in incident.verdict.alternatives} >= {Category.KILLED_EXTERNALLY, Category.HANG_OR_WATCHDOG}


def test_an_engine_that_answered_and_a_copy_that_was_cut_are(told: Told) -> None:
    assert told(VLLM + BAR + READY).status is Status.HEALTHY
    assert told(VLLM + READY + BAR).status is Status.HEALTHY  # it loads once more, for a draft model or after a sleep
    assert told(STEPS + SGLANG).status is Status.HEALTHY  # a trainer that starts an engine again
    assert told(VLLM + BAR + BAR[:44]).status is Status.HEALTHY  # nobody prints half a line
