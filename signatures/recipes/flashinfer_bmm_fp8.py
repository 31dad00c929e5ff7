"""flashinfer's batched FP8 product with one backend."""

from runtime import main, need, seeded

# --- data ---
PARAMETERS = {"backend": "cublas", "batch": 4, "m": 64, "n": 128, "k": 128}
# --- end of data ---


def prepare(p, variant):
    """a is batch x m x k, b batch x k x n and column-major."""
    torch = seeded(p)
    a = torch.randn(p["batch"], p["m"], p["k"], device="cuda", dtype=torch.bfloat16)
    b = torch.randn(p["batch"], p["n"], p["k"], device="cuda", dtype=torch.bfloat16)
    if variant == "bf16":
        return lambda: torch.bmm(a, b.transpose(1, 2))
    left, right = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
    one = torch.ones((), device="cuda")
    if variant == "torch-fp8":
        return lambda: [
            torch._scaled_mm(x, y.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
            for x, y in zip(left, right, strict=True)
        ]
    backend = p["backend"] if variant == "as-logged" else variant
    function = need("flashinfer").bmm_fp8
    return lambda: function(left, right.transpose(1, 2), one, one, torch.bfloat16, backend=backend)


if __name__ == "__main__":
    main(globals())
