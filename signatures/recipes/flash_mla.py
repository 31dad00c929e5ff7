"""FlashMLA's decode: one key head, 576 wide, whose first 512 are the value."""

import inspect

from runtime import main, need, seeded

# --- data ---
PARAMETERS = {"batch": 4, "heads": 128, "length": 256}
# --- end of data ---

KEY_WIDTH, VALUE_WIDTH, PAGE = 576, 512, 64


def prepare(p, variant):
    """One decode step over a paged cache."""
    torch = seeded(p)
    batch, heads, length = p["batch"], p["heads"], p["length"]
    pages = -(-length // PAGE)
    query = torch.randn(batch, 1, heads, KEY_WIDTH, device="cuda", dtype=torch.bfloat16)
    cache = torch.randn(batch * pages, PAGE, 1, KEY_WIDTH, device="cuda", dtype=torch.bfloat16)
    if variant == "torch-sdpa":
        keys = cache.view(batch, 1, pages * PAGE, KEY_WIDTH)[:, :, :length]
        q, values = query.transpose(1, 2), keys[..., :VALUE_WIDTH]
        return lambda: torch.nn.functional.scaled_dot_product_attention(
            q, keys.expand(-1, heads, -1, -1), values.expand(-1, heads, -1, -1)
        )
    library = need("flash_mla")
    table = torch.arange(batch * pages, device="cuda", dtype=torch.int32).view(batch, pages)
    lengths = torch.full((batch,), length, device="cuda", dtype=torch.int32)
    # the scheduler's metadata took no arguments from 2026 on
    arguments = (lengths, heads, 1) if inspect.signature(library.get_mla_metadata).parameters else ()

    def decode():
        metadata, splits = library.get_mla_metadata(*arguments)
        return library.flash_mla_with_kvcache(query, cache, table, lengths, VALUE_WIDTH, metadata, splits, causal=True)

    return decode


if __name__ == "__main__":
    main(globals())
