"""Decodes CUTLASS kernels. In: a demangled or short name; out: `KernelName` or None. Grammar:

3.x   cutlass::device_kernel<[wrapper<]…GemmUniversal<SHAPE, CollectiveMma<MAINLOOP<stages, CLUSTER, SCHEDULE>, TILE, A, strideA,
      B, strideB, TiledMma, …>, CollectiveEpilogue<policy, tile, …, C, strideC, D, strideD, …>, …>>
      MAINLOOP: MainloopSm(80CpAsync | 90TmaGmma… | 90ArrayTmaGmma… | 100TmaUmma… | 103… | 120Tma…)[FP8|MixedInput|BlockScaled|…]
                Array = grouped or pointer array (MoE); Gmma = wgmma (Hopper), Umma = tcgen05 (10.x, 11.x), Sm120 = mma.sync
      a pair (e2m1, ue4m3) is NVFP4, (e2m1, ue8m0) MXFP4, (e4m3, ue8m0) MXFP8
2.x   cutlass::Kernel[2]<…DefaultGemm…<A, layout, …, B, …, arch::Sm80, GemmShape<M, N, K>, …>>
short cutlass_<arch>_<tensorop|simt|wmma…>_<types>_<instruction>gemm[_relu]_<types>_<M>x<N>_<K>x<stages>_<layout>_align<n>
      types [a[b]_]: "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x64_32x4_tn_align8", one letter before gemm is the accumulator

-> gemm, a bf16, b bf16, out bf16, acc fp32, tile (256, 64, 32), runs on 8.0 and newer
"""

from __future__ import annotations

import re

from forensics.ingest.pattern import Pattern
from forensics.knowledge.gpus import sms
from forensics.knowledge.kernels.cxx import inside, shape
from forensics.knowledge.kernels.dtypes import canonical, found_in
from forensics.knowledge.kernels.naming import KernelBuilder
from forensics.model import KernelName

