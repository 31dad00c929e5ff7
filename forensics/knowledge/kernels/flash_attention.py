"""Decodes FlashAttention 2, 3 and 4 and FlashInfer's attention. In: a demangled kernel name; out: `KernelName` or None. Grammar:

FA2  [pytorch_]flash::flash_(fwd|bwd)_…kernel<Flash_(fwd|bwd)_kernel_traits<HEAD, M, N, WARPS, b, b, TYPE, …>, flags…>
FA3  cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<STAGES, CLUSTER,
     tuple<M, N, HEAD>, HEAD_V, TYPE, ACC, ArchTag, flags…>, flash::CollectiveEpilogueFwd<tuple, cluster, OUT, …>, …>>>
     (enable_sm80_to_sm89 and …Sm80 for Ampere and Ada; FlashAttnFwdCombine joins splits; …Bwd… backward)
FA4  kernel_cutlass_<function>_<module><Class>Sm<arch>_object_at__…_tensorptr<type>gmem_…      (CuTe DSL)
FI   flashinfer::(Batch|Single)(Prefill|Decode)With…KVCacheKernel<…KernelTraits<…, Q, KV, O, …>>, MergeState…, BatchMLA…

void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false, cutlass::bfloat16_t, …>, true, …>
-> attention (decode, split KV), q bf16, head 128, tile (64, 128)
"""

from __future__ import annotations

import re

from forensics.ingest.pattern import Pattern
from forensics.knowledge.gpus import sms
from forensics.knowledge.kernels.cxx import inside, integer, read, shape
from forensics.knowledge.kernels.dtypes import canonical, found_in
from forensics.knowledge.kernels.naming import KernelBuilder
from forensics.model import KernelName

_FA2 = Pattern(r"(?:void )?(pytorch_)?(?:flash|FLASH_NAMESPACE)::(flash_\w+?)<")
_TRAITS = Pattern(r"Flash_(?:fwd|bwd)_kernel_traits(?:_mla|_fp8)?<")
_FA3 = Pattern(
    r"(?:flash|FLASH_NAMESPACE)::(?:enable_\w+<)?(?:flash::)?FlashAttn(Fwd|Bwd)(\w*?)(Sm\d+|Combine|Preprocess|PostprocessConvertdQ|Convert\w*)\b"
)
_FA4 = Pattern(
    r"kernel_cutlass_(\w+?)_(?:flash_attn)?cute\w*?(FlashAttention\w+?)Sm(\d+)_|kernel_cutlass_\w*?flash_attn\w*?Sm(\d+)"
)
_FA4_TYPE = Pattern(r"ptr(bf16|f16|f8E4M3FN|f32)")
_FI = Pattern(
    r"(?:void )?flashinfer::(?:\w+::)*((?:Batch|Single)(?:Prefill|Decode)With\w+Kernel\w*|PrefillWithKVCacheKernel|BatchMLA\w+|"
    r"(?:Persistent)?(?:VariableLength)?(?:MergeState|AttentionSum)\w*|BatchAttention\w*|MLA\w*Kernel|POD\w*)"
)


def decode(name: str) -> KernelName | None:
    """The decoded name, or None where it is not of these grammars."""
    if found := _FA2.match(name):
        return _fa2(name, found)
    if "FlashAttn" in name and (found := _FA3.search(name)):
        return _fa3(name, found)
    if name.startswith("kernel_cutlass_") and (found := _FA4.match(name)):
        return _fa4(name, found)
    if "flashinfer::" in name and (found := _FI.match(name)):
        return _flashinfer(name, found)
    return None


def _small(name: str, function: str, library: str, family: str) -> KernelName:
    """A helper kernel around attention: metadata, combining, merging."""
    build = KernelBuilder(name, "flash_attention", "attention (helper)")
    types = [t for t in found_in(name) if t.startswith(("fp", "bf"))] or found_in(name)
    for key, word in zip(("q", "out"), types):
        build.dtype(key, word)
    build.family, build.portable = family, tuple(sms("nvidia"))[-16:]
    build.sentence = f"{library}: {function.replace('_', ' ')}"
    return build.done()


