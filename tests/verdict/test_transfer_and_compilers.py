"""Disaggregated serving, tvm engines, routers, kernels that stop themselves: the line that tells is chosen. Every kind has a near miss."""

from __future__ import annotations

from forensics.model.verdict import Category, Status

from .conftest import Told, primary

# --- transfers of the KV cache

FAILED = "[2026-11-29 20:15:0{second} TP{rank}] Decode transfer failed for request rank={rank} with exception KVTransferError(bootstrap_room=77): {why}\n"
ELSEWHERE = "Failed due to an unknown reason from another rank"


def transfers(*whys: str) -> str:
    start = "[2026-11-29 20:15:00] The server is fired up and ready to roll!\n"
    return start + "".join(FAILED.format(second=1, rank=rank, why=why) for rank, why in enumerate(whys))


def test_the_rank_that_names_a_reason_is_nearer_than_those_that_point_at_others(told: Told) -> None:
    incident = told(transfers(ELSEWHERE, ELSEWHERE, "Failed to get kvcache from prefill instance, it might be dead", ELSEWHERE))
    assert incident.verdict.rank is not None and incident.verdict.rank.number == 2
    assert "might be dead" in primary(incident).message


def test_where_all_point_at_others_one_of_them_is_still_told(told: Told) -> None:
    assert ELSEWHERE in primary(told(transfers(ELSEWHERE, ELSEWHERE))).message


# --- tvm's errors carry a traceback of C++ frames as their message

TVM = """\
Exception in thread Thread-1 (_loop):
Traceback (most recent call last):
  File "/srv/serve/engine_base.py", line 96, in _loop
    self._ffi["run_background_loop"]()
  File "tvm/_ffi/_cython/./packed_func.pxi", line 332, in tvm._ffi._cy3.core.PackedFuncBase.__call__
  File "/srv/tvm/_ffi/base.py", line 481, in raise_last_ffi_error
    raise py_err
tvm._ffi.base.TVMError: Traceback (most recent call last):
  3: _ZN3tvm7runtime6detail
  2: serve::ThreadedEngineImpl::Run()
        at /src/cpp/serve/threaded_engine.cc:156
  1: tvm::runtime::Alloc(DLDevice, unsigned long)
  0: 0x00007f1234567890
  File "/src/tvm/runtime/pool.cc", line 649
TVMError: Check failed: (result) is false: Failed to allocate 4096 bytes
"""


def test_a_tvm_error_has_the_check_as_root_and_keeps_its_python_frames(told: Told) -> None:
    found = primary(told(TVM))
    assert found.root_message.startswith("Check failed: (result) is false")
    named = {frame.function for raised in found.chain for frame in raised.frames}
    assert {"_loop", "raise_last_ffi_error"} <= named


def test_two_woven_tracebacks_are_still_taken_apart(told: Told) -> None:
    one = 'Traceback (most recent call last):\n  File "/srv/a.py", line {n}, in f{n}\n    g{n}()\n'
    log = one.format(n=1) + one.format(n=2) + "ValueError: first\nKeyError: 'second'\n"
    assert primary(told(log)).root_type in ("ValueError", "KeyError")


# --- a C++ exception as Ray's handler prints it


def test_an_unhandled_exception_of_a_ray_worker_is_its_cause(told: Told) -> None:
    log = (
        "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: End of file.\n"
        "Unhandled exception: St13runtime_error. what(): NCCL Error 5: invalid usage\n"
    )
    incident = told(log)
    assert incident.verdict.category is Category.NCCL
    assert primary(incident).type == "std::runtime_error" and primary(incident).message == "NCCL Error 5: invalid usage"


def test_an_unhandled_exception_that_names_its_type_reads_as_before(told: Told) -> None:
    assert primary(told("Unhandled exception: my::Error: no room\n")).message == "no room"


# --- a kernel that stops itself on another GPU

TRAP = """\
INFO 11-29 20:15:01 [api_server.py:1034] vLLM API server version 0.9.1
{said}
ERROR 11-29 20:15:02 [core.py:81] EngineCore failed to start.
ERROR 11-29 20:15:02 [core.py:81] Traceback (most recent call last):
ERROR 11-29 20:15:02 [core.py:81]   File "/srv/vllm/worker.py", line 4, in profile_run
ERROR 11-29 20:15:02 [core.py:81]     torch.cuda.synchronize()
ERROR 11-29 20:15:02 [core.py:81] torch.AcceleratorError: CUDA error: unspecified launch failure
"""


def test_a_kernel_for_another_gpu_is_the_cause_of_the_launch_failure(told: Told) -> None:
    assert told(TRAP.format(said="This kernel only supports sm120.")).verdict.category is Category.ARCH_MISMATCH


