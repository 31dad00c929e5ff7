"""Decodes trtllm-gen attention names. In: a kernel name; out: `KernelName` or None. Grammar:

name    = [ "f" | "F" ] "mhaSm" target "Kernel_" types head layout mask [ page ] { flag } tile scheduler kind
target  = "100" | "100a" | "100f" | "103a" | "107a" ...
types   = ( "Q" dt "Kv" dt | "Qkv" dt ) "O" dt          dt = "E2m1" | "E4m3" | "E5m2" | "Fp16" | "Bfloat16" | "Int8"
head    = "H" n | "HQk" n "HV" n [ "HVPerCta" n ]        head dimensions; 576/512 and 192/128 are MLA
layout  = "PagedKv" | "SeparateQkv" | "ContiguousKv" | "PackedQkv"
mask    = "Dense" | "Causal" | "SlidingOrChunkedCausal" | "Custom" | "Sparse"
page    = "P" n                                         tokens a page
flag    = "StaticTokenSparse" | "MultiCtasKv" [ "Cga" | "GmemSep" ] | "VarSeq" | "SkipsSoftmax" | "2Cta" | ...
tile    = "Q" n "Kv" n
scheduler = "Static" | "Persistent"
kind    = "Context" (prefill) | "SwapsAbForGen" | "KeepsAbForGen" (decode) | "ForGen" | "SpecDecodingGeneration"

fmhaSm100fKernel_QkvE4m3OBfloat16HQk576HV512PagedKvDenseP32MultiCtasKvCgaVarSeqQ8Kv128StaticSwapsAbForGen
-> attention (decode), q and kv fp8_e4m3, out bf16, head (576, 512), tile (8, 128), archs ("sm_100f",)
"""

from __future__ import annotations

import re

from forensics.ingest.pattern import Pattern
from forensics.knowledge.kernels.dtypes import canonical
from forensics.knowledge.kernels.naming import KernelBuilder
from forensics.model import KernelName

_DT = r"(?:Mx)?(?:E2m1|E4m3|E5m2|Fp16|Bfloat16|Fp32|Int8)"
_NAME = Pattern(
    rf"fmhaSm(?P<sm>\d{{2,3}}[af]?)Kernel_(?:Qkv(?P<qkv>{_DT})|Q(?P<q>{_DT})Kv(?P<kv>{_DT}))O(?P<out>{_DT})"
    r"(?:HQk(?P<hqk>\d+)HV(?P<hv>\d+)(?:HVPerCta(?P<cta>\d+))?|H(?P<h>\d+))"
    r"(?P<layout>PagedKv|SeparateQkv|ContiguousKv|PackedQkv)(?P<mask>Dense|Causal|SlidingOrChunkedCausal|Custom|Sparse)(?P<rest>\w*)",
    re.IGNORECASE,
)
_FLAG = Pattern(
    r"P(?P<page>\d+)|Q(?P<tq>\d+)Kv(?P<tkv>\d+)|(?P<multi>MultiCtasKv)(?P<cga>Cga|GmemSep)?"
    r"|(?P<word>VarSeq|SkipsSoftmax|StaticTokenSparse|TokenSparse|2Cta\w{0,6}?(?=[A-Z]|$))|(?P<sched>Static|Persistent)"
    r"|(?P<kind>Context|SwapsAbForGen|KeepsAbForGen|SpecDecodingGeneration|ForGen|Generation)|(?P<other>[A-Z][a-z0-9]+|\w)"
)
_LAYOUT = {
    "PagedKv": "paged KV",
    "SeparateQkv": "separate Q, K, V",
    "ContiguousKv": "contiguous KV",
    "PackedQkv": "packed QKV",
}
_MASK = {
    "Dense": "no mask",
    "Causal": "causal",
    "SlidingOrChunkedCausal": "sliding window or chunked causal",
    "Custom": "custom mask",
    "Sparse": "sparse",
}


def decode(name: str) -> KernelName | None:
    """The decoded name, or None where it is not of this grammar."""
    found = _NAME.match(name)
    if not found:
        return None
    build = KernelBuilder(name, "trtllm_gen_fmha", "attention")
    q, kv = found["q"] or found["qkv"], found["kv"] or found["qkv"]
    for key, spelled in (("q", q), ("kv", kv), ("out", found["out"])):
        build.dtype(key, canonical(spelled))
    head = (int(found["hqk"]), int(found["hv"])) if found["hqk"] else (int(found["h"]),) * 2
    build.extra |= {"head_dim_qk": head[0], "head_dim_v": head[1], "layout": found["layout"], "mask": found["mask"]}
    if found["cta"]:
        build.extra["head_dim_v_per_cta"] = int(found["cta"])
    flags: list[str] = []
    for flag in _FLAG.finditer(found["rest"][:400]):
        if flag["page"]:
            build.extra["tokens_per_page"] = int(flag["page"])
        elif flag["tq"]:
            build.tile = (int(flag["tq"]), int(flag["tkv"]))
        elif flag["multi"]:
            build.extra["multi_ctas_kv"] = (flag["cga"] or "gmem").lower()
        elif flag["sched"]:
            build.extra["scheduler"] = flag["sched"]
        elif flag["kind"]:
            build.extra["kind"] = flag["kind"]
        else:
            flags.append(flag["word"] or flag["other"])
    build.extra["flags"] = tuple(flags)
    prefill = build.extra.get("kind") == "Context"
    build.op = "attention (prefill)" if prefill else "attention (decode)"
    build.arch(f"sm_{found['sm']}")
    build.family = "fi.trtllm_gen_fmha"
    mla = "MLA " if head[0] != head[1] else ""
    dims = f"{head[0]}/{head[1]}" if mla else f"{head[0]}"
    build.sentence = (
        f"trtllm-gen {mla}attention, {'prefill' if prefill else 'decode'}: {canonical(q)} queries, {canonical(kv)} keys and values, "
        f"{canonical(found['out'])} output, head dimension {dims}, {_LAYOUT[found['layout']]}, {_MASK[found['mask']]}"
    )
    return build.done()
