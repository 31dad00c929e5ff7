"""Whose memory it was when a GPU was full. In: the allocator's message; out: a `Memory`, sentences, steps. Sample:

    "… Tried to allocate 2.50 GiB. GPU 3 has a total capacity of 79.11 GiB of which 1.02 GiB is free. Process 4711 has 40.00 GiB memory in
    use. Of the allocated memory 30.10 GiB is allocated by PyTorch, and 5.20 GiB is reserved by PyTorch but unallocated."
    -> Memory(wanted=2.5, total=79.11, free=1.02, allocated=30.1, idle=5.2, others=((4711, 40.0),), own=None)

Wordings: pytorch c10/cuda/CUDACachingAllocator.cpp, 1.x to 2.13. In a container it lists the failing process among the others, as NVML's
process numbers are not its own: the one that can hold what PyTorch has is taken for it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from forensics.ingest.compiled import pattern_of
from forensics.verdict.situations import USUAL_ALLOCATOR

_SIZE = r"([\d.]{1,12}) ([KMGT]?i?B|bytes)"
_WANTED = pattern_of(rf"Tried to allocate {_SIZE}")
_TOTAL = pattern_of(rf"total capac?i?ty of {_SIZE}|{_SIZE} total capacity")
_FREE = pattern_of(rf"of which {_SIZE} is free|{_SIZE} free;")
_ALLOCATED = pattern_of(rf"allocated memory {_SIZE} is allocated by PyTorch|{_SIZE} already allocated")
_IDLE = pattern_of(rf"{_SIZE} is reserved by PyTorch but unallocated")
_RESERVED = pattern_of(rf"{_SIZE} reserved in total by PyTorch")
_OWN = pattern_of(rf"this process has {_SIZE} memory in use")
_OTHER = pattern_of(rf"Process (\d{{1,10}}) has {_SIZE} memory in use")
_POOLS = pattern_of(rf"{_SIZE} allocated in private pools")
#: in GiB; what allocators call GB is 2**30, too
_UNITS = {"bytes": 2**-30, "B": 2**-30, "KiB": 2**-20, "MiB": 2**-10, "GiB": 1.0, "TiB": 2**10, "KB": 2**-20, "MB": 2**-10, "GB": 1.0}
_LOOKED_AT = 3_000
#: shares of the GPU: that another process must hold to be named, that makes PyTorch's own tensors fill it, that lies outside of its pool
_OTHERS, _FULL, _OUTSIDE = 0.03, 0.8, 0.15
#: of a listed process, what PyTorch must hold to be in it
_OURS = 0.05
#: settings that let the allocator put pieces together
_FRAGMENTATION = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_NPU_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
_JOINS = f"{USUAL_ALLOCATOR}=expandable_segments:True"
_LEFT_OVER = "A leftover of an earlier run is common."
_OUTSIDE_IS = (
    "what an engine sets aside itself (its KV cache), communicators, graphs and contexts. Give that less, or start with fewer of them."
)
_TENSORS = (
    "The tensors themselves fill the device. Training: a smaller batch, shorter sequences, checkpointed activations, or more devices to "
    "shard over. Serving: fewer or shorter sequences, or a smaller share for the cache."
)


class Memory(NamedTuple):
    """Sizes in GiB. allocated: by PyTorch's tensors; idle: reserved by PyTorch and not in use; pools: of `allocated`, for graphs; own: all
    of the failing process; others: (pid, size) of the processes on the GPU that the message lists."""

    wanted: float
    total: float
    free: float | None
    allocated: float
    idle: float | None
    pools: float | None
    own: float | None
    others: tuple[tuple[int, float], ...]

    @property
    def is_fragmented(self) -> bool:
        """True where what lies idle would have held what was asked for."""
        return self.idle is not None and self.idle >= self.wanted

    @property
    def outside(self) -> float:
        """What of the failing process lies outside PyTorch's pool: contexts, communicators, an engine's own cache."""
        return max(0.0, self.own - self.allocated - (self.idle or 0.0)) if self.own is not None else 0.0

    @property
    def unnamed(self) -> float:
        """What is in use and not told whose: of other processes, or outside PyTorch's pool."""
        if self.own is not None or self.others or self.free is None or self.idle is None:
            return 0.0
        return max(0.0, self.total - self.free - self.allocated - self.idle)


