"""Which recipe answers which failure, and what it takes from the log."""

from __future__ import annotations

from typing import Any

import pytest

from forensics.repro.case import Text, case_of_report
from forensics.repro.planning import plan_case, plan_report, plan_with
from tests.repro.conftest import case, plan_for, report

ILLEGAL = "CUDA error: an illegal memory access was encountered"


@pytest.mark.parametrize(
    ("error", "message", "category", "more", "recipe", "values"),
    [
        ("RuntimeError", "No supported CUDA architectures found for major versions [10].", "arch_mismatch",
         {"frames": [{"function": "trtllm_fp4_block_scale_routed_moe"}]}, "flashinfer-trtllm-fp4-routed-moe", {"form": "fp4_routed"}),
        ("RuntimeError", "Error occurred when running GEMM! (numBatches: 256, GemmMNK: 8 4096 2048, Kernel: bmm_E2m1_E2m1E2m1_x_sm100f)", "arch_mismatch",
         {}, "flashinfer-trtllm-fp4-moe", {"experts": 256, "tokens": 8, "intermediate": 2048, "hidden": 2048, "weights": "nvfp4"}),
        ("RuntimeError", ILLEGAL, "illegal_memory_access", {"frames": [{"function": "trtllm_bf16_moe"}]}, "flashinfer-trtllm-bf16-moe", {}),
        ("RuntimeError", ILLEGAL, "illegal_memory_access", {}, "cuda-illegal-access", {"form": "outside"}),
        ("X", "CUDA error: misaligned address", "illegal_memory_access", {}, "cuda-illegal-access", {"form": "misaligned"}),
        ("BackendSupportedError", "mm_fp4 does not support backend 'trtllm' with capability 120", "arch_mismatch",
         {"frames": [{"function": "mm_fp4"}]}, "flashinfer-mm-fp4", {"backend": "trtllm"}),
        ("RuntimeError", "CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling `cublasLtMatmulAlgoGetHeuristic(`", "arch_mismatch",
         {"frames": [{"function": "f", "code": "torch._scaled_mm(a, b)"}], "config": {"quantization": "mxfp8"}}, "torch-scaled-mm", {"form": "mxfp8"}),
        ("RuntimeError", "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`", "oom_gpu", {}, "torch-cublas", {"form": "full_memory"}),
        ("RuntimeError", "cuDNN error: CUDNN_STATUS_NOT_INITIALIZED", "oom_gpu", {}, "torch-cudnn", {"form": "full_memory"}),
        ("RuntimeError", "No available kernel. Aborting execution.", "unsupported_dtype_or_quant", {}, "torch-sdpa", {}),
        ("OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has", "oom_gpu", {}, "torch-cuda-oom", {"tried_mib": 2560}),
        ("OutOfMemoryError", "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has", "oom_gpu", {}, "torch-cuda-oom", {"tried_mib": 20}),
        ("RuntimeError", "CUDA error: operation not permitted when stream is capturing", "graph_capture",
         {"frames": [{"function": "step", "code": "if mask.nonzero().numel():"}]}, "torch-graph-capture", {}),
        ("triton.runtime.errors.OutOfResources", "out of resource: shared memory, Required: 131072, Hardware limit: 101376", "arch_mismatch",
         {"frames": [{"function": "f", "code": "kernel[grid](x, BLOCK_SIZE_M=64, BLOCK_SIZE_N=128, BLOCK_SIZE_K=32, num_stages=3)"}]},
         "triton-shared-memory", {"block_m": 64, "block_n": 128, "block_k": 32, "stages": 3}),
        ("DistBackendError", "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=6, OpType=_ALLGATHER_BASE, NumelIn=1000)", "hang_or_watchdog",
         {"collective": {"op": "_ALLGATHER_BASE", "numel_in": 1000}}, "nccl-collective-timeout", {"op": "allgather", "numel": 1000}),
        ("RuntimeError", "Detected mismatch between collectives on ranks. Rank 0 is running collective: X", "nccl", {}, "nccl-collective-mismatch", {"form": "op"}),
        ("RuntimeError", "Assertion error (csrc/apis/gemm.hpp:376): Unsupported architecture", "arch_mismatch",
         {"frames": [{"function": "fp8_gemm_nt"}]}, "deep-gemm", {}),
        ("RuntimeError", "No implemented fp8_blockwise_scaled_mm for current compute capability: 75", "arch_mismatch", {}, "sgl-kernel-scaled-mm", {"form": "fp8_blockwise"}),
        ("RuntimeError", "FlashAttention only supports Ampere GPUs or newer.", "arch_mismatch", {"frames": [{"function": "flash_attn_func"}]}, "flash-attn", {}),
        ("RuntimeError", "Dense decode MLA is only supported on SM90a architecture", "arch_mismatch", {"frames": [{"function": "flash_mla_with_kvcache"}]}, "flash-mla", {}),
        ("AcceleratorError", "Assertion `t >= 0 && t < n_classes` failed.", "device_assert", {"kind": "device_assert"}, "torch-index-assert", {"form": "nll_loss"}),
        ("IndexError", "index out of range in self", "user_code", {"config": {"vocab_size": "32000"}}, "torch-index", {"op": "embedding"}),
        ("IndexError", "index 9 is out of bounds for dimension 0 with size 8", "user_code", {}, "torch-index", {"op": "select", "rows": 8}),
        ("RuntimeError", "index 9 is out of bounds for dimension 0 with size 8", "user_code", {}, "torch-index", {"op": "gather", "rows": 8}),
        ("NotImplementedError", "\"LayerNormKernelImpl\" not implemented for 'Long'", "unsupported_dtype_or_quant", {}, "torch-dtype",
         {"op": "layer_norm", "dtype_a": "int64", "device": "cpu"}),
        ("RuntimeError", "\"triu_tril_cuda_template\" not implemented for 'BFloat16'", "unsupported_dtype_or_quant", {}, "torch-dtype",
         {"op": "triu", "dtype_a": "bfloat16", "device": "cuda"}),
        ("RuntimeError", "Expected size for first two dimensions of batch2 tensor to be: [6, 24] but got: [6, 12].", "shape_or_dtype_assert", {}, "torch-shape",
         {"op": "bmm", "batch_a": 6, "batch_b": 6, "inner_a": 24, "inner_b": 12}),
        ("RuntimeError", "Error(s) in loading state_dict for Net:\n\tsize mismatch for head.weight: copying a param with shape torch.Size([7, 5]) from checkpoint, "
         "the shape in current model is torch.Size([7, 6]).", "model_load", {}, "torch-shape",
         {"op": "load_state_dict", "inner_a": 7, "inner_b": 7, "columns": 5, "columns_b": 6}),
        ("RuntimeError", "Given groups=1, weight of size [64, 3, 7, 5], expected input[8, 4, 9, 9] to have 3 channels, but got 4 channels instead",
         "shape_or_dtype_assert", {}, "torch-layers", {"op": "conv2d", "wanted": 3, "given": 4, "kernel": 7}),
        ("RuntimeError", "Given normalized_shape=[768], expected input with shape [*, 768], but got input of size[2, 10, 512]",
         "shape_or_dtype_assert", {}, "torch-layers", {"op": "layer_norm", "wanted": 768, "given": 512}),
        ("RuntimeError", "stack expects each tensor to be equal size, but got [3, 24, 22] at entry 0 and [1, 24, 22] at entry 1",
         "shape_or_dtype_assert", {}, "torch-layers", {"op": "stack", "rows": 3, "rows_b": 1, "wanted": 22, "given": 22}),
        ("RuntimeError", "The expanded size of the tensor (514) must match the existing size (512) at non-singleton dimension 1.",
         "shape_or_dtype_assert", {}, "torch-layers", {"op": "expand", "wanted": 514, "given": 512}),
        ("ValueError", "Expected input batch_size (32) to match target batch_size (16).", "shape_or_dtype_assert", {}, "torch-layers",
         {"op": "cross_entropy", "wanted": 32, "given": 16}),
        ("RuntimeError", "einsum(): subscript j has size 4 for operand 1 which does not broadcast with previously seen size 3",
         "shape_or_dtype_assert", {}, "torch-layers", {"op": "einsum", "wanted": 3, "given": 4}),
    ],
)  # fmt: skip
def test_the_recipe_and_its_parameters(
    error: str, message: str, category: str, more: dict[str, Any], recipe: str, values: dict[str, Any]
) -> None:
    plan = plan_for(error, message, category, **more)
    assert plan.recipe.id == recipe
    assert {name: plan.values[name] for name in values} == values


