"""The smallest parameters that still fail in the same way. In: start values and a probe; out: `Minimum`. Sample:

    m=n=256, k=128, stages=5 -> m=16, n=128, k=128, stages=4 after 23 tries; every single step down from there works

Delta debugging over numbers: each parameter on its own is driven down as far as the failure stays, again and again until none moves.
A try counts only where it is the same failure; another failure is as good as none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from forensics.repro.planning import Plan
from forensics.repro.recipe import ParameterSpec
from forensics.repro.render import render
from forensics.repro.running import Limits, run_script


@dataclass(frozen=True, slots=True)
class Try:
    """One probe. outcome: as the script says; kept: whether the search went on from here."""

    values: Mapping[str, Any]
    outcome: str
    why: str
    kept: bool


@dataclass(frozen=True, slots=True)
class Minimum:
    """values: the smallest that failed alike; minimal: True where no single parameter can go one step down; why: why it stopped."""

    values: Mapping[str, Any]
    tries: tuple[Try, ...]
    minimal: bool
    why: str


def _smaller(spec: ParameterSpec, value: Any) -> list[Any]:
    """Candidates below a value, smallest first: the least, then ever closer to the value."""
    low = spec.minimum if spec.minimum is not None else 0
    found: list[Any] = []
    if isinstance(value, float):
        step = value
        while len(found) < 8 and step - low > max(abs(value), 1.0) / 64:
            found.append(value - (step - low))
            step = low + (step - low) / 2
        return [candidate for candidate in found if low <= candidate < value]
    low = int(low)
    if spec.shrink == "double":
        candidate = max(low, 1)
        while candidate < value:
            found.append(candidate)
            candidate *= 2
        return found
    gap = (value - low) // spec.multiple
    while gap > 0:
        found.append(value - gap * spec.multiple)
        gap //= 2
    return list(dict.fromkeys(found))


def _one_step(spec: ParameterSpec, value: Any) -> Any:
    """The next smaller value, None where there is none."""
    smaller = _smaller(spec, value)
    return smaller[-1] if smaller else None


def search(
    start: Mapping[str, Any],
    specs: tuple[ParameterSpec, ...],
    probe: Callable[[Mapping[str, Any]], tuple[str, str]],
    *,
    seconds: float = 600.0,
    most_tries: int = 200,
    on_try: Callable[[Try], None] | None = None,
) -> Minimum:
    """The search itself. probe: values -> (outcome, why); "reproduced" is the same failure. start is taken to fail."""
    deadline = time.monotonic() + seconds
    values, tries = dict(start), list[Try]()
    known: dict[tuple[tuple[str, Any], ...], bool] = {}
    shrinkable = [spec for spec in specs if spec.shrink and not isinstance(start[spec.name], (bool, str))]

    def fails(candidate: dict[str, Any]) -> bool | None:
        """True: the same failure; None: out of time."""
        key = tuple(sorted(candidate.items()))
        if key in known:
            return known[key]
        if time.monotonic() > deadline or len(tries) >= most_tries:
            return None
        outcome, why = probe(candidate)
        known[key] = outcome == "reproduced"
        tries.append(Try(candidate, outcome, why, known[key]))
        if on_try is not None:
            on_try(tries[-1])
        return known[key]

    moved = True
    while moved:
        moved = False
        for spec in shrinkable:
            # ascending would try every size; halving the distance finds the edge of a monotone failure and is checked below
            while candidates := _smaller(spec, values[spec.name]):
                for candidate in candidates:
                    failed = fails({**values, spec.name: candidate})
                    if failed is None:
                        return Minimum(values, tuple(tries), False, "the time or the number of tries ran out")
                    if failed:
                        values[spec.name] = candidate
                        moved = True
                        break
                else:
                    break
    for spec in shrinkable:
        below = _one_step(spec, values[spec.name])
        if below is not None and fails({**values, spec.name: below}) is not False:
            return Minimum(values, tuple(tries), False, f"{spec.name} could not be checked one step down")
    return Minimum(values, tuple(tries), True, "no single parameter can go one step down")


def minimize(
    plan: Plan,
    limits: Limits,
    *,
    target: str | None = None,
    seconds: float = 600.0,
    on_try: Callable[[Try], None] | None = None,
) -> Minimum:
    """Minimizes a plan by running its script, or by compiling it for a target. The plan's own values are tried first."""
    text = render(plan)

    def probe(values: Mapping[str, Any]) -> tuple[str, str]:
        result, _, _ = run_script(text, limits, values=values, target=target)
        return result["outcome"], str(result.get("why", ""))

    outcome, why = probe(plan.values)
    first = Try(plan.values, outcome, why, outcome == "reproduced")
    if on_try is not None:
        on_try(first)
    if outcome != "reproduced":
        return Minimum(plan.values, (first,), False, f"it does not fail as in the log to begin with: {why}")
    return search(plan.values, plan.recipe.parameters, probe, seconds=seconds, on_try=on_try)
