"""Decodes multi-head latent attention kernels: FlashMLA, CUTLASS MLA and FMHA for 10.x. In: a demangled name; out: `KernelName` or
None. Grammar:

    FlashMLA  [smNN::][decode|prefill::]flash_fwd_(splitkv_mla|mla_combine|splitkv_mla_fp8_sparse|…)_kernel<Traits<TYPE>|…kernel_traits_mla<QK, M, N, WARPS, T…>>
              sparse_attn_fwd_kernel<…>, get_mla_metadata_kernel, …sparse_prefill…
    CUTLASS   cutlass::device_kernel<cutlass::fmha::kernel::Sm100Fmha(Fwd|Bwd|Mla)…<…, TYPE, …>>

    void sm90::flash_fwd_splitkv_mla_kernel<sm90::Traits<cutlass::bfloat16_t>, …>  -> MLA decode, bf16, archs ("sm_90a",)
"""

from __future__ import annotations

import re

from forensics.ingest.pattern import Pattern
from forensics.knowledge.kernels.cxx import inside, integer, shape
from forensics.knowledge.kernels.dtypes import found_in
from forensics.knowledge.kernels.naming import KernelBuilder
from forensics.model import KernelName

_FLASHMLA = Pattern(
    r"(?:void )?((?:\w+::)*)((?:flash_fwd_\w*mla\w*|sparse_(?:attn|prefill|decode)\w*|get_mla_metadata\w*|fp8_sparse\w*|flash_mla\w*|sparse_attn_fwd\w*))\s*(?:<|\(|$)"
)
_CUTLASS = Pattern(r"(?:cutlass::fmha|fmha)::kernel::(Sm(\d+)Fmha(\w+?))(?:<|$)")


def decode(name: str) -> KernelName | None:
    """The decoded name, or None where it is not of these grammars."""
    if "fmha::kernel::Sm" in name and (found := _CUTLASS.search(name)):
        return _cutlass(name, found)
    if ("mla" in name or "sparse_" in name) and (found := _FLASHMLA.match(name)):
        return _flashmla(name, found)
    return None


def _types(build: KernelBuilder, name: str) -> None:
    types = found_in(name)
    floats = [t for t in types if t.startswith(("fp", "bf", "nv", "mx"))]
    if not floats and types:
        build.dtype("q", types[0])
    for key in ("q", "kv", "out") if floats else ():
        build.dtype(key, floats[0])
    if floats and floats[0].startswith("fp8"):
        build.dtype("out", next((t for t in floats if t in ("bf16", "fp16")), floats[0]))
    if "fp32" in floats[1:]:
        build.dtype("acc", "fp32")


def _flashmla(name: str, found: re.Match[str]) -> KernelName:
    function = found[2]
    build = KernelBuilder(name, "flashmla", "attention (MLA decode)")
    _types(build, name)
    arch = re.search(r"\bsm(90|100|120)\b", found[1]) or re.search(r"\bsm(90|100|120)::", name)
    traits = inside(name, "traits_mla<")
    numbers = [n for a in traits[:3] if (n := integer(a))]
    if len(numbers) == 3:
        build.extra["head_dim"], build.tile = numbers[0], (numbers[1], numbers[2])
    if arch:
        build.arch("sm_90a" if arch[1] == "90" else f"sm_{arch[1]}")
    elif "Arch" not in name:
        build.arch("sm_90a")
    sparse = "sparse" in name
    if "prefill" in name or "sparse_attn" in function:
        build.op = "attention (MLA prefill)"
        build.family = "flashmla.sparse_prefill"
    else:
        build.family = "flashmla.sparse_decode" if sparse else "flashmla.dense_decode"
    if "metadata" in function or "combine" in function:
        build.op = "attention (helper)"
        if not build.dtypes:
            build.dtype("q", "int32")
    build.sentence = f"FlashMLA {'sparse ' if sparse else ''}{'prefill' if 'prefill' in build.op else 'decode'}: {function.replace('_', ' ')}"
    return build.done()


def _cutlass(name: str, found: re.Match[str]) -> KernelName:
    kind = found[3]
    mla = "Mla" in kind
    op = "attention (backward)" if "Bwd" in kind else "attention (MLA decode)" if mla else "attention (prefill)"
    build = KernelBuilder(name, "cutlass_fmha", op)
    _types(build, name)
    build.tile = next((s for a in inside(name, found[1] + "<") if len(s := shape(a)) >= 2), ())[:3]
    build.arch(f"sm_{found[2]}")
    build.family = "sgl.cutlass_mla_decode" if mla else "fi.cutlass_fmha_sm100"
    build.sentence = f"CUTLASS {'MLA' if mla else 'fused multi-head attention'} for sm_{found[2]}: {kind}"
    return build.done()
