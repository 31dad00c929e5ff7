"""A Triton GEMM whose tiles want more shared memory than a block may have.

Triton compiles it for any GPU; the driver's limit is compared when the kernel is loaded for its first launch.
"""

from compile_runtime import compile_triton
from runtime import CannotTry, main, seeded

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

# --- data ---
PARAMETERS = {"block_m": 256, "block_n": 256, "block_k": 128, "stages": 5, "warps": 8, "dtype": "bfloat16"}
# --- end of data ---

if triton is not None:

    @triton.jit
    def tiled_product_kernel(a, b, c, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
        """One tile of c = a @ b; a is BLOCK_M x K, b is K x BLOCK_N."""
        rows, columns, inner = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_K)
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, K, BLOCK_K):
            left = tl.load(a + rows[:, None] * K + start + inner[None, :])
            right = tl.load(b + (start + inner)[:, None] * BLOCK_N + columns[None, :])
            total = tl.dot(left, right, total)
        tl.store(c + rows[:, None] * BLOCK_N + columns[None, :], total)


def configuration(p, variant):
    """(tile M, tile N, tile K, stages) of a variant."""
    m, n, k, stages = p["block_m"], p["block_n"], p["block_k"], p["stages"]
    if variant == "two-stages":
        stages = min(stages, 2)
    elif variant == "half-tiles":
        m, n, stages = max(m // 2, 16), max(n // 2, 16), min(stages, 2)
    return m, n, k, stages


def prepare(p, variant):
    """The launch. The log's tile is one block's work, so one block is launched."""
    torch = seeded(p)
    m, n, k, stages = configuration(p, variant)
    depth = k * 8
    dtype = getattr(torch, p["dtype"])
    a = torch.randn(m, depth, device="cuda", dtype=dtype)
    b = torch.randn(depth, n, device="cuda", dtype=dtype)
    c = torch.full((m, n), float("nan"), device="cuda", dtype=torch.float32)
    if variant == "torch":
        return lambda: torch.matmul(a, b)

    def launch():
        tiled_product_kernel[(1,)](a, b, c, depth, m, n, k, num_stages=stages, num_warps=p["warps"])

    def check():
        if torch.isnan(c).any():
            raise ValueError("the kernel left parts of its output unwritten")

    return launch, check


def compile_for(p, variant, target):
    """Compiles the kernel and compares the shared memory that it asks for with the target's limit."""
    if triton is None:
        raise CannotTry("triton is not installed")
    if variant == "torch":
        raise CannotTry("torch.matmul has no kernel to compile")
    m, n, k, stages = configuration(p, variant)
    pointer = {"float16": "*fp16", "bfloat16": "*bf16", "float32": "*fp32"}[p["dtype"]]
    signature = {"a": pointer, "b": pointer, "c": "*fp32", "K": "i32"}
    constants = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}
    return compile_triton(tiled_product_kernel, signature, constants, target, num_stages=stages, num_warps=p["warps"])


if __name__ == "__main__":
    main(globals())
