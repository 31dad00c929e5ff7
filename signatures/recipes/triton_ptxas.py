"""A Triton kernel with an inline instruction that ptxas refuses for this GPU."""

from compile_runtime import compile_triton
from runtime import CannotTry, main, seeded

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

# --- data ---
PARAMETERS = {"instruction": "tcgen05"}
# --- end of data ---

if triton is not None:

    @triton.jit
    def inline_kernel(x, FORM: tl.constexpr):
        """x + 1, after one inline instruction."""
        place = tl.arange(0, 128)
        value = tl.load(x + place)
        if FORM == "tcgen05":
            value = tl.inline_asm_elementwise(
                "tcgen05.wait::ld.sync.aligned;\nmov.b32 $0, $1;",
                "=r,r",
                [value],
                dtype=tl.int32,
                is_pure=False,
                pack=1,
            )
        elif FORM == "wgmma":
            value = tl.inline_asm_elementwise(
                "wgmma.fence.sync.aligned;\nmov.b32 $0, $1;", "=r,r", [value], dtype=tl.int32, is_pure=False, pack=1
            )
        else:
            value = tl.inline_asm_elementwise(
                "add.s32 $0, $1, 0;", "=r,r", [value], dtype=tl.int32, is_pure=False, pack=1
            )
        tl.store(x + place, value + 1)


def chosen_form(p, variant):
    """Which instruction a variant has."""
    return "add" if variant == "supported" else p["instruction"]


def prepare(p, variant):
    """The launch, which compiles first."""
    torch = seeded(p)
    x = torch.zeros(128, dtype=torch.int32, device="cuda")
    if variant == "as-logged":
        major, _ = torch.cuda.get_device_capability()
        if (p["instruction"], major) in (("tcgen05", 10), ("tcgen05", 11), ("wgmma", 9)):
            raise CannotTry(f"this GPU has {p['instruction']}: the log's instruction is another")
    return lambda: inline_kernel[(1,)](x, chosen_form(p, variant))


def compile_for(p, variant, target):
    """Compiles the kernel for a target."""
    if triton is None:
        raise CannotTry("triton is not installed")
    return compile_triton(inline_kernel, {"x": "*i32"}, {"FORM": chosen_form(p, variant)}, target)


if __name__ == "__main__":
    main(globals())
