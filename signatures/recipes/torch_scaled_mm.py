"""torch._scaled_mm in one of its forms.

nvfp4 and mxfp8 are Blackwell's (10.x and 12.x), FP8 begins with Ada (8.9); cuBLASLt says no where it has no algorithm.
"""

from runtime import CannotTry, main, seeded

# --- data ---
PARAMETERS = {"form": "nvfp4", "m": 128, "n": 128, "k": 256}
# --- end of data ---


def rounded(value, step):
    """The next multiple of step."""
    return -(-value // step) * step


def block_scales(torch, rows, blocks, dtype):
    """Scales in the padded 128 x 4 layout that cuBLASLt reads."""
    return torch.ones(rounded(rows, 128) * rounded(blocks, 4), device="cuda").to(dtype)


def prepare(p, variant):
    """The product. b is handed over transposed: column-major, as the op asks for."""
    torch = seeded(p)
    form = {"fp8-tensorwise": "tensorwise", "fp8-rowwise": "rowwise"}.get(
        variant, p["form"] if variant == "as-logged" else variant
    )
    m, n, k = p["m"], p["n"], p["k"]
    a, b = torch.randn(m, k, device="cuda"), torch.randn(n, k, device="cuda")
    if form == "bf16":
        left, right = a.to(torch.bfloat16), b.to(torch.bfloat16)
        return lambda: left @ right.t()
    if form == "nvfp4":
        if not hasattr(torch, "float4_e2m1fn_x2"):
            raise CannotTry("this torch has no FP4 type")
        left = torch.randint(0, 256, (m, k // 2), dtype=torch.uint8, device="cuda").view(torch.float4_e2m1fn_x2)
        right = torch.randint(0, 256, (n, k // 2), dtype=torch.uint8, device="cuda").view(torch.float4_e2m1fn_x2)
        scales = [block_scales(torch, rows, k // 16, torch.float8_e4m3fn) for rows in (m, n)]
    else:
        left, right = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
        if form == "mxfp8":
            scales = [block_scales(torch, rows, k // 32, torch.float8_e8m0fnu) for rows in (m, n)]
        elif form == "rowwise":
            scales = [torch.ones(m, 1, device="cuda"), torch.ones(1, n, device="cuda")]
        else:
            scales = [torch.ones((), device="cuda"), torch.ones((), device="cuda")]

    def scaled_mm():
        return torch._scaled_mm(left, right.t(), scale_a=scales[0], scale_b=scales[1], out_dtype=torch.bfloat16)

    return scaled_mm


if __name__ == "__main__":
    main(globals())
