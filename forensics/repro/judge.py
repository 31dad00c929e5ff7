"""Whether what failed here is what failed in the log. In: `Plan`, the script's result, the child's output; out: aspects. Sample:

    category arch_mismatch = arch_mismatch, root error RuntimeError = RuntimeError, message …, op … -> reproduced

The output goes through `forensics.pipeline.analyze`, like any log.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from forensics.model import Incident
from forensics.repro.case import case_of_incident
from forensics.repro.masking import masked
from forensics.repro.planning import Plan

#: categories that are two words for one thing, told apart only by what else the log shows
_ALIKE = (
    frozenset({"arch_mismatch", "no_kernel_image"}),
    frozenset({"arch_mismatch", "jit_compile"}),
    frozenset({"killed_externally", "oom_host", "user_code"}),
)


@dataclass(frozen=True, slots=True)
class Aspect:
    """One thing that was compared. same: None where one side does not say."""

    name: str
    expected: str | None
    observed: str | None
    same: bool | None


def analyse_output(output: str) -> Incident:
    """The child's output through the same pipeline as the log."""
    from forensics.pipeline import analyze

    handle, path = tempfile.mkstemp(prefix="repro-output-", suffix=".log")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(output)
        return analyze([path])
    finally:
        os.unlink(path)


def _short(name: str | None) -> str | None:
    return name.rsplit(".", 1)[-1] if name else None


def _same_category(left: str, right: str) -> bool:
    return left == right or any(left in group and right in group for group in _ALIKE)


def _same_type(expected: str | None, observed: list[str | None], plan: Plan) -> bool | None:
    if not expected or not observed:
        return None
    return any(name == expected or name in plan.expected["types"] for name in observed)


def judge(plan: Plan, result: Mapping[str, Any], output: str) -> tuple[bool, str, tuple[Aspect, ...]]:
    """(the same failure, why not, what was compared). The script has already found the error's words."""
    case, error = plan.case, result.get("error") or {}
    seen = case_of_incident(analyse_output(output))
    hung = error.get("kind") == "timeout"
    category = "hang_or_watchdog" if hung else seen.category
    # the pipeline's word first: it named the log's error too; the script's own where the pipeline has none
    names = [_short(name) for name in (seen.root_type, seen.type, error.get("root_type"), error.get("type")) if name]
    there = _short(case.root_type or case.type)
    message = (
        any(re.search(pattern, f"{seen.root_type}: {seen.root_message}\n{output}") for pattern in plan.expected["patterns"])
        if plan.sign
        else masked(case.root_message)[:300] in masked(output)
    )
    words = plan.recipe.symbols
    met = next((word for word in words if any(word in name for name in seen.symbols) or word in output), None)
    aspects = [
        Aspect("op", plan.recipe.op, met or plan.recipe.op, True if met or not words else None),
        Aspect("category", case.category, category, _same_category(case.category, category)),
        Aspect("root error", there, names[0] if names else None, None if hung else _same_type(there, names, plan)),
        Aspect(
            "message",
            f"sign {plan.sign.id}" if plan.sign else masked(case.root_message)[:120],
            masked(seen.root_message)[:120] or None,
            hung or message,
        ),
    ]
    if case.kernel_family and seen.kernel_family:
        aspects.append(
            Aspect("kernel family", case.kernel_family, seen.kernel_family, case.kernel_family == seen.kernel_family)
        )
    if case.fingerprint and seen.fingerprint:
        aspects.append(
            Aspect(
                "fingerprint",
                case.fingerprint,
                seen.fingerprint,
                True if case.fingerprint == seen.fingerprint else None,
            )
        )
    wrong = [aspect for aspect in aspects if aspect.same is False]
    why = "; ".join(f"{aspect.name} is {aspect.observed}, the log has {aspect.expected}" for aspect in wrong)
    return not wrong, why, tuple(aspects)
