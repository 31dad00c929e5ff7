"""Frames to steps. In: frames outermost first and what the exception said; out: a `CallPath`. Sample:

scheduler.py run_scheduler_process, …, deepseek_v4_nextn.py forward, …, deepseek_v4.py mlp, …, trtllm_fp4_block_scale_routed_moe
-> scheduler > CUDA graph capture > nextn > mlp > trtllm routed MoE
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from forensics.callpath.stages import draft_words, is_model_file, owners_of, stages_of
from forensics.callpath.words import called, dull, function_words, launched, model_label, path_label
from forensics.data import table
from forensics.ingest.compiled import pattern_of
from forensics.ingest.pattern import Pattern
from forensics.model.knowledge import KernelName
from forensics.model.stack import Frame
from forensics.model.verdict import CallPath, CallStep, Gap, Owner

#: more steps than a person reads; the outermost of the user's and the engine's go first
_MOST = 10

_KERNEL_FAILED = Pattern(
    r"illegal memory access|device-side assert|unspecified launch failure|misaligned address|illegal instruction|"
    r"invalid program counter|hipErrorLaunchFailure|LAUNCH_FAILED|hardware exception|asynchronously reported|uncorrectable ECC",
    re.IGNORECASE,
)
_IN_LAYERS = Pattern(r"/(?:layers|ops|attention|kernels|moe|quantization|lora|modules)/")
#: what native stacks begin and end with: the interpreter, the loader, the way to abort
_NATIVE_PLUMBING = Pattern(
    r"__GI_|__libc|_?_?wait4$|__kernel_rt|raise$|abort$|gsignal|__pthread|pthread_|clone\d?$|start_thread|_start$|\?\?|<unknown|\(unknown\)|__cxa_|__gxx|"
    r"ggml_print_backtrace|ggml_abort|(?:_Z15)?ggml_cuda_error|c10::Error|c10::detail::torchCheckFail|c10::cuda::c10_cuda_check|std::terminate|_Py|Py[A-Z]|PyObject_|PyEval|"
    r"cfunction_|method_vectorcall|slot_tp|type_call|ucs_|__sigaction|__restore_rt|main$|absl::.*LogMessage"
)
#: what torch.compile wrote: files whose names say nothing
_GENERATED = Pattern(r"/(?:torchinductor_|torch_compile_cache/|torch_aot_compile/|inductor_cache/).{0,300}/c[a-z2-7]{20,60}\.py$")
_BLOCKING = Pattern(r"(?:CUDA|HIP|AMD_SERIALIZE)_(?:LAUNCH_BLOCKING|KERNEL)\s*=\s*[13]")


@lru_cache(maxsize=1)
def _plumbing() -> tuple[tuple[tuple[str, frozenset[str]], ...], tuple[str, ...]]:
    rows = table("frames/plumbing")
    pairs = tuple((row["file"], frozenset(row["functions"])) for row in rows["plumbing"])
    return pairs, tuple("/" + name for name in rows["runtime"]["files"])


@lru_cache(maxsize=8192)
def _is_plumbing(path: str, function: str) -> bool:
    pairs, runtime = _plumbing()
    if path.startswith(("<frozen", "<eval_with_key>", "<string>")):
        return True
    if _NATIVE_PLUMBING.match(function) and not path.endswith(".py"):
        return True
    if any(path.endswith(file) and (not functions or function in functions) for file, functions in pairs):
        return True
    return ("/" + path).endswith(runtime) or "uvloop" in path


def is_plumbing(frame: Frame) -> bool:
    """True for a frame that only passes the call on."""
    return _is_plumbing(frame.path, frame.function.rsplit(".", 1)[-1])


def build(
    frames: Sequence[Frame], message: str = "", kernel: KernelName | None = None, launch_blocking: bool = False, amd: bool = False
) -> CallPath:
    """The call path of one failure. message: all that was said (decides about the gap); kernel: where one is known, it is the
    last step; launch_blocking: True where the log shows that launches were synchronous; amd: True on a GPU of AMD."""
    steps: list[tuple[CallStep, int]] = []
    inside_library = drafted = False
    last = _last(frames)
    owners = owners_of(frames)
    for index, frame in enumerate(frames):
        if is_plumbing(frame) and index != last:
            continue
        owner = owners[index]
        if owner is not Owner.KERNEL_LIBRARY:
            inside_library = False
        inner = frames[index + 1] if index + 1 < len(frames) else None
        for label, weight in _labels_of(frame, owner, index == last, inside_library, inner):
            if drafted and label == model_label(frame.path):
                # A draft head runs the layers of its target's file: the draft's own name says which model this is.
                continue
            drafted = drafted or label in draft_words()
            _append(steps, CallStep(_amds(label) if amd else label, owner, index), weight)
        inside_library = owner is Owner.KERNEL_LIBRARY
    if kernel is not None and not any(kernel.name in step.label for step, _ in steps):
        _append(steps, CallStep(_short(kernel), Owner.KERNEL_LIBRARY, None), 9)
    kept = tuple(_trim(steps))
    return CallPath(kept, _gaps(kept, message, launch_blocking))


def _amds(label: str) -> str:
    """A step's words on a GPU of AMD."""
    for word, other in table("frames/labels")["amd"].items():
        label = label.replace(word, other)
    return label


