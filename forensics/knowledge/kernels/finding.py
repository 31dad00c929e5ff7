"""Finds kernel names in running text. In: a message, a frame, a profiler's line; out: candidate names. Sample:

"Error occurred when running GEMM! (numBatches: 256, Kernel: bmm_E2m1_E2m1E2m1_Fp32_…_sm100f)" -> ["bmm_E2m1_…_sm100f"]
"""

from __future__ import annotations

from collections.abc import Iterator

from forensics.ingest.pattern import Pattern

_MAX_TEXT = 40_000
_MAX_NAME = 8_000

#: literals that make a line worth keeping for its kernel name alone
KERNEL_ANCHORS = (
    "Kernel: bmm_", "Kernel: gemm_", "Bmm_Bfloat16", "Bmm_E2m1", "Bmm_E4m3", "Bmm_MxE", "bmm_Bfloat16", "bmm_E2m1_", "bmm_E4m3_",
    "bmm_MxE4m3", "fmhaSm10", "FmhaSm10", "kernel name:", "Kernel name:", "kernel_name=", "CUDA Exception", "ncclDevKernel_",
    "_tensorop_", "xmma_gemm_", "nvjet_", "cudnn_generated_", "Switching focus to CUDA kernel",
)  # fmt: skip

#: plain identifiers of known grammars
_PLAIN = Pattern(
    r"(?<![A-Za-z0-9_])(?:[Bb]mm_|[Gg]emm_|BatchedGemmKernel_|[fF]mhaSm\d|nccl(?:Symk)?DevKernel_|ncclKernel_|nvjet_|sm\d{2,3}_xmma_"
    r"|cutlass_\d{2}_\w{0,12}op_|cudnn_generated_|cudnn_infer_|fmha_cutlass[FB]_|fmha_v2_|triton_(?:poi|red|per|tem|for|mm|bmm|fused)_"
    r"|(?:ampere|volta|turing|maxwell|hopper|pascal|sm\d{2,3})_(?:[a-z0-9]{0,8}gemm|fp16|bf16|h884|s884|h1688|s1688|sgemm|xmma|scudnn)\w*_|gemmSN_|gemv\w{0,3}T?_kernel|splitKreduce_kernel|dot_kernel"
    r"|Cijk_|sm\d{2,3}_(?:fp8|bf16|fp4|tf32|mqa|paged)\w*_(?:impl|logits)|kernel_cutlass_|_ZN\w{10,}|_Z\d{2,3}\w{6,}"
    r"|kernel\.fp8_)[A-Za-z0-9_.$]*"
)
#: "void ns::name<…>(…)" and "ns::name<…>": read up to the bracket that closes the template
_SPELLED = Pattern(
    r"(?<![A-Za-z0-9_:])(?:void )?(?:(?:cutlass|flash|pytorch_flash|flashinfer|at|at_cuda_detail|cub|thrust|vllm|sglang|marlin|marlin_moe_wna16|machete|deep_gemm"
    r"|deep_ep|tensorrt_llm|trtllm|moe|cublasLt|ck|ck_tile|aiter|rocblas|hipblaslt|FlashMLA|smxx|sm90|sm100|awq|gptq|exllama|mscclpp|rtp_llm|cute|fa3|transformer_engine|c10d|nvte|bitsandbytes"
    r"|fused_moe|sgl|kittens)::)(?:\w{1,80}::){0,12}[A-Za-z_]\w{2,200}(?:<|(?=\())"
)


def candidates(text: str) -> Iterator[str]:
    """Texts that may be kernel names, in order of appearance."""
    text = text[:_MAX_TEXT]
    found: list[tuple[int, str]] = []
    if "_" in text or "mhaSm" in text:  # what all of the plain ones hold; the patterns are slow to look for
        found += [(m.start(), m[0].rstrip(".")) for m in _PLAIN.finditer(text)]
    end = 0
    for match in _SPELLED.finditer(text) if "::" in text else ():
        if match.start() >= end:
            end = _closing(text, match.end()) if match[0].endswith("<") else match.end()
            if not text.startswith("::", end):  # a member of a class template is no kernel
                found.append((match.start(), text[match.start() : end]))
    for _, name in sorted(found):
        yield name


def _closing(text: str, at: int) -> int:
    """Index behind the ">" that closes a template opened just before `at`, then its argument list where one follows."""
    depth, limit = 1, min(len(text), at + _MAX_NAME)
    while at < limit and depth:
        mark = text[at]
        if mark == "<":
            depth += 1
        elif mark == ">" and text[at - 1] != "-":
            depth -= 1
        at += 1
    return at
