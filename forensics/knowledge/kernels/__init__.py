"""Kernel names. In: a name as printed by a profiler, a debugger or an error; out: `KernelName`. Sample:

    decode_kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)").op -> "all-reduce"

One module a grammar, with the grammar at its head; `decode_kernel` asks them in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from importlib import import_module

from forensics.knowledge.kernels.finding import KERNEL_ANCHORS, candidates
from forensics.knowledge.kernels.mangled import demangled
from forensics.knowledge.kernels.naming import MAX_NAME
from forensics.model import KernelName
from forensics.model.record import replace

__all__ = ["KERNEL_ANCHORS", "decode_kernel", "find_kernels"]

_MAX_FOUND = 50


#: modules of the grammars, asked in turn: special ones first; the last reads what is left of C++ names and words that call
#: themselves a kernel
_GRAMMARS = (
    "trtllm_gemm", "trtllm_fmha", "nccl", "cublas", "cudnn", "flash_attention", "mla", "marlin", "deepgemm", "cutlass", "triton",
    "rocm", "ggml", "named",
)  # fmt: skip


@cache
def _decoder(grammar: str) -> Callable[[str], KernelName | None]:
    """A grammar's decoder, loaded when a name comes to it: most logs need one or none."""
    decode: Callable[[str], KernelName | None] = import_module(f"{__name__}.{grammar}").decode
    return decode


def decode_kernel(name: str) -> KernelName:
    """What a kernel name says; grammar None where no decoder knows it. Names over 20,000 characters are cut.

    name: mangled, demangled (with or without "void" and its arguments) or plain, as a profiler, debugger or error prints it.
    """
    name = name.strip()[:MAX_NAME]
    spelled = (demangled(name) or name) if name.startswith("_Z") else name
    spelled = spelled.removesuffix(".kd").strip()
    for grammar in _GRAMMARS[:-1] if spelled.startswith("_Z") else _GRAMMARS:
        if found := _decoder(grammar)(spelled):
            return replace(found, name=name)
    return KernelName(name=name)


@lru_cache(maxsize=1024)
def find_kernels(text: str) -> tuple[KernelName, ...]:
    """Kernel names that stand in a text and that a grammar decodes, in order of appearance, each once, at most 50."""
    found: dict[str, KernelName] = {}
    for name in candidates(text):
        if name not in found and _is_kernel(decoded := decode_kernel(name)):
            found[name] = decoded
            if len(found) >= _MAX_FOUND:
                break
    return tuple(found.values())


def _is_kernel(decoded: KernelName) -> bool:
    """Host and device functions are C++ names too: without a grammar of its own a name counts where it says "kernel", or is
    torch's or CUB's and returns nothing."""
    if decoded.grammar != "named":
        return decoded.grammar is not None
    head = decoded.name.split("<")[0]
    return decoded.op != "kernel" and (head.startswith(("void at::native::", "void cub::")) or "kernel" in head.lower())
