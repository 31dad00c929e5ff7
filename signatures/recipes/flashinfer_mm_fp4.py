"""flashinfer's dense FP4 product (NVFP4: a scale for 16 values) with one backend."""

from runtime import main, need, seeded

# --- data ---
PARAMETERS = {"backend": "cutlass", "m": 128, "n": 256, "k": 256}
# --- end of data ---


def prepare(p, variant):
    """out = a @ b with packed operands; b is column-major, as the op asks for."""
    torch = seeded(p)
    m, n, k = p["m"], p["n"], p["k"]
    if variant == "bf16":
        left, right = (
            torch.randn(m, k, device="cuda").to(torch.bfloat16),
            torch.randn(n, k, device="cuda").to(torch.bfloat16),
        )
        return lambda: left @ right.t()
    one = torch.ones(1, device="cuda")
    if variant == "fp8":
        left, right = (
            torch.randn(m, k, device="cuda").to(torch.float8_e4m3fn),
            torch.randn(n, k, device="cuda").to(torch.float8_e4m3fn),
        )
        return lambda: torch._scaled_mm(left, right.t(), scale_a=one[0], scale_b=one[0], out_dtype=torch.bfloat16)
    mm_fp4 = need("flashinfer").mm_fp4
    backend = p["backend"] if variant == "as-logged" else variant

    def rounded(value, step):
        return -(-value // step) * step

    def packed(rows):
        return torch.randint(0, 256, (rows, k // 2), dtype=torch.uint8, device="cuda")

    def scales(rows):
        return torch.full((rounded(rows, 128), rounded(k // 16, 4)), 56, dtype=torch.uint8, device="cuda").view(
            torch.float8_e4m3fn
        )

    a, b, a_scale, b_scale = packed(m), packed(n), scales(m), scales(n)
    return lambda: mm_fp4(a, b.t(), a_scale, b_scale.t(), one, torch.bfloat16, backend=backend)


if __name__ == "__main__":
    main(globals())
