"""Whose code a frame is. In: a `Frame`; out: an `Owner` and the package. Sample:

File "/usr/local/lib/python3.12/dist-packages/flashinfer/fused_moe/core.py", line 2745, in trtllm_fp4_block_scale_routed_moe
-> (Owner.KERNEL_LIBRARY, "flashinfer")
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from forensics.data import table
from forensics.ingest.compiled import pattern_of
from forensics.ingest.pattern import Pattern
from forensics.model.stack import Frame
from forensics.model.verdict import Owner

#: the order of the tables: a library that stands in two lists belongs to the first
_OWNERS = (Owner.ENGINE, Owner.KERNEL_LIBRARY, Owner.FRAMEWORK, Owner.RUNTIME, Owner.DRIVER)

#: frames of a stack that can be at fault where packages do not fit each other
_NEAR = 12
_INSTALLED = Pattern(r"(?:site|dist)-packages/")
_STANDARD = Pattern(r"(?:^|/)(?:lib(?:64)?/)?python3(?:\.\d+)?t?/(?!.*(?:site|dist)-packages/)")
#: Windows: C:/…/Python311/Lib/x.py, C:/…/miniconda3/envs/llm/lib/x.py, C:/…/python311.zip/x.py
_STANDARD_OF_WINDOWS = pattern_of(
    r"^[A-Za-z]:/(?:.{0,200}/)?(?:[^/]{0,80}(?:[Pp]ython|conda)[^/]{0,80}|envs/[^/]{1,80})/[Ll]ib/(?!site-packages/)|/python3\d{1,2}\.zip/"
)
_NATIVE_FILE = Pattern(r"\.(?:cu|cuh|cpp|cc|cxx|c|h|hpp|inl|S|rs|go|pyx)$")
#: the first symbol namespace of a native function, where neither file nor module is known
_NAMESPACES = (
    (
        pattern_of(r"^(?:_ZN\d+)?(?:c10d?|at|torch|caffe2|xla|tsl|absl|tensorflow|mlir|llvm)(?:::|\d)|^THP|^torch_"),
        Owner.FRAMEWORK,
    ),
    (pattern_of(r"^(?:tensorrt_llm|llama_|ggml_|_ZN\d+llama_|sglang::)"), Owner.ENGINE),
    (
        pattern_of(r"^(?:flashinfer|cutlass|cublas|cudnn|nccl|rccl|ncclComm|nvshmem|deep_ep|vllm::|sgl_|__tvm_ffi_|Batch(?:Prefill|Decode)With)"),
        Owner.KERNEL_LIBRARY,
    ),
    (
        pattern_of(
            r"^(?:cudart|cudaLaunch|hip[A-Z]|_Py|Py[A-Z_]|__libc|__GI_|raise$|abort$|gsignal|__kernel_rt|ucs_|clone|start_thread|std::)"
        ),
        Owner.RUNTIME,
    ),
    (pattern_of(r"^(?:cu[A-Z]\w+$|_nv\d+rm|os_|nv_|rm_|hsa_)"), Owner.DRIVER),
)


@lru_cache(maxsize=1)
def _packages() -> dict[str, Owner]:
    rows = table("frames/owners")["packages"]
    found: dict[str, Owner] = {}
    for owner in _OWNERS:
        for name in rows.get(owner.value, ()):
            found.setdefault(name, owner)
    return found


@lru_cache(maxsize=1)
def _libraries() -> tuple[tuple[str, Owner], ...]:
    rows = table("frames/owners")["libraries"]
    pairs = [(name, owner) for owner in _OWNERS for name in rows.get(owner.value, ())]
    return tuple(sorted(pairs, key=lambda pair: -len(pair[0])))


@lru_cache(maxsize=1)
def _outside() -> frozenset[str]:
    return frozenset(table("frames/owners")["outside"]["folders"])


@lru_cache(maxsize=1)
def _clients() -> tuple[str, ...]:
    return tuple(f"{name}." for name in table("frames/owners")["clients"]["packages"])


@lru_cache(maxsize=1)
def _checkouts() -> tuple[tuple[Pattern[str], Owner], ...]:
    found = []
    for row in table("frames/owners")["checkout"]:
        own = "|".join(re.escape(name) for name in row["own"])
        found.append((Pattern(f"(?:^|/)(?i:{row['folder']})/(?:{own})(?:/|$)", needles=(str(row["name"]),)), Owner(row["owner"])))
    return tuple(found)


def of_client(exception: str) -> bool:
    """True for an exception of a library that speaks to services. exception: its type as printed, with its module."""
    return exception.startswith(_clients())


@lru_cache(maxsize=4096)
def package_of(path: str) -> str | None:
    """The package a Python path belongs to, None where it is nobody's but the user's, or a program's that is no package. `path` uses
    forward slashes."""
    installed = [match.end() for match in _INSTALLED.finditer(path)]
    if installed:
        return path[installed[-1] :].split("/", 1)[0].removesuffix(".py")
    parts = path.split("/")
    known = _packages()
    nearest: str | None = None
    for place in range(len(parts) - 2, -1, -1):
        name = parts[place]
        if name not in known:
            continue
        rest = parts[place + 1 :]
        own = place == 0 or _is_checkout(parts[place - 1], name)
        if not own and len(rest) < 2 and not rest[0].startswith("_"):
            continue
        if rest[0] in _outside():
            return nearest
        if own:  # a folder of its sources may be called as another package is: vllm/vllm/distributed
            return name
        nearest = nearest or name
    return nearest


def _is_checkout(folder: str, package: str) -> bool:
    """True where a package lies in a folder of its sources: vllm-main/vllm, sglang/python/sglang, my_vllm/vllm."""
    return folder in ("python", "src", "lib", "third_party") or package in folder.lower().replace("-", "_")


@lru_cache(maxsize=4096)
def _of_path(path: str) -> Owner | None:
    if path.startswith("<frozen") or _STANDARD.search(path) or _STANDARD_OF_WINDOWS.search(path):
        return Owner.RUNTIME
    if path.startswith("<eval_with_key>") or "/torchinductor_" in path or "torch_compile_cache/" in path:
        return Owner.FRAMEWORK
    package = package_of(path)
    if package is not None:
        return _packages().get(package, Owner.FRAMEWORK)
    return next((owner for own, owner in _checkouts() if own.search(path)), None)


def _of_module(module: str) -> Owner | None:
    path = module.replace("\\", "/")
    name = path.rsplit("/", 1)[-1]
    inside = _of_path(path) if "packages/" in path else None
    return next((owner for start, owner in _libraries() if name.startswith(start)), inside)


def owner_of(frame: Frame) -> Owner:
    """The owner of one frame: user where no table knows better."""
    if frame.module:
        found = _of_module(frame.module)
        if found is not None:
            return found
    if frame.file == "<string>" and frame.function != "<module>":  # what a library evaluates: the __init__ of a dataclass
        return Owner.RUNTIME
    named = bool(frame.file) and frame.file != "<unknown>"  # a native frame without symbols
    if named:
        found = _of_path(frame.path)
        if found is not None:
            return found
    if not named or _NATIVE_FILE.search(frame.file or ""):
        for pattern, owner in _NAMESPACES:
            if pattern.search(frame.function):
                return owner
        if not named:
            return Owner.RUNTIME
    return Owner.USER


def packages_in(frames: Sequence[Frame], most: int = 3) -> tuple[str, ...]:
    """Installed packages of a stack's innermost frames that a user could give another version, the innermost first. frames: outermost
    first; packages of the runtime (servers, command lines) are none of them."""
    found: dict[str, None] = {}
    for frame in reversed(frames[-_NEAR:]):
        package = package_of(frame.path) if frame.file else None
        if package is not None and _packages().get(package) not in (None, Owner.RUNTIME, Owner.DRIVER):
            found.setdefault(package)
    return tuple(found)[:most]
