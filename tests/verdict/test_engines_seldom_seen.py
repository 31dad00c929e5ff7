"""Engines of which few logs are posted: what their own words mean, and what stands beside them."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, Confidence, Status

from .conftest import Told, number, primary

NODES = """\
[2026-11-29 20:15:20.100] ** ComfyUI startup time: 2026-11-29 20:15:20.100
[2026-11-29 20:15:21.100] Traceback (most recent call last):
  File "/srv/ComfyUI/nodes.py", line 2110, in load_custom_node
    module_spec.loader.exec_module(module)
  File "/srv/ComfyUI/custom_nodes/Solid/__init__.py", line 3, in <module>
    import meshes
ModuleNotFoundError: No module named 'meshes'

[2026-11-29 20:15:21.101] Cannot import /srv/ComfyUI/custom_nodes/Solid module for custom nodes: No module named 'meshes'
"""
UP = "[2026-11-29 20:15:23.000] Starting server\n\n[2026-11-29 20:15:23.001] To see the GUI go to: http://127.0.0.1:8188\n"
PROMPT = """\
[2026-11-29 20:16:01.000] got prompt
[2026-11-29 20:16:09.000] !!! Exception during processing !!! no such device: 3
[2026-11-29 20:16:09.100] Traceback (most recent call last):
  File "/srv/ComfyUI/execution.py", line 496, in execute
    output = get_output(node)
  File "/srv/ComfyUI/custom_nodes/Split/nodes.py", line 31, in load
    raise ValueError(f"no such device: {index}")
ValueError: no such device: 3

[2026-11-29 20:16:09.200] Prompt executed in 8.20 seconds
"""


def test_a_package_of_nodes_that_does_not_load_stops_nothing(told: Told) -> None:
    incident = told(NODES + UP)
    assert (incident.status, incident.facts.engine) == (Status.HEALTHY, "comfyui")
    assert primary(told(NODES + UP + PROMPT)).message == "no such device: 3"
    broken = NODES.replace("in load_custom_node", "in init_builtin_nodes").partition("[2026-11-29 20:15:21.101]")[0]
    assert primary(told(broken)).type == "ModuleNotFoundError"


REPORT = """\
# ComfyUI Error Report
## Error Details
- **Node Type:** LoadThing
- **Exception Type:** {}
- **Exception Message:** {}

