"""In which situation a failure happened, as far as advice depends on it. In: a failure's words, facts, its signature; out: names. Sample:

    "RuntimeError: HIP error: out of memory" on a GPU that no line names   -> ["amd"]
    "DistNetworkError: … TCPStore …: connection refused"                   -> ["store"]

signatures/verdict/situations.toml says what shows each; a table below a category in advice.toml holds what to do in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from forensics.data import table
from forensics.ingest.compiled import pattern_of
from forensics.model.knowledge import Facts
from forensics.model.verdict import Finding

#: torch c10/cuda/CUDAAllocatorConfig.h: read first by every version; messages of newer ones name PYTORCH_ALLOC_CONF
USUAL_ALLOCATOR = "PYTORCH_CUDA_ALLOC_CONF"
_ALLOCATOR = pattern_of(r"\bPYTORCH_(?:[A-Z]{2,6}_)?ALLOC_CONF\b")


class Situation(NamedTuple):
    """A row of the table. says: of the failure's words; rules: how ids of signatures begin; engines: names; gpu: how the name of a
    device's architecture begins, "" where the situation is about none; allocator: the variable that sets up torch's allocator there; by:
    who told it, "" for whoever did."""

    name: str
    says: re.Pattern[str] | None
    rules: tuple[str, ...]
    engines: tuple[str, ...]
    gpu: str
    allocator: str
    by: str


@lru_cache(maxsize=1)
def rows() -> tuple[Situation, ...]:
    """The rows of the table, in its order: of what two of them say the later one's counts."""
    return tuple(
        Situation(
            row["name"],
            pattern_of(row["says"]) if "says" in row else None,
            tuple(row.get("rules", ())),
            tuple(row.get("engines", ())),
            row.get("gpu", ""),
            row.get("allocator", ""),
            row.get("by", ""),
        )
        for row in table("verdict/situations")["situation"]
    )


def situations(said: str, facts: Facts, finding: Finding | None, by: str = "") -> list[str]:
    """Names of the situations, in the table's order. said: type and messages of the failure; by: who told it, as its parser says."""
    found = []
    for row in rows():
        if row.gpu and facts.gpu is not None and facts.gpu.sm:
            holds = facts.gpu.sm.startswith(row.gpu)
        else:
            holds = (row.says is not None and row.says.search(said) is not None) or (bool(row.by) and row.by == by)
        if holds or facts.engine in row.engines or (finding is not None and bool(row.rules) and finding.id.startswith(row.rules)):
            found.append(row.name)
    return found


def allocator_of(said: str, names: Sequence[str]) -> str:
    """The variable that sets up torch's allocator: the one that its own message names, else that of the situations."""
    own = _ALLOCATOR.search(said)
    if own is not None:
        return own[0]
    return next((row.allocator for row in reversed(rows()) if row.allocator and row.name in names), USUAL_ALLOCATOR)
