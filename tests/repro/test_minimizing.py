"""The search for the smallest parameters: against models of failures whose smallest is known."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import pytest

from forensics.repro.minimizing import minimize, search
from forensics.repro.recipe import ParameterSpec, recipe_of
from forensics.repro.running import Limits
from tests.repro.conftest import plan_for

LIMIT = 232448


def shared_bytes(values: Mapping[str, Any]) -> int:
    """Operands of one tile in 16-bit values, for each stage."""
    return (values["block_m"] + values["block_n"]) * values["block_k"] * 2 * values["stages"]


def specs_of(recipe: str) -> tuple[ParameterSpec, ...]:
    found = recipe_of(recipe)
    assert found is not None
    return found.parameters


START = {"block_m": 256, "block_n": 256, "block_k": 128, "stages": 5, "warps": 8, "dtype": "bfloat16"}


def probe(values: Mapping[str, Any]) -> tuple[str, str]:
    return ("reproduced" if shared_bytes(values) > LIMIT else "works"), ""


def test_a_shared_memory_failure_shrinks_until_nothing_can_go_down() -> None:
    found = search(START, specs_of("triton-shared-memory"), probe)
    assert found.minimal and shared_bytes(found.values) > LIMIT
    for name in ("block_m", "block_n", "block_k"):
        smaller = {**found.values, name: found.values[name] // 2}
        assert smaller[name] < 16 or shared_bytes(smaller) <= LIMIT, name
    assert shared_bytes({**found.values, "stages": found.values["stages"] - 1}) <= LIMIT
    assert shared_bytes(found.values) < shared_bytes(START)


@pytest.mark.parametrize("smallest", [(1, 1), (1, 7), (13, 2), (100, 100)])
def test_a_monotone_failure_is_found_exactly(smallest: tuple[int, int]) -> None:
    specs = tuple(ParameterSpec(name, 1, "w", minimum=1, maximum=100, shrink="step") for name in "ab")
    found = search(
        {"a": 100, "b": 100},
        specs,
        lambda v: ("reproduced" if v["a"] >= smallest[0] and v["b"] >= smallest[1] else "works", ""),
    )
    assert (found.values["a"], found.values["b"]) == smallest and found.minimal


def test_another_failure_is_never_accepted() -> None:
    specs = (ParameterSpec("n", 1, "w", minimum=0, maximum=64, shrink="step"),)
    outcomes = {0: "different_failure", 1: "cannot_try", 2: "works", 3: "different_failure"}
    found = search({"n": 40}, specs, lambda v: (outcomes.get(v["n"], "reproduced"), ""))
    assert found.values["n"] == 4 and found.minimal
    assert all(t.kept == (t.outcome == "reproduced") for t in found.tries)


def test_steps_keep_to_the_multiple() -> None:
    specs = (ParameterSpec("n", 8, "w", minimum=8, maximum=4096, shrink="step", multiple=8),)
    found = search({"n": 4096}, specs, lambda v: ("reproduced" if v["n"] >= 1000 else "works", ""))
    assert found.values["n"] == 1000 and all(t.values["n"] % 8 == 0 for t in found.tries)


def test_floats_shrink_too() -> None:
    specs = (ParameterSpec("x", 1.0, "w", minimum=0.0, maximum=100.0, shrink="step"),)
    found = search({"x": 64.0}, specs, lambda v: ("reproduced" if v["x"] >= 10 else "works", ""))
    assert 10 <= found.values["x"] < 20


def test_it_is_bounded_in_tries_and_in_time() -> None:
    specs = tuple(ParameterSpec(name, 1, "w", minimum=1, maximum=10**9, shrink="step") for name in "abcd")
    start = dict.fromkeys("abcd", 10**9)
    calls = itertools.count()
    found = search(start, specs, lambda v: ((next(calls) and "works") or "reproduced", ""), most_tries=10)
    assert len(found.tries) == 10 and not found.minimal and "ran out" in found.why
    found = search(start, specs, lambda v: ("reproduced", ""), seconds=-1)
    assert found.tries == () and not found.minimal


def test_each_configuration_is_tried_once() -> None:
    found = search(START, specs_of("triton-shared-memory"), probe)
    seen = [tuple(sorted(t.values.items())) for t in found.tries]
    assert len(seen) == len(set(seen)) <= 60


def test_what_does_not_fail_is_not_minimized(plan_with: Any) -> None:
    found = minimize(plan_with("return lambda: None"), Limits(timeout_s=30))
    assert not found.minimal and "does not fail" in found.why and len(found.tries) == 1


def test_the_compiler_as_judge() -> None:
    pytest.importorskip("triton")
    plan = plan_for(
        "triton.runtime.errors.OutOfResources", "out of resource: shared memory, Required: 655360, Hardware limit: 232448", "arch_mismatch",
        frames=[{"function": "f", "code": "k[grid](a, b, c, BLOCK_M=256, BLOCK_N=256, BLOCK_K=128, num_stages=5, num_warps=8)"}],
    )  # fmt: skip
    assert {name: plan.values[name] for name in START} == START
    found = minimize(plan, Limits(timeout_s=120), target="sm_90", seconds=400)
    assert found.minimal, found.why
    assert all(found.values[name] <= START[name] for name in ("block_m", "block_n", "block_k", "stages"))
    assert found.values["block_m"] < START["block_m"]
    below = {**found.values, "stages": found.values["stages"] - 1}
    assert next(t.outcome for t in found.tries if t.values == below) == "works"
