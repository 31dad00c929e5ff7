"""Which kernel or op a failure names."""

from __future__ import annotations

from typing import Any

import pytest

from forensics.callpath import kernel_of
from forensics.callpath.kernel import names
from forensics.data import table
from forensics.model.knowledge import Facts
from forensics.model.stack import Frame

SGLANG = "/sgl-workspace/sglang/python/sglang/srt/"
BMM = "bmm_MxE4m3_MxE2m1MxE4m3_Fp32_bA32_bB32_bC32_t128x8x256u2_s5_et128x8_m128x8x32_cga1x1x1_16dp256b_rM_TN_transOut_schedS_biasM_bN_ldgsts_tmaOpt_clmp_swiGlu_dynBatch_sm100f"


def name(texts: list[str], *frames: Frame) -> str | None:
    found = kernel_of(texts, frames, Facts())
    return found.name if found else None


def test_a_name_with_a_grammar_is_decoded() -> None:
    found = kernel_of([f"Error occurred when running GEMM! (Kernel: {BMM})"], (), Facts())
    assert found is not None
    assert found.grammar
    assert found.archs == ("sm_100f",)


def test_a_triton_launch_names_its_kernel() -> None:
    assert (
        name(["x"], Frame("f", SGLANG + "layers/ops.py", 1, "_fwd_kernel_stage2[grid](q, k, v)"))
        == "_fwd_kernel_stage2"
    )


def test_a_lookup_that_is_called_is_no_kernel() -> None:
    assert name(["x"], Frame("f", "/srv/main.py", 1, "CASES[case]()")) is None


def test_one_of_several_modules_that_is_called_is_no_kernel() -> None:
    assert name(["x"], Frame("f", "/srv/main.py", 1, "out = stages[0](batch, mask)")) is None
    assert name(["x"], Frame("f", "/srv/main.py", 1, "out = stages['first'](batch, mask)")) is None
    assert name(["x"], Frame("f", "/srv/main.py", 1, "scale_kernel[(4, 1)](batch, mask)")) == "scale_kernel"


def test_a_function_that_was_called_wrongly_is_a_kernel_only_by_its_name() -> None:
    assert name(["store_weights() got an unexpected keyword argument 'last'"]) is None
    assert name(["grouped_gemm_run() got an unexpected keyword argument 'last'"]) == "grouped_gemm_run"


def test_a_registered_op_is_named() -> None:
    assert (
        name(["x"], Frame("f", SGLANG + "ops.py", 1, "torch.ops.sgl_kernel.moe_fused_gate.default("))
        == "moe_fused_gate"
    )


def test_the_message_names_it() -> None:
    assert name(["moe_fused_gate() takes 5 positional arguments but 7 were given"]) == "moe_fused_gate"
    assert name(["Kernel Name: flash_attn_tile"]) == "flash_attn_tile"


def test_advice_about_kernels_is_no_name() -> None:
    assert name(["CUDA kernel errors might be asynchronously reported at some other API call"]) is None


@pytest.mark.parametrize("row", table("frames/kernel_names")["said"], ids=lambda row: row["pattern"][:24])
def test_each_way_of_naming_one_is_shown_by_its_examples(row: dict[str, Any]) -> None:
    place = next(n for n, one in enumerate(table("frames/kernel_names")["said"]) if one is row)
    pattern = names().said[place]
    for text in row["examples"]:
        assert pattern.search(text), text
    for text in row.get("counterexamples", ()):
        assert not pattern.search(text), text


def test_a_namespace_belongs_to_an_ops_name() -> None:
    assert name(["Could not run 'aten::index_add' with arguments from this backend"]) == "aten::index_add"
    assert name(["the kernel name: scale::rows_fast was refused"]) == "scale::rows_fast"
    assert name(["BatchPrefill::plan_it failed"]) == "BatchPrefill::plan_it"


def test_a_binding_that_calls_is_no_kernel() -> None:
    entry = Frame("attend_paged_rows", "/usr/lib/python3/site-packages/flashinfer/attend.py", 1, "run_func(")
    binding = Frame("tvm_ffi.core.Function.__call__", "python/tvm_ffi/cython/function.pxi", 7, None)
    assert name(["x"], entry, binding) == "attend_paged_rows"
    assert name(["x"], binding) is None
    assert name(["x"], Frame("flashinfer.core.attend_paged_rows", "flashinfer/core.pyx", 7, None)) == "flashinfer.core.attend_paged_rows"
