"""An allocation that does not fit any more.

The log's size is allocated again and again until one fails: that shows the words, not why the memory was full in the log.
An error without a size comes from CUDA or a library beside torch: then cuDNN is called with nothing left.
"""

from runtime import CannotTry, main, seeded

# --- data ---
PARAMETERS = {"by": "torch", "tried_mib": 1024}
# --- end of data ---


def prepare(p, variant):
    """Allocations that are kept; torch's own allocator, no managed memory."""
    torch = seeded(p)
    size = p["tried_mib"] << 20
    _, total = torch.cuda.mem_get_info()
    if variant == "one":
        if size > total // 2:
            raise CannotTry(f"one allocation of {p['tried_mib']} MiB is more than half of this GPU")
        return lambda: torch.empty(size, dtype=torch.uint8, device="cuda")
    kept = []

    def beside_torch():
        """What is left when torch has taken all: too little for cuDNN's handle."""
        piece = 8 << 30
        weight = torch.ones(16, 16, 3, 3, device="cuda", dtype=torch.bfloat16)
        image = torch.ones(1, 16, 64, 64, device="cuda", dtype=torch.bfloat16)
        while piece >= 2 << 20:
            try:
                kept.append(torch.empty(piece, dtype=torch.uint8, device="cuda"))
            except torch.OutOfMemoryError:
                piece //= 2
        torch.nn.functional.conv2d(image, weight)

    def fill():
        for _ in range(total // size + 2):
            kept.append(torch.empty(size, dtype=torch.uint8, device="cuda"))

    return fill if p["by"] == "torch" else beside_torch


if __name__ == "__main__":
    main(globals())
