"""Canonical names of settings. In: a flag or key as spelled; out: name and component. Sample:

canonical("--speculative-moe-runner-backend") -> ("moe_runner_backend", "draft_model")
canonical("tp_size") -> ("tensor_parallel_size", None)            canonical("--my-own-flag") -> None
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from forensics.data import table


class Name(NamedTuple):
    """name: canonical; component: target_model, draft_model or None where the setting is about the whole job."""

    name: str
    component: str | None


@cache
def _names() -> tuple[dict[str, Name], dict[str, Name]]:
    """Long spellings and single-dash ones."""
    long: dict[str, Name] = {}
    short: dict[str, Name] = {}
    for row in table("facts/settings")["setting"]:
        target = Name(row["name"], row.get("component"))
        for spelling in (row["name"], *row["spellings"]):
            long[spelling] = target
        for spelling in row.get("draft", ()):
            long[spelling] = Name(row["name"], "draft_model")
        for letter in row.get("short", ()):
            short[letter] = target
    return long, short


def plain(spelled: str) -> str:
    """A flag without dashes, its words joined by "_"."""
    return spelled.strip().lstrip("-").replace("-", "_")


def canonical(spelled: str) -> Name | None:
    """The canonical name of a flag ("--tp-size", "-tp") or key ("tp_size"); None where the table has none."""
    long, short = _names()
    if spelled.startswith("-") and not spelled.startswith("--"):
        return short.get(spelled[1:]) or long.get(plain(spelled))
    return long.get(plain(spelled))


@cache
def nested_heads() -> frozenset[str]:
    """Keys whose values hold settings of their own ("kernel_config")."""
    return frozenset(key.split(".")[0] for key in _names()[0] if "." in key)
