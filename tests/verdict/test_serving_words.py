"""What serving engines leave behind, second part: stacks in fields and headings, other vendors' words, categories. Every case has a
near miss."""

from __future__ import annotations

import json

import pytest

from forensics.model.verdict import Category, Status

from .conftest import Told
from .test_serving import BANNER, FRAME, primary

TRACE = 'Traceback (most recent call last):\n  File "/srv/vllm/worker/runner.py", line 74, in execute_model\n    sample()\nRuntimeError: boom in the sampler'


@pytest.mark.parametrize(
    "fields",
    [
        {"error": TRACE},
        {"err": TRACE},
        {"exc_text": TRACE},
        {"stack_trace": TRACE},
        {"exc_info": TRACE.split("\n")},
        {"error": {"message": "boom", "stack": TRACE}},
        {"exception": {"type": "RuntimeError", "stacktrace": TRACE}},
    ],
    ids=lambda fields: json.dumps(fields)[:24],
)
def test_a_stack_in_a_field_of_its_own(told: Told, fields: dict[str, object]) -> None:
    record = {"time": "2026-11-29T20:15:20Z", "level": "ERROR", "message": "engine died", **fields}
    failure = primary(told(json.dumps(record) + "\n"))
    assert failure.type == "RuntimeError"
    assert [frame.function for frame in failure.frames] == ["execute_model"]


def test_an_error_named_in_a_field_of_one_line(told: Told) -> None:
    record = {"level": "error", "msg": "engine died", "error": "RuntimeError: CUDA error: an illegal memory access was encountered"}
    assert told(json.dumps(record) + "\n").verdict.category is Category.ILLEGAL_MEMORY_ACCESS
    assert told(json.dumps({**record, "level": "info"}) + "\n").primary is None


def test_a_traceback_in_a_prompt_is_nobodys(told: Told) -> None:
    record = {"level": "INFO", "message": "Received request", "prompt": f"why?\n{TRACE}"}
    assert told(json.dumps(record) + "\n").primary is None


# --- chains of other processes


def test_what_a_subprocess_printed_is_the_root(told: Told) -> None:
    at = "ERROR 11-29 20:15:28 [registry.py:354] "
    lines = [
        "Traceback (most recent call last):",
        '  File "/srv/vllm/registry.py", line 586, in _run_in_subprocess',
        "    returned.check_returncode()",
        "subprocess.CalledProcessError: Command '['python', '-m', 'registry']' returned non-zero exit status 1.",
        "",
        "The above exception was the direct cause of the following exception:",
        "",
        "Traceback (most recent call last):",
        '  File "/srv/vllm/registry.py", line 589, in _run_in_subprocess',
        '    raise RuntimeError(f"Error raised in subprocess:\\n"',
        "RuntimeError: Error raised in subprocess:",
        "<frozen runpy>:128: RuntimeWarning: 'registry' found in sys.modules",
        "Traceback (most recent call last):",
        '  File "/srv/vllm/models/granite.py", line 4, in <module>',
        "    import triton.compiler",
        "ModuleNotFoundError: No module named 'triton.compiler'",
    ]
    failure = primary(told(BANNER + "".join(f"{at}{line}\n" for line in lines)))
    assert failure.root_type == "ModuleNotFoundError"
    assert failure.type == "RuntimeError"


def test_carets_between_rays_heading_and_its_frames(told: Told) -> None:
    at = "ERROR 11-29 20:15:01 [core.py:390] "
    lines = [
        "Traceback (most recent call last):",
        '  File "/srv/ray/_private/worker.py", line 919, in get_objects',
        "    raise value.as_instanceof_cause()",
        "ray.exceptions.RayTaskError(ModuleNotFoundError): ray::RayWorkerWrapper.__ray_call__() (pid=687, ip=10.0.0.3)",
        "           ^^^^^^^^^^^^^^^^^^^^^^^^^^^",
        '  File "/srv/ray/actor.py", line 1722, in __ray_call__',
        "    return fn(self, *args, **kwargs)",
        '  File "/srv/ray/air/config.py", line 17, in <module>',
        "    import pyarrow.fs",
        "ModuleNotFoundError: No module named 'pyarrow'",
    ]
    incident = told(BANNER + "".join(f"{at}{line}\n" for line in lines))
    assert primary(incident).root_type == "ModuleNotFoundError"
    assert "^" not in primary(incident).message
    assert incident.verdict.category is Category.MISSING_LIBRARY


