"""In what a hanging process stands still. In: the frames of its stack; out: a row of signatures/verdict/stuck.toml, or None. Sample:

    … load_cuda_ops (flashinfer/jit/core.py) → acquire (filelock/_api.py)
    -> "The process waits for the lock on a folder of kernels that are compiled on this machine: …", and what to do about that
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from forensics.data import table
from forensics.ingest.compiled import pattern_of
from forensics.model.stack import Frame

#: innermost frames that are looked at, and frames around the one that fits
_INNER, _OUTER = 8, 12


class Stuck(NamedTuple):
    """A row of the table. inner, outer: of "file:function"; says: a sentence; steps: what to do."""

    id: str
    inner: re.Pattern[str]
    outer: re.Pattern[str] | None
    says: str
    steps: tuple[str, ...]


@lru_cache(maxsize=1)
def _rows() -> tuple[Stuck, ...]:
    return tuple(
        Stuck(
            row["id"], pattern_of(row["inner"]), pattern_of(row["outer"]) if "outer" in row else None, row["says"], tuple(row["next_steps"])
        )
        for row in table("verdict/stuck")["stuck"]
    )


def stuck_in(frames: Sequence[Frame]) -> Stuck | None:
    """What the stack waits for. frames: outermost first."""
    places = [f"{frame.path}:{frame.function.rsplit('.', 1)[-1]}" for frame in frames[-_INNER - _OUTER :]]
    for row in _rows():
        for index in range(len(places) - 1, max(-1, len(places) - 1 - _INNER), -1):
            if row.inner.search(places[index]) is None:
                continue
            around = places[max(0, index - _OUTER) : index]
            if row.outer is None or any(row.outer.search(place) for place in around):
                return row
    return None
