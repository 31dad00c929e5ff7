"""Decodes cuBLAS and cuBLASLt kernels. In: a kernel name; out: `KernelName` or None. Grammar:

    xmma    sm<NN>_xmma_(gemm|fprop|…)_<ab>_<cacc>_<acc>_<layout>_tilesize<M>x<N>x<K>_…          types two by two: "bf16bf16_bf16f32_f32"
    nvjet   nvjet_[sm<NN>_]<types>_[mma_]<M>x<N>[x<K>]_<stages or K>x<..>_…_<T|N…>              letters: t bf16, h fp16, s fp32, q fp8, d fp64;
            three letters are input, compute, output ("tst"); five are A, B, C, compute, output ("qqtst")
    named   (volta|turing|ampere|hopper|maxwell|sm80)_<type>_<instruction>gemm_<type>_<M>x<N>_…_<layout> | ampere_sgemm_128x64_tn
    vector  gemmSN_TN_kernel<TYPE,…>, gemv2T_kernel_val<…>, gemvNSP_kernel, dot_kernel, splitKreduce_kernel<…>, cublasLt::…

    nvjet_sm120_qqtst_mma_64x128x64_8_32x64x64_tmaAB_bz_TNNN -> gemm, a fp8_e4m3, b fp8_e4m3, out bf16, acc fp32, tile (64, 128, 64)

The generation in a name is that of the kernel; an sm80_ kernel on a newer GPU is usual.
"""

from __future__ import annotations

import re

from forensics.ingest.pattern import Pattern
from forensics.knowledge.gpus import sms
from forensics.knowledge.kernels.cxx import read
from forensics.knowledge.kernels.dtypes import canonical, found_in
from forensics.knowledge.kernels.naming import KernelBuilder
from forensics.model import KernelName

_T = r"(?:bf16|f16|f32|f64|tf32|i8|i32|e4m3|e5m2|s8|cf32|u8)"
_XMMA = Pattern(
    rf"(?:void )?sm(?P<arch>\d{{2,3}})_xmma_(?P<kind>[a-z_]+?)_(?P<a>{_T})(?P<b>{_T})_(?P<c>{_T})(?P<acc>{_T})_(?P<out>{_T})_\w*?tilesize(?P<tile>\d+x\d+x\d+)"
)
_NVJET = Pattern(
    r"(?:void )?nvjet_(?:sm(?P<arch>\d{2,3})_)?(?P<types>[a-z]{3,6})_(?:mma_)?(?P<tile>\d+x\d+(?:x\d+)?)_(?P<rest>\w+)"
)
_NAMED = Pattern(
    r"(?:void )?(?P<gen>maxwell|pascal|volta|turing|ampere|ada|hopper|sm\d\d)_(?:(?P<in>[a-z]+\d+|int\d+|fp\d+|bf16|tf32)_)?(?P<acc>[a-z]?)(?P<inst>\d*)(?P<kind>c?gemm|scudnn|sgemm|gcgemm|zgemm)(?:_(?P<out>[a-z]+\d+|int\d+))?_(?P<tile>\d+x\d+)"
)
_VECTOR = Pattern(
    r"(?:void )?(?:cublasLt::|cublas::|internal::)*(?P<function>gemmSN_\w+_kernel\w*|gemv\w*_kernel\w*|gemvNSP_kernel\w*|gemmk1_kernel|dot_kernel|reduce_1Block_kernel|splitKreduce_kernel|scal_kernel\w*|axpy_kernel\w*|gemm_kernel\w*|trsm_\w+|globalKernel|epilogue::impl::globalKernel|copy_kernel|nrm2_kernel|asum_kernel)(?=<|\(|$)"
)
_LETTER = {
    "t": "bf16",
    "h": "fp16",
    "s": "fp32",
    "q": "fp8_e4m3",
    "d": "fp64",
    "c": "complex64",
    "z": "complex128",
    "b": "int8",
    "o": "nvfp4",
    "v": "nvfp4",
}
_GENERATION = {"maxwell": 50, "pascal": 60, "volta": 70, "turing": 75, "ampere": 80, "ada": 89, "hopper": 90}


