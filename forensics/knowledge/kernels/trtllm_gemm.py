"""Decodes trtllm-gen (batched) GEMM names. In: a kernel name; out: `KernelName` or None. Grammar:

    name      = ("bmm" | "gemm") "_" C "_" A B [ "_cast" dt ] "_" ACC { "_" option } "_sm" target
    C, A, B   = dt         output, then both inputs; with transOut (all MoE cubins) A is the weights and B the activations
    dt        = [ "Mx" ] ( "E2m1" | "E4m3" | "E5m2" | "Int4" | "Bfloat16" | "Fp16" | "Fp32" | ... )
    option    = "bA16" "bB16" "bC16" (older) or "Ab16_Bb16_Cb16"     elements a scale factor covers
              | "t" M "x" N "x" K [ "u2" ]      tile, K loop unrolled by 2       | "s" n { "x" n }  pipeline stages
              | "et" M "x" N                    epilogue tile                    | "m" M "x" N "x" K  MMA atom
              | ("cga" | "c") X "x" Y "x" Z     cluster                          | "16dp256b"  epilogue load
              | "rM" | "rN" raster   | "TN" "BN" "NN" ... layout ("B": block major)   | "transOut"
              | "splitK" n | "sliceK" n | "dsFp8" DeepSeek scales | "perTokSf" "tokSfA" "tokSfB"
              | "schedS" static | "schedP" n... persistent | "bias" "M"|"N" | "bM" "bN" batched dimension
              | "swiGlu" "geGlu" "relu2" "silu" "gelu" "identity" activation | "clmp" clamp | "ldgsts" "tma" "rgTma" routed loads | "dynBatch" "dynB"
    target    = "100a" | "100f" | "103a" | "107a" | ...          what can load it

Older TensorRT-LLM cubins: "BatchedGemmKernel_BatchN_E2m1E2m1Fp32_Bfloat16_Tile128x8x512_EpiTile128x8_Mma128x8x64_Cluster1x1x1_..._sm100a"
(A, B and accumulator first, then the output).

    bmm_MxE4m3_MxE2m1MxE4m3_Fp32_bA32_bB32_bC32_t128x16x256u2_s4_et128x16_m128x16x32_cga1x1x1_16dp256b_rM_TN_transOut_schedS_biasM_bN_tma_tmaOpt_clmp_swiGlu_dynBatch_sm100f
    -> batched GEMM, a mxfp4 (weights), b mxfp8 (activations), out mxfp8, acc fp32, tile (128, 16, 256), archs ("sm_100f",)
"""

from __future__ import annotations

import re

from forensics.ingest.pattern import Pattern
from forensics.knowledge.kernels.dtypes import canonical
from forensics.knowledge.kernels.naming import KernelBuilder
from forensics.model import KernelName

_DT = r"(?:Mx)?(?:E2m1|E4m3|E5m2|E2m3|E3m2|Int4|Int8|UE8m0|Bfloat16|Fp16|Fp32|Tf32|UInt8)"
_HEAD = Pattern(rf"(bmm|gemm)_({_DT})_({_DT})({_DT})(?:_cast({_DT}))?_({_DT})(?=_)", re.IGNORECASE)
_OLD = Pattern(rf"(BatchedGemmKernel|GemmKernel)_(?:Batch([MN])_)?({_DT})({_DT})?({_DT})_({_DT})_")
_OPTION = Pattern(
    r"_(?:(?P<tile>t|Tile)(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)(?P<unroll>u2)?|(?P<stages>s\d+(?:x\d+)*)"
    r"|(?:et|EpiTile)(?P<et>\d+x\d+)|(?:m|Mma)(?P<mma>\d+x\d+x\d+)|(?:cga|c|Cluster)(?P<cluster>\d+x\d+x\d+)"
    r"|b(?P<block>[ABC])(?P<size>\d+)|(?P<block2>[ABC])b(?P<size2>\d+)|splitK(?P<split>\d+)|sliceK(?P<slice>\d+)"
    r"|sched(?P<sched>S|P\w*?)|r(?P<raster>[MN])|(?P<layout>[TNB]{2})|bias(?P<bias>[MN]|Mn|MN)|b(?P<batch>[MN])"
    r"|(?P<act>swiGlu|geGlu|relu2|silu|gelu|identity|swish|GatedAct)|sm_?(?P<sm>\d{2,3}[af]?)|(?P<word>[A-Za-z]\w*?|\d+dp\d+b))(?=_|$)"
)
_WORDS = {
    "transOut": "transposed output", "transposeMmaOutput": "transposed output", "dsFp8": "DeepSeek FP8 scales", "clmp": "clamped",
    "dynBatch": "dynamic batch", "dynB": "dynamic batch", "dynamic": "dynamic batch", "ldgsts": "routed loads (ldgsts)",
    "tma": "routed loads (TMA)", "rgTma": "routed loads (TMA)", "tokSfA": "per-token scale of A", "tokSfB": "per-token scale of B",
    "perTokSf": "per-token scale", "noShflA": "unshuffled A",
}  # fmt: skip
_ACTIVATION = {
    "swiGlu": "SwiGLU",
    "geGlu": "GeGLU",
    "GatedAct": "a gated activation",
    "relu2": "ReLU²",
    "silu": "SiLU",
    "gelu": "GELU",
}


