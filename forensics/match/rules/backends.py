"""Which value of which setting leads to which kernels (facts/backend_choices.toml). In: engine, families; out: `Choice`s. Sample:

    leading_to({"fi.trtllm_fp4_block_scale_routed_moe"}, "sglang") -> (Choice(value="flashinfer_trtllm_routed", …),)
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any, NamedTuple

from forensics import data
from forensics.knowledge.backends import backend


class Choice(NamedTuple):
    """One row. families: what may run for it; weights: what its kernels take; since: the engine's version that has it."""

    engine: str
    op: str
    setting: str
    flag: str
    draft_flag: str
    value: str
    families: tuple[str, ...]
    weights: tuple[str, ...]
    since: str
    note: str
    rank: int
    propose: bool


@cache
def choices() -> tuple[Choice, ...]:
    """Every row of the table."""
    return tuple(_choice(row) for row in data.table("facts/backend_choices")["choice"])


def _choice(row: dict[str, Any]) -> Choice:
    return Choice(
        row["engine"], row["op"], row["setting"], row["flag"], row.get("draft_flag", ""), row["value"],
        tuple(row.get("families", ())), tuple(row.get("weights", ())), row.get("since", ""), row.get("note", ""),
        row.get("rank", 99), row.get("propose", True),
    )  # fmt: skip


def leading_to(families: Collection[str], engine: str | None) -> tuple[Choice, ...]:
    """The choices of an engine (of any, where it is not known) by which one of these families runs."""
    return tuple(c for c in choices() if engine in (None, c.engine) and set(families) & set(c.families))


def named(engine: str | None, setting: str, value: str) -> Choice | None:
    """The row of one value of a setting as any log writes it ("AttentionBackendEnum.TRITON_ATTN"), or None."""
    row = backend(engine, setting, value)
    if row is None:
        return None
    return next((c for c in choices() if (c.engine, c.setting, c.value) == (row.engine, row.setting, row.value)), None)


def ops_of(families: Collection[str], engine: str | None) -> tuple[str, ...]:
    """What the families compute: "moe", "attention", "mla", "fp4_gemm", "fp8_gemm"."""
    return tuple(dict.fromkeys(choice.op for choice in leading_to(families, engine)))
