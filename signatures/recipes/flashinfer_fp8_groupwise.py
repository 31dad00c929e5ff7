"""flashinfer's block-scaled FP8 product: a scale for 128 activations and for 128 x 128 weights."""

from runtime import main, need, seeded

# --- data ---
PARAMETERS = {"backend": "cutlass", "m": 128, "n": 256, "k": 256}
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
        scales = torch.ones(m, 1, device="cuda"), torch.ones(1, n, device="cuda")
        return lambda: torch._scaled_mm(left, right.t(), scale_a=scales[0], scale_b=scales[1], out_dtype=torch.bfloat16)
    backend = p["backend"] if variant == "as-logged" else variant
    function = need("flashinfer.gemm").gemm_fp8_nt_groupwise
    a_scale, b_scale = torch.ones(k // 128, m, device="cuda"), torch.ones(k // 128, n // 128, device="cuda")
    return lambda: function(
        left, right, a_scale, b_scale, scale_major_mode="MN", out_dtype=torch.bfloat16, backend=backend
    )


if __name__ == "__main__":
    main(globals())