def test_a_heading_tells_whose_the_bare_traceback_is(told: Told) -> None:
    trace = f"Traceback (most recent call last):\n{FRAME}sglang/srt/managers/worker.py\", line 9, in step\n    self.run()\nValueError: boom\n"
    named = told("[20:15:20 TP1] Exception in ModelTpServer:\n" + trace)
    assert named.verdict.rank is not None
    assert named.verdict.rank.axes == (("tp", 1),)
    other = told("[20:15:20 TP1] Decode batch. #running-req: 1\n" + trace)
    assert other.verdict.rank is None


# --- ggml


@pytest.mark.parametrize(
    "line",
    [
        r"GGML_ASSERT: D:\a\llama.cpp\ggml-opencl.cpp:1009: to_fp32_cl != nullptr",
        r"GGML_ASSERT: C:\Users\someone\My projects\ggml-opencl.cpp:1726: to_fp32_cl != nullptr",
        r"C:\Sources\llama.cpp\src\llama-context.cpp:1220: GGML_ASSERT(n_ubatch >= n_tokens) failed",
        "/srv/ggml/src/ggml.c:2420: GGML_ASSERT(a->ne[d] == b->ne[d]) failed",
    ],
)
def test_an_assertion_in_a_path_of_any_system(told: Told, line: str) -> None:
    failure = primary(told(f"llama_model_loader: loaded meta data\n{line}\n"))
    assert failure.type == "GGML_ASSERT"
    assert line in failure.message


def test_source_code_that_holds_an_assertion_is_none(told: Told) -> None:
    assert told("llama_model_loader: loaded meta data\n// TODO: return an error instead of GGML_ASSERT here\n").primary is None


def test_what_cann_said_stands_far_above_its_place(told: Told) -> None:
    log = (
        "/srv/ggml/src/ggml-cann/ggml-cann.cpp:63: CANN error: E89999: Inner Error!\n"
        + "        op[Range], tiling failed.[FUNC:Tiling][FILE:range.cc][LINE:255]\n" * 8
        + "  current device: 0, in function aclnn_arange at /srv/ggml/src/ggml-cann/aclnn_ops.cpp:300\n  aclnnArange(stream)\n"
    )
    failure = primary(told(log))
    assert failure.message == "CANN error: E89999: Inner Error!"
    assert failure.frames[-1].function == "aclnn_arange"
    assert primary(told("  current device: 0, in function f at /srv/ggml-cuda.cu:300\n")).message.startswith("CUDA error\n")


CUDA_ERROR = """\
/srv/ggml/src/ggml-cuda/ggml-cuda.cu:90: CUDA error
CUDA error: an illegal memory access was encountered
  current device: 1, in function ggml_backend_cuda_synchronize at {0}:2476
  cudaStreamSynchronize(cuda_ctx->stream())
"""
ABORTED = """\
libggml-base.so(ggml_abort+0x11f) [0x7fa925ea2877]
libggml-cuda.so(_Z15ggml_cuda_errorPKcS0_S0_iS0_+0xb7) [0x7fa925eb2877]
libllama.so(_ZN13llama_context6decodeERK11llama_batch+0x3bf) [0x7ff791552f44]
"""


@pytest.mark.parametrize("backtrace", ["", ABORTED])
@pytest.mark.parametrize("file", ["/srv/ggml/src/ggml-cuda/ggml-cuda.cu", r"D:\a\ggml\src\ggml-cuda\ggml-cuda.cu"])
def test_an_error_of_a_device_tells_function_place_and_call(told: Told, file: str, backtrace: str) -> None:
    failure = primary(told("llama_model_loader: loaded meta data\n" + CUDA_ERROR.format(file) + backtrace))
    (place,) = [frame for frame in failure.frames if frame.function == "ggml_backend_cuda_synchronize"]
    assert (place.file, place.line, place.code) == (file, 2476, "cudaStreamSynchronize(cuda_ctx->stream())")
    assert [frame.function for frame in failure.frames][-1] == ("ggml_abort" if backtrace else place.function)
    assert any(proof.quote.splitlines() == CUDA_ERROR.format(file).splitlines()[1:] for proof in failure.evidence)
    assert failure.call_path.steps[-1].label == place.function


def test_what_stands_below_without_being_indented_is_no_call(told: Told) -> None:
    log = "\n".join(CUDA_ERROR.format("/srv/a.cu").splitlines()[:-1]) + "\nsrv  stop: cleaning up\n"
    failure = primary(told(log))
    assert failure.frames[-1].code is None and "cleaning" not in failure.message