def test_a_kernel_for_other_sizes_is_not(told: Told) -> None:
    assert told(TRAP.format(said="This kernel only supports small sizes.")).verdict.category is Category.ILLEGAL_MEMORY_ACCESS


# --- the compiler's own assertions

ABORT = "python3: {place}:106: void slice(mlir::Operation *): Assertion `region.hasOneBlock()' failed.\nAborted (core dumped)\n"


def test_an_assertion_inside_a_compiler_is_a_failed_compilation(told: Told) -> None:
    assert told(ABORT.format(place="/build/llvm-project/mlir/lib/Slices.cpp")).verdict.category is Category.JIT_COMPILE


def test_an_assertion_elsewhere_is_none(told: Told) -> None:
    assert told(ABORT.format(place="/build/server/pool.cpp")).verdict.category is not Category.JIT_COMPILE


# --- routers, torn heads, event loops

ROUTER = "2026-11-29 20:15:0{n} {level} http_request{{method=POST uri=/v1/x}}: smg::routers::http: src/routers/http.rs:170: {said}\n"


def test_a_router_without_workers_is_not_healthy(told: Told) -> None:
    said = "Failed to select PD pair error=No available decode workers (all circuits open or unhealthy)"
    incident = told("".join(ROUTER.format(n=n, level="ERROR", said=said) for n in range(4)))
    assert incident.status is not Status.HEALTHY and "No available decode workers" in primary(incident).message


def test_a_router_that_counts_its_workers_is_well(told: Told) -> None:
    incident = told("".join(ROUTER.format(n=n, level="INFO", said="4 workers are available") for n in range(4)))
    assert incident.primary is None and incident.verdict.category is Category.NONE


def test_the_end_of_a_cuda_error_whose_head_is_torn_off_is_unknown(told: Told) -> None:
    log = "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n1       0x72d266d0 /srv/libengine.so(+0x1d51) [0x72d266d0]\n"
    incident = told(log)
    assert incident.status is Status.UNKNOWN and incident.verdict.category is Category.UNKNOWN


def test_advice_about_device_side_assertions_is_no_error(told: Told) -> None:
    assert told("To debug, compile with TORCH_USE_CUDA_DSA set, if need be.\nstep 1 loss 2.5\nstep 2 loss 2.4\n").verdict.category is Category.NONE


def test_what_an_event_loop_repeats_with_its_task_is_no_cause(told: Told) -> None:
    log = """\
ERROR 11-29 20:15:02 worker_base.py:554] Error executing method init_device.
ERROR 11-29 20:15:02 worker_base.py:554] Traceback (most recent call last):
ERROR 11-29 20:15:02 worker_base.py:554]   File "/srv/worker.py", line 4, in init_device
ERROR 11-29 20:15:02 worker_base.py:554]     start()
ERROR 11-29 20:15:02 worker_base.py:554] RuntimeError: Bad StatusOr access: UNKNOWN: TPU initialization failed: no chips
Task exception was never retrieved
future: <Task finished name='Task-2' coro=<Client.loop() done, defined at /srv/client.py:182>
Traceback (most recent call last):
  File "/srv/client.py", line 186, in loop
    await socket.poll()
zmq.error.ZMQError: Operation not supported
"""
    incident = told(log)
    assert primary(incident).type == "RuntimeError" and incident.verdict.category is Category.DRIVER_OR_HARDWARE


def test_an_engine_that_ends_at_a_missing_cpu_kernel(told: Told) -> None:
    log = """\
ERROR 11-29 20:15:02 multiproc_worker_utils.py:116] Worker VllmWorkerProcess pid 29 died, exit code: 1
ERROR 11-29 20:15:02 async_llm_engine.py:65] Engine background task failed
ERROR 11-29 20:15:02 async_llm_engine.py:65] Traceback (most recent call last):
ERROR 11-29 20:15:02 async_llm_engine.py:65]   File "/srv/cpu_executor.py", line 311, in invoke
ERROR 11-29 20:15:02 async_llm_engine.py:65]     return await future
ERROR 11-29 20:15:02 async_llm_engine.py:65] ChildProcessError: worker died
Unable to get JIT kernel for brgemm. Params: M=8, N=8, K=64
"""
    incident = told(log)
    assert primary(incident).message.startswith("Unable to get JIT kernel") and incident.verdict.category is Category.JIT_COMPILE


def test_gpus_that_ollama_and_aiter_name(told: Told) -> None:
    ollama = 'time=2026-11-29T20:15:01.159Z level=INFO source=types.go:107 msg="inference compute" id=0 library=rocm variant="" compute=gfx1100 driver=0.0\n'
    aiter = "[aiter] LoadKernel: fmoe hsaco: /opt/aiter_meta/hsa//gfx950/fmoe/fmoe_bf16.co\n"
    end = "Memory access fault by GPU node-3 (Agent handle: 0x2b7a41c0) on address 0x7a1c38400000. Reason: Unknown.\n"
    for line, sm in ((ollama, "gfx1100"), (aiter, "gfx950")):
        gpu = told(line + end).facts.gpu
        assert gpu is not None and gpu.sm == sm


