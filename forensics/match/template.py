"""Fills the {names} of a signature's texts. In: a text, captures, facts; out: the text. Sample:

    fill("{kernel|A kernel} on {gpu}", {"kernel": "bmm_…"}, facts) -> "bmm_… on NVIDIA RTX PRO 6000 Blackwell"

`{name|otherwise}` says what stands there where the name is not known; without it, a neutral word does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from forensics.ingest.pattern import Pattern
from forensics.model.knowledge import Facts

_NAME = Pattern(r"\{([a-z_][a-z0-9_.]*)(?:\|([^{}]*))?\}")
_NEUTRAL = {
    "gpu": "this GPU", "sm": "this GPU's architecture", "engine": "the engine", "model": "the model",
    "world_size": "all", "component": "the model", "phase": "this phase", "ranks": "the ranks",
}  # fmt: skip


def fill(text: str, captures: Mapping[str, str], facts: Facts, context: Mapping[str, str] | None = None) -> str:
    """The text with every {name} replaced: by a capture, else a fact, else what stands after "|", else a neutral word."""
    known = {**facts_by_name(facts), **(context or {}), **{k: v for k, v in captures.items() if v}}

    def one(found: re.Match[str]) -> str:
        name, otherwise = found[1], found[2]
        if value := known.get(name):
            return value
        return otherwise if otherwise is not None else _NEUTRAL.get(name, "unknown")

    return str(_NAME.sub(one, text))


def names_in(text: str) -> list[str]:
    """The names in a text for which it has no other words."""
    return [found[1] for found in _NAME.finditer(text) if found[2] is None]


def facts_by_name(facts: Facts) -> dict[str, str]:
    """The facts that texts may name: gpu, sm, engine, model, world_size, version.NAME, setting.NAME."""
    known: dict[str, str] = {}
    if facts.gpu is not None:
        known["gpu"] = facts.gpu.name or facts.gpu.sm or ""
        known["sm"] = facts.gpu.sm or ""
    known["engine"] = facts.engine or ""
    known["model"] = facts.model or ""
    known["world_size"] = str(facts.world_size or "")
    for version in reversed(facts.versions):
        known[f"version.{version.name}"] = version.value
    for setting in reversed(facts.settings):
        known[f"setting.{setting.name}"] = str(setting.value)
    return known
