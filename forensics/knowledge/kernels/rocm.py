"""Decodes kernels of AMD's libraries. In: a kernel name; out: `KernelName` or None. Grammar:

Tensile   Cijk_<A layout>_<B layout>_<types>_<flags>_MT<M>x<N>x<K>_MI<m>x<n>x<k>x<b>_…[_ISA<arch>]_…
          types: "HHS" (in, out, compute) or one letter; letters H fp16, B bf16, S fp32, D fp64, I8/I int8, F8 fp8, B8 bf8, C, Z
CK        [_ZN…] ck::kernel_<op>_…<…types…> | ck_tile::kentry<…FmhaFwdKernel<…>> | ck_tile::…
AITER     aiter::<function>… | fmoe_<types>_… | mla_dec_stage1_<type>_a16w16_… | fmha_fwd_hd128_bf16_causal…
MIOpen    miopenSp3AsmConv…, gridwise_convolution…, Op…

Cijk_Alik_Bljk_HHS_BH_MT128x128x32_MI16x16x16x1_SN_… -> gemm, a fp16, b fp16, out fp16, acc fp32, tile (128, 128, 32)
"""

from __future__ import annotations

import re

from forensics.ingest.pattern import Pattern
from forensics.knowledge.gpus import sms
from forensics.knowledge.kernels.dtypes import canonical, found_in
from forensics.knowledge.kernels.naming import KernelBuilder
from forensics.model import KernelName

_TENSILE = Pattern(r"Cijk_(?P<a>A\w{3,4})_(?P<b>B\w{3,4})_(?P<types>[A-Z0-9]{1,8}?)_(?P<rest>\w+)")
_TILE = Pattern(r"MT(\d+)x(\d+)x(\d+)")
_ISA = Pattern(r"ISA(\d{2,4}[a-f]?)|gfx([0-9a-f]{3,4})")
_LETTER = {
    "H": "fp16",
    "B": "bf16",
    "S": "fp32",
    "D": "fp64",
    "I": "int32",
    "C": "complex64",
    "Z": "complex128",
    "X": "tf32",
}
_TYPES = Pattern(r"F8B8|B8F8|F8N|B8N|F8|B8|I8|4xi8|[HBSDICZX]")
_CK = Pattern(r"(?:void )?(?:_ZN)?\d{0,2}(ck(?:_tile)?)(?:::|\d)(\w+)")
_AITER = Pattern(
    r"(?:void )?(?:aiter::(?P<space>\w+)|(?P<bare>fmoe_\w+|mla_(?:dec|pfl|a8)\w+|fmha_(?:fwd|bwd)_hd\w+|fmha_v3\w+|pa_(?:bf16|fp16|fp8)\w+|flatmm_\w+|f4gemm_\w+|bf16gemm_\w+|i8gemm_\w+|fp8gemm_\w+|ck_moe_\w+))"
)
_TOKEN = Pattern(r"(?<![a-z0-9])(bf16|fp16|f16|fp8|i8|int8|mxfp4|fp4|int4)(?![0-9])", re.IGNORECASE)
_MIOPEN = Pattern(r"(?:void )?(miopen\w+|gridwise_\w+|Op\dd\w+|igemm_\w+|naive_conv_\w+|__amd_rocclr_\w+)")


def decode(name: str) -> KernelName | None:
    """The decoded name, or None where it is not of these grammars."""
    if name.startswith("Cijk_") and (found := _TENSILE.match(name)):
        return _tensile(name, found)
    if found := _AITER.match(name):
        return _aiter(name, found)
    if "ck" in name[:24] and (found := _CK.match(name)):
        return _ck(name, found)
    if found := _MIOPEN.match(name):
        return _miopen(name, found[1])
    return None


def _tensile(name: str, found: re.Match[str]) -> KernelName:
    build = KernelBuilder(name, "tensile", "gemm")
    letters = _TYPES.findall(found["types"])
    words = [
        {
            "F8": "fp8_e4m3",
            "F8N": "fp8_e4m3fnuz",
            "B8": "fp8_e5m2",
            "B8N": "fp8_e5m2",
            "I8": "int8",
            "4xi8": "int8",
        }.get(t, _LETTER.get(t[0]))
        for t in letters
    ]
    if words:
        build.dtype("a", words[0])
        build.dtype("b", words[0] if len(words) < 4 else words[1])
        build.dtype("out", words[-2] if len(words) > 1 else words[0])
        build.dtype("acc", words[-1])
    if tile := _TILE.search(found["rest"]):
        build.tile = (int(tile[1]), int(tile[2]), int(tile[3]))
    if isa := _ISA.search(found["rest"]):
        build.arch("gfx" + (isa[1] or isa[2]).lower())
    else:
        build.portable = sms("amd")
    build.family = "rocm.hipblaslt"
    build.sentence = f"hipBLASLt or rocBLAS GEMM (Tensile): {words[0] if words else '?'} inputs, layouts {found['a']} by {found['b']}"
    return build.done()


def _typed(build: KernelBuilder, name: str) -> None:
    words = [w for t in _TOKEN.findall(name) if (w := canonical(t.lower()))] or [
        t for t in found_in(name) if t not in ("int32", "int64", "bool")
    ]
    attention = build.op.startswith("attention")
    for key in ("q", "kv", "out") if attention else ("a", "b"):
        build.dtype(key, words[0] if words else None)
    if not attention:
        build.dtype("out", words[-1] if words else None)


def _aiter(name: str, found: re.Match[str]) -> KernelName:
    function = found["space"] or found["bare"]
    op = (
        "attention (MLA)"
        if "mla" in function
        else "attention"
        if "fmha" in function or function.startswith("pa_")
        else "moe gemm"
        if "moe" in function
        else "gemm"
        if "gemm" in function or "mm" in function
        else function.replace("_", " ")
    )
    build = KernelBuilder(name, "aiter", op)
    _typed(build, name)
    gfx = re.search(r"gfx([0-9a-f]{3,4})", name)
    if gfx:
        build.arch("gfx" + gfx[1])
    else:
        build.portable = ("gfx942", "gfx950")
    build.family = "rocm.aiter"
    build.sentence = f"AITER {function.replace('_', ' ')}"
    return build.done()


def _ck(name: str, found: re.Match[str]) -> KernelName:
    lowered = name.lower()
    op = (
        "attention"
        if "fmha" in lowered
        else "moe gemm"
        if "moe" in lowered
        else "gemm"
        if "gemm" in lowered
        else "normalization"
        if "norm" in lowered
        else "convolution"
        if "conv" in lowered
        else "kernel"
    )
    build = KernelBuilder(name, "composable_kernel", op)
    _typed(build, name)
    build.portable = ("gfx908", "gfx90a", "gfx942", "gfx950")
    build.family = "rocm.aiter"
    build.sentence = f"Composable Kernel {op} ({found[2][:60].replace('_', ' ')})"
    return build.done()


def _miopen(name: str, function: str) -> KernelName:
    op = "copy" if "rocclr" in function else "convolution" if "onv" in function or "igemm" in function else "kernel"
    build = KernelBuilder(name, "miopen" if op != "copy" else "rocm_runtime", op)
    _typed(build, name)
    build.portable = sms("amd")
    build.sentence = f"{'ROCm runtime' if op == 'copy' else 'MIOpen'} {function.replace('_', ' ').strip()}"
    return build.done()