def decode(name: str) -> KernelName | None:
    """The decoded name, or None where it is not of these grammars."""
    if found := _XMMA.match(name):
        return _xmma(name, found)
    if name.startswith(("nvjet_", "void nvjet_")) and (found := _NVJET.match(name)):
        return _nvjet(name, found)
    if found := _NAMED.match(name):
        return _named(name, found)
    if found := _VECTOR.match(name):
        return _vector(name, found)
    return None


def _from(number: int) -> tuple[str, ...]:
    return tuple(sm for sm in sms("nvidia") if int(sm[3:]) >= number)


def _finish(build: KernelBuilder, number: int, what: str) -> KernelName:
    build.family, build.portable = "cublas.gemm", _from(number)
    a, out = build.dtypes.get("a", "?"), build.dtypes.get("out", "?")
    build.sentence = f"{what}: {a} inputs, {out} output"
    return build.done()


def _xmma(name: str, found: re.Match[str]) -> KernelName:
    convolution = found["kind"] != "gemm" and "gemm" not in found["kind"].split("_")[:1]
    build = KernelBuilder(name, "cublas_xmma", "convolution" if convolution else "gemm")
    for key in ("a", "b", "out", "acc"):
        build.dtype(key, canonical(found["acc" if key == "acc" else "c" if key == "out" else key]))
    build.tile = tuple(map(int, found["tile"].split("x")))
    number = int(found["arch"])
    if number >= 90:
        build.arch(f"sm_{number}a" if number == 90 else f"sm_{number}")
    return _finish(
        build, number, f"{'cuDNN' if convolution else 'cuBLAS'} {build.op} (xmma) of the sm_{number} generation"
    )


def _nvjet(name: str, found: re.Match[str]) -> KernelName:
    build = KernelBuilder(name, "cublas_nvjet", "gemm")
    words = [_LETTER.get(letter) for letter in found["types"]]
    a = words[0]
    b = words[1] if len(words) > 3 else a
    acc = words[1] if len(words) == 3 else words[-2]
    for key, word in (("a", a), ("b", b), ("acc", acc), ("out", words[-1])):
        build.dtype(key, word)
    tile = [int(n) for n in found["tile"].split("x")]
    if len(tile) == 2 and (k := re.match(r"(\d+)x(\d+)_", found["rest"])):
        tile.append(int(k[1]))
        build.extra["stages"] = int(k[2])
    build.tile = tuple(tile)
    if found["arch"]:
        build.arch("sm_90a" if found["arch"] == "90" else f"sm_{found['arch']}")
    else:
        build.arch("sm_90a")  # names without an architecture are Hopper's, from before it was written
    return _finish(build, 90, "cuBLASLt GEMM (nvjet)")


def _named(name: str, found: re.Match[str]) -> KernelName:
    build = KernelBuilder(name, "cublas_named", "convolution" if found["kind"] == "scudnn" else "gemm")
    letter = found["acc"] or found["kind"][0]
    given = (
        canonical(found["in"])
        if found["in"]
        else {"s": "fp32", "h": "fp16", "d": "fp64", "c": "complex64", "z": "complex128", "i": "int8"}.get(letter)
    )
    for key in ("a", "b"):
        build.dtype(key, given)
    build.dtype("out", canonical(found["out"]) if found["out"] else given)
    build.dtype("acc", {"s": "fp32", "h": "fp16", "d": "fp64", "i": "int32"}.get(letter))
    build.tile = tuple(map(int, found["tile"].split("x")))
    number = _GENERATION.get(found["gen"]) or int(found["gen"][2:])
    return _finish(build, number, f"cuBLAS {build.op} of the {found['gen']} generation")


def _vector(name: str, found: re.Match[str]) -> KernelName:
    function = found["function"]
    op = "gemv" if function.startswith(("gemv", "dot")) else "split-K reduction" if "splitK" in function else "gemm"
    build = KernelBuilder(name, "cublas_kernel", op)
    types = [t for t in found_in(" ".join(read(name).arguments)) if t not in ("int32", "int64", "bool")]
    build.dtype("a", types[0] if types else None)
    build.dtype("b", types[0] if types else None)
    build.dtype("out", next((t for t in types if t != "fp32"), types[0] if types else None))
    build.dtype("acc", "fp32" if "fp32" in types else None)
    return _finish(build, 50, f"cuBLAS {function.replace('_', ' ')}")
