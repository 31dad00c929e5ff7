"""Compares version numbers as packages print them. In: two texts; out: before, same or after. Sample:

at_least("0.6.10.post1", "0.6.9") -> True        at_least("0.6.9rc2", "0.6.9") -> False       at_least("2.11.0+cu130", "2.11") -> True
"""

from __future__ import annotations

import re

from forensics.ingest.pattern import Pattern

_VERSION = Pattern(
    r"v?(\d{1,6}(?:\.\d{1,9}){0,5})[.\-_]?(a|b|c|rc|alpha|beta|dev|pre|post)?[.\-_]?(\d{0,9})", re.IGNORECASE
)
_STAGE = {"dev": -4, "alpha": -3, "a": -3, "beta": -2, "b": -2, "rc": -1, "c": -1, "pre": -1, "": 0, "post": 1}


def order(version: str) -> tuple[tuple[int, ...], int, int]:
    """A key that sorts versions: numbers, stage (dev < alpha < beta < rc < release < post), number of the stage.

    Local parts ("+cu130", "+g8d599d76a") do not count. A text without a number sorts before everything.
    """
    found = _VERSION.match(version.strip())
    if not found:
        return ((), -9, 0)
    numbers = tuple(int(n) for n in found[1].split("."))
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers = numbers[:-1]
    return (numbers, _STAGE[(found[2] or "").lower()], int(found[3] or 0))


def at_least(version: str, wanted: str) -> bool:
    """True where `version` is `wanted` or newer."""
    return order(version) >= order(wanted)


def between(version: str, first: str | None, last: str | None) -> bool:
    """True where first <= version <= last; None leaves a side open. "0.6" as last takes in 0.6.x."""
    if first is not None and order(version) < order(first):
        return False
    if last is None:
        return True
    if order(version) <= order(last):
        return True
    top = _numbers(last)
    return bool(top) and (_numbers(version) + (0,) * len(top))[: len(top)] == top


def _numbers(version: str) -> tuple[int, ...]:
    found = _VERSION.match(version.strip())
    return tuple(int(n) for n in found[1].split(".")) if found else ()
