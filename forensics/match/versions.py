"""Compares package versions. In: a version as printed and a requirement; out: yes or no, None where it is no version. Sample:

    satisfies("0.6.12.post1", ">=0.6.7,<0.6.16") -> True       satisfies("2.11.0+cu130", "<2.12") -> True
"""

from __future__ import annotations

import re
from itertools import zip_longest

_VERSION = re.compile(r"v?(\d+(?:\.\d+){0,4})(?:[.-]?(a|b|rc|alpha|beta|dev|post)\.?(\d*))?", re.IGNORECASE)
_PART = re.compile(r"(<=|>=|==|!=|<|>)\s*(\S+)\Z")
_RANK = {"dev": -4, "a": -3, "alpha": -3, "b": -2, "beta": -2, "rc": -1, "post": 1}


def key_of(version: str) -> tuple[tuple[int, ...], int, int] | None:
    """What versions are compared by: numbers, then dev < alpha < beta < rc < release < post. Local parts (+cu130) do not count."""
    found = _VERSION.match(version.strip())
    if not found:
        return None
    numbers = tuple(int(part) for part in found[1].split("."))
    return numbers, _RANK.get((found[2] or "").lower(), 0), int(found[3] or 0)


def satisfies(version: str, requirement: str) -> bool | None:
    """True where a version fulfils every comma-separated part of a requirement; None where one of them cannot be read."""
    have = key_of(version)
    if have is None:
        return None
    for part in requirement.split(","):
        found = _PART.match(part.strip())
        want = key_of(found[2]) if found else None
        if found is None or want is None:
            return None
        order = _compare(have, want)
        fits = {"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0, "==": order == 0, "!=": order != 0}
        if not fits[found[1]]:
            return False
    return True


def _compare(a: tuple[tuple[int, ...], int, int], b: tuple[tuple[int, ...], int, int]) -> int:
    for x, y in zip_longest(a[0], b[0], fillvalue=0):
        if x != y:
            return -1 if x < y else 1
    return (a[1:] > b[1:]) - (a[1:] < b[1:])
