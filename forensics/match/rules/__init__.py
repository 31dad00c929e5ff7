"""Rules that follow from knowledge, not from a message. In: a `Matcher` and what signatures found; out: `Finding`s.

    architecture    the kernel's binary or the op's list of GPUs against the GPU of the log
    contradiction   asked for one backend, another one ran
    releases        versions known to be broken, versions known to be fixed
    mixed           ranks with different releases of one library
    fix_chooser     backends that can run this op on this GPU
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.match.engine import Matcher
from forensics.match.rules.architecture import mismatches
from forensics.match.rules.fix_chooser import vetted
from forensics.match.rules.mixed import mixed_releases
from forensics.match.rules.releases import known_versions
from forensics.model.record import replace
from forensics.model.verdict import Category, Finding

__all__ = ["derive"]

_SAME_CAUSE = (Category.ARCH_MISMATCH, Category.NO_KERNEL_IMAGE)


def derive(matcher: Matcher, findings: Sequence[Finding]) -> list[Finding]:
    """The findings with what the rules add: new ones, and better fixes for the signatures' own."""
    derived = mismatches(matcher)
    kept = [replace(one, fixes=vetted(one.fixes, matcher.facts)) if one.fixes else one for one in findings]
    kept = [_with_fixes_of(one, derived) for one in kept]
    return [*kept, *derived, *mixed_releases(matcher, kept), *known_versions(matcher, [*kept, *derived])]


def _with_fixes_of(one: Finding, derived: Sequence[Finding]) -> Finding:
    """A signature's finding of the same failure gets the derived fixes that it does not name itself, before its sentences."""
    if one.category not in _SAME_CAUSE:
        return one
    for other in derived:
        if set(one.events) & set(other.events):
            known = {fix.action for fix in one.fixes}
            extra = tuple(fix for fix in other.fixes if fix.action not in known)
            return replace(one, fixes=(*one.fixes, *extra)) if extra else one
    return one
