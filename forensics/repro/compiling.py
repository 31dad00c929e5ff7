"""What a GPU that is not here refuses at compile time. In: `Plan`, a target; out: `Compiled`. Sample:

compile_only(plan, "sm_120", limits) -> Compiled("sm_120", "refused", "…", "shared memory", 655360, 101376)
"""

from __future__ import annotations

from dataclasses import dataclass

from forensics.repro.planning import Plan
from forensics.repro.render import render
from forensics.repro.running import Limits, run_script


@dataclass(frozen=True, slots=True)
class Compiled:
    """state: compiles, refused or cannot be tried; kind: shared memory, instruction, target or compiler, None where not
    refused; sizes in bytes, None where not known."""

    target: str
    state: str
    why: str
    kind: str | None = None
    shared_bytes: int | None = None
    limit_bytes: int | None = None


_STATES = {
    "works": "compiles",
    "reproduced": "refused",
    "different_failure": "cannot be tried",
    "cannot_try": "cannot be tried",
}


def compile_only(plan: Plan, target: str, limits: Limits, variant: str = "as-logged") -> Compiled:
    """Compiles the plan's op for one target ("sm_120", "sm_100a"), on any machine with Triton or nvcc."""
    result, _, _ = run_script(render(plan), limits, variant=variant, target=target)
    error, details = result.get("error") or {}, result.get("details") or {}
    refused = result["outcome"] == "reproduced"
    return Compiled(
        target=target,
        state=_STATES[result["outcome"]],
        why=str(result.get("why", "")),
        kind=error.get("kind") if refused else None,
        shared_bytes=details.get("shared_bytes"),
        limit_bytes=details.get("limit_bytes"),
    )
