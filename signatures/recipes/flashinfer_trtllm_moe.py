"""A flashinfer MoE on trtllm-gen kernels.

These kernels are prebuilt for 10.x GPUs (sm_100a, sm_100f, sm_103a) and fetched at first use; the host code around them is
compiled on the spot. What refuses another GPU differs from release to release: the build, the launcher or the driver.
"""

import inspect
import re

from compile_runtime import check_binary
from runtime import CannotTry, main, need, seeded

# --- data ---
PARAMETERS = {
    "built_for": "sm_100f",
    "form": "fp4_routed",
    "weights": "mxfp4",
    "tokens": 16,
    "hidden": 2048,
    "intermediate": 768,
    "experts": 8,
    "top_k": 2,
    "seed": 0,
}
# --- end of data ---


def call_with(function, known):
    """Calls a function with those of the known arguments that this release takes, None for what it needs beyond them."""
    taken = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name in known:
            taken[name] = known[name]
        elif parameter.default is inspect.Parameter.empty and parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            taken[name] = None
    return function(**taken)


def fetched(call):
    """Makes a failed download of prebuilt kernels what it is: nothing that says anything about the GPU."""
    try:
        return call()
    except (AssertionError, OSError) as error:
        if re.search(
            r"checksum|Failed to (get|load|download)|not found|metainfo|Max retries", str(error), re.IGNORECASE
        ):
            raise CannotTry(f"flashinfer's prebuilt kernels cannot be fetched here: {error}") from error
        raise


