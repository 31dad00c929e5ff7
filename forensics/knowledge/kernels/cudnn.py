"""Decodes cuDNN's attention, torch's memory-efficient attention and TensorRT-LLM's fmha_v2. In: a kernel name; out: `KernelName` or
None. Grammar:

    cuDNN   cudnn_generated_fort_native_sdpa_sm<NN>_(knob|flash)_(fprop|bprop)_(wgmma|…)_<type>_knob_<n>_<M>x<N>x<K>_<cluster>_kernel…
    memeff  fmha_cutlass(F|B)_<type>_aligned_<M>x<N>_(rf|gmem|k<HEAD>)…_sm<NN>
    fmha_v2 fmha_v2_flash_attention_<type>_<M>_<N>_S_(qkv|q_kv|q_paged_kv)_<HEAD>[_<HEADV>]_[causal_]…sm<NN>_kernel…

    fmha_cutlassF_bf16_aligned_64x64_rf_sm80 -> attention, q bf16, kv bf16, out bf16, tile (64, 64), from 8.0 on
"""

from __future__ import annotations

import re

from forensics.ingest.pattern import Pattern
from forensics.knowledge.gpus import sms
from forensics.knowledge.kernels.dtypes import canonical
from forensics.knowledge.kernels.naming import KernelBuilder
from forensics.model import KernelName

_SDPA = Pattern(r"(?:void )?cudnn_generated_\w*?sdpa_sm(?P<arch>\d{2,3})_\w*?(?P<dir>fprop|bprop)(?P<rest>\w*)")
_TYPE = Pattern(r"_(f16|bf16|e4m3|e5m2|f32|fp8)(?=_|$)")
_TILE = Pattern(r"_(\d+x\d+x\d+)(?=_|$)")
_MEMEFF = Pattern(
    r"(?:void )?(?:PyTorchMemEffAttention::)?fmha_cutlass(?P<dir>[FB])_(?P<type>f16|bf16|f32)_(?P<aligned>not)?aligned_(?P<tile>\d+x\d+)_(?P<rest>\w*?)sm(?P<arch>\d{2,3})"
)
_V2 = Pattern(
    r"(?:void )?fmha_v2_(?:\w*?_)?(?P<type>fp16|bf16|e4m3|fp16_fp32|int8)_(?P<m>\d+)_(?P<n>\d+)_(?P<rest>\w*?)sm(?P<arch>\d{2,3})"
)


def decode(name: str) -> KernelName | None:
    """The decoded name, or None where it is not of these grammars."""
    if "sdpa_sm" in name and (found := _SDPA.match(name)):
        build = KernelBuilder(name, "cudnn_sdpa", "attention (backward)" if found["dir"] == "bprop" else "attention")
        return _done(build, found, "torch.sdpa_cudnn", "cuDNN attention", exact=True)
    if "fmha_cutlass" in name and (found := _MEMEFF.match(name)):
        build = KernelBuilder(
            name, "memory_efficient_attention", "attention (backward)" if found["dir"] == "B" else "attention"
        )
        return _done(build, found, "torch.sdpa_mem_efficient", "memory-efficient attention (CUTLASS)", exact=False)
    if name.startswith(("fmha_v2_", "void fmha_v2_")) and (found := _V2.match(name)):
        build = KernelBuilder(name, "fmha_v2", "attention")
        build.tile = (int(found["m"]), int(found["n"]))
        if head := re.match(r"S_[a-z_]*?(\d+)", found["rest"]):
            build.extra["head_dim"] = int(head[1])
        return _done(build, found, "fi.fmha_v2", "fmha_v2 attention", exact=True)
    return None


def _done(build: KernelBuilder, found: re.Match[str], family: str, what: str, *, exact: bool) -> KernelName:
    groups = found.groupdict()
    if rest := groups.get("rest") if build.grammar == "cudnn_sdpa" else None:
        groups["type"] = said[1] if (said := _TYPE.search(rest)) else None
        groups["tile"] = said[1] if (said := _TILE.search(rest)) else None
    word = canonical((groups.get("type") or "").split("_")[0])
    for key in ("q", "kv", "out"):
        build.dtype(key, word)
    if groups.get("tile"):
        build.tile = tuple(map(int, groups["tile"].split("x")))
    number = int(groups["arch"])
    if exact and number >= 90:
        build.arch("sm_90a" if number == 90 else f"sm_{number}")
    else:
        build.portable = tuple(sm for sm in sms("nvidia") if int(sm[3:]) >= number)
    build.family = family
    build.sentence = f"{what} of the sm_{number} generation, {word or 'type not in the name'}"
    return build.done()
