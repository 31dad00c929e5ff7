"""Kernels and settings that serving engines refuse: what is blamed, and where the reader is sent. Own samples of the engines' forms."""

from __future__ import annotations

from tests.verdict.conftest import Told, primary

HEAD = "[2026-11-30 10:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"


def test_a_tactic_that_the_autotuner_leaves_out_is_no_failure(told: Told) -> None:
    tag = "[TensorRT-LLM][ERROR] Assertion failed: Failed to initialize cutlass TMA WS grouped gemm. Error: Error Internal (/src/gemm.cu:60)\n"
    skipped = (
        "(Worker_PP0 pid=71) 2026-11-30 10:00:00,100 - WARNING - autotuner.py:485 - flashinfer.jit: [Autotuner]: Skipping tactic "
        f"<fused_moe.MoERunner object at 0x7c70> 15, due to failure while profiling: {tag}"
        "(Worker_PP0 pid=71) 1       0x7c6dd0a58b16 tensorrt_llm::common::throwRuntimeError(char const*, int) + 97\n"
    )
    assert told(skipped).primary is None
    failed = skipped.replace("Skipping tactic", "Running tactic").replace("due to failure while profiling", "on layer 3")
    assert "TMA WS grouped gemm" in primary(told(failed)).message


def test_a_refusal_inside_a_capture_is_no_failed_compilation(told: Told) -> None:
    refused = "Cannot call CUDAGeneratorImpl::current_seed during CUDA graph capture. Current cudaStreamCaptureStatus: cudaStreamCaptureStatusActive"
    frames = '  File "/srv/sglang/srt/models/own.py", line 9, in forward\n    return self.mlp(x)\n'
    incident = told(f"{HEAD}{frames}torch._dynamo.exc.InternalTorchDynamoError: RuntimeError: {refused}\n")
    assert incident.verdict.category == "graph_capture"
    incident = told(f"{HEAD}{frames}torch._dynamo.exc.InternalTorchDynamoError: AttributeError: 'Node' has no attribute 'meta'\n")
    assert incident.verdict.category == "jit_compile"


def test_advice_names_the_frame_that_refused_and_not_what_passes_the_call_on(told: Told) -> None:
    frames = (
        '  File "/usr/lib/python3/site-packages/vllm/_custom_ops.py", line 300, in sort_tokens\n    torch.ops._moe_C.sort_tokens(x)\n'
        '  File "/usr/lib/python3/site-packages/torch/_ops.py", line 1255, in __call__\n    return self._op(*args, **kwargs)\n'
    )
    steps = " ".join(told(f"{HEAD}{frames}RuntimeError: the counters do not add up\n").verdict.next_steps)
    assert "(_custom_ops.py:300, sort_tokens)" in steps and "_ops.py:1255" not in steps.replace("_custom_ops.py", "")


def test_torchs_hint_on_a_scalar_is_no_refused_setting(told: Told) -> None:
    frames = '  File "/srv/sglang/srt/layers/quantization/utils.py", line 81, in convert\n    scale[start:end] = weight_scale[idx]\n'
    hint = "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor to a number"
    assert told(f"{HEAD}{frames}IndexError: {hint}\n").verdict.category != "config_error"
    assert told(f"{HEAD}{frames}IndexError: no slot is left. Use `max_slots=8` for this model\n").verdict.category == "config_error"
