"""A kernel that reads where it may not.

A stand-in for the log's kernel, whose inputs a log does not have: it shows what such an access looks like on this GPU.
compute-sanitizer on the real program finds the real line.
"""

from runtime import main, seeded

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

# --- data ---
PARAMETERS = {"form": "outside", "elements": 1024, "distance": 1 << 40}
# --- end of data ---

if triton is not None:

    @triton.jit
    def gather_kernel(values, index, out, n, shift, MASKED: tl.constexpr, BLOCK: tl.constexpr):
        """out[i] = values[index[i]], shift bytes further."""
        place = tl.arange(0, BLOCK)
        chosen = tl.load(index + place, mask=place < n, other=0)
        address = (values + chosen).to(tl.int64) + shift
        if MASKED:
            read = tl.load(address.to(tl.pointer_type(tl.float32)), mask=(place < n) & (chosen < n), other=0.0)
        else:
            read = tl.load(address.to(tl.pointer_type(tl.float32)), mask=place < n, other=0.0)
        tl.store(out + place, read, mask=place < n)


def prepare(p, variant):
    """A gather whose last index, or whose every address, is wrong."""
    torch = seeded(p)
    n, masked = p["elements"], variant == "masked"
    values, out = torch.ones(n, device="cuda"), torch.zeros(n, device="cuda")
    index = torch.zeros(n, dtype=torch.int64)
    index[-1] = p["distance"] if p["form"] == "outside" else 0
    index = index.cuda()
    shift = 2 if p["form"] == "misaligned" and not masked else 0

    def launch():
        gather_kernel[(1,)](values, index, out, n, shift, masked, triton.next_power_of_2(n))
        torch.cuda.synchronize()

    return launch


if __name__ == "__main__":
    main(globals())