def _last(frames: Sequence[Frame]) -> int:
    """The innermost frame that is not the interpreter's own; -1 for a native stack that shows only how it was left."""
    for index in range(len(frames) - 1, -1, -1):
        if not is_plumbing(frames[index]):
            return index
    return len(frames) - 1 if frames and frames[-1].path.endswith((".py", ".pyx")) else -1


def _labels_of(frame: Frame, owner: Owner, last: bool, inside_library: bool, inner: Frame | None) -> list[tuple[str, int]]:
    """The steps of one frame with what each is worth keeping (0 little, 9 everything). inner: the frame that it called."""
    path = frame.path
    name = frame.function.rsplit(".", 1)[-1]
    found: list[tuple[str, int]] = []
    if _GENERATED.search(path):
        return [("compiled graph", 6)]
    stage = next(
        (row.label for row in stages_of(frame) if row.label and (not row.owners or owner.value in row.owners)), None
    )
    if stage is not None and owner is not Owner.KERNEL_LIBRARY:
        found.append((stage, 3))
    elif owner is Owner.KERNEL_LIBRARY or path_label(path):
        part = path_label(path)
        if part is not None:
            found.append((part, 6))
        elif not inside_library:
            found.append((function_words(frame.function), 8))
    elif is_model_file(path):
        label = model_label(path)
        if label is not None:
            found.append((label, 7))
        if name not in dull() and not name.startswith("__"):
            found.append((name.strip("_"), 6))
    elif owner is Owner.USER:
        found.append((name if name != "<module>" else path.rsplit("/", 1)[-1], 4 if name not in dull() else 0))
    elif not path.endswith((".py", ".pyx", ".pxi")) and not frame.code and "<" not in path:
        found.append((_native(frame.function), 4))
    elif owner is Owner.ENGINE and _IN_LAYERS.search(path) and name not in dull():
        found.append((name.strip("_"), 5))
    entered = inner is not None and (is_plumbing(inner) or inner.function.rsplit(".", 1)[-1] in dull())
    layer = called(frame, entered) if owner in (Owner.USER, Owner.ENGINE) or is_model_file(path) else None
    if (
        layer is not None
        and stage is None
        and (is_model_file(path) or "/layers/" in path or name == "forward" or (frame.code and "()(" in frame.code))
    ):
        found.append((layer, 7))
    kernel = launched(frame)
    if kernel is not None and owner is not Owner.FRAMEWORK:
        found.append((kernel, 8))
    if last and not any(weight >= 5 for _, weight in found):
        found.append((_innermost(frame, path, name), 9))
    return [pair for pair in found if pair[0]]


def _native(function: str) -> str:
    """A C++ function without its arguments, template parameters and outer namespaces."""
    bare = pattern_of(r"\(.*|<.*|\+0x.*").sub("", function).strip() or function
    return "::".join(bare.split("::")[-2:])[:80]


def _innermost(frame: Frame, path: str, name: str) -> str:
    if not path.endswith(".py") and not frame.code:
        return _native(frame.function)
    words = function_words(name)
    if name in dull() or name == "<module>":
        stem = path.rsplit("/", 1)[-1]
        return stem.removesuffix(".py") if name != "<module>" else stem
    return words


def _append(steps: list[tuple[CallStep, int]], step: CallStep, weight: int) -> None:
    """What is already on the path is not told again."""
    said = step.label.lower()
    if not any(old.label.lower() == said or (weight <= 3 and old.label.lower().endswith(said)) for old, _ in steps):
        steps.append((step, weight))


def _trim(steps: list[tuple[CallStep, int]]) -> list[CallStep]:
    """Drops the least telling steps, outermost first, until a person can read the rest."""
    kept = [pair for pair in steps if pair[1] > 0] or steps
    while len(kept) > _MOST:
        weight = min(pair[1] for pair in kept[:-1])
        place = next(i for i, pair in enumerate(kept) if pair[1] == weight)
        del kept[place]
    return [step for step, _ in kept]


def _short(kernel: KernelName) -> str:
    return kernel.name if len(kernel.name) <= 120 else kernel.name[:117] + "..."


def _gaps(steps: Sequence[CallStep], message: str, launch_blocking: bool) -> tuple[Gap, ...]:
    if not steps or launch_blocking or _BLOCKING.search(message) or not _KERNEL_FAILED.search(message):
        return ()
    why = (
        "kernels run asynchronously: the error surfaced here, but the kernel that failed may be any launched before; "
        "CUDA_LAUNCH_BLOCKING=1 (HIP: AMD_SERIALIZE_KERNEL=3) makes it surface where it happens"
    )
    return (Gap(len(steps) - 1, why),)
