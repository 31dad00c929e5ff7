"""Decodes Triton, Inductor and CuTe DSL names. In: a kernel name; out: `KernelName` or None. Grammar:

inductor   triton_<poi|red|per|tem|for|mm|bmm>_fused_<aten ops joined by _>[_<n>]     pointwise, reduction, persistent reduction, template, foreach
ogs        _[p_]matmul_ogs_<layouts>_<OUT>x<A>x<B>_<M>x<N>x<K>x<split>[_<epilogue>]     triton_kernels MoE (gpt-oss)
cute       kernel_cutlass_<function>_<module…>_object_at__…tensorptr<type>…            CuTe DSL
named      functions of the engines, by the words table (signatures/facts/kernel_ops.toml)

triton_per_fused__to_copy_add_mean_mul_pow_rsqrt_3 -> persistent reduction over to_copy, add, mean, mul, pow, rsqrt
"""

from __future__ import annotations

import re

from forensics.ingest.pattern import Pattern
from forensics.knowledge.gpus import sms
from forensics.knowledge.kernels.dtypes import canonical
from forensics.knowledge.kernels.naming import KernelBuilder
from forensics.model import KernelName

_INDUCTOR = Pattern(
    r"triton_(poi|red|per|tem|for|mm|bmm|unk|flex_attention|flex_decoding|convolution\w*)_?(?:fused_)?(\w*?)(?:_(\d+))?(?:_kernel)?\Z"
)
_OGS = Pattern(
    r"_(p_)?matmul_ogs(?:_(?P<layout>[A-Z]{2,3}))?_(?P<out>\w+?)x(?P<a>\w+?)x(?P<b>\w+?)_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)x(?P<split>\d+)(?P<rest>\w*)\Z"
)
_CUTE = Pattern(
    r"kernel_cutlass_(?P<function>\w+?)_(?:object_at_|tensor|___|Tensor|0{4})|kernel_cutlass_(?P<rest>\w+)"
)
_PTR = Pattern(r"ptr(bf16|f16|f32|f8E4M3FN|f8E5M2|f8E8M0FNU|f4E2M1FN|i8|ui8|i32|i64)")
_KIND = {
    "poi": "pointwise", "red": "reduction", "per": "persistent reduction", "tem": "template", "for": "foreach", "mm": "gemm",
    "bmm": "batched gemm", "flex_attention": "attention", "flex_decoding": "attention (decode)", "unk": "kernel",
}  # fmt: skip
_ATEN = Pattern(r"(?:_?[a-z][a-z0-9]*(?:_(?:to_copy|unsafe_\w+|softmax|backward|native_\w+))?)")


def decode(name: str) -> KernelName | None:
    """The decoded name, or None where it is not of these grammars."""
    if name.startswith("triton_") and (found := _INDUCTOR.match(name)):
        return _inductor(name, found)
    if "matmul_ogs" in name and (found := _OGS.match(name)):
        return _ogs(name, found)
    if name.startswith("kernel_cutlass_") and (found := _CUTE.match(name)):
        return _cute(name, found)
    return None


def _inductor(name: str, found: re.Match[str]) -> KernelName:
    kind = found[1]
    build = KernelBuilder(name, "inductor", _KIND.get(kind, "convolution"))
    ops = found[2].strip("_")
    build.extra["ops"] = tuple(w for w in re.split(r"_+", ops) if w)
    if ops and kind == "tem" and re.search(r"(?:^|_)(?:add)?b?mm(?:_|$)", ops):
        build.op = "gemm"
    build.family, build.portable = "torch.inductor", tuple(sm for sm in sms("nvidia") if int(sm[3:]) >= 70)
    over = f" of {', '.join(build.extra['ops'][:12])}" if build.extra["ops"] else ""  # type: ignore[index]
    build.sentence = f"{build.op} kernel that torch.compile made{over}"
    return build.done()


def _ogs(name: str, found: re.Match[str]) -> KernelName:
    build = KernelBuilder(name, "triton_kernels", "moe gemm")
    for key in ("out", "a", "b"):
        build.dtype(key, canonical(found[key].replace("fp8e4nv", "e4m3").replace("fp8e5", "e5m2")))
    build.tile = (int(found["m"]), int(found["n"]), int(found["k"]))
    if found["rest"].strip("_"):
        build.extra["epilogue"] = found["rest"].strip("_")
    build.family, build.portable = "vllm.gptoss_triton_kernels", tuple(sm for sm in sms("nvidia") if int(sm[3:]) >= 90)
    build.sentence = f"triton_kernels MoE GEMM: {found['a']} activations by {found['b']} weights, {found['out']} output"
    return build.done()


def _cute(name: str, found: re.Match[str]) -> KernelName:
    function = found["function"] or found["rest"]
    op = next(
        (
            word
            for key, word in (
                ("moe", "moe gemm"),
                ("gemm", "gemm"),
                ("attn", "attention"),
                ("fmha", "attention"),
                ("mla", "attention (MLA)"),
                ("norm", "normalization"),
            )
            if key in function.lower()
        ),
        "kernel",
    )
    build = KernelBuilder(name, "cute_dsl", op)
    types = [
        w
        for t in _PTR.findall(name)
        if (
            w := canonical(
                {"f8E4M3FN": "e4m3", "f8E5M2": "e5m2", "f8E8M0FNU": "ue8m0", "f4E2M1FN": "e2m1", "ui8": "u8"}.get(t, t)
            )
        )
    ]
    for key, word in zip(("a", "b"), types):
        build.dtype(key, word)
    build.dtype("out", types[-1] if types else None)
    if arch := re.search(r"[Ss]m(90|100|103|120)", name):
        build.arch("sm_90a" if arch[1] == "90" else f"sm_{arch[1]}")
    build.sentence = f"CuTe DSL kernel of {function.strip('_')[:80].replace('_', ' ')}"
    return build.done()
