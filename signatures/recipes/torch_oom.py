"""An allocation that does not fit any more.

The log's size is allocated again and again until one fails: that shows the words, not why the memory was full in the log.
"""

from runtime import CannotTry, main, seeded

# --- data ---
PARAMETERS = {"tried_mib": 1024}
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

    def fill():
        for _ in range(total // size + 2):
            kept.append(torch.empty(size, dtype=torch.uint8, device="cuda"))

    return fill


if __name__ == "__main__":
    main(globals())