@pytest.mark.parametrize(
    ("error", "message", "category"),
    [
        ("FileNotFoundError", "config.json", "model_load"),
        # which of the middle sizes differ is not rebuilt
        ("RuntimeError", "stack expects each tensor to be equal size, but got [3, 24, 22] at entry 0 and [3, 25, 22] at entry 1", "shape_or_dtype_assert"),
        ("X", "anything", "none"),
        ("KeyError", "'a'", "user_code"),
        ("SIGSEGV", "Segmentation fault", "segfault"),
        ("RuntimeError", "\"my_own_cpu\" not implemented for 'Half'", "unsupported_dtype_or_quant"),  # an op that no script calls
        ("RuntimeError", "size mismatch for a.w: copying a param with shape torch.Size([7, 5, 3]) from checkpoint, the shape in current model is "
         "torch.Size([7, 5, 4]).", "model_load"),  # its script has two dimensions
    ],
)
def test_no_recipe_beats_a_wrong_one(error: str, message: str, category: str) -> None:
    assert plan_case(case(error, message, category)) is None


def test_each_value_says_where_it_is_from() -> None:
    quote = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x8 and 16x32)"
    found = report("RuntimeError", "see the log", "shape_or_dtype_assert")
    found["primary"]["evidence"] = [{"source": "crash.log", "first_line": 812, "last_line": 812, "quote": quote}]
    plan = plan_report(found)
    assert plan is not None
    rows = {parameter.name: parameter for parameter in plan.parameters}
    assert (rows["inner_b"].value, rows["inner_b"].line, rows["inner_b"].source, rows["inner_b"].origin) == (
        16,
        812,
        "crash.log",
        "log",
    )
    assert rows["op"].origin == "sign"


