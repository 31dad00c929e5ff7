"""Decodes DeepGEMM's kernels. In: a demangled name or a cubin's; out: `KernelName` or None. Grammar:

    [deep_gemm::]sm<NN>_<types>_gemm_<scales>_impl<MAJOR…, SHAPE_N, SHAPE_K, …, BLOCK_M, BLOCK_N, BLOCK_K, …>
        types: fp8 | fp8_fp4 | bf16 | tf32_hc_prenorm …     scales: 1d1d | 1d2d (how the scale factors of A and B lie)
    [deep_gemm::]fp8_gemm_kernel<N, K, BLOCK_M, BLOCK_N, BLOCK_K, …>                         before 2.0
    [deep_gemm::]sm<NN>_[fp8_][paged_]mqa_logits<…>                                          indexer of sparse attention
    kernel.fp8_m_grouped_gemm.<hash>                                                         FlashInfer's prebuilt files

    void deep_gemm::sm100_fp8_gemm_1d1d_impl<…> -> gemm, a fp8_e4m3, b fp8_e4m3, out bf16, acc fp32, archs ("sm_100f",)

Compiled at run time for the GPU at hand: sm_90a for the sm90 kernels, sm_100f (sm_100a before CUDA 12.9) for the sm100 ones.
"""

from __future__ import annotations

import re

from forensics.ingest.pattern import Pattern
from forensics.knowledge.kernels.cxx import integer, read
from forensics.knowledge.kernels.dtypes import found_in
from forensics.knowledge.kernels.naming import KernelBuilder
from forensics.model import KernelName

_NAME = Pattern(
    r"(?:void )?(?:deep_gemm::)?(?:sm(?P<arch>90|100|120)_(?P<types>fp8_fp4|fp8|bf16|tf32|fp4)?_?(?P<kind>\w*?(?:gemm|logits|moe|mqa\w*|prenorm\w*|layout\w*|metadata\w*))(?P<rest>\w*)|(?P<old>fp8_\w*gemm_\w*kernel\w*))(?=<|\(|$)"
)
_OTHER = Pattern(r"(?:void )?deep_gemm::(?P<function>\w+)")
_FILE = Pattern(r"kernel\.(fp8_m_grouped_gemm|fp8_\w+)\.[0-9a-f]{6,16}\Z")


def decode(name: str) -> KernelName | None:
    """The decoded name, or None where it is not of this grammar."""
    if found := _FILE.match(name):
        build = KernelBuilder(name, "deepgemm_file", "grouped gemm")
        _fp8(build, "fp8")
        build.arch("sm_100f")
        build.family, build.sentence = "fi.deepgemm_cubins", "DeepGEMM grouped FP8 GEMM, prebuilt for FlashInfer"
        return build.done()
    if ("gemm" in name or "logits" in name) and (found := _NAME.match(name)):
        return _gemm(name, found)
    if "deep_gemm::" in name and (found := _OTHER.match(name)):
        build = KernelBuilder(name, "deepgemm", "scale factor layout" if "sf" in found["function"] else "helper")
        build.dtype("a", (found_in(name) or ["fp32"])[0])
        build.family, build.sentence = "deepgemm.fp8_gemm", f"DeepGEMM {found['function'].replace('_', ' ')}"
        return build.done()
    return None


def _fp8(build: KernelBuilder, types: str | None) -> None:
    a, b = {
        "fp8_fp4": ("fp8_e4m3", "mxfp4"),
        "bf16": ("bf16", "bf16"),
        "tf32": ("tf32", "tf32"),
        "fp4": ("mxfp4", "mxfp4"),
    }.get(types or "", ("fp8_e4m3",) * 2)
    for key, word in (("a", a), ("b", b), ("out", "bf16"), ("acc", "fp32")):
        build.dtype(key, word)


def _gemm(name: str, found: re.Match[str]) -> KernelName:
    old = found["old"]
    kind = old or f"{found['kind']}{found['rest']}"
    logits, moe = "logits" in kind, "mega_moe" in kind
    build = KernelBuilder(name, "deepgemm", "indexer logits" if logits else "fused moe" if moe else "gemm")
    types = "tf32" if "tf32" in name.split("<")[0] else found["types"] if not old else "fp8"
    _fp8(build, types)
    if logits:
        build.dtype("out", "fp32")
    number = found["arch"] or "90"
    build.arch({"90": "sm_90a", "100": "sm_100f", "120": "sm_120f"}[number])
    numbers = [n for a in read(name).arguments if (n := integer(a)) is not None]
    blocks = [
        i
        for i in range(len(numbers) - 2)
        if numbers[i] in _BLOCK and numbers[i + 1] <= 512 and numbers[i + 2] in (32, 64, 128)
    ]
    if blocks:
        build.tile = tuple(numbers[blocks[0] : blocks[0] + 3])
    build.family = (
        "deepgemm.mqa_logits"
        if logits
        else "deepgemm.mega_moe"
        if moe
        else "deepgemm.hc_prenorm"
        if "prenorm" in kind
        else "deepgemm.fp8_gemm"
    )
    build.sentence = f"DeepGEMM {build.op} for sm_{number} ({kind.strip('_').replace('_', ' ')})"
    return build.done()


_BLOCK = (16, 32, 64, 96, 128, 160, 192, 224, 256)
