"""A convolution that ends in a cuDNN status."""

from runtime import main, seeded

# --- data ---
PARAMETERS = {"form": "convolution", "channels": 16, "size": 32}
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
    """One 3 x 3 convolution; "no_engine" hands cuDNN integers, for which it has none."""
    torch = seeded(p)
    channels, size = p["channels"], p["size"]
    failing = variant == "as-logged"
    dtype = torch.int32 if failing and p["form"] == "no_engine" else torch.bfloat16
    x = torch.ones(1, channels, size, size, device="cuda").to(dtype)
    weight = torch.ones(channels, channels, 3, 3, device="cuda").to(dtype)
    torch.backends.cudnn.enabled = variant != "native"
    kept = fill_memory(torch) if failing and p["form"] == "full_memory" else []
    if failing and p["form"] == "no_engine":
        return lambda: torch.cudnn_convolution(x, weight, (1, 1), (1, 1), (1, 1), 1, False, False, False)
    return lambda: (torch.nn.functional.conv2d(x, weight, padding=1), kept)


if __name__ == "__main__":
    main(globals())
