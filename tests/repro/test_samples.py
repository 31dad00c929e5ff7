"""The recorded logs: which recipe answers each, from the log and from its JSON report alike."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forensics.pipeline import analyze
from forensics.report import render
from forensics.repro import contract, plan, plan_report

RECIPES = {
    "all_ranks_moe": "flashinfer-trtllm-fp4-routed-moe",
    "arch_fi_fp4_gemm": "flashinfer-mm-fp4",
    "arch_scaled_mm_fp4": "torch-scaled-mm",
    "cubin_load": "cubin-driver-load",
    "dataloader_killed": "torch-dataloader",
    "device_assert": "torch-embedding-assert",
    "graph_capture": "torch-graph-capture",
    "hang_skip": "nccl-collective-timeout",
    "no_kernel_image": "cuda-no-kernel-image",
    "one_ima": "cuda-illegal-access",
    "one_oom": "torch-cuda-oom",
    "triton_smem": "triton-shared-memory",
    "h200_bf16_moe": "flashinfer-trtllm-bf16-moe",
    "h200_bmm_fp8": "flashinfer-bmm-fp8",
    "h200_cublas_handle": "torch-cublas",
    "h200_fi_attention": "flashinfer-attention",
    "h200_fp4_moe": "flashinfer-trtllm-fp4-moe",
    "h200_fp8_groupwise": "flashinfer-fp8-groupwise",
    "h200_fp8_moe": "flashinfer-trtllm-fp8-moe",
    "h200_gather_assert": "torch-index-assert",
    "h200_gpu_dtype": "torch-dtype",
    "h200_gpu_shape": "torch-shape",
    "h200_label_assert": "torch-index-assert",
    "h200_misaligned": "cuda-illegal-access",
    "h200_multinomial": "torch-index-assert",
    "h200_nccl_duplicate": "nccl-duplicate-gpu",
    "h200_nccl_mismatch": "nccl-collective-mismatch",
    "h200_ptxas_tool": "ptxas-instruction",
    "h200_sdpa": "torch-sdpa",
    "h200_triton_compile": "triton-compile-error",
    "h200_triton_ptxas": "triton-ptxas",
    "h200_trtllm_decode": "flashinfer-trtllm-decode",
    "h200_trtllm_prefill": "flashinfer-trtllm-prefill",
    "h200_two_devices": "torch-dtype",
    "chained": None,
    "segv": None,
    "healthy_sglang": None,
}


@pytest.mark.parametrize(("name", "recipe"), RECIPES.items())
def test_a_log_and_its_report_lead_to_the_same_recipe(samples: Path, name: str, recipe: str | None) -> None:
    incident = analyze(sorted((samples / name).glob("*.log")))
    found, again = plan(incident), plan_report(json.loads(render(incident, "json")))
    assert (found and found.recipe.id) == recipe
    assert (again and again.recipe.id) == recipe
    answer = contract(incident)
    assert (answer["recipe"], answer["runnable"]) == (recipe, recipe is not None)
    assert bool(answer["reason"]) is (recipe is None)
    if found is not None and again is not None:
        assert again.expected["patterns"] == found.expected["patterns"]
        assert set(again.values) == set(found.values)


def test_sizes_stand_in_the_recorded_logs(samples: Path) -> None:
    def values(name: str) -> dict[str, object]:
        found = plan(analyze(sorted((samples / name).glob("*.log"))))
        assert found is not None
        return found.values

    assert values("hang_skip")["numel"] == 4194304
    assert values("one_oom")["tried_mib"] == 16384
    assert {k: v for k, v in values("triton_smem").items() if k.startswith("block")} == {
        "block_m": 256,
        "block_n": 256,
        "block_k": 128,
    }
    assert values("cubin_load") == {"kernels": "Bmm_MxE4m3_MxE2m1MxE4m3_Fp32", "target": "sm_100f", "tile_n": 16}
    assert values("h200_gpu_shape")["inner_a"] == 2048 and values("h200_gpu_shape")["inner_b"] == 4096
    assert values("h200_label_assert")["form"] == "nll_loss"
