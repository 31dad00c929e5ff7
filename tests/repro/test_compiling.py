"""What a GPU that is not here refuses at compile time."""

from __future__ import annotations

import shutil

import pytest

from forensics.repro import compile_only
from forensics.repro.planning import Plan
from forensics.repro.running import Limits
from tests.repro.conftest import plan_for

LIMITS = Limits(timeout_s=120)


def shared_memory_plan(**values: int) -> Plan:
    message = "out of resource: shared memory, Required: 131072, Hardware limit: 101376"
    return plan_for("triton.runtime.errors.OutOfResources", message, "arch_mismatch").with_values(values)


def test_only_sm_120_refuses_a_tile_for_its_shared_memory() -> None:
    pytest.importorskip("triton")
    plan = shared_memory_plan(block_m=128, block_n=128, block_k=64, stages=5)
    hopper, workstation = compile_only(plan, "sm_90", LIMITS), compile_only(plan, "sm_120", LIMITS)
    assert (hopper.state, workstation.state, workstation.kind) == ("compiles", "refused", "shared memory")
    assert workstation.limit_bytes == 101376 < (workstation.shared_bytes or 0)
    assert hopper.limit_bytes == 232448 >= (hopper.shared_bytes or 0) > 101376
    assert "nothing about running" in hopper.why
    assert compile_only(plan, "sm_120", LIMITS, variant="half-tiles").state == "compiles"


def test_an_inline_instruction_of_10x_in_a_triton_kernel() -> None:
    pytest.importorskip("triton")
    plan = plan_for("RuntimeError", "Internal Triton PTX codegen error\n`ptxas` stderr:", "jit_compile")
    states = {target: compile_only(plan, target, LIMITS) for target in ("sm_90", "sm_100", "sm_120")}
    assert {target: found.state for target, found in states.items()} == {
        "sm_90": "refused",
        "sm_100": "compiles",
        "sm_120": "refused",
    }
    assert states["sm_120"].kind == "instruction" and "tcgen05" in states["sm_120"].why


def _assembler() -> bool:
    try:
        import triton  # noqa: F401
    except ImportError:
        return shutil.which("ptxas") is not None
    return True


@pytest.mark.skipif(not _assembler(), reason="neither ptxas nor triton is installed")
@pytest.mark.parametrize(
    ("message", "states"),
    [
        (
            "Instruction 'tcgen05.alloc' not supported on .target 'sm_120a'",
            {"sm_100a": "compiles", "sm_100": "refused", "sm_90a": "refused", "sm_120a": "refused"},
        ),
        (
            "Instruction 'wgmma.fence' not supported on .target 'sm_100a'",
            {"sm_90a": "compiles", "sm_90": "refused", "sm_100a": "refused"},
        ),
        (
            "Instruction 'mma with block_scale' not supported on .target 'sm_90a'",
            {"sm_120a": "compiles", "sm_120": "refused", "sm_90a": "refused"},
        ),
    ],
)
def test_one_instruction_and_the_targets_that_have_it(message: str, states: dict[str, str]) -> None:
    plan = plan_for("RuntimeError", message, "arch_mismatch")
    found = {target: compile_only(plan, target, LIMITS) for target in states}
    assert {target: one.state for target, one in found.items()} == states
    assert all(one.kind == "instruction" for one in found.values() if one.state == "refused")


@pytest.mark.parametrize(
    ("built", "target", "state"),
    [
        ("sm100f", "sm_100", "compiles"), ("sm100f", "sm_103", "compiles"), ("sm100f", "sm_120", "refused"), ("sm100f", "sm_90", "refused"),
        ("sm100a", "sm_103", "refused"), ("sm120a", "sm_121", "refused"), ("sm120f", "sm_121", "compiles"), ("sm103f", "sm_100", "refused"),
    ],
)  # fmt: skip
def test_where_a_prebuilt_binary_loads(built: str, target: str, state: str) -> None:
    message = f"CUDA_ERROR_NO_BINARY_FOR_GPU: no kernel image is available loading Bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256_{built}.cubin"
    plan = plan_for("RuntimeError", message, "arch_mismatch")
    assert (plan.recipe.id, compile_only(plan, target, LIMITS).state) == ("cubin-driver-load", state)


@pytest.mark.parametrize(
    ("target", "state"), [("sm_100", "compiles"), ("sm_103", "compiles"), ("sm_120", "refused"), ("sm_90", "refused")]
)
def test_why_a_prebuilt_moe_kernel_cannot_load(target: str, state: str) -> None:
    message = "Error occurred when running GEMM! (numBatches: 8, GemmMNK: 8 512 256, Kernel: bmm_MxE4m3_MxE2m1MxE4m3_x_sm100f)"
    plan = plan_for(
        "RuntimeError", message, "arch_mismatch", frames=[{"function": "trtllm_fp4_block_scale_routed_moe"}]
    )
    found = compile_only(plan, target, LIMITS)
    assert (found.state, found.kind) == (state, "target" if state == "refused" else None)
    assert "sm_100f" in found.why


def test_the_same_rules_as_the_knowledge_floor() -> None:
    from forensics.knowledge import can_run

    for built, target in (
        ("sm_100f", "sm_103"),
        ("sm_100f", "sm_120"),
        ("sm_100a", "sm_103"),
        ("sm_120f", "sm_121"),
        ("sm_90a", "sm_90"),
    ):
        message = f"CUDA_ERROR_NO_BINARY_FOR_GPU loading x_{built.replace('_', '')}.cubin"
        plan = plan_for("RuntimeError", message, "arch_mismatch")
        assert plan.values["target"] == built
        assert (compile_only(plan, target, LIMITS).state == "compiles") is can_run(built, target)


def test_a_target_that_is_none_and_an_op_without_a_form() -> None:
    plan = plan_for("RuntimeError", "Instruction 'wgmma.fence' not supported on .target 'sm_100a'", "arch_mismatch")
    assert compile_only(plan, "gfx942", LIMITS).state == "cannot be tried"
    shape = plan_for(
        "RuntimeError", "mat1 and mat2 shapes cannot be multiplied (4x8 and 16x32)", "shape_or_dtype_assert"
    )
    assert compile_only(shape, "sm_120", LIMITS).state == "cannot be tried"
