"""Decodes weight-only GEMMs: Marlin, Machete, GPTQ, AWQ, QServe. In: a demangled name; out: `KernelName` or None. Grammar:

    Marlin   marlin[_moe_wna16]::Marlin<TYPE, ID[, ID], THREADS, TM, TN, TK, b8, STAGES, GROUPS, b>   TM TN TK: tiles of 16 a block
             (older: first argument a C++ type; newer: four int64 ids of scalar types: a, b, c, scale)
    Machete  machete::…<…MacheteKernelTemplate<A, B, …>>
    GPTQ     [vllm::|sglang::]gptq::gemm_half_q_half_gptq_<BITS>bit_kernel<…>      AWQ   gemm_forward_4bit_cuda_m16nXXk32<N>
    QServe   dense_kernel0<M, N, …>(signed char*, …)

An id packs exponent, mantissa, sign, bias and flags of vLLM's ScalarType: bits 0-7 exponent, 8-15 mantissa, 16 signed, 17-48 bias.

    void marlin::Marlin<__nv_bfloat16, 1125899906843648l, 128, 1, 4, 8, false, 4, 2, false>(…) -> a bf16, b uint4, tile (16, 64, 128)
"""

from __future__ import annotations

import re

from forensics.ingest.pattern import Pattern
from forensics.knowledge.gpus import sms
from forensics.knowledge.kernels.cxx import integer, read
from forensics.knowledge.kernels.dtypes import canonical, found_in
from forensics.knowledge.kernels.naming import KernelBuilder
from forensics.model import KernelName

_MARLIN = Pattern(r"(?:void )?(?:\w+::)*?(marlin(?:_moe_wna16|_24|_dense)?)::(\w+)")
_GPTQ = Pattern(
    r"(?:void )?((?:\w+::)*)(gemm_half_q_half_(?:gptq|alt)\w*|reconstruct_\w*|shuffle_\d?\w*bit_kernel\w*|make_sequential\w*)"
)
_BITS = Pattern(r"_([2348])bit")
_AWQ = Pattern(r"(?:void )?(?:\w+::)*(gemm_forward_4bit\w*|dequantize_weights|awq_\w+)")
_QSERVE = Pattern(r"(?:void )?(?:\w+::)*dense_kernel0<")
_ID = Pattern(r"(\d{6,20})l?l?\Z")


def scalar_type(number: int) -> str | None:
    """vLLM's ScalarType of an id: "uint4", "int8", "fp8_e4m3", "bf16"; None where it is none of the usual ones."""
    exponent, mantissa, signed = number & 0xFF, (number >> 8) & 0xFF, bool((number >> 16) & 1)
    if exponent == 0:
        return {
            (4, False): "uint4",
            (8, False): "uint8",
            (4, True): "int4",
            (8, True): "int8",
            (3, True): "int4",
            (7, True): "int8",
        }.get((mantissa, signed))
    return {
        (4, 3): "fp8_e4m3", (5, 2): "fp8_e5m2", (8, 7): "bf16", (5, 10): "fp16", (2, 1): "fp4_e2m1", (8, 0): "fp8_e8m0", (8, 23): "fp32",
    }.get((exponent, mantissa))  # fmt: skip


def decode(name: str) -> KernelName | None:
    """The decoded name, or None where it is not of these grammars."""
    if "arlin" in name and (found := _MARLIN.match(name)):
        return _marlin(name, found)
    if "machete::" in name and name.lstrip("void ").startswith(
        ("machete::", "cutlass::device_kernel<machete", "cutlass::device_kernel")
    ):
        return _machete(name)
    if found := _GPTQ.match(name):
        return _gptq(name, found)
    if found := _AWQ.match(name):
        return _weight_only(name, "awq", found[1], "uint4", "vllm.marlin")
    if _QSERVE.match(name):
        build = KernelBuilder(name, "qserve", "gemm")
        for key, word in (("a", "int8"), ("b", "int4"), ("out", "fp16")):
            build.dtype(key, word)
        build.tile = tuple(n for a in read(name).arguments[:2] if (n := integer(a)))
        build.family, build.portable = "sgl.qserve", _from(80)
        build.sentence = "QServe GEMM: 4-bit weights, INT8 activations"
        return build.done()
    return None


def _from(number: int) -> tuple[str, ...]:
    return tuple(sm for sm in sms("nvidia") if int(sm[3:]) >= number)


def _marlin(name: str, found: re.Match[str]) -> KernelName:
    spelled = read(name)
    build = KernelBuilder(name, "marlin", "gemm" if "moe" not in found[1] else "moe gemm")
    build.family = "vllm.marlin_moe" if "moe" in found[1] else "vllm.marlin"
    build.portable = _from(80)
    words: list[str] = []
    rest: list[int] = []
    for argument in spelled.arguments:
        if identity := _ID.match(argument):
            words += [w for w in [scalar_type(int(identity[1]))] if w]
        elif word := canonical(argument):
            words.append(word)
        elif (number := integer(argument)) is not None:
            rest.append(number)
    if found[2] != "Marlin":
        build.op = "weight repacking" if "repack" in found[2] else "permutation" if "permute" in found[2] else build.op
        words = words or found_in(" ".join(spelled.parameters))[:1] or (["int32"] if spelled.parameters else [])
        if "repack" in found[2] and len(rest) > 1:
            words = [f"uint{rest[1]}"]
    a = words[0] if words else None
    b = next((w for w in words[1:] if w != a), None)
    build.dtype("a", a)
    build.dtype("b", b)
    build.dtype("out", a if found[2] == "Marlin" else None)
    if found[2] == "Marlin" and len(rest) >= 4:
        build.tile = (16 * rest[1], 16 * rest[2], 16 * rest[3])
    build.sentence = (
        f"Marlin{' MoE' if 'moe' in found[1] else ''} {'GEMM' if found[2] == 'Marlin' else found[2].replace('_', ' ')}"
        + (f": {b} weights, {a} activations" if a and b else "")
    )
    return build.done()


def _machete(name: str) -> KernelName:
    build = KernelBuilder(name, "machete", "gemm")
    types = found_in(name)
    for key, word in zip(
        ("a", "b", "out"), [*(t for t in types if t in ("bf16", "fp16"))][:1] + [t for t in types if "int" in t][:1]
    ):
        build.dtype(key, word)
    build.arch("sm_90a")
    build.family = "vllm.machete"
    build.sentence = "Machete mixed-input GEMM for Hopper"
    return build.done()


def _gptq(name: str, found: re.Match[str]) -> KernelName:
    bits = _BITS.search(found[2]) or re.search(r"q([2348])_", name)
    return _weight_only(name, "gptq", found[2], f"uint{bits[1]}" if bits else "uint4", "vllm.marlin")


def _weight_only(name: str, grammar: str, function: str, weights: str, family: str) -> KernelName:
    build = KernelBuilder(
        name,
        grammar,
        "gemm"
        if "gemm" in function
        else "dequantization"
        if "recon" in function or "deq" in function
        else "weight shuffling",
    )
    types = found_in(name)
    build.dtype("a", next((t for t in types if t in ("bf16", "fp16")), "fp16"))
    build.dtype("b", weights)
    build.family, build.portable = family, _from(75)
    build.sentence = f"{grammar.upper()} {function.replace('_', ' ')}"
    return build.done()