_SHORT = Pattern(
    r"(?:void )?(?:cutlass::Kernel2?<)?cutlass_(?P<arch>\d{2,3})_(?P<class>\w*?op|simt|wmma_tensorop)_(?:(?P<in>[a-z]+\d*(?:[a-z]+\d+)?)_)?"
    r"(?P<acc>[a-z]?)(?P<inst>\d*)(?P<kind>gemm|fprop|dgrad|wgrad|syrk|trmm)(?P<act>_relu)?(?:_(?P<out>[a-z]+\d+|[a-z]))?_(?P<m>\d+)x(?P<n>\d+)_(?P<k>\d+)x(?P<stages>\d+)"
)
_LONG = Pattern(r"(?:void )?cutlass(?:_\w+)?::(?:device_kernel|Kernel2?|sm\d+_kernel)<")
_MAINLOOP = Pattern(r"Mainloop(?:Sm)?(\d{2,3})(\w*)")
_MMA = Pattern(
    r"::MMA_(\d+)x(\d+)x(\d+)_(F32|F16|S32|BF16)|SM(\d{2,3})_(\d+)x(\d+)x(\d+)_([A-Z]+\d+)([A-Z]+\d+\w*?)_"
)
_SHAPE2 = Pattern(r"GemmShape<(\d+), (\d+), (\d+)>")
_OPERANDS = {"fp64", "fp32", "tf32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "int8", "uint8", "int4", "uint4"}
_ACC = {"s": "fp32", "h": "fp16", "d": "fp64", "i": "int32", "c": "complex64", "z": "complex128", "": None}
_SCALED = {
    ("fp4_e2m1", "fp8_e4m3"): "nvfp4",
    ("fp4_e2m1", "fp8_e8m0"): "mxfp4",
    ("fp8_e4m3", "fp8_e8m0"): "mxfp8",
    ("nvfp4", "fp8_e4m3"): "nvfp4",
}


def decode(name: str) -> KernelName | None:
    """The decoded name, or None where it is not of these grammars."""
    if found := _SHORT.match(name):
        return _short(name, found)
    if _LONG.match(name):
        return _three(name) if "CollectiveMma" in name or "Mainloop" in name else _two(name)
    return None


def _from(number: int) -> tuple[str, ...]:
    return tuple(sm for sm in sms("nvidia") if int(sm[3:]) >= number)


def _short(name: str, found: re.Match[str]) -> KernelName:
    build = KernelBuilder(
        name, "cutlass_2_name", "convolution" if found["kind"] in ("fprop", "dgrad", "wgrad") else "gemm"
    )
    given = found["in"] or {"s": "fp32", "h": "fp16", "d": "fp64", "i": "int8"}.get(found["acc"], "")
    word = canonical(given)
    build.dtype("a", word)
    build.dtype("b", word)
    build.dtype("out", canonical(found["out"]) if found["out"] else word)
    build.dtype("acc", _ACC.get(found["acc"]))
    build.tile = (int(found["m"]), int(found["n"]), int(found["k"]))
    build.extra |= {"stages": int(found["stages"]), "instruction": found["inst"]}
    build.portable = _from(int(found["arch"]))
    build.family = "cublas.gemm"
    build.sentence = f"CUTLASS {build.op} of the sm_{found['arch']} generation (also in cuBLAS): {word or '?'} inputs"
    return build.done()


def _element(text: str) -> str | None:
    """The type of an operand: plain, or a pair of values and scales."""
    words = found_in(text) if "<" in text else [w for w in [canonical(text)] if w]
    if len(words) >= 2 and (scaled := _SCALED.get((words[0], words[1]))):
        return scaled
    if "nv_float4" in text:
        return "nvfp4"
    return words[0] if words else None


def _three(name: str) -> KernelName:
    grouped = "GroupProblemShape" in name or "MoEProblemShape" in name or "Array" in name
    build = KernelBuilder(name, "cutlass_3", "grouped gemm" if grouped else "gemm")
    mainloop = _MAINLOOP.search(name)
    arguments = inside(name, "CollectiveMma<") or inside(name, "CollectiveMmaArrayMixedInput<") or _collective(name)
    tile = next((s for a in arguments[1:3] if len(s := shape(a)) >= 3), ())
    build.tile = tile[:3]
    rest = arguments[2:] if tile else arguments[1:]
    if len(rest) >= 3:
        build.dtype("a", _element(rest[0]))
        build.dtype("b", _element(rest[2]))
    epilogue = inside(name, "CollectiveEpilogue<")
    written = [w for a in epilogue[1:] if "<" not in a and (w := canonical(a))]
    build.dtype("out", written[-1] if written else None)
    build.dtype("acc", _accumulator(name))
    if not build.dtypes:
        for key, word in zip(("a", "out"), found_in(name)):
            build.dtype(key, word)
    number = int(mainloop[1]) if mainloop else 80
    policy = mainloop[2] if mainloop else ""
    if number >= 90 and ("Gmma" in policy or "Tma" in policy):
        build.arch("sm_90a" if number == 90 else f"sm_{number}")
    else:
        build.portable = _from(number)
    build.extra |= {
        "mainloop": mainloop[0] if mainloop else "",
        "schedule": (m[0] if (m := re.search(r"Kernel(?:PtrArray)?Tma\w+", name)) else ""),
    }
    build.family = _family(name, number, grouped, build.dtypes)
    unit = {90: "wgmma (Hopper)", 100: "tcgen05 (10.x)", 103: "tcgen05 (10.3)", 120: "mma.sync (12.x)"}.get(
        number, "mma.sync"
    )
    build.sentence = f"CUTLASS {build.op} with {unit}: {build.dtypes.get('a', '?')} by {build.dtypes.get('b', '?')}, {build.dtypes.get('out', '?')} output"
    return build.done()


def _collective(name: str) -> tuple[str, ...]:
    found = re.search(r"Collective(?:Mma\w*|Mainloop\w*)<", name)
    return inside(name, found[0]) if found else ()


def _accumulator(name: str) -> str | None:
    if found := _MMA.search(name):
        return canonical((found[4] or found[9] or "").lower())
    umma = re.search(r"SM1\d\d_(?:MMA|16x8)\w*<", name)
    words = [w for a in inside(name, umma[0]) if (w := canonical(a))] if umma else []
    return "fp32" if "fp32" in words else None


def _family(name: str, number: int, grouped: bool, dtypes: dict[str, str]) -> str | None:
    fp4 = "nvfp4" in dtypes.values() or "fp4_e2m1" in dtypes.values()
    if "machete" in name:
        return "vllm.machete"
    if "tensorrt_llm" in name or "trtllm" in name:
        return "fi.cutlass_fused_moe"
    if fp4:
        return "vllm.cutlass_fp4_group_mm" if grouped else "sgl.cutlass_scaled_fp4_mm"
    if {"fp8_e4m3", "int8"} & set(dtypes.values()):
        return "vllm.cutlass_moe_mm" if grouped else "vllm.cutlass_scaled_mm"
    return "cublas.gemm"


def _two(name: str) -> KernelName:
    build = KernelBuilder(name, "cutlass_2", "grouped gemm" if "Grouped" in name else "gemm")
    words = found_in(name)
    operands = [w for w in words if w in _OPERANDS] or words
    if operands:
        build.dtype("a", operands[0])
        build.dtype(
            "b", next((w for w in operands[1:3] if w.startswith(("int", "uint", "fp8", "bf16", "fp16"))), operands[0])
        )
        build.dtype("out", next((w for w in operands[1:] if w in ("bf16", "fp16")), operands[-1]))
    if found := _SHAPE2.search(name):
        build.tile = (int(found[1]), int(found[2]), int(found[3]))
    if "AttentionKernel" in name or "fmha" in name:
        build.op, build.grammar = "attention", "cutlass_fmha"
        for key in ("q", "kv"):
            build.dtype(key, operands[0] if operands else None)
        build.dtypes.pop("a", None), build.dtypes.pop("b", None)
    arch = re.search(r"arch::Sm(\d{2,3})", name)
    build.portable = _from(int(arch[1]) if arch else 70)
    build.family = (
        "torch.sdpa_mem_efficient"
        if "Attention" in name
        else "vllm.cutlass_scaled_mm"
        if "fp8_e4m3" in words or "int8" in words
        else "cublas.gemm"
    )
    build.sentence = f"CUTLASS 2 {build.op} of the sm_{arch[1] if arch else '?'} generation: {operands[0] if operands else '?'} inputs"
    return build.done()