## Stack Trace
```
  File "/srv/ComfyUI/execution.py", line 496, in execute
    output = get_output(node)

```
"""


def test_a_report_written_for_others_to_read(told: Told) -> None:
    incident = told(REPORT.format("torch.OutOfMemoryError", "Allocation on device 1"))
    assert (incident.verdict.category, primary(incident).type) == (Category.OOM_GPU, "torch.OutOfMemoryError")
    assert [frame.function for frame in primary(incident).frames] == ["execute"]
    assert primary(told(REPORT.format("KeyError", "'unet'"))).message == "'unet'"


AFTER = 'error: the path "/srv/jobs/multi.yaml" does not exist\n'
SERVED = "".join(f"[2026-11-29 20:15:{n} TP0] Decode batch, #running-req: 3, gen throughput (token/s): 310.00, #queue-req: 0\n" for n in range(20, 30))
DONE = "Ran 1 test in 277.304s\n\nOK\n\n"
CLEARED = 'configmap "info" deleted\nerror: resource(s) were provided, but no name was specified\n'


def test_what_a_script_says_around_a_test_that_was_done(told: Told) -> None:
    assert told(AFTER + SERVED + DONE + CLEARED).status is Status.HEALTHY
    assert told(AFTER + SERVED.splitlines(keepends=True)[0][:30] + "\n").status is not Status.HEALTHY
    assert told(AFTER + SERVED + DONE + "ValueError: unknown dtype 'int3'\n").status is not Status.HEALTHY


FAILED = "[2026-11-29 20:15:31 DP4 TP4] Prefill bootstrap failed for request rank=4 req.rid='7a' req.bootstrap_room=71 with exception KVTransferError(bootstrap_room=71): {}\n"


def test_a_request_taken_back_on_its_way(told: Told) -> None:
    assert told(SERVED + FAILED.format("Aborted by AbortReq.") + SERVED).status is Status.HEALTHY
    lost = told(SERVED + FAILED.format("Failed to get kvcache from prefill instance, it might be dead") + SERVED)
    assert lost.verdict.category is Category.NCCL
    both = told(SERVED + FAILED.format("Aborted by AbortReq.") + "[2026-11-29 20:15:40 TP1] Scheduler hit an exception: ValueError: bad room\n")
    assert "bad room" in primary(both).message


LOADED = """\
[2026-11-29 20:15:24 TP{0}] Scheduler hit an exception: Traceback (most recent call last):
  File "/srv/sglang/srt/model_executor/model_runner.py", line 849, in load_model
    raise ValueError(
ValueError: TP rank {0} could finish the model loading, but there are other ranks that didn't finish loading. It is likely due to unexpected failures (e.g., OOM) or a slow node.

"""
SHORT = """\
[2026-11-29 20:15:22 TP3] Scheduler hit an exception: Traceback (most recent call last):
  File "/srv/sglang/srt/model_loader/loader.py", line 12, in load_model
    weight.cuda()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 72.00 MiB. GPU 3 has a total capacity of 31.36 GiB.

"""


def test_ranks_that_waited_for_others_to_load(told: Told) -> None:
    waited = told(LOADED.format(1) + LOADED.format(2))
    assert (waited.verdict.category, number(waited)) == (Category.HANG_OR_WATCHDOG, None)
    assert waited.verdict.confidence is Confidence.HYPOTHESIS
    short = told(SHORT + LOADED.format(1) + LOADED.format(2))
    assert (short.verdict.category, number(short)) == (Category.OOM_GPU, 3)


BUSY = "(APIServer pid=605) INFO 07-15 15:32:47 [loggers.py:273] Engine 000: Avg prompt throughput: 532.2 tokens/s, Avg generation throughput: 20.5 tokens/s, Running: 3 reqs\n"
IDLE = BUSY.replace("532.2", "0.0").replace("20.5", "0.0")
STALL = "(EngineCore pid=11) INFO 07-15 15:3{}:47 [shm_broadcast.py:705] No available shared memory broadcast block found in 60 seconds. This typically happens when some processes are hanging\n"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (BUSY + IDLE + STALL.format(3) + IDLE + STALL.format(4), Status.HUNG),
        (BUSY + STALL.format(3) + STALL.format(4) + BUSY, Status.HEALTHY),
        (BUSY + STALL.format(3), Status.HEALTHY),
        (STALL.format(3) + STALL.format(4), Status.HEALTHY),
    ],
    ids=["where the log ends", "and went on", "once", "while it still starts"],
)
def test_an_engine_that_waits_for_its_workers(told: Told, text: str, status: Status) -> None:
    incident = told(text)
    assert incident.status is status
    assert status is Status.HEALTHY or incident.verdict.confidence is Confidence.HYPOTHESIS


WATCHDOG = "[rank0]:[E1129 20:15:34.804655432 ProcessGroupHCCL.cpp:1869] [Rank 0] HCCL watchdog thread terminated with exception: \n"
THROWN = "terminate called after throwing an instance of 'std::runtime_error'\n  what():  [Rank {}] HCCL watchdog thread terminated with exception: \n"


def test_an_exception_that_nobody_caught_has_the_type_of_what_was_logged(told: Told) -> None:
    assert primary(told(WATCHDOG + THROWN.format(0))).type == "std::runtime_error"
    other = THROWN.partition("[Rank")[0] + "a mutex was destroyed while it was held\n"
    apart = [failure for failure in told(WATCHDOG + other).failures if "HCCL" in failure.message]
    assert apart and all(failure.type is None for failure in apart)


DIED = "(EngineCore pid=71) ERROR 11-29 20:15:40 [multiproc_executor.py:284] Worker proc VllmWorker-5 died unexpectedly, shutting down executor.\n"
CUT = """\
(EngineCore pid=71) Process EngineCore:
(EngineCore pid=71) Traceback (most recent call last):
(EngineCore pid=71)   File "/usr/lib/python3.12/multiprocessing/process.py", line 314, in _bootstrap
(EngineCore pid=71)     self.run()
(EngineCore pid=71)   File "/srv/vllm/v1/engine/core.py", line 940, in run_engine_core
(EngineCore pid=71)     raise e
"""


def test_a_process_name_above_a_traceback_cut_off_says_nothing(told: Told) -> None:
    assert "died unexpectedly" in primary(told(DIED + CUT)).message
    assert primary(told(DIED + CUT + "(EngineCore pid=71) ValueError: no such layer\n")).message == "no such layer"


def test_a_front_end_whose_pid_was_taken_out(told: Told) -> None:
    said = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
    assert primary(told(f"(APIServer) {said}\n")).type == "RuntimeError"
    assert told(f"(after all) {said}\n").primary is None


def test_a_watchdog_that_cannot_look_at_the_process(told: Told) -> None:
    dump = "[2026-11-29 20:15:31 DP4 TP4] Pyspy failed to dump PID 113688. Error: /bin/bash: line 1: py-spy: command not found\n\n"
    bark = "[2026-11-29 20:15:31 DP4 TP4] Watchdog timeout (self.watchdog_timeout=300)\n"
    assert told(dump + bark).verdict.category is Category.HANG_OR_WATCHDOG
    assert told("/srv/run.sh: line 3: engine: command not found\n").verdict.category is Category.MISSING_LIBRARY


TRACKER = """\
2026-11-29 20:15:32,639 ERROR MsgRouterThr:360778 [router.py:message_loop():77] message_loop has been closed
Traceback (most recent call last):
  File "/srv/env/lib/python3.12/site-packages/wandb/sdk/interface/router_sock.py", line 28, in _read_message
    return self._sock_client.read_server_response(timeout=1)
  File "/srv/env/lib/python3.12/site-packages/wandb/sdk/lib/sock_client.py", line 270, in _read_packet_bytes
    raise SockClientClosedError
wandb.sdk.lib.sock_client.SockClientClosedError

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/srv/env/lib/python3.12/site-packages/wandb/sdk/interface/router_sock.py", line 30, in _read_message
    raise MessageRouterClosedError from e
wandb.sdk.interface.router.MessageRouterClosedError
"""


def test_a_tracker_that_closes_its_own_connection_ends_nothing(told: Told) -> None:
    assert told(TRACKER).status is Status.HEALTHY
    assert primary(told(TRACKER + "Traceback (most recent call last):\n  File \"/srv/train.py\", line 9, in <module>\n    go()\nKeyError: 'x'\n")).type == "KeyError"
    other = TRACKER.replace("wandb.sdk.lib.sock_client.SockClientClosedError", "wandb.errors.CommError: refused")
    assert told(other).status is not Status.HEALTHY


REGISTERED = "2026-11-29 20:15:31.059064: E external/local_xla/xla/stream_executor/cuda/cuda_fft.cc:485] Unable to register cuFFT factory: {}\n"
TWICE = "Attempting to register factory for plugin cuFFT when one has already been registered"


def test_a_record_of_every_start_is_no_failure(told: Told) -> None:
    assert told("Stage 1 begins\n" + REGISTERED.format(TWICE)).status is Status.HEALTHY
    assert told("Stage 1 begins\n" + REGISTERED.format("the plugin's version is too old")).status is not Status.HEALTHY
