"""Does a package's version fulfil a requirement? In: a version as printed, a requirement; out: yes, no, None (unreadable). Sample:

    satisfies("0.6.12.post1", ">=0.6.7,<0.6.16") -> True       satisfies("2.11.0+cu130", "<2.12") -> True
"""

from __future__ import annotations

from forensics.ingest.compiled import pattern_of
from forensics.ingest.pattern import Pattern
from forensics.knowledge.releases import order

_PART = Pattern(r"(<=|>=|==|!=|<|>)\s*(v?\d\S*)\Z")


def satisfies(version: str, requirement: str) -> bool | None:
    """True where a version fulfils every comma-separated part of a requirement."""
    if not pattern_of(r"v?\d").match(version.strip()):
        return None
    have = order(version)
    for part in requirement.split(","):
        found = _PART.match(part.strip())
        if found is None:
            return None
        want = order(found[2])
        fits = {
            "<": have < want, "<=": have <= want, ">": have > want, ">=": have >= want, "==": have == want,
            "!=": have != want,
        }  # fmt: skip
        if not fits[found[1]]:
            return False
    return True
