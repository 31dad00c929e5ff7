"""A product that ends in a cuBLAS status.

cuBLAS allocates outside of torch: where the caching allocator has left nothing, making its handle fails, and the message speaks of
initialisation, not of memory.
"""

from runtime import main, seeded

# --- data ---
PARAMETERS = {"form": "gemm", "dtype": "bfloat16", "m": 256, "n": 256, "k": 256}
# --- end of data ---


def fill_memory(torch):
    """Takes all of the GPU's memory with plain allocations, the last pieces 2 MiB small."""
    kept, size = [], 8 << 30
    while size >= 2 << 20:
        try:
            kept.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
        except torch.OutOfMemoryError:
            size //= 2
    return kept


def prepare(p, variant):
    """One product; "full_memory" takes what is free before cuBLAS has a handle."""
    torch = seeded(p)
    dtype = getattr(torch, p["dtype"])
    a, b = torch.randn(p["m"], p["k"], device="cuda").to(dtype), torch.randn(p["k"], p["n"], device="cuda").to(dtype)
    out = torch.empty(p["m"], p["n"], device="cuda", dtype=dtype)
    kept = fill_memory(torch) if p["form"] == "full_memory" and variant == "as-logged" else []
    return lambda: (torch.mm(a, b, out=out), kept)


if __name__ == "__main__":
    main(globals())
