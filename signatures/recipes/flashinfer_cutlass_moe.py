"""flashinfer's CUTLASS MoE.

It is compiled for the visible GPU at first use, which takes minutes; a release has a module for some generations only.
"""

from runtime import main, need, seeded

# --- data ---
PARAMETERS = {"scales": "none", "tokens": 16, "hidden": 2048, "intermediate": 768, "experts": 8, "top_k": 2, "seed": 0}
# --- end of data ---


def prepare(p, variant):
    """The layer with bf16 experts, or with FP8 experts in 128 x 128 blocks."""
    torch = seeded(p)
    t, h, i, e = p["tokens"], p["hidden"], p["intermediate"], p["experts"]

    def drawn(*shape):
        return torch.randn(shape, device="cuda", dtype=torch.bfloat16) / shape[-1] ** 0.5

    x, up, down = drawn(t, h), drawn(e, 2 * i, h), drawn(e, h, i)
    chosen = torch.stack([torch.randperm(e, device="cuda")[: p["top_k"]] for _ in range(t)])
    weights = torch.full(chosen.shape, 1.0 / p["top_k"], device="cuda")
    if variant == "vllm-triton":
        experts = need("vllm.model_executor.layers.fused_moe", "vLLM has the Triton kernel").fused_experts
        return lambda: experts(x, up, down, weights, chosen)
    if variant == "torch-bf16":

        def one_after_another():
            out = torch.zeros_like(x)
            for expert in range(e):
                rows, place = (chosen == expert).nonzero(as_tuple=True)
                if rows.numel():
                    gate, value = (x[rows] @ up[expert].t()).chunk(2, dim=-1)
                    out[rows] += ((torch.nn.functional.silu(gate) * value) @ down[expert].t()) * weights[
                        rows, place, None
                    ].to(x.dtype)
            return out

        return one_after_another
    function = need("flashinfer.fused_moe").cutlass_fused_moe
    if p["scales"] == "deepseek_fp8":
        fp8 = torch.float8_e4m3fn
        blocks = [
            torch.ones(e, 2 * i // 128, h // 128, device="cuda"),
            torch.ones(e, h // 128, i // 128, device="cuda"),
        ]
        return lambda: function(
            x,
            chosen.to(torch.int32),
            weights,
            up.to(fp8),
            down.to(fp8),
            torch.bfloat16,
            quant_scales=blocks,
            use_deepseek_fp8_block_scale=True,
        )
    return lambda: function(x, chosen.to(torch.int32), weights, up, down, torch.bfloat16, quant_scales=[])


if __name__ == "__main__":
    main(globals())
