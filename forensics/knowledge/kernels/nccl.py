"""Decodes NCCL's and custom collectives' device kernels. In: a kernel name; out: `KernelName` or None. Grammar:

    new    "ncclDevKernel_" coll [ "_" redop "_" type ] "_" algo "_" proto        | "ncclDevKernel_SendRecv" | "ncclDevKernel_Generic_" n
    old    "ncclKernel_" coll "_" algo "_" proto "_" redop "_" type               (before 2.19)
    symk   "ncclSymkDevKernel_" coll "_" algo [ "_" redop "_" type ]
    own    (vllm|sglang)::cross_device_reduce_(1|2)stage<TYPE, RANKS>, allreduce_fusion_kernel_oneshot_lamport<…>, deep_ep::(internode|intranode|internode_ll)::f
    coll   AllReduce AllGather AllGatherV ReduceScatter Broadcast Reduce SendRecv      algo  TREE RING COLLNET_DIRECT COLLNET_CHAIN NVLS NVLS_TREE PAT
    proto  LL LL128 SIMPLE     redop Sum Prod MinMax PreMulSum SumPostDiv              (generate.py, NCCL 2.30.7)

Several (coll, redop, type) share one kernel, so the name's can differ from the call's. A running one waits for its peers.

    ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>) -> all-reduce, a bf16
"""

from __future__ import annotations

import re

from forensics.ingest.pattern import Pattern
from forensics.knowledge.gpus import sms
from forensics.knowledge.kernels.cxx import integer, read
from forensics.knowledge.kernels.dtypes import canonical, found_in
from forensics.knowledge.kernels.naming import KernelBuilder
from forensics.model import KernelName

_COLL = r"(?P<coll>Broadcast|Reduce|AllGatherV|AllGather|ReduceScatter|AllReduce|SendRecv|Generic|AlltoAll)"
_REDOP = r"(?P<redop>Sum|Prod|MinMax|Min|Max|PreMulSum|SumPostDiv|Avg)"
_TYPE = r"(?P<type>f8e4m3|f8e5m2|bf16|f16|f32|f64|i8|u8|i32|u32|i64|u64|half|float|double|int8_t|uint8_t|int32_t|uint32_t|int64_t|uint64_t|__nv_bfloat16|rccl_bfloat16|hip_bfloat16)"
_ALGO = r"(?P<algo>TREE|RING|COLLNET_DIRECT|COLLNET_CHAIN|NVLS_TREE|NVLS|PAT|COLLNET)"
_PROTO = r"(?P<proto>LL128|LL|SIMPLE)"
_NEW = Pattern(rf"(?:void )?ncclDevKernel_{_COLL}(?:_(?P<number>\d+))?(?:_{_REDOP}_{_TYPE})?(?:_{_ALGO}_{_PROTO})?")
_OLD = Pattern(rf"(?:void )?ncclKernel_{_COLL}(?:_{_ALGO}_{_PROTO})?(?:_{_REDOP}_{_TYPE})?")
_SYM = Pattern(rf"(?:void )?ncclSymkDevKernel_{_COLL}_(?P<algo>\w+?)(?:_{_REDOP}_{_TYPE})?(?=\(|$)")
_CUSTOM = Pattern(
    r"(?:void )?(?P<space>(?:\w+::)*)(?P<function>cross_device_reduce_\dstage|allreduce_fusion_kernel\w*|(?:moe)?allreduce\w*|trtllm_\w*allreduce\w*|lamport\w*|oneshot\w*|twoshot\w*|one_shot_all_reduce\w*|two_shot_all_reduce\w*)\b"
)
_DEEPEP = Pattern(r"(?:void )?deep_ep::(?P<space>internode_ll|internode|intranode|elastic)::(?P<function>\w+)")
_WORDS = {
    "AllReduce": "all-reduce", "AllGather": "all-gather", "AllGatherV": "all-gather", "ReduceScatter": "reduce-scatter",
    "Broadcast": "broadcast", "Reduce": "reduce", "SendRecv": "send and receive", "Generic": "collective", "AlltoAll": "all-to-all",
}  # fmt: skip


def decode(name: str) -> KernelName | None:
    """The decoded name, or None where it is not of these grammars."""
    for grammar, pattern in (("nccl", _NEW), ("nccl_old", _OLD), ("nccl_symmetric", _SYM)):
        if found := pattern.match(name):
            return _nccl(name, grammar, found)
    if found := _DEEPEP.match(name):
        return _deepep(name, found)
    if found := _CUSTOM.match(name):
        return _custom(name, found)
    return None


def _nccl(name: str, grammar: str, found: re.Match[str]) -> KernelName:
    groups = found.groupdict()
    op = _WORDS[groups["coll"]]
    build = KernelBuilder(name, grammar, op)
    if groups.get("type"):
        build.dtype("a", canonical(groups["type"].removeprefix("rccl_")))
        build.dtype("out", canonical(groups["type"].removeprefix("rccl_")))
    build.extra |= {k: v for k in ("redop", "algo", "proto", "number") if (v := groups.get(k))}
    nvls = "NVLS" in (groups.get("algo") or "")
    build.family = "nccl.symk" if grammar == "nccl_symmetric" else "nccl.nvls" if nvls else "nccl.ring_tree"
    build.portable = tuple(sm for sm in sms("nvidia") if int(sm[3:]) >= (90 if nvls or "sym" in grammar else 50))
    how = (
        f" by {groups['algo'].lower().replace('_', ' ')}, protocol {groups.get('proto') or '?'}"
        if groups.get("algo")
        else ""
    )
    build.sentence = f"NCCL {op}{how}; while it runs it waits for its peers"
    return build.done()


def _custom(name: str, found: re.Match[str]) -> KernelName:
    spelled = read(name)
    build = KernelBuilder(name, "custom_all_reduce", "all-reduce")
    types = found_in(" ".join((*spelled.arguments, *spelled.parameters)))
    for key in ("a", "out"):
        build.dtype(key, types[0] if types else None)
    ranks = [n for a in spelled.arguments if (n := integer(a)) and n > 1]
    if ranks and "cross_device" in spelled.path:
        build.extra["ranks"] = ranks[0]
    if "fusion" in name or "lamport" in name:
        build.family = "fi.trtllm_allreduce_fusion"
    build.portable = tuple(sm for sm in sms("nvidia") if int(sm[3:]) >= 70)
    build.sentence = (
        f"custom all-reduce of {found['space'].rstrip(':') or 'an engine'}: {found['function'].replace('_', ' ')}"
    )
    return build.done()


def _deepep(name: str, found: re.Match[str]) -> KernelName:
    build = KernelBuilder(name, "deepep", "expert-parallel " + found["function"].replace("_", " "))
    types = found_in(name)
    if types:
        build.dtype("a", types[0])
    build.family = "deepep.low_latency" if found["space"] == "internode_ll" else "deepep.normal"
    build.portable = tuple(sm for sm in sms("nvidia") if int(sm[3:]) >= 90)
    build.sentence = (
        f"DeepEP {found['space'].replace('_', ' ')} {found['function'].replace('_', ' ')}; it waits for its peers"
    )
    return build.done()