def test_a_value_out_of_range_is_not_taken() -> None:
    plan = plan_for(
        "RuntimeError",
        "mat1 and mat2 shapes cannot be multiplied (4x999999999999999 and 16x32)",
        "shape_or_dtype_assert",
    )
    inner = next(parameter for parameter in plan.parameters if parameter.name == "inner_a")
    assert inner.origin == "default" and inner.value == 8


def test_lines_far_from_the_failure_are_asked_last() -> None:
    found = report(
        "RuntimeError",
        "No supported CUDA architectures found",
        "arch_mismatch",
        frames=[{"function": "trtllm_bf16_moe"}],
    )
    plan = plan_case(case_of_report(found, [Text('"hidden_size": 7168, "num_experts_per_tok": 8', "serve.log", 3)]))
    assert plan is not None and (plan.values["hidden"], plan.values["top_k"]) == (7168, 8)
    assert next(p for p in plan.parameters if p.name == "hidden").line == 3


def test_the_contract_says_why_it_is_not_runnable() -> None:
    plan = plan_with(case("X", "y", "unknown"), "torch-shape")
    assert plan.contract == {"recipe": "torch-shape", "runnable": True, "reason": None}


def test_an_unknown_message_is_expected_without_its_numbers() -> None:
    plan = plan_for(
        "RuntimeError",
        "cutlass_fused_moe failed with status 719 at 0x7f33",
        "arch_mismatch",
        frames=[{"function": "cutlass_fused_moe"}],
    )
    assert plan.expected["message"] == "cutlass_fused_moe failed with status # at #"
    assert {"RuntimeError", "AcceleratorError"} <= set(plan.expected["types"])
