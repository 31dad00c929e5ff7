"""Decodes kernels that follow no grammar but C++ or a Python function name. In: a demangled name; out: `KernelName` or None. Samples:

    void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>>(int, …)
    void flashinfer::norm::RMSNormKernel<16u, __nv_bfloat16>(…)          _fwd_grouped_kernel_stage1          fused_moe_kernel

What it does comes from words in its name, whose it is from its namespace (signatures/facts/kernel_ops.toml), its types from the
template arguments and parameters. A bare word is only taken where the table of kernel families or a library row knows it, or where
it says itself that it is a kernel.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from forensics.data import table
from forensics.ingest.compiled import pattern_of
from forensics.ingest.pattern import Pattern
from forensics.knowledge.gpus import sms
from forensics.knowledge.kernels.cxx import integer, read
from forensics.knowledge.kernels.dtypes import found_in
from forensics.knowledge.kernels.naming import KernelBuilder
from forensics.model import KernelName

_IDENTIFIER = Pattern(r"[A-Za-z_][\w.$]{2,400}\Z")
_BARE = Pattern(r"(?i)kernel|^_?triton_|_(?:fwd|bwd)(?:_|$)|_impl$")


class _Row(NamedTuple):
    pattern: re.Pattern[str]
    word: str
    family: str | None
    oldest: int | None


@cache
def _rows(key: str, word: str) -> tuple[_Row, ...]:
    flags = re.IGNORECASE if key == "op" else 0
    return tuple(
        _Row(pattern_of(row["pattern"], flags), row[word], row.get("family"), row.get("from"))
        for row in table("facts/kernel_ops")[key]
    )


def decode(name: str) -> KernelName | None:
    """The decoded name, or None where nothing says that it is a kernel."""
    spelled = read(name)
    path = spelled.path
    if not path or len(path) > 2_000 or " " in path:
        return None
    library = next((row for row in _rows("library", "name") if row.pattern.search(path)), None)
    bare = not spelled.arguments and not spelled.parameters
    if bare and not (_IDENTIFIER.match(path) and (library or _BARE.search(path))):
        return None
    told = path if library is None else path.split("::", 1)[-1]
    # the functor of an elementwise kernel says more than "elementwise"
    row = next((row for row in _rows("op", "op") if row.pattern.search(told)), None)
    if row is None:
        row = next((row for row in _rows("op", "op") if row.pattern.search(" ".join(spelled.arguments)[:2_000])), None)
    build = KernelBuilder(name, "named", row.word if row else "kernel")
    _types(build, spelled.arguments, spelled.parameters)
    if build.op == "gemm" or build.op.endswith(" gemm"):
        numbers = [n for a in spelled.arguments if (n := integer(a)) and n >= 8]
        if len(numbers) >= 3:
            build.extra["numbers"] = tuple(numbers[:8])
    oldest = library.oldest if library else None
    if oldest:
        build.portable = tuple(sm for sm in sms("nvidia") if int(sm[3:]) >= oldest)
    build.family = (
        library.family if library and library.family else row.family if row and "moe_kernel" in path else None
    )
    owner = f"{library.word} " if library else ""
    build.sentence = f"{owner}{build.op}: {spelled.function.strip('_').replace('_', ' ')}"
    return build.done()


def _types(build: KernelBuilder, arguments: tuple[str, ...], parameters: tuple[str, ...]) -> None:
    """First type as input, the next other floating type as output; index and size types only where there is nothing else."""
    words = found_in(" ".join(arguments))
    told = found_in(" ".join(p for p in parameters if "*" in p)[:8_000])
    values = [w for w in dict.fromkeys((*words, *told)) if w not in ("int32", "int64", "uint32", "uint64", "bool")]
    every = list(dict.fromkeys((*words, *told, *found_in(" ".join(parameters)[:8_000]))))
    chosen = values or every
    attention = build.op.startswith("attention") and "helper" not in build.op
    keys = ("q", "kv", "out") if attention else ("a",)
    for key in keys:
        build.dtype(key, chosen[0] if chosen else None)
    if not attention and len(chosen) > 1:
        build.dtype("out", chosen[1])
    build.extra["types"] = tuple(every)
