"""DeepGEMM's FP8 product: a scale for 128 activations and for 128 x 128 weights. Compiled for this GPU at first use."""

from runtime import CannotTry, main, need, seeded

# --- data ---
PARAMETERS = {"scales": "float32", "m": 128, "n": 256, "k": 256}
# --- end of data ---


def prepare(p, variant):
    """out = a @ b.t() in bf16."""
    torch = seeded(p)
    m, n, k = p["m"], p["n"], p["k"]
    a, b = (
        torch.randn(m, k, device="cuda", dtype=torch.bfloat16),
        torch.randn(n, k, device="cuda", dtype=torch.bfloat16),
    )
    if variant == "bf16":
        return lambda: a @ b.t()
    left, right = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
    if variant == "torch-rowwise":
        row, column = torch.ones(m, 1, device="cuda"), torch.ones(1, n, device="cuda")
        return lambda: torch._scaled_mm(left, right.t(), scale_a=row, scale_b=column, out_dtype=torch.bfloat16)
    library = need("deep_gemm")
    function = getattr(library, "fp8_gemm_nt", None) or getattr(library, "gemm_fp8_fp8_bf16_nt", None)
    if function is None:
        raise CannotTry("this deep_gemm has no FP8 product")
    out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    if p["scales"] == "ue8m0":
        scales = [torch.full((rows, -(-k // 512)), 0x7F7F7F7F, dtype=torch.int32, device="cuda") for rows in (m, n)]
    else:
        scales = [torch.ones(m, k // 128, device="cuda"), torch.ones(n // 128, k // 128, device="cuda")]
    return lambda: function((left, scales[0]), (right, scales[1]), out)


if __name__ == "__main__":
    main(globals())
