"""FlashAttention 2 (flash_attn) or 3 (flash_attn_interface) for one sequence."""

from runtime import main, need, seeded

# --- data ---
PARAMETERS = {"generation": 2, "q_heads": 16, "kv_heads": 16, "head_dim": 128, "length": 128, "dtype": "bfloat16"}
# --- end of data ---


def prepare(p, variant):
    """Causal attention; tensors are batch x length x heads x dimension."""
    torch = seeded(p)
    dtype = torch.bfloat16 if variant != "as-logged" else getattr(torch, p["dtype"])
    shapes = [(1, p["length"], heads, p["head_dim"]) for heads in (p["q_heads"], p["kv_heads"], p["kv_heads"])]
    q, k, v = (torch.randn(shape, device="cuda").to(dtype) for shape in shapes)
    if variant == "torch-sdpa":
        rows = [x.transpose(1, 2) for x in (q, k, v)]
        return lambda: torch.nn.functional.scaled_dot_product_attention(
            *rows, is_causal=True, enable_gqa=p["q_heads"] != p["kv_heads"]
        )
    module = "flash_attn_interface" if variant == "as-logged" and p["generation"] == 3 else "flash_attn"
    attend = need(module).flash_attn_func
    return lambda: attend(q, k, v, causal=True)


if __name__ == "__main__":
    main(globals())
