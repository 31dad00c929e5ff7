"""torch._scaled_grouped_mm, the product under FP8 MoE layers.

Rowwise FP8 is Hopper's and newer; a scale for 32 values (MXFP8) is for 10.x only.
"""

from runtime import CannotTry, main, seeded

# --- data ---
PARAMETERS = {"form": "mxfp8", "groups": 4, "m": 128, "n": 256, "k": 256}
# --- end of data ---


def prepare(p, variant):
    """Rows of all groups one after another, one weight a group."""
    torch = seeded(p)
    if not hasattr(torch, "_scaled_grouped_mm"):
        raise CannotTry("this torch has no _scaled_grouped_mm")
    form = p["form"] if variant == "as-logged" else variant
    groups, m, n, k = p["groups"], p["m"], p["n"], p["k"]
    rows = torch.randn(groups * m, k, device="cuda", dtype=torch.bfloat16)
    weights = torch.randn(groups, n, k, device="cuda", dtype=torch.bfloat16)
    ends = torch.arange(m, groups * m + 1, m, device="cuda", dtype=torch.int32)
    if form == "bf16-loop":
        return lambda: [part @ weight.t() for part, weight in zip(rows.chunk(groups), weights, strict=True)]
    if form == "bf16-grouped":
        return lambda: torch._grouped_mm(rows, weights.transpose(-2, -1), offs=ends)
    left, right = (
        (rows, weights) if form == "bf16_operands" else (rows.to(torch.float8_e4m3fn), weights.to(torch.float8_e4m3fn))
    )
    if form == "mxfp8":
        e8m0 = torch.float8_e8m0fnu
        scales = [
            torch.ones(groups * m, k // 32, device="cuda").to(e8m0),
            torch.ones(groups, n * k // 32, device="cuda").to(e8m0),
        ]
    else:
        scales = [torch.ones(groups * m, device="cuda"), torch.ones(groups, n, device="cuda")]
    return lambda: torch._scaled_grouped_mm(
        left, right.transpose(-2, -1), scales[0], scales[1], offs=ends, out_dtype=torch.bfloat16
    )


if __name__ == "__main__":
    main(globals())
