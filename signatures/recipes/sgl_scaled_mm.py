"""sgl-kernel's scaled products: FP8 by row and column, FP8 in 128 blocks, INT8."""

from runtime import main, need, seeded

# --- data ---
PARAMETERS = {"form": "fp8", "m": 64, "n": 256, "k": 256}
# --- end of data ---


def prepare(p, variant):
    """out = a @ b; b is column-major."""
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
    library = need("sgl_kernel")
    form = p["form"] if variant == "as-logged" else variant
    if form == "int8":
        left, right = a.to(torch.int8), b.to(torch.int8)
        return lambda: library.int8_scaled_mm(left, right.t(), row, column.t().contiguous(), torch.bfloat16)
    if form == "fp8_blockwise":
        rows = torch.ones(k // 128, m, device="cuda").t()
        blocks = torch.ones(n // 128, k // 128, device="cuda").t()
        return lambda: library.fp8_blockwise_scaled_mm(left, right.t(), rows, blocks, torch.bfloat16)
    return lambda: library.fp8_scaled_mm(left, right.t(), row, column.t().contiguous(), torch.bfloat16)


if __name__ == "__main__":
    main(globals())
