"""flashinfer's FA2 or FA3 attention for one request, compiled for this GPU at first use."""

from runtime import main, need, seeded

# --- data ---
PARAMETERS = {"backend": "auto", "q_heads": 8, "kv_heads": 8, "head_dim": 128, "length": 128}
# --- end of data ---


def prepare(p, variant):
    """Causal attention of `length` tokens with themselves."""
    torch = seeded(p)
    length, dim = p["length"], 128 if variant == "fa2" else p["head_dim"]
    q = torch.randn(length, p["q_heads"], dim, device="cuda", dtype=torch.bfloat16)
    k, v = (torch.randn(length, p["kv_heads"], dim, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    if variant == "torch-sdpa":
        rows = [x.transpose(0, 1)[None] for x in (q, k, v)]
        return lambda: torch.nn.functional.scaled_dot_product_attention(
            *rows, is_causal=True, enable_gqa=p["q_heads"] != p["kv_heads"]
        )
    attend = need("flashinfer").single_prefill_with_kv_cache
    backend = p["backend"] if variant == "as-logged" else variant
    return lambda: attend(q, k, v, causal=True, backend=backend)


if __name__ == "__main__":
    main(globals())
