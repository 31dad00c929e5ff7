"""Kernel names. In: a name as printed by a profiler, a debugger or an error; out: `KernelName`. Sample:

    decode_kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)").op -> "all-reduce"

One module a grammar, with the grammar at its head; `decode_kernel` asks them in turn.
"""

from __future__ import annotations

from forensics.knowledge.kernels import trtllm_fmha, trtllm_gemm
from forensics.knowledge.kernels.naming import MAX_NAME
from forensics.model import KernelName

__all__ = ["decode_kernel"]

_DECODERS = (trtllm_gemm.decode, trtllm_fmha.decode)


def decode_kernel(name: str) -> KernelName:
    """What a kernel name says; grammar None where no decoder knows it. Names over 20,000 characters are cut."""
    name = name.strip()[:MAX_NAME]
    for decode in _DECODERS:
        if found := decode(name):
            return found
    return KernelName(name=name)
