"""Does a [when] or [unless] table hold? In: the table, the facts, a place's context; out: True, False, None (not known).
Sample:

    holds({"sm": ["sm_12x"], "versions": {"flashinfer": "<0.6.16"}}, facts, context) -> True
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from forensics.match.versions import satisfies
from forensics.model.knowledge import Facts


class Context(NamedTuple):
    """What is known of one place in a log: the part of the model, the phase, and what the pattern captured."""

    component: str | None = None
    phase: str | None = None
    captures: Mapping[str, str] = {}


def holds(table: Mapping[str, Any], facts: Facts, context: Context) -> bool | None:
    """True where every condition holds, False where one is known not to, None where that cannot be said."""
    answer: bool | None = True
    for key, wanted in table.items():
        one = _TESTS[key](wanted, facts, context)
        if one is False:
            return False
        if one is None:
            answer = None
    return answer


def sm_fits(sm: str, patterns: Sequence[str]) -> bool:
    """True where an architecture is one of the patterns: "sm_120", "sm_12x" (any minor), "gfx9*"."""
    for pattern in patterns:
        if pattern.startswith("sm_") and pattern.endswith("x"):
            if sm[:-1] == pattern[:-1]:
                return True
        elif sm.startswith(pattern[:-1]) if pattern.endswith("*") else sm == pattern:
            return True
    return False


def _sm(wanted: Sequence[str], facts: Facts, context: Context) -> bool | None:
    sm = facts.gpu.sm if facts.gpu else None
    return None if sm is None else sm_fits(sm, wanted)


def _vendor(wanted: str, facts: Facts, context: Context) -> bool | None:
    sm = facts.gpu.sm if facts.gpu else None
    return None if sm is None else (wanted == "amd") == sm.startswith("gfx")


def _engine(wanted: Sequence[str], facts: Facts, context: Context) -> bool | None:
    return None if facts.engine is None else facts.engine in wanted


def _versions(wanted: Mapping[str, str], facts: Facts, context: Context) -> bool | None:
    answers = [None if (have := facts.version(name)) is None else satisfies(have, spec) for name, spec in wanted.items()]
    return False if False in answers else None if None in answers else True


def _settings(wanted: Mapping[str, str], facts: Facts, context: Context) -> bool | None:
    answers: list[bool | None] = []
    for name, pattern in wanted.items():
        seen = [s for s in facts.settings if s.name == name and s.component in (None, context.component or s.component)]
        if not seen:
            answers.append(None)
        else:
            answers.append(any(re.fullmatch(pattern, s.value if s.value is not None else "None") for s in seen))
    return False if False in answers else None if None in answers else True


def _component(wanted: Sequence[str], facts: Facts, context: Context) -> bool | None:
    return None if context.component is None else context.component in wanted


def _phase(wanted: Sequence[str], facts: Facts, context: Context) -> bool | None:
    return None if context.phase is None else context.phase in wanted


def _runs(wanted: str, facts: Facts, context: Context) -> bool | None:
    """Can the GPU run what a captured architecture or kernel name was built for?"""
    from forensics.knowledge import can_run, decode_kernel

    sm = facts.gpu.sm if facts.gpu else None
    captured = context.captures.get(wanted)
    if sm is None or not captured:
        return None
    from forensics.knowledge.architectures import parse_target

    targets = (captured,) if parse_target(captured) else decode_kernel(captured).archs
    return any(can_run(target, sm) for target in targets) if targets else None


def _cannot_run(wanted: str, facts: Facts, context: Context) -> bool | None:
    answer = _runs(wanted, facts, context)
    return None if answer is None else not answer


_TESTS: Mapping[str, Any] = {
    "sm": _sm, "vendor": _vendor, "engine": _engine, "versions": _versions, "settings": _settings,
    "component": _component, "phase": _phase, "runs": _runs, "cannot_run": _cannot_run,
}  # fmt: skip