def decode(name: str) -> KernelName | None:
    """The decoded name, or None where it is not of this grammar. Case of the first letter varies by printer."""
    if head := _HEAD.match(name):
        kind, out, a, b, cast, acc = head.groups()
        batched, end = kind.lower() == "bmm", head.end()
    elif head := _OLD.match(name):
        kind, _, a, b, acc, out = head.groups()
        b, cast = b or a, None
        batched, end = kind.startswith("Batched"), head.end() - 1
    else:
        return None
    build = KernelBuilder(
        name, "trtllm_gen_bmm" if batched else "trtllm_gen_gemm", "batched gemm" if batched else "gemm"
    )
    for key, spelled in (("a", a), ("b", b), ("out", out), ("acc", acc)):
        build.dtype(key, canonical(spelled))
    if cast:
        build.extra["mma_cast"] = canonical(cast)
    _read_options(name[end:], build)
    swapped = "transOut" in name or "transposeMmaOutput" in name
    build.extra["weights"] = "a" if swapped else "b"
    build.family = _family(build, batched)
    activation = _ACTIVATION.get(str(build.extra.get("activation", "")))
    w, x = (a, b) if swapped else (b, a)
    kind_words = "batched GEMM of a mixture-of-experts layer" if batched else "GEMM"
    build.sentence = (
        f"trtllm-gen {kind_words}: {canonical(w) or w} weights by {canonical(x) or x} activations, {canonical(out) or out} output"
        + (f", fused {activation}" if activation else "")
    )
    return build.done()


def _read_options(text: str, build: KernelBuilder) -> None:
    """Reads the options that follow the types, left to right."""
    words: list[str] = []
    for option in _OPTION.finditer(text):
        groups = {key: value for key, value in option.groupdict().items() if value is not None}
        if "tile" in groups:
            build.tile = (int(groups["m"]), int(groups["n"]), int(groups["k"]))
            if "unroll" in groups:
                build.extra["unroll"] = 2
        elif "sm" in groups:
            build.arch(f"sm_{groups['sm']}")
        elif "block" in groups or "block2" in groups:
            build.extra[f"scale_block_{(groups.get('block') or groups['block2']).lower()}"] = int(
                groups.get("size") or groups["size2"]
            )
        elif "word" in groups:
            words.append(_WORDS.get(groups["word"], groups["word"]))
        else:
            key, value = next(iter(groups.items()))
            key = {
                "et": "epilogue_tile",
                "split": "split_k",
                "slice": "slice_k",
                "act": "activation",
                "sched": "schedule",
            }.get(key, key)
            build.extra[key] = int(value) if value.isdigit() else value.removeprefix("s") if key == "stages" else value
    build.extra["options"] = tuple(words)


def _family(build: KernelBuilder, batched: bool) -> str:
    """The row of the op-support table whose launcher uses such a kernel."""
    a, b = build.dtypes.get("a"), build.dtypes.get("b")
    if not batched:
        return "fi.mm_fp4.trtllm" if "nvfp4" in (a, b) else "fi.gemm_fp8_nt_groupwise"
    if {a, b} & {"nvfp4", "mxfp4"}:
        return "fi.trtllm_fp4_block_scale_moe"
    if "mxint4" in (a, b):
        return "fi.trtllm_mxint4_block_scale_moe"
    if {a, b} & {"fp8_e4m3", "mxfp8"}:
        block = "DeepSeek FP8 scales" in build.extra.get("options", ()) or "mxfp8" in (a, b)  # type: ignore[operator]
        return "fi.trtllm_fp8_block_scale_moe" if block else "fi.trtllm_fp8_per_tensor_scale_moe"
    return "fi.trtllm_bf16_moe"
