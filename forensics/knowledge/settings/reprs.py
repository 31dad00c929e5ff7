"""Splits printed Python values. In: the text after "ServerArgs(" or "{"; out: key and value texts. Sample:

    "model='m', tp=4, cfg={'a': [1, 2]}, x=Y(z=1))" -> ("model", "m"), ("tp", "4"), ("cfg", "{'a': [1, 2]}"), ("x", "Y(z=1)")

One pass, no recursion; quotes and brackets that never close end with the text (torn lines).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from forensics.ingest.pattern import Pattern

_MAX = 200_000
_OPEN, _CLOSE = "([{", ")]}"
_STRUCTURE = Pattern(r"[\"'()\[\]{},]")
_PAIR = Pattern(r"\s*(?:\*\*)?([\"']?)([A-Za-z_][\w.\-]{0,80})\1\s*[=:]\s*", re.ASCII)


def pairs(text: str, start: int = 0) -> Iterator[tuple[str, str]]:
    """Key and value of each top-level member from `start` up to the bracket that closes the body (or the text's end)."""
    text = text[start : start + _MAX]
    depth = begin = at = 0
    while found := _STRUCTURE.search(text, at):
        mark, at = found[0], found.end()
        if mark in "\"'":
            at = _end_of_quote(text, mark, at, found.start() - begin)
        elif mark in _OPEN:
            depth += 1
        elif mark in _CLOSE:
            depth -= 1
            if depth < 0:
                yield from _pair(text[begin : found.start()])
                return
        elif depth == 0:
            yield from _pair(text[begin : found.start()])
            begin = at
    yield from _pair(text[begin:])


def _end_of_quote(text: str, mark: str, at: int, offset: int) -> int:
    """Where the quoted text ends. An apostrophe inside a word is no quote."""
    if at >= 2 and text[at - 2].isalnum() and offset and text[at - 2] not in "rbfRBF":
        return at
    while True:
        end = text.find(mark, at)
        if end < 0:
            return len(text)
        slashes = 0
        while text[end - 1 - slashes] == "\\":
            slashes += 1
        if slashes % 2 == 0:
            return end + 1
        at = end + 1


def _pair(member: str) -> Iterator[tuple[str, str]]:
    if found := _PAIR.match(member):
        yield found[2], unquoted(member[found.end() :].strip())


def unquoted(value: str) -> str:
    """The value without the quotes around it; of "<Enum.X: 'x'>" the value."""
    if len(value) >= 2 and value[0] in "\"'" and value[-1] == value[0]:
        return value[1:-1]
    if value.startswith("<") and value.endswith(">") and ": " in value:
        return unquoted(value[1:-1].split(": ", 1)[1])
    return value
