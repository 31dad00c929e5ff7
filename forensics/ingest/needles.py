"""Words without which a pattern cannot match: asked first, they spare most patterns their compilation. In: a regular expression;
out: literals. Sample:

    needles_of(r"(?:CUDA|HIP) out of memory\\. Tried") -> ["out of memory. tried"]
    needles_of(r"no space left|disk (?:full|quota)")  -> ["no space left", "disk "]
    needles_of(r"\\d+") -> None                           (nothing can be said)

Worked out from the standard library's own parse of the pattern (re._parser, Python 3.11–3.14), when tables are compiled, not when
they are used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from forensics.data import base, compiled, stamp_of, table, toml_files

#: shorter needles stand in nearly every text
SHORTEST = 3
#: more alternatives than this are as slow to look for as the pattern
MOST = 40


def needles_of(pattern: str, flags: int = 0) -> list[str] | None:
    """Lower-case literals: every text that matches holds at least one of them (upper and lower case alike). None: unknown.

    Raises re.error for a pattern that is none."""
    from re import _parser  # type: ignore[attr-defined]

    found = _best(_parser.parse(pattern, flags))
    if found is None or len(found) > MOST or any(not one.isascii() for one in found):
        return None  # case folding of other letters may change their length
    return sorted(one for one in set(found) if not any(other in one for other in found if other != one))


def needles_of_folder(name: str, part: str, pattern: Callable[[], str]) -> list[str] | None:
    """The needles of a pattern that is put together from the tables of a folder; kept as those of a table."""
    stamp = stamp_of(toml_files(os.path.join(base(), *name.split("/"))))
    kept: list[str] | None = compiled(f"{name}/_needles_{part}", stamp, lambda: needles_of(pattern()))
    return kept


def needles_of_table(name: str, rows: str, keys: Iterable[str], flags: int = 0) -> list[dict[str, list[str] | None]]:
    """For each row of a table of `signatures/` the needles of its patterns, by key; kept compiled beside the table."""
    wanted = tuple(keys)

    def build() -> list[dict[str, list[str] | None]]:
        return [{key: needles_of(row[key], flags) for key in wanted if row.get(key)} for row in table(name)[rows]]

    path = os.path.join(base(), *name.split("/")) + ".toml"
    found: list[dict[str, list[str] | None]] = compiled(f"{name}/_needles", stamp_of([path]), build)
    return found


def needles_of_list(name: str, key: str, flags: int = 0) -> list[str] | None:
    """The needles of a list of patterns of which one has to match, None where one of them asks for nothing; kept as above."""

    def build() -> list[str] | None:
        found: set[str] = set()
        for row in table(name)[key]:
            words = needles_of(row, flags)
            if words is None:
                return None
            found.update(words)
        return sorted(found)

    path = os.path.join(base(), *name.split("/")) + ".toml"
    kept: list[str] | None = compiled(f"{name}/_needles_{key}", stamp_of([path]), build)
    return kept


def _best(items: Iterable[Any]) -> list[str] | None:
    """The most telling set of literals that a sequence demands."""
    found: list[list[str]] = []
    run: list[str] = []

    def end_run() -> None:
        if len(run) >= SHORTEST:
            found.append(["".join(run)])
        run.clear()

    for op, argument in items:
        name = str(op)
        if name == "LITERAL":
            run.append(chr(argument).lower())
            continue
        if name == "AT":
            continue
        if name == "SUBPATTERN" and all(str(inner) == "LITERAL" for inner, _ in argument[-1]):
            run.extend(chr(value).lower() for _, value in argument[-1])
            continue
        end_run()
        inside: list[str] | None = None
        if name == "SUBPATTERN":
            inside = _best(argument[-1])
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT") and argument[0] >= 1:
            inside = _best(argument[2])
        elif name == "ATOMIC_GROUP":
            inside = _best(argument)
        elif name == "BRANCH":
            inside = _any_of(argument[1])
        if inside is not None:
            found.append(inside)
    end_run()
    return max(found, key=lambda words: (min(map(len, words)), -len(words)), default=None)


def _any_of(branches: Iterable[Any]) -> list[str] | None:
    words: list[str] = []
    for branch in branches:
        inside = _best(branch)
        if inside is None:
            return None
        words += inside
    return words
