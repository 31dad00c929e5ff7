"""Words for data types. In: a spelling used by some kernel name; out: one canonical word. Sample:

canonical("MxE2m1") -> "mxfp4"     canonical("cutlass::bfloat16_t") -> "bf16"     canonical("__nv_fp8_e4m3") -> "fp8_e4m3"
"""

from __future__ import annotations

import re

from forensics.ingest.pattern import Pattern

#: spellings in lower case without namespaces, one canonical word each
_WORDS = {
    "fp64": "f64 fp64 double float64 d",
    "fp32": "f32 fp32 float float32 s float_t",
    "tf32": "tf32 tfloat32_t tf32_t",
    "fp16": "f16 fp16 half half_t __half float16 h float16_t",
    "bf16": "bf16 bfloat16 bfloat16_t __nv_bfloat16 nv_bfloat16 __hip_bfloat16 bhalf_t hip_bfloat16 b",
    "fp8_e4m3": "e4m3 fp8e4m3 float_e4m3_t __nv_fp8_e4m3 e4m3fn float8_e4m3fn fp8_e4m3 f8e4m3 fp8 float8_e4m3 f8 fp8e4nv ue4m3 float_ue4m3_t",
    "fp8_e5m2": "e5m2 float_e5m2_t __nv_fp8_e5m2 float8_e5m2 fp8_e5m2 f8e5m2 fp8e5",
    "fp8_e4m3fnuz": "e4m3fnuz float8_e4m3fnuz fp8e4b8 __hip_fp8_e4m3_fnuz",
    "fp8_e8m0": "ue8m0 e8m0 float_ue8m0_t float8_e8m0fnu",
    "nvfp4": "e2m1 nv_float4_t nvfp4 fp4",
    "fp4_e2m1": "float_e2m1_t __nv_fp4_e2m1",
    "mxfp4": "mxe2m1 mx_float4_t mxfp4",
    "mxfp6": "mxe2m3 mxe3m2 mx_float6_t mxfp6",
    "mxfp8": "mxe4m3 mx_float8_t mxfp8",
    "mxint4": "mxint4",
    "int4": "i4 s4 int4 int4b_t int4_t",
    "uint4": "u4 uint4b_t uint4 u4b8",
    "int8": "i8 s8 int8 int8_t char i8_t",
    "uint8": "u8 uint8 uint8_t u8b128",
    "int16": "i16 int16 short int16_t",
    "int32": "i32 s32 int32 int int32_t",
    "uint32": "u32 uint32 uint32_t",
    "int64": "i64 int64 int64_t long",
    "uint64": "u64 uint64 uint64_t",
    "bool": "bool b1",
    "complex64": "c10::complex<float> complex<float> cf32 c",
    "complex128": "c10::complex<double> complex<double> cf64 z",
}
_CANONICAL = {spelling: word for word, spellings in _WORDS.items() for spelling in spellings.split()}
_CANONICAL |= {
    "unsigned char": "uint8",
    "unsigned int": "uint32",
    "unsigned long": "uint64",
    "signed char": "int8",
    "long long": "int64",
}
_AROUND = Pattern(
    r"^(?:const )?(?:(?:cutlass|at|c10|std|ck|torch|cute|tensorrt_llm|flashinfer)::)+|\s*(?:const)?\s*[*&]*$"
)
_C10 = {
    "BFloat16": "bf16", "Half": "fp16", "Float8_e4m3fn": "fp8_e4m3", "Float8_e5m2": "fp8_e5m2", "Float8_e4m3fnuz": "fp8_e4m3fnuz",
    "Float8_e5m2fnuz": "fp8_e5m2fnuz", "Float8_e8m0fnu": "fp8_e8m0", "Float4_e2m1fn_x2": "fp4_e2m1",
}  # fmt: skip
#: long spellings, to be found in running text such as demangled template arguments, longest first
_IN_TEXT = sorted(
    (s for s in (*_CANONICAL, *_C10) if len(s) > 3 and s not in {"long", "short", "char", "bool"}),
    key=lambda s: -len(s),
)  # fmt: skip
_FIND = Pattern(
    r"(?<![A-Za-z0-9_])(?:"
    + "|".join(re.escape(s) for s in _IN_TEXT)
    + r"|bool|char|long|int)(?![A-Za-z0-9_])(?!::|\()"
)


def canonical(spelling: str) -> str | None:
    """The canonical word of one type as spelled in a kernel name, or None."""
    bare = _AROUND.sub("", spelling.strip())
    return _C10.get(bare) or _CANONICAL.get(bare.lower()) or _CANONICAL.get(spelling.strip().lower())


def found_in(text: str) -> list[str]:
    """Canonical words of the types that stand in a demangled signature, in order, each once."""
    return list(dict.fromkeys(word for m in _FIND.finditer(text[:20_000]) if (word := canonical(m[0]))))
