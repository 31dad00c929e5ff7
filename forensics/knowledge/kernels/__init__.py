"""Kernel names. In: a name as printed by a profiler, a debugger or an error; out: `KernelName`. Sample:

    decode_kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)").op -> "all-reduce"

One module a grammar, with the grammar at its head; `decode_kernel` asks them in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

from forensics.knowledge.kernels.finding import KERNEL_ANCHORS, candidates
from forensics.knowledge.kernels.mangled import demangled
from forensics.knowledge.kernels.naming import MAX_NAME
from forensics.model import KernelName

__all__ = ["KERNEL_ANCHORS", "decode_kernel", "find_kernels"]

_MAX_FOUND = 50


@cache
def _decoders() -> tuple[Callable[[str], KernelName | None], ...]:
    """Asked in turn, special grammars first; the last reads what is left of C++ names and words that call themselves a kernel.
    Loaded with the first name: most logs have none."""
    from forensics.knowledge.kernels import (
        cublas,
        cudnn,
        cutlass,
        deepgemm,
        flash_attention,
        ggml,
        marlin,
        mla,
        named,
        nccl,
        rocm,
        triton,
        trtllm_fmha,
        trtllm_gemm,
    )

    return (
        trtllm_gemm.decode, trtllm_fmha.decode, nccl.decode, cublas.decode, cudnn.decode, flash_attention.decode, mla.decode,
        marlin.decode, deepgemm.decode, cutlass.decode, triton.decode, rocm.decode, ggml.decode, named.decode,
    )  # fmt: skip


def decode_kernel(name: str) -> KernelName:
    """What a kernel name says; grammar None where no decoder knows it. Names over 20,000 characters are cut.

    name: mangled, demangled (with or without "void" and its arguments) or plain, as a profiler, debugger or error prints it.
    """
    name = name.strip()[:MAX_NAME]
    spelled = (demangled(name) or name) if name.startswith("_Z") else name
    spelled = spelled.removesuffix(".kd").strip()
    readable = not spelled.startswith("_Z")
    for decode in _decoders() if readable else _decoders()[:-1]:
        if found := decode(spelled):
            return replace(found, name=name)
    return KernelName(name=name)


def find_kernels(text: str) -> list[KernelName]:
    """Kernel names that stand in a text and that a grammar decodes, in order of appearance, each once, at most 50."""
    found: dict[str, KernelName] = {}
    for name in candidates(text):
        if name not in found and _is_kernel(decoded := decode_kernel(name)):
            found[name] = decoded
            if len(found) >= _MAX_FOUND:
                break
    return list(found.values())


def _is_kernel(decoded: KernelName) -> bool:
    """Host and device functions are C++ names too: without a grammar of its own a name counts where it says "kernel", or is
    torch's or CUB's and returns nothing."""
    if decoded.grammar != "named":
        return decoded.grammar is not None
    head = decoded.name.split("<")[0]
    return decoded.op != "kernel" and (head.startswith(("void at::native::", "void cub::")) or "kernel" in head.lower())
