"""FP4 (NVFP4) quantisation of both operands and their product, in sgl-kernel or vLLM."""

from runtime import main, need, seeded

# --- data ---
PARAMETERS = {"m": 64, "n": 256, "k": 256}
# --- end of data ---


def prepare(p, variant):
    """Quantises both operands and multiplies them."""
    torch = seeded(p)
    m, n, k = p["m"], p["n"], p["k"]
    a, b = (
        torch.randn(m, k, device="cuda", dtype=torch.bfloat16),
        torch.randn(n, k, device="cuda", dtype=torch.bfloat16),
    )
    if variant == "bf16":
        return lambda: a @ b.t()
    one = torch.ones(1, device="cuda")
    if variant == "fp8":
        left, right = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
        return lambda: torch._scaled_mm(left, right.t(), scale_a=one[0], scale_b=one[0], out_dtype=torch.bfloat16)
    library = need("vllm._custom_ops") if variant == "vllm" else need("sgl_kernel")

    def quantise_and_multiply():
        left, left_scale = library.scaled_fp4_quant(a, one)
        right, right_scale = library.scaled_fp4_quant(b, one)
        return library.cutlass_scaled_fp4_mm(left, right, left_scale, right_scale, one, torch.bfloat16)

    return quantise_and_multiply


if __name__ == "__main__":
    main(globals())
