"""A construct that Triton's front end refuses, on any GPU."""

from compile_runtime import compile_triton
from runtime import CannotTry, main, seeded

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

# --- data ---
PARAMETERS = {"form": "range", "size": 96}
# --- end of data ---

if triton is not None:

    @triton.jit
    def refused_kernel(x, FORM: tl.constexpr, SIZE: tl.constexpr, GOOD: tl.constexpr):
        """One of the constructs, or a copy of SIZE values."""
        if GOOD:
            place = tl.arange(0, 128)
            tl.store(x + place, tl.load(x + place))
        elif FORM == "range":
            place = tl.arange(0, SIZE)
            tl.store(x + place, tl.load(x + place))
        elif FORM == "dot":
            rows, columns = tl.arange(0, 2), tl.arange(0, 2)
            tile = tl.load(x + rows[:, None] * 2 + columns[None, :]).to(tl.int8)
            tl.store(x + rows[:, None] * 2 + columns[None, :], tl.dot(tile, tile).to(tl.float32))
        elif FORM == "shapes":
            tl.store(x + tl.arange(0, 64), tl.arange(0, 64) + tl.arange(0, 128))
        else:
            rows = tl.arange(0, 32)
            tile = tl.load(x + rows[:, None] * 32 + rows[None, :])
            tl.store(
                x + rows[:, None] * 32 + rows[None, :], tl.dot(tile.to(tl.float16), tile.to(tl.bfloat16)).to(tl.float32)
            )


def prepare(p, variant):
    """The launch, which compiles first."""
    torch = seeded(p)
    x = torch.zeros(65536, device="cuda")
    return lambda: refused_kernel[(1,)](x, p["form"], p["size"], variant == "allowed")


def compile_for(p, variant, target):
    """Compiles the kernel for a target."""
    if triton is None:
        raise CannotTry("triton is not installed")
    constants = {"FORM": p["form"], "SIZE": p["size"], "GOOD": variant == "allowed"}
    return compile_triton(refused_kernel, {"x": "*fp32"}, constants, target)


if __name__ == "__main__":
    main(globals())
