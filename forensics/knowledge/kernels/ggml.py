"""Decodes llama.cpp's (GGML) kernels, also as vLLM and sgl-kernel carry them. In: a demangled name; out: `KernelName` or None. Grammar:

mul_mat_(q|vec_q|vec|f|id)<(ggml_type)N | TYPE, qk, qi, block_<quant>, …>      mul_mat_<quant><TYPE, …>    moe_<quant><TYPE, …>
dequantize_block_<quant><TYPE>   dequantize_block<qk, qr, &dequantize_<quant>, TYPE>   quantize_<quant><TYPE>
flash_attn_(tile|vec|mma)_ext_f(16|32)<HEAD…>   k_get_rows, rms_norm_f32, soft_max_f32, cpy_f32_f16, rope_neox<…>, …_f32
<quant>  q2_K q3_K q4_0 q4_1 q4_K q5_0 q5_1 q5_K q6_K q8_0 q8_1 iq1_s iq2_xs iq3_xxs iq4_nl mxfp4 …   N: see _TYPES

void mul_mat_vec_q<(ggml_type)12, 1, false, false>(…) -> gemv, b q4_K, a q8_1
"""

from __future__ import annotations

import re

from forensics.ingest.pattern import Pattern
from forensics.knowledge.gpus import sms
from forensics.knowledge.kernels.cxx import integer, read
from forensics.knowledge.kernels.dtypes import canonical, found_in
from forensics.knowledge.kernels.naming import KernelBuilder
from forensics.model import KernelName

_QUANT = r"(?:i?q\d_(?:[KM01]|[a-z]{1,3})|mxfp4|tq\d_0)"
_MUL = Pattern(rf"(?:void )?(?:\w+::)*(mul_mat\w*|moe_(?:vec_)?{_QUANT}|moe_vec_q|mmvq\w*|mmq\w*)\b")
_DEQUANT = Pattern(rf"(?:void )?(?:\w+::)*((?:de)?quantize_(?:block\w*|mmq\w*|row\w*|{_QUANT})|convert_unary\w*)\b")
_ATTENTION = Pattern(r"(?:void )?(flash_attn_(?:tile|vec|mma|ext|stream_k|combine)\w*)\b")
_NAMED = Pattern(
    r"(?:void )?((?:k_|ggml_)?(?:get_rows|set_rows|cpy|rms_norm|norm|soft_max|rope_(?:neox|norm|multi|vision)|scale|concat|unary_op\w*|"
    r"unary_gated\w*|bin_bcast|mm_ids|argsort|ssm_scan|ssm_conv|im2col|pad|sum_rows|topk_moe|upscale|group_norm|silu|gelu|clamp)(?:_\w+)?)\b"
)
_TYPES = {
    0: "fp32", 1: "fp16", 2: "q4_0", 3: "q4_1", 6: "q5_0", 7: "q5_1", 8: "q8_0", 9: "q8_1", 10: "q2_K", 11: "q3_K", 12: "q4_K", 13: "q5_K",
    14: "q6_K", 15: "q8_K", 16: "iq2_xxs", 17: "iq2_xs", 18: "iq3_xxs", 19: "iq1_s", 20: "iq4_nl", 21: "iq3_s", 22: "iq2_s", 23: "iq4_xs",
    24: "int8", 25: "int16", 26: "int32", 27: "int64", 28: "fp64", 29: "iq1_m", 30: "bf16", 34: "tq1_0", 35: "tq2_0", 39: "mxfp4",
}  # fmt: skip
_FLOAT = Pattern(r"_(f32|f16|bf16)(?:_(f32|f16|bf16))?")


def decode(name: str) -> KernelName | None:
    """The decoded name, or None where it is not of this grammar."""
    for pattern, op in ((_MUL, "gemm"), (_DEQUANT, "dequantization"), (_ATTENTION, "attention")):
        if found := pattern.match(name):
            return _decoded(name, found[1], op)
    if (found := _NAMED.match(name)) and (_FLOAT.search(found[1]) or found[1].startswith(("k_", "ggml_"))):
        return _decoded(name, found[1], found[1].removeprefix("k_").split("_f")[0].replace("_", " "))
    return None


def _decoded(name: str, function: str, op: str) -> KernelName:
    spelled = read(name)
    quant = re.search(_QUANT, name)
    number = next((integer(a) for a in spelled.arguments if a.startswith("(ggml_type)")), None)
    floats = [t for t in found_in(" ".join((*spelled.arguments, *spelled.parameters))) if t in ("fp16", "bf16", "fp32")]
    printed = [w for group in _FLOAT.findall(function) for t in group if t and (w := canonical(t))]
    if op == "gemm":
        op = "moe gemm" if function.startswith("moe") else "gemv" if "vec" in function else "gemm"
    if op == "dequantization" and function.startswith("quantize"):
        op = "quantization"
    build = KernelBuilder(name, "ggml", op)
    weights = _TYPES.get(number or -1) or (quant[0] if quant else None)
    if op.startswith("attention"):
        for key in ("q", "kv", "out"):
            build.dtype(key, (printed or floats or ["fp16"])[0])
        head = integer(spelled.arguments[0]) if spelled.arguments else None
        if head:
            build.extra["head_dim"] = head
    else:
        build.dtype("a", (floats or printed or (["q8_1"] if weights else [None]))[0])  # type: ignore[list-item]
        build.dtype("b" if "gem" in op else "a", weights)
        build.dtype("out", (printed or floats or [None])[-1])  # type: ignore[list-item]
    build.portable = tuple(sm for sm in sms("nvidia") if int(sm[3:]) >= 50) + sms("amd")
    build.sentence = (
        f"llama.cpp {op}" + (f" with {weights} weights" if weights else "") + f" ({function.replace('_', ' ')})"
    )
    return build.done()
