"""The same op through every backend known for it. In: `Plan`; out: one row a backend. Sample:

as-logged   fails   triton.runtime.errors.OutOfResources: …
stages-2    works   0.0413 ms
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from forensics.repro.planning import Plan
from forensics.repro.render import render
from forensics.repro.running import Limits, run_script


@dataclass(frozen=True, slots=True)
class Row:
    """One backend. state: works, fails or cannot be tried; ms: milliseconds a call, where it works; setting: how an engine is told."""

    variant: str
    title: str
    state: str
    why: str
    ms: float | None = None
    setting: str = ""


_STATES = {"works": "works", "reproduced": "fails", "different_failure": "fails", "cannot_try": "cannot be tried"}


def compare(plan: Plan, limits: Limits, on_row: Callable[[Row], None] | None = None) -> tuple[Row, ...]:
    """Runs every variant of the recipe, in its order, and times those that work."""
    text, rows = render(plan), []
    for variant in plan.recipe.variants:
        result, _, _ = run_script(text, replace(limits, time=True), variant=variant.name)
        state = _STATES[result["outcome"]]
        if (result.get("error") or {}).get("kind") == "timeout" and result["outcome"] == "different_failure":
            state = "cannot be tried"  # a build that takes too long says nothing about the op
        row = Row(
            variant.name, variant.title, state, str(result.get("why", "")), result.get("ms_per_call"), variant.setting
        )
        rows.append(row)
        if on_row is not None:
            on_row(row)
    return tuple(rows)
