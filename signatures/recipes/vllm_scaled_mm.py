"""vLLM's CUTLASS products."""

from runtime import main, need, seeded

# --- data ---
PARAMETERS = {"form": "fp8", "m": 64, "n": 256, "k": 256}
# --- end of data ---


def prepare(p, variant):
    """out = a @ b; b is column-major, a scale for each row and column."""
    torch = seeded(p)
    m, n, k = p["m"], p["n"], p["k"]
    a, b = (
        torch.randn(m, k, device="cuda", dtype=torch.bfloat16),
        torch.randn(n, k, device="cuda", dtype=torch.bfloat16),
    )
    if variant == "bf16":
        return lambda: a @ b.t()
    row, column = torch.ones(m, 1, device="cuda"), torch.ones(1, n, device="cuda")
    left, right = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
    if variant == "torch-rowwise":
        return lambda: torch._scaled_mm(left, right.t(), scale_a=row, scale_b=column, out_dtype=torch.bfloat16)
    ops = need("vllm._custom_ops")
    form = p["form"] if variant == "as-logged" else variant
    if form == "fp4":
        one = torch.ones(1, device="cuda")

        def quantise_and_multiply():
            x, x_scale = ops.scaled_fp4_quant(a, one)
            y, y_scale = ops.scaled_fp4_quant(b, one)
            return ops.cutlass_scaled_fp4_mm(x, y, x_scale, y_scale, one, torch.bfloat16)

        return quantise_and_multiply
    if form == "int8":
        left, right = a.to(torch.int8), b.to(torch.int8)
    return lambda: ops.cutlass_scaled_mm(left, right.t(), row, column, torch.bfloat16)


if __name__ == "__main__":
    main(globals())
