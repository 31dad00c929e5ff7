"""The Triton fused MoE kernel, called through the engine that is installed."""

from runtime import CannotTry, main, need, seeded

# --- data ---
PARAMETERS = {"tokens": 16, "hidden": 1024, "intermediate": 512, "experts": 8, "top_k": 2}
# --- end of data ---


def engine_function():
    """fused_experts of vLLM, else of SGLang."""
    for module in ("vllm.model_executor.layers.fused_moe", "sglang.srt.layers.moe.fused_moe_triton.fused_moe"):
        try:
            return need(module).fused_experts
        except (CannotTry, AttributeError):
            continue
    raise CannotTry("neither vLLM nor SGLang is installed")


def prepare(p, variant):
    """One MoE layer in bf16."""
    torch = seeded(p)
    t, h, i, e = p["tokens"], p["hidden"], p["intermediate"], p["experts"]

    def drawn(*shape):
        return torch.randn(shape, device="cuda", dtype=torch.bfloat16) / shape[-1] ** 0.5

    x, up, down = drawn(t, h), drawn(e, 2 * i, h), drawn(e, h, i)
    chosen = torch.stack([torch.randperm(e, device="cuda")[: p["top_k"]] for _ in range(t)])
    weights = torch.full(chosen.shape, 1.0 / p["top_k"], device="cuda")
    if variant == "as-logged":
        function = engine_function()
        return lambda: function(x, up, down, weights, chosen.to(torch.int32))

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


if __name__ == "__main__":
    main(globals())