def fp4_arguments(torch, p, routed):
    """Packed FP4 experts with block scales; MXFP8 activations for MXFP4 weights, FP4 ones for NVFP4."""
    t, h, i, e = p["tokens"], p["hidden"], p["intermediate"], p["experts"]
    block = 32 if p.get("weights") == "mxfp4" else 16
    fp8 = torch.float8_e4m3fn

    def packed(*shape):
        return torch.randint(0, 256, shape, dtype=torch.uint8, device="cuda")

    def scales(*shape):
        return torch.full(shape, 127 if block == 32 else 56, dtype=torch.uint8, device="cuda").view(fp8)

    one = torch.ones(e, device="cuda")
    known = {
        "hidden_states": torch.randn(t, h, device="cuda").to(fp8) if block == 32 else packed(t, h // 2),
        "hidden_states_scale": scales(t, h // block),
        "gemm1_weights": packed(e, 2 * i, h // 2),
        "gemm1_weights_scale": scales(e, 2 * i, h // block),
        "gemm2_weights": packed(e, h, i // 2),
        "gemm2_weights_scale": scales(e, h, i // block),
        "output1_scale_scalar": one,
        "output1_scale_gate_scalar": one,
        "output2_scale_scalar": one,
    }
    if routed:
        ids = torch.randint(0, e, (t, p["top_k"]), dtype=torch.int32, device="cuda")
        weights = (
            torch.full((t, p["top_k"]), 1.0 / p["top_k"], device="cuda")
            .to(torch.bfloat16)
            .view(torch.int16)
            .to(torch.int32)
        )
        known["topk_ids"] = (ids << 16) | (weights & 0xFFFF)
    return known


def fp8_arguments(torch, p):
    """FP8 experts with one scale for 128 x 128 weights and for 128 activations."""
    t, h, i, e = p["tokens"], p["hidden"], p["intermediate"], p["experts"]
    fp8 = torch.float8_e4m3fn
    return {
        "hidden_states": torch.randn(t, h, device="cuda").to(fp8),
        "hidden_states_scale": torch.ones(h // 128, t, device="cuda"),
        "gemm1_weights": torch.randn(e, 2 * i, h, device="cuda").to(fp8),
        "gemm1_weights_scale": torch.ones(e, 2 * i // 128, h // 128, device="cuda"),
        "gemm2_weights": torch.randn(e, h, i, device="cuda").to(fp8),
        "gemm2_weights_scale": torch.ones(e, h // 128, i // 128, device="cuda"),
    }


def bf16_arguments(torch, p):
    """bf16 experts in blocks of 128 bytes of K, the layout that the kernels read."""
    t, h, i, e = p["tokens"], p["hidden"], p["intermediate"], p["experts"]

    def blocked(rows, columns):
        weight = torch.randn(e, rows, columns, device="cuda", dtype=torch.bfloat16)
        return weight.view(e, rows, columns // 64, 64).permute(0, 2, 1, 3).contiguous()

    hidden_states = torch.randn(t, h, device="cuda", dtype=torch.bfloat16)
    return {"hidden_states": hidden_states, "gemm1_weights": blocked(2 * i, h), "gemm2_weights": blocked(h, i)}


def experts_in_bf16(torch, p):
    """(activations, gate and up weights, down weights, chosen experts, their weights) for the backends that take bf16."""
    t, h, i, e = p["tokens"], p["hidden"], p["intermediate"], p["experts"]

    def drawn(*shape):
        return torch.randn(shape, device="cuda", dtype=torch.bfloat16) / shape[-1] ** 0.5

    chosen = torch.stack([torch.randperm(e, device="cuda")[: p["top_k"]] for _ in range(t)])
    return (
        drawn(t, h),
        drawn(e, 2 * i, h),
        drawn(e, h, i),
        chosen,
        torch.full(chosen.shape, 1.0 / p["top_k"], device="cuda"),
    )


def other_backend(torch, p, variant):
    """The same layer through another library."""
    x, up, down, chosen, weights = experts_in_bf16(torch, p)
    if variant == "flashinfer-cutlass":
        function = need("flashinfer.fused_moe").cutlass_fused_moe
        return lambda: function(x, chosen.to(torch.int32), weights, up, down, torch.bfloat16, quant_scales=[])
    if variant == "vllm-triton":
        function = need("vllm.model_executor.layers.fused_moe", "vLLM has the Triton kernel").fused_experts
        return lambda: function(x, up, down, weights, chosen)

    def one_after_another():
        out = torch.zeros_like(x)
        for expert in range(p["experts"]):
            rows, place = (chosen == expert).nonzero(as_tuple=True)
            if rows.numel():
                gate, value = (x[rows] @ up[expert].t()).chunk(2, dim=-1)
                out[rows] += ((torch.nn.functional.silu(gate) * value) @ down[expert].t()) * weights[
                    rows, place, None
                ].to(x.dtype)
        return out

    return one_after_another


def prepare(p, variant):
    """The call into flashinfer, or into another backend."""
    torch = seeded(p)
    if variant != "as-logged":
        return other_backend(torch, p, variant)
    moe = need("flashinfer.fused_moe")
    names = {
        "fp4": "trtllm_fp4_block_scale_moe",
        "fp4_routed": "trtllm_fp4_block_scale_routed_moe",
        "fp8": "trtllm_fp8_block_scale_moe",
        "bf16": "trtllm_bf16_moe",
    }
    function = getattr(moe, names[p["form"]], None)
    if function is None:
        raise CannotTry(f"this flashinfer has no {names[p['form']]}")
    if p["form"] in ("fp4", "fp4_routed"):
        known = fp4_arguments(torch, p, p["form"] == "fp4_routed")
    else:
        known = fp8_arguments(torch, p) if p["form"] == "fp8" else bf16_arguments(torch, p)
    known |= {
        "routing_logits": torch.randn(p["tokens"], p["experts"], device="cuda", dtype=torch.bfloat16),
        "num_experts": p["experts"],
        "top_k": p["top_k"],
        "intermediate_size": p["intermediate"],
        "local_expert_offset": 0,
        "local_num_experts": p["experts"],
        "routing_method_type": 1,
    }
    return lambda: fetched(lambda: call_with(function, known))


def compile_for(p, variant, target):
    """Whether the prebuilt kernels load on another GPU; the other backends have none."""
    if variant != "as-logged":
        raise CannotTry("this backend is compiled for the GPU that it runs on")
    return check_binary(p["built_for"], target)


if __name__ == "__main__":
    main(globals())
