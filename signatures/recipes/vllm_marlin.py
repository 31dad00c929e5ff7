"""A product with 4-bit weights through vLLM's Marlin or AWQ kernels."""

import inspect

from runtime import main, need, seeded

# --- data ---
PARAMETERS = {"form": "marlin", "group": 128, "m": 64, "n": 256, "k": 256}
# --- end of data ---


def call_with(function, known):
    """Calls a function with those of the known arguments that this release takes."""
    names = inspect.signature(function).parameters
    return function(**{name: value for name, value in known.items() if name in names})


def prepare(p, variant):
    """out = x @ w, x in fp16, w of k x n in 4 bits."""
    torch = seeded(p)
    m, n, k = p["m"], p["n"], p["k"]
    x, w = torch.randn(m, k, device="cuda", dtype=torch.float16), torch.randn(k, n, device="cuda", dtype=torch.float16)
    if variant == "bf16":
        return lambda: x @ w
    form = p["form"] if variant == "as-logged" else variant
    if form == "awq":
        ops = need("vllm._custom_ops")
        group = p["group"] if p["group"] > 0 else k
        packed = torch.randint(-(2**31), 2**31 - 1, (k, n // 8), dtype=torch.int32, device="cuda")
        zeros = torch.randint(-(2**31), 2**31 - 1, (k // group, n // 8), dtype=torch.int32, device="cuda")
        scales = torch.ones(k // group, n, device="cuda", dtype=torch.float16)
        return lambda: ops.awq_gemm(x, packed, scales, zeros, 8)
    scalar_types = need("vllm.scalar_type").scalar_types
    quantize = need("vllm.model_executor.layers.quantization.utils.marlin_utils_test").marlin_quantize
    utils = need("vllm.model_executor.layers.quantization.utils.marlin_utils")
    _, packed, scales, order, sort, _ = quantize(w, scalar_types.uint4b8, p["group"], False)
    workspace = utils.marlin_make_workspace_new(x.device)
    known = {
        "input": x,
        "weight": packed,
        "weight_scale": scales,
        "weight_zp": torch.empty(0, dtype=torch.int32, device="cuda"),
        "g_idx": order,
        "g_idx_sort_indices": sort,
        "workspace": workspace,
        "wtype": scalar_types.uint4b8,
        "output_size_per_partition": n,
        "input_size_per_partition": k,
        "is_k_full": True,
    }
    return lambda: call_with(utils.apply_gptq_marlin_linear, known)


if __name__ == "__main__":
    main(globals())
