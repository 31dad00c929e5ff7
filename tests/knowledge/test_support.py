"""Families, backends and how settings resolve."""

from __future__ import annotations

import pytest

from forensics.errors import UsageError
from forensics.knowledge import collect, families_for_symbol, families_on, family, supported
from forensics.knowledge.backends import backend_support, backends_on, families_for_backend
from forensics.knowledge.resolution import resolution_notes
from forensics.model import Confidence
from tests.knowledge.logs import intake_of, message


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("in trtllm_fp4_block_scale_routed_moe", "fi.trtllm_fp4_block_scale_routed_moe"),
        ("Kernel: bmm_MxE4m3_MxE2m1MxE4m3_Fp32_x_sm100f", "fi.trtllm_fp4_block_scale_moe"),
        ("Bmm_Bfloat16_Bfloat16Bfloat16_Fp32_x", "fi.trtllm_bf16_moe"),
        ("deep_gemm.tf32_hc_prenorm_gemm(...)", "deepgemm.hc_prenorm"),
        ("torch._scaled_mm is only supported", "torch.scaled_mm"),
        ("void marlin::Marlin<1>", "vllm.marlin"),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "nccl.ring_tree"),
        ("BatchDecodeWithPagedKVCacheKernel", "fi.fa2"),
    ],
)
def test_a_symbol_leads_to_its_family(text: str, id: str) -> None:
    assert families_for_symbol(text)[0].id == id


@pytest.mark.parametrize("text", ["", "scaled_mmx", "my_fused_moe_kernelish", "hello world", "dot_scaledness"])
def test_a_part_of_a_word_is_no_symbol(text: str) -> None:
    assert families_for_symbol(text) == []


def test_support_follows_the_list_its_exactness_and_the_version() -> None:
    moe = "fi.trtllm_fp4_block_scale_moe"
    assert [supported(moe, sm).answer for sm in ("sm_100", "sm_103", "sm_120", "sm_90")] == ["yes", "yes", "no", "no"]
    assert supported("fa.fa2", "sm_75").answer == "unknown"
    fmha = "fi.trtllm_gen_fmha"
    assert supported(fmha, "sm_107").answer == "unknown"
    assert supported(fmha, "sm_107", {"flashinfer": "0.6.15"}).answer == "no"
    assert supported(fmha, "sm_107", {"flashinfer": "0.6.16"}).answer == "yes"
    assert supported("rocm.aiter", "gfx942").answer == "yes"
    assert "sm_100" in supported(moe, "sm_120").reason
    assert supported(moe, "sm_120").source
    with pytest.raises(UsageError):
        family("no.such")
    with pytest.raises(UsageError):
        supported(moe, "hopper")


def test_families_of_a_gpu() -> None:
    ids = {row.id for row in families_on("sm_120")}
    assert {"fi.cutlass_fused_moe", "vllm.marlin_moe"} <= ids
    assert not ids & {"fi.trtllm_fp4_block_scale_moe", "fi.trtllm_gen_fmha", "flashmla.dense_decode"}


def test_backends() -> None:
    assert backend_support("sglang", "moe_runner_backend", "flashinfer_trtllm_routed", "sm_120").answer == "no"
    assert backend_support("sglang", "moe_runner_backend", "flashinfer_trtllm", "sm_100").answer == "yes"
    assert backend_support("vllm", "moe_runner_backend", "'MARLIN'".strip("'"), "sm_121").answer == "yes"
    assert backend_support("sglang", "moe_runner_backend", "made_up", "sm_120").answer == "unknown"
    assert "flashinfer_trtllm" not in backends_on("sglang", "moe_runner_backend", "sm_120")
    assert {"flashinfer_cutlass", "marlin", "triton"} <= set(backends_on("sglang", "moe_runner_backend", "sm_120"))
    assert [f.id for f in families_for_backend(None, "attention_backend", "AttentionBackendEnum.TRITON_ATTN")] == [
        "triton.core"
    ]


FOUNDING = """[2026-01-05 10:00:00] server_args=ServerArgs(model_path='org/DeepSeek-V4-Flash-NVFP4', tp_size=4, quantization=None, moe_runner_backend='triton', speculative_algorithm='{algorithm}', speculative_moe_runner_backend='{draft}')
GPU 0: NVIDIA RTX PRO 6000 Blackwell Server Edition (UUID: GPU-0)"""


def notes(
    version: str | None, component: str, algorithm: str = "EAGLE", draft: str = "triton"
) -> dict[str, Confidence]:
    facts = collect(intake_of(FOUNDING.format(algorithm=algorithm, draft=draft)), [])
    return {n.id: n.confidence for n in resolution_notes("sglang", version, "moe_runner_backend", component, facts)}


def test_the_gate_on_the_quantization_setting_explains_the_draft() -> None:
    assert notes("0.5.20", "draft_model")["sglang.draft-modelopt-gate"] is Confidence.SUPPORTED
    assert notes(None, "draft_model")["sglang.draft-modelopt-gate"] is Confidence.HYPOTHESIS
    assert notes(None, "draft_model")["sglang.draft-mixed-weights"] is Confidence.HYPOTHESIS
    assert notes("0.5.20", "target_model") == {}


def test_rules_follow_what_was_asked_and_the_algorithm() -> None:
    assert "sglang.draft-auto-on-sm120" in notes("0.5.20", "draft_model", draft="auto")
    assert "sglang.draft-auto-on-sm120" not in notes("0.5.20", "draft_model")
    assert "sglang.draft-worker-ignores-flag" in notes("0.5.23", "draft_model", algorithm="DFLASH")
    assert "sglang.draft-worker-ignores-flag" not in notes("0.5.23", "draft_model")
    assert "sglang.draft-flag-absent" in notes("0.5.3", "draft_model")
    assert "sglang.draft-flag-absent" not in notes("0.5.20", "draft_model")


def test_an_engine_of_its_own() -> None:
    facts = collect(intake_of("export VLLM_ATTENTION_BACKEND=FLASHINFER"), [])
    found = resolution_notes("vllm", "0.15.1", "attention_backend", "target_model", facts)
    assert [n.id for n in found] == ["vllm.attention-environment-removed"]
    assert resolution_notes("vllm", "0.12.0", "attention_backend", "target_model", facts) == []
    assert resolution_notes("llama.cpp", None, "attention_backend", None, facts) == []


def test_families_and_kernels_of_events() -> None:
    text = "Error occurred when running GEMM! (Kernel: bmm_E2m1_E2m1E2m1_Fp32_bA16_bB16_bC16_t128x8x512u2_s5_et128x8_m128x8x64_cga1x1x1_16dp256b_rM_TN_transOut_schedS_bN_sm100f)"
    facts = collect(intake_of("x\n" + text), [message(text, 2)])
    assert facts.kernels[0].archs == ("sm_100f",)
    assert facts.kernels[0].span is not None and facts.kernels[0].span.first_line == 2
    assert facts.families[0].family.id == "fi.trtllm_fp4_block_scale_moe"
    assert facts.families[0].via.startswith("bmm_E2m1")
