"""scaled_dot_product_attention with one backend allowed.

torch raises where that backend refuses dtype, head dimension, mask or GPU; the reasons are warnings above the error.
"""

from runtime import main, seeded

# --- data ---
PARAMETERS = {"backend": "FLASH_ATTENTION", "dtype": "float32", "head_dim": 64, "heads": 8, "length": 128}
# --- end of data ---


def prepare(p, variant):
    """The attention call under one backend."""
    torch = seeded(p)
    from torch.nn.attention import SDPBackend, sdpa_kernel

    name, dtype, head_dim = p["backend"], p["dtype"], p["head_dim"]
    if variant == "flash-bf16":
        name, dtype, head_dim = "FLASH_ATTENTION", "bfloat16", min(rounded_up(head_dim), 128)
    elif variant == "cudnn":
        name, dtype, head_dim = "CUDNN_ATTENTION", "bfloat16", min(rounded_up(head_dim), 128)
    elif variant in ("efficient", "math"):
        name = {"efficient": "EFFICIENT_ATTENTION", "math": "MATH"}[variant]
    shape = (1, p["heads"], p["length"], head_dim)
    q, k, v = (torch.randn(shape, device="cuda").to(getattr(torch, dtype)) for _ in range(3))

    def attend():
        with sdpa_kernel(getattr(SDPBackend, name)):
            torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    return attend


def rounded_up(head_dim):
    """The next multiple of 8, which the kernels want."""
    return -(-head_dim // 8) * 8


if __name__ == "__main__":
    main(globals())
