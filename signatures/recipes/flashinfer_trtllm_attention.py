"""flashinfer's attention on trtllm-gen kernels over a paged cache.

The kernels are prebuilt for 10.x GPUs and fetched at first use; the host code around them is compiled on the spot.
"""

import re

from compile_runtime import check_binary
from runtime import CannotTry, main, need, seeded

# --- data ---
PARAMETERS = {
    "built_for": "sm_100f",
    "phase": "decode",
    "batch": 4,
    "q_heads": 32,
    "kv_heads": 8,
    "head_dim": 128,
    "page_size": 16,
    "length": 128,
    "dtype": "bfloat16",
}
# --- end of data ---


def fetched(call):
    """Makes a failed download of prebuilt kernels what it is: nothing that says anything about the GPU."""
    try:
        return call()
    except (AssertionError, OSError) as error:
        if re.search(r"checksum|Failed to (get|download)|not found|metainfo|Max retries", str(error), re.IGNORECASE):
            raise CannotTry(f"flashinfer's prebuilt kernels cannot be fetched here: {error}") from error
        raise


def prepare(p, variant):
    """One layer's attention: every request has `length` tokens in the cache."""
    torch = seeded(p)
    dtype, batch, length, page = getattr(torch, p["dtype"]), p["batch"], p["length"], p["page_size"]
    heads, kv_heads, dim, decode = p["q_heads"], p["kv_heads"], p["head_dim"], p["phase"] == "decode"
    pages = -(-length // page)
    keys, values = (torch.randn(batch * pages, kv_heads, page, dim, device="cuda", dtype=dtype) for _ in range(2))
    table = torch.arange(batch * pages, device="cuda", dtype=torch.int32).view(batch, pages)
    lengths = torch.full((batch,), length, device="cuda", dtype=torch.int32)
    rows = 1 if decode else length
    query = torch.randn(batch * rows, heads, dim, device="cuda", dtype=dtype)
    scale = dim**-0.5
    if variant in ("torch-sdpa", "fa2"):

        def gathered(cache):
            whole = cache[table.long()].permute(0, 2, 1, 3, 4).reshape(batch, kv_heads, pages * page, dim)
            return whole[:, :, :length]

        if variant == "fa2":
            attend = need("flashinfer").single_prefill_with_kv_cache
            k, v = (gathered(cache)[0].transpose(0, 1).contiguous() for cache in (keys, values))
            return lambda: attend(query[:rows].contiguous(), k, v, causal=True, sm_scale=scale, backend="fa2")
        q = query.view(batch, rows, heads, dim).transpose(1, 2)
        return lambda: torch.nn.functional.scaled_dot_product_attention(
            q, gathered(keys), gathered(values), is_causal=not decode, scale=scale, enable_gqa=heads != kv_heads
        )
    workspace = torch.zeros(256 << 20, dtype=torch.uint8, device="cuda")
    if decode:
        function = need("flashinfer.decode").trtllm_batch_decode_with_kv_cache
        backend = "xqa" if variant == "xqa" else "trtllm-gen"
        return lambda: fetched(
            lambda: function(
                query,
                (keys, values),
                workspace,
                table,
                lengths,
                length,
                bmm1_scale=scale,
                bmm2_scale=1.0,
                kv_layout="HND",
                backend=backend,
            )
        )
    function = need("flashinfer.prefill").trtllm_batch_context_with_kv_cache
    starts = torch.arange(0, batch * length + 1, length, device="cuda", dtype=torch.int32)
    return lambda: fetched(
        lambda: function(
            query,
            (keys, values),
            workspace,
            table,
            lengths,
            length,
            length,
            scale,
            1.0,
            batch,
            starts,
            starts,
            kv_layout="HND",
        )
    )


def compile_for(p, variant, target):
    """Whether the prebuilt kernels load on another GPU; the other backends have none."""
    if variant != "as-logged":
        raise CannotTry("this backend is compiled for the GPU that it runs on")
    return check_binary(p["built_for"], target)


if __name__ == "__main__":
    main(globals())