def memory_in(message: str) -> Memory | None:
    """The numbers of an allocator's message, of the first where it is told several times; None where none says what the GPU has and what
    PyTorch holds."""
    text = message[:_LOOKED_AT]
    starts = [found.start() for found in _WANTED.finditer(text)]
    told = (_read(text[start:end]) for start, end in zip(starts, [*starts[1:], None], strict=False))
    return next((memory for memory in told if memory is not None), None)


def _read(text: str) -> Memory | None:
    wanted, total, allocated = (_size(pattern, text) for pattern in (_WANTED, _TOTAL, _ALLOCATED))
    if wanted is None or total is None or allocated is None:
        return None
    idle, reserved = _size(_IDLE, text), _size(_RESERVED, text)
    if idle is None and reserved is not None:
        idle = max(0.0, reserved - allocated)
    others = tuple((int(pid), float(size) * _UNITS[unit]) for pid, size, unit in _OTHER.findall(text))
    own = _size(_OWN, text)
    if own is None:
        held = allocated + (idle or 0.0)
        mine = min((other for other in others if other[1] >= held), key=lambda other: other[1], default=None)
        if mine is not None and held >= _OURS * mine[1]:
            own, others = mine[1], tuple(other for other in others if other is not mine)
    return Memory(wanted, total, _size(_FREE, text), allocated, idle, _size(_POOLS, text), own, others)


def said_of(memory: Memory) -> str:
    """The numbers in a sentence."""
    parts = [f"{_gib(memory.allocated)} in PyTorch's tensors"]
    if memory.pools:
        parts[0] += f" ({_gib(memory.pools)} of that for graphs)"
    if memory.idle is not None:
        parts.append(f"{_gib(memory.idle)} reserved by PyTorch but idle")
    if memory.outside > _OUTSIDE * memory.total:
        parts.append(f"{_gib(memory.outside)} of the same process outside PyTorch's pool")
    if memory.unnamed > _OUTSIDE * memory.total:
        parts.append(f"{_gib(memory.unnamed)} of others or outside PyTorch's pool")
    parts += [f"{_gib(size)} of process {pid}" for pid, size in _strangers(memory)]
    return f"Of {_gib(memory.total)}: {', '.join(parts)}; {_gib(memory.wanted)} more were wanted."


def steps_of(memory: Memory) -> list[str]:
    """What to do about it: whose memory it is decides."""
    steps = []
    for pid, size in _strangers(memory)[:1]:
        steps.append(f"See what process {pid} is that holds {_gib(size)} (ps -fp {pid}, nvidia-smi). {_LEFT_OVER}")
    if memory.unnamed > _OUTSIDE * memory.total:
        steps.append(f"See in nvidia-smi whose {_gib(memory.unnamed)} they are that PyTorch does not know of. {_LEFT_OVER}")
    if memory.outside > _OUTSIDE * memory.total:
        steps.append(f"{_gib(memory.outside)} of this process lie outside PyTorch's pool: {_OUTSIDE_IS}")
    if memory.allocated >= _FULL * memory.total:
        steps.append(_TENSORS)
    if memory.is_fragmented:
        steps.append(f"{_gib(memory.idle or 0.0)} lie idle in pieces that are too small: {_JOINS} joins them.")
    return steps


def may_help(action: str, memory: Memory) -> bool:
    """False for a setting that only joins idle memory, where there is too little of it."""
    return memory.is_fragmented or memory.idle is None or not action.startswith(_FRAGMENTATION)


def _strangers(memory: Memory) -> list[tuple[int, float]]:
    found = [other for other in memory.others if other[1] > _OTHERS * memory.total]
    return sorted(found, key=lambda other: -other[1])[:3]


def _size(pattern: re.Pattern[str], text: str) -> float | None:
    found = pattern.search(text)
    if found is None:
        return None
    size, unit = (group for group in found.groups() if group is not None)
    try:
        return float(size) * _UNITS[unit]
    except ValueError:
        return None


def _gib(size: float) -> str:
    return f"{size:.1f} GiB" if size >= 1 else f"{size * 1024:.0f} MiB"
