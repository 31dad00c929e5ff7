"""tl.dot_scaled, the product of block-scaled operands.

10.x and 12.x have instructions for it; elsewhere Triton converts the operands first, where it can.
"""

from compile_runtime import compile_triton
from runtime import CannotTry, main, seeded

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

# --- data ---
PARAMETERS = {"operands": "e2m1", "m": 128, "n": 128, "k": 128}
# --- end of data ---

if triton is not None:

    @triton.jit
    def scaled_kernel(
        a,
        b,
        a_scale,
        b_scale,
        c,
        M: tl.constexpr,
        N: tl.constexpr,
        K: tl.constexpr,
        PACK: tl.constexpr,
        KIND: tl.constexpr,
    ):
        """c = (a * a_scale) @ (b * b_scale); PACK values stand in one byte, a scale is for 32 values of K."""
        rows, columns, inner, blocks = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // PACK), tl.arange(0, K // 32)
        left = tl.load(a + rows[:, None] * (K // PACK) + inner[None, :])
        right = tl.load(b + inner[:, None] * N + columns[None, :])
        if KIND == "bf16":
            total = tl.dot(left, right)
        else:
            left_scale = tl.load(a_scale + rows[:, None] * (K // 32) + blocks[None, :])
            right_scale = tl.load(b_scale + columns[:, None] * (K // 32) + blocks[None, :])
            total = tl.dot_scaled(left, left_scale, KIND, right, right_scale, KIND)
        tl.store(c + rows[:, None] * N + columns[None, :], total)


def kind_of(p, variant):
    """(operand kind, values in a byte)."""
    kind = {"fp8": "e4m3", "dot-bf16": "bf16"}.get(variant, p["operands"])
    return kind, 2 if kind == "e2m1" else 1


def prepare(p, variant):
    """One tile's product."""
    torch = seeded(p)
    m, n, k = p["m"], p["n"], p["k"]
    kind, pack = kind_of(p, variant)
    if kind == "bf16":
        a, b = torch.randn(m, k, device="cuda").to(torch.bfloat16), torch.randn(k, n, device="cuda").to(torch.bfloat16)
    else:
        a = torch.randint(0, 120, (m, k // pack), dtype=torch.uint8, device="cuda")
        b = torch.randint(0, 120, (k // pack, n), dtype=torch.uint8, device="cuda")
    scales = [torch.full((size, k // 32), 127, dtype=torch.uint8, device="cuda") for size in (m, n)]
    c = torch.full((m, n), float("nan"), device="cuda")

    def check():
        if torch.isnan(c).all():
            raise ValueError("the kernel wrote nothing")

    return lambda: scaled_kernel[(1,)](a, b, scales[0], scales[1], c, m, n, k, pack, kind), check


def compile_for(p, variant, target):
    """Compiles the kernel for a target."""
    if triton is None:
        raise CannotTry("triton is not installed")
    kind, pack = kind_of(p, variant)
    pointer = "*bf16" if kind == "bf16" else "*u8"
    signature = {"a": pointer, "b": pointer, "a_scale": "*u8", "b_scale": "*u8", "c": "*fp32"}
    constants = {"M": p["m"], "N": p["n"], "K": p["k"], "PACK": pack, "KIND": kind}
    return compile_triton(scaled_kernel, signature, constants, target)


if __name__ == "__main__":
    main(globals())
