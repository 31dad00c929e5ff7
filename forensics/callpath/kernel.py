"""Which kernel or op a failure names. In: its messages, frames and the facts; out: a `KernelName` or None. Sample:

"Error occurred when running GEMM! (… Kernel: bmm_MxE4m3_MxE2m1…_sm100f)" -> KernelName(grammar="trtllm_gen_bmm", …)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from forensics.callpath.owners import owner_of
from forensics.callpath.words import launched
from forensics.data import table
from forensics.ingest.compiled import pattern_of
from forensics.ingest.pattern import Pattern
from forensics.model.knowledge import Facts, KernelName
from forensics.model.source import Span
from forensics.model.stack import Frame
from forensics.model.verdict import Owner

_TORCH_OP = Pattern(r"\btorch\.ops\.(\w+)\.(\w+)")


class Names(NamedTuple):
    """signatures/frames/kernel_names.toml. call: an op in a code line (1); said: patterns for messages; helpers: as in the table."""

    call: re.Pattern[str]
    said: tuple[re.Pattern[str], ...]
    helpers: tuple[str, ...]


@lru_cache(maxsize=1)
def names() -> Names:
    """The table, its patterns compiled."""
    rows = table("frames/kernel_names")
    work = "|".join(rows["work"])
    return Names(
        pattern_of(rf"\b(?:{'|'.join(rows['called'])})\.([a-z]\w{{5,}})\("),
        tuple(pattern_of(row["pattern"].replace("{work}", work)) for row in rows["said"]),
        tuple(rows["helpers"]),
    )


def kernel_of(
    texts: Sequence[str], frames: Sequence[Frame], facts: Facts, spans: Sequence[Span] = ()
) -> KernelName | None:
    """The kernel a failure is about. texts: its messages, root first; spans: where it stands in the log.

    A name that a grammar decodes is best (in the messages, then among the facts inside the spans, then in the frames); else
    the op symbol that the innermost frames launch or call.
    """
    for text in texts:
        found = _decoded(text[:20_000])
        if found is not None:
            return found
    for name in facts.kernels:
        if name.span is not None and any(span.overlaps(name.span) for span in spans):
            return name
    for frame in reversed(frames):
        if frame.file is None:
            found = _decoded(frame.function[:2_000])
            if found is not None:
                return found
    return _symbol(texts, frames, facts, spans)


def _decoded(text: str) -> KernelName | None:
    from forensics.knowledge import find_kernels

    return next((name for name in find_kernels(text) if name.grammar is not None), None)


def _symbol(texts: Sequence[str], frames: Sequence[Frame], facts: Facts, spans: Sequence[Span]) -> KernelName | None:
    """An op or kernel that only has a symbol: told by name, with the family where the op table knows it."""
    innermost = list(reversed(frames))[:14]
    name = (
        next((found for frame in innermost if (found := _launched(frame))), None)
        or _said(texts)
        or next((found for frame in innermost if (found := _library(frame))), None)
    )
    use = next((use for use in facts.families if any(span.overlaps(use.span) for span in spans)), None)
    if name is None and use is not None and pattern_of(r"[\w:.]{6,}").fullmatch(use.via):
        name = use.via
    if name is None:
        return None
    family = use.family if use is not None and (name in use.via or use.via in name) else None
    return KernelName(name, op=family.title if family else None, family=family.id if family else None)


def _launched(frame: Frame) -> str | None:
    """The kernel or registered op that a frame's code line starts."""
    kernel = launched(frame)
    if kernel is not None and owner_of(frame) is not Owner.RUNTIME:
        return kernel
    code = frame.marked or frame.code or ""
    op = _TORCH_OP.search(code)
    if op:
        return str(op[2] if op[2] != "default" else op[1])
    call = names().call.search(code)
    return str(call[1]) if call else None


def _said(texts: Sequence[str]) -> str | None:
    """The kernel or op that a message names."""
    for text in texts:
        for pattern in names().said:
            match = pattern.search(text[:4_000])
            if match:
                return match[0] if match.lastindex == 2 else match[1]
    return None


def _library(frame: Frame) -> str | None:
    """The entry point of a kernel library."""
    own_name = frame.function.rpartition(".")[2]  # Cython's frames have the module and the class before it
    if owner_of(frame) is not Owner.KERNEL_LIBRARY or not frame.file or own_name.startswith(names().helpers):
        return None
    return frame.function if "_" in frame.function else None