# --- what a backend said, on one line of the server's log

CREATED = (
    'E1129 20:15:20.469718 3545 backend_model.cc:692] "ERROR: Failed to create instance: unexpected error: [TensorRT-LLM][ERROR] Assertion failed: '
    "both paths are empty (/src/model_instance.cc:535)\\n1       0x7f61d20c4a3e tensorrt_llm::common::throwRuntimeError(char const*, int) + 100"
    '\\n2       0x7fc3a3633589 TRITONBACKEND_Initialize + 153"\n'
)


def test_a_stack_with_escaped_line_feeds_has_its_frames(told: Told) -> None:
    found = primary(told(CREATED))
    assert "both paths are empty" in found.message
    assert "TRITONBACKEND_Initialize" in [frame.function for frame in found.frames]


def test_an_escaped_line_feed_without_a_stack_stays_in_the_message(told: Told) -> None:
    log = 'E1129 20:15:20.4 35 model.cc:692] "[TensorRT-LLM][ERROR] Assertion failed: bad\\n1 of 4 paths (/src/model.cc:5)"\n'
    assert "1 of 4 paths" in primary(told(log)).message


def test_a_table_cell_that_breaks_behind_assertion_failed(told: Told) -> None:
    log = """\
| Model    | Version | Status                                                                        |
| encoder  | 1       | READY                                                                         |
| decoder  | 1       | UNAVAILABLE: Internal: unexpected error: [TensorRT-LLM][ERROR] Assertion failed:  |
|          |         | mpiSize == tp * pp (/src/worldConfig.cpp:80)                                  |
"""
    assert "mpiSize == tp * pp" in primary(told(log)).message


def test_a_transfer_engine_without_its_peers_address_is_not_healthy(told: Told) -> None:
    log = (
        "[2026-11-29 20:15:21] The server is fired up and ready to roll!\n"
        "E1129 20:15:41.302117 61407 transfer_metadata_plugin.cpp:173] Unexpected code in http response, GET http://10.0.0.5:8998/metadata response code: 404\n"
        "W1129 20:15:41.302131 61407 transfer_metadata.cpp:153] Failed to retrieve segment descriptor, name 10.0.0.6_4c1e\n"
    )
    assert told(log).verdict.category is not Category.NONE


def test_a_store_that_answers_is_well(told: Told) -> None:
    log = (
        "[2026-11-29 20:15:21] The server is fired up and ready to roll!\n"
        '[2026-11-29 20:15:23] 10.0.0.5 "GET /metadata?key=mooncake HTTP/1.1" 404 185 "-" "-"\n'
        "[2026-11-29 20:15:24 TP0] Decode batch. #running-req: 1, #token: 10, token usage: 0.00, gen throughput (token/s): 5.1, #queue-req: 0\n"
    )
    assert told(log).verdict.category is Category.NONE


def test_a_librarys_tag_belongs_to_its_error_as_in_its_exceptions(told: Told) -> None:
    said = "CUDA runtime error: out of memory /src/core/allocator.cc:49"
    assert primary(told(f"[TM][ERROR] {said}\nAborted (core dumped)\n")).message == f"[TM][ERROR] {said}"
    assert primary(told(f"loader: {said}\nAborted (core dumped)\n")).message == said


NINJA = """\
[2026-03-02 10:11:07 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/env/lib/python3.12/site-packages/flashinfer/jit/cpp_ext.py", line 200, in run_ninja
    subprocess.run(command, check=True)
subprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1.

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/opt/env/lib/python3.12/site-packages/flashinfer/jit/core.py", line 81, in build
    raise RuntimeError(msg) from e
RuntimeError: Ninja build failed. Ninja output:
[1/2] /opt/cuda/bin/nvcc -gencode=arch=compute_121a,code=sm_121a -c act.cu -o act.cuda.o
FAILED: act.cuda.o
"""


def test_what_nvcc_says_in_a_builders_output_is_the_cause(told: Told) -> None:
    title = told(NINJA + "nvcc fatal   : Unsupported gpu architecture 'compute_121a'\nninja: build stopped: subcommand failed.\n").verdict.title
    assert title == "nvcc does not know the architecture compute_121a"


def test_a_word_of_nvcc_below_another_error_is_not_its_message(told: Told) -> None:
    raised = 'Traceback (most recent call last):\n  File "/j/a.py", line 2, in f\n    at(7)\nIndexError: list index out of range\n'
    incident = told(raised + "nvcc warning : Support for offline compilation will be removed\n")
    assert incident.primary is not None and incident.primary.message == "list index out of range"