def _fa2(name: str, found: re.Match[str]) -> KernelName:
    library = "FlashAttention 2 (torch's copy)" if found[1] else "FlashAttention 2"
    family = "torch.sdpa_flash" if found[1] else "fa.fa2"
    start = _TRAITS.search(name)
    if start is None:
        return _small(name, found[2], library, family)
    arguments = inside(name, start[0])
    build = KernelBuilder(name, "flash_attention_2", "attention (backward)" if "bwd" in found[2] else "attention")
    numbers = [integer(a) for a in arguments[:4]]
    if None not in numbers[:3] and len(numbers) >= 3:
        build.extra["head_dim"] = numbers[0]
        build.tile = tuple(n for n in numbers[1:3] if n is not None)
    elements = [w for a in arguments[4:] if "<" not in a and (w := canonical(a)) and w != "bool"]
    for key in ("q", "kv", "out"):
        build.dtype(key, elements[0] if elements else None)
    if len(elements) > 1:
        build.dtype("out", elements[1])
    if "split" in found[2]:
        build.op = "attention (decode, split KV)"
    if "sparse" in found[2]:
        build.op = "attention (sparse)"
    build.family, build.portable = family, _from(80)
    build.sentence = f"{library}, {'backward' if 'bwd' in found[2] else 'forward'}: {elements[0] if elements else '?'}, head dimension {numbers[0]}"
    return build.done()


def _from(number: int) -> tuple[str, ...]:
    return tuple(sm for sm in sms("nvidia") if int(sm[3:]) >= number)


def _fa3(name: str, found: re.Match[str]) -> KernelName:
    kind, which = found[1], found[3]
    if not which.startswith("Sm"):
        return _small(name, f"{kind} {which}", "FlashAttention 3", "fa.fa3")
    build = KernelBuilder(name, "flash_attention_3", "attention" if kind == "Fwd" else "attention (backward)")
    main = re.search(r"CollectiveMainloop\w*<", name)
    arguments = inside(name, main[0]) if main else ()
    shapes = [s for a in arguments if len(s := shape(a)) == 3]
    block = next((s for s in shapes if max(s) > 4), ())
    build.tile = block
    if block:
        build.extra["head_dim"] = block[2]
    elements = [w for a in arguments if (w := canonical(a))]
    head_v = [n for a in arguments[3:5] if (n := integer(a))]
    if head_v:
        build.extra["head_dim_v"] = head_v[0]
    for key in ("q", "kv", "out"):
        build.dtype(key, elements[0] if elements else None)
    if len(elements) > 1:
        build.dtype("acc", elements[1])
    written = [w for a in inside(name, "CollectiveEpilogueFwd<") if (w := canonical(a))]
    if written:
        build.dtype("out", written[0])
    if which == "Sm90":
        build.arch("sm_90a")
    else:
        build.portable = tuple(sm for sm in _from(80) if int(sm[3:]) < 90)
    build.family = "fa.fa3"
    build.sentence = f"FlashAttention 3, {'forward' if kind == 'Fwd' else 'backward'}, path of {which}: {elements[0] if elements else '?'} queries, keys and values"
    return build.done()


def _fa4(name: str, found: re.Match[str]) -> KernelName:
    build = KernelBuilder(name, "flash_attention_4", "attention")
    sm = int(found[3] or found[4])
    types = [w for t in _FA4_TYPE.findall(name) if (w := canonical(t.replace("f8E4M3FN", "e4m3")))]
    for key, word in zip(("q", "kv", "out"), [types[0]] * 2 + [types[-1]] if types else []):
        build.dtype(key, word)
    if "Backward" in name:
        build.op = "attention (backward)"
    if sm == 80:
        build.portable = _from(80)
    else:
        build.arch(f"sm_{sm}a" if sm == 90 else f"sm_{sm}")
    build.family = "fa.fa4"
    build.sentence = f"FlashAttention 4 (CuTe DSL), class for sm_{sm}"
    return build.done()


def _flashinfer(name: str, found: re.Match[str]) -> KernelName:
    function = found[1]
    phase = "prefill" if "Prefill" in function else "decode" if "Decode" in function else "helper"
    if "Merge" in function or "Sum" in function:
        return _small(name, function, "FlashInfer", "fi.fa2")
    build = KernelBuilder(name, "flashinfer_attention", f"attention ({phase})")
    spelled = read(name)
    types = [w for w in found_in(" ".join(spelled.arguments)) if w.startswith(("fp", "bf"))]
    for key, word in zip(
        ("q", "kv", "out"),
        [*types[:1], types[1] if len(types) > 1 and types[1] != "fp32" else types[0], types[0]] if types else [],
    ):
        build.dtype(key, word)
    hopper = "Hopper" in name or "hopper" in name
    build.family = "fi.fa3" if hopper else "fi.fa2"
    if hopper:
        build.arch("sm_90a")
    else:
        build.portable = _from(75)
    build.sentence = f"FlashInfer {phase} attention over {'a paged' if 'Paged' in function else 'a'} KV cache"
    return build.done()