def test_a_standard_librarys_assertion_is_nearer_than_the_abort(told: Told) -> None:
    said = "/usr/include/c++/15/bits/stl_vector.h:1263: _Tp& std::vector<_Tp>::operator[](size_type) [_Tp = int]: Assertion '__n < this->size()' failed.\n"
    incident = told("llama_model_loader: loaded meta data\n" + said + "Aborted (core dumped)\n")
    assert "__n < this->size()" in primary(incident).message
    assert "Aborted" in primary(told("llama_model_loader: loaded meta data\nAborted (core dumped)\n")).message


def test_a_gpu_that_cannot_be_used_is_told_unless_the_server_serves(told: Told) -> None:
    lost = "ggml_cuda_init: failed to initialize CUDA: CUDA driver version is insufficient for CUDA runtime version\n"
    assert told(lost).verdict.category is Category.VERSION_MISMATCH
    served = "main: server is listening on http://127.0.0.1:8080\nsrv  log_server_r: request: POST /v1/chat/completions 127.0.0.1 200\n"
    assert told(lost + served * 2).status is Status.HEALTHY


def test_amd_has_no_compute_capability(told: Told) -> None:
    said = "ggml_cuda_init: found 1 ROCm devices:\n  Device 0: {name}, compute capability 9.0, VMM: no\nROCm error: out of memory\n"
    amd, other = told(said.format(name="AMD Radeon Graphics")), told(said.format(name="NVIDIA H100"))
    assert amd.facts.gpu is None or amd.facts.gpu.sm is None
    assert other.facts.gpu is not None
    assert other.facts.gpu.sm == "sm_90"


# --- words to categories


@pytest.mark.parametrize(
    ("line", "category"),
    [
        ("KeyError: 'model.layers.10.mlp.experts.w2_weight'", Category.MODEL_LOAD),
        ("KeyError: 'choices'", Category.UNKNOWN),  # in the engine's own file: no user wrote it
        ("RuntimeError: Kernel::Forward(at::Tensor) failed to dispatch head_dim 80", Category.UNSUPPORTED_DTYPE_OR_QUANT),
        ("TypeError: expected Tensor as element 1 in argument 0, but got NoneType", Category.SHAPE_OR_DTYPE_ASSERT),
        ("AttributeError: 'NoneType' object has no attribute 'cpu'", Category.UNKNOWN),
        ("ray.exceptions.RayChannelTimeoutError: System error: timed out", Category.HANG_OR_WATCHDOG),
        ("RuntimeError: Triton Error [HIP]:  Code: 1, Messsage: invalid argument", Category.UNKNOWN),
        ("ValueError: invalid argument for --tp-size", Category.CONFIG_ERROR),
        ("error: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)", Category.OOM_GPU),
        ("error: Caused GPU Hang Error (00000003:kIOGPUCommandBufferCallbackErrorHang)", Category.HANG_OR_WATCHDOG),
    ],
)
def test_categories_of_words(told: Told, line: str, category: Category) -> None:
    trace = f"Traceback (most recent call last):\n{FRAME}sglang/srt/managers/worker.py\", line 9, in step\n    self.run()\n"
    assert told((trace if "Error: " in line and not line.startswith("error") else "") + line + "\n").verdict.category is category


def test_a_warning_about_a_module_says_nothing_of_another_failure(told: Told) -> None:
    warned = "WARNING 11-29 20:15:02 [_custom_ops.py:19] Failed to import from vllm._C with ModuleNotFoundError(\"No module named 'vllm._C'\")\n"
    trace = f"Traceback (most recent call last):\n{FRAME}vllm/attention/ipex.py\", line 9, in varlen\n    op()\n"
    failed = "TypeError: varlen_fwd() takes 14 positional arguments but 15 were given\n"
    assert told(BANNER + warned + trace + failed).verdict.category is Category.VERSION_MISMATCH


# --- hang detectors

TRTLLM = "[TensorRT-LLM] TensorRT-LLM version: 1.2.0rc1\n[11/29/2026-20:14:00] [TRT-LLM] [RANK 0] [I] iter = 7, global_rank = 0, rank = 0\n"


def test_the_executor_s_hang_detector_is_a_hang(told: Told) -> None:
    incident = told(TRTLLM + "".join(f"[11/29/2026-20:20:00] [TRT-LLM] [RANK {n}] [E] Hang detected on rank {n} in PyExecutor.\n" for n in range(4)))
    assert incident.status is Status.HUNG and incident.verdict.signature == "tensorrt_llm.hang-detected"
    assert {row.outcome for row in incident.ranks} == {"unknown"}


def test_another_detector_is_none(told: Told) -> None:
    incident = told(TRTLLM + "[11/29/2026-20:20:00] [TRT-LLM] [RANK 1] [I] Hang detected on rank 1 by the test's own timer\n")
    assert incident.primary is None
