"""The table of line prefixes (`signatures/dialects/`). In: the left end of a line; out: who wrote it and when. Sample:

peel("[rank3]:[E1129 20:15:34.123 ProcessGroupNCCL.cpp:632] boom", rows)
-> Peeled(text="boom", captures={"rank": "3", "level": "E", …}, dialects=["torch.rank", "torch.cpp"])
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from forensics import data

#: prefixes stack (compose, Kubernetes, engine, level, rank), but never deeper than this
_DEEPEST = 7
_HINT_REACH = 160
_ALIAS = re.compile(r"_\d$")
#: an outer stamp stays: every line has it, and it is one clock; everything else is known best by the innermost
_OUTER_WINS = frozenset(("time", "node"))
_JSON_CAP = 1 << 20


@dataclass(slots=True)
class Dialect:
    """One row. starts: characters that can open it ("" = any); hint: literal near the left end ("" = none)."""

    id: str
    title: str
    regex: str
    starts: str = ""
    hint: str = ""
    weak: bool = False
    keep: bool = False
    json: dict[str, list[str]] = field(default_factory=dict)
    examples: list[dict[str, Any]] = field(default_factory=list)
    counterexamples: list[dict[str, Any]] = field(default_factory=list)
    _compiled: re.Pattern[str] | None = None

    def match(self, text: str, at: int) -> re.Match[str] | None:
        """The prefix at position `at`, compiled on first use."""
        if self._compiled is None:
            self._compiled = re.compile(self.regex)
        return self._compiled.match(text, at)


@dataclass(slots=True)
class Peeled:
    """What the prefixes said. captures: group name to text; axes: "TP1 DP0" texts in order; dialects: row ids, outermost first."""

    text: str
    captures: dict[str, str] = field(default_factory=dict)
    axes: str = ""
    dialects: list[str] = field(default_factory=list)
    #: where the first rank-bearing group stands in the line, for a cheap search of later sightings
    rank_at: tuple[int, int] | None = None


@lru_cache(maxsize=1)
def rows() -> tuple[Dialect, ...]:
    """All rows of the shipped table, in order."""
    found = []
    for _, content in data.folder("dialects"):
        for row in content.get("dialect", ()):
            found.append(Dialect(**row))
    return tuple(found)


class Table:
    """Rows by the character that can open them. weak: ids of weak rows that this source may use."""

    __slots__ = ("_by_first",)

    def __init__(self, weak: frozenset[str] = frozenset()) -> None:
        self._by_first: dict[str, tuple[Dialect, ...]] = {}
        groups: dict[str, list[Dialect]] = {}
        for row in rows():
            if row.weak and row.id not in weak:
                continue
            for letter in _letters(row.starts):
                groups.setdefault(letter, []).append(row)
        self._by_first = {letter: tuple(group) for letter, group in groups.items()}

    def peel(self, line: str) -> Peeled:
        """Takes prefixes off until none fits. `line` has no ANSI codes."""
        at, size = 0, len(line)
        captures: dict[str, str] = {}
        axes: list[str] = []
        used: list[str] = []
        rank_at: tuple[int, int] | None = None
        while at < size and len(used) < _DEEPEST:
            group = self._by_first.get(line[at])
            if group is None:
                break
            row, found = _first(group, line, at, used)
            if row is None or found is None:
                break
            if row.json:
                inner = _from_json(row, line[at:])
                if inner is None:
                    break
                line, at, size = inner.text, 0, len(inner.text)
                _merge(captures, inner.captures)
                used.append(row.id)
                continue
            for name, value in found.groupdict().items():
                if not value:
                    continue
                name = _ALIAS.sub("", name)
                if name == "axes":
                    axes.append(value)
                elif not (name in captures and (name in _OUTER_WINS or row.keep)):
                    captures[name] = value
                if name in ("axes", "rank", "local_rank") and rank_at is None:
                    rank_at = found.span(name) if name in found.re.groupindex else found.span()
            used.append(row.id)
            if row.keep:
                break
            at = found.end()
        return Peeled(line[at:], captures, " ".join(axes), used, rank_at)


def _first(
    group: tuple[Dialect, ...], line: str, at: int, used: list[str]
) -> tuple[Dialect | None, re.Match[str] | None]:
    """The first row that fits here. A weak row fits once a line."""
    for row in group:
        if row.hint and line.find(row.hint, at, at + _HINT_REACH) < 0:
            continue
        if row.weak and row.id in used:
            continue
        found = row.match(line, at)
        if found is not None and found.end() >= at:
            if found.end() == at and not row.json and not row.keep:
                continue
            return row, found
    return None, None


def _letters(starts: str) -> str:
    """The characters of a `starts` value, ranges written out."""
    out = ""
    for name in ("A-Z", "a-z", "0-9"):
        if name in starts:
            starts = starts.replace(name, "")
            out += "".join(chr(c) for c in range(ord(name[0]), ord(name[2]) + 1))
    return out + starts


def _merge(into: dict[str, str], more: dict[str, str]) -> None:
    for name, value in more.items():
        if not (name in into and name in _OUTER_WINS):
            into[name] = value


def _from_json(row: Dialect, text: str) -> Peeled | None:
    """The message and the fields of a JSON line, or None where it has no message."""
    text = text.rstrip()
    if not text.endswith("}") or len(text) > _JSON_CAP:
        return None
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    message = _lookup(content, row.json["message"])
    if message is None:
        return None
    captures = {}
    for name in ("time", "level", "node", "place", "pid", "rank"):
        value = _lookup(content, row.json[name])
        if value:
            captures[name] = value
    stack = _lookup(content, ["exc_info", "stack_trace", "exception", "traceback", "stack"])
    if stack and "\n" in stack:
        message = f"{message}\n{stack}"
    return Peeled(message.rstrip("\n"), captures)


def _lookup(content: dict[str, Any], paths: list[str]) -> str | None:
    for path in paths:
        value: Any = content
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if value is None and path in content:
            value = content[path]
        if isinstance(value, str):
            return value
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return str(value)
    return None


def votes(lines: list[str]) -> frozenset[str]:
    """Ids of the weak rows that at least half of these lines carry (and at least three of them)."""
    sample = [line for line in lines if line.strip()]
    if len(sample) < 3:
        return frozenset()
    strong = Table()
    counts: dict[str, int] = {}
    for line in sample:
        rest = strong.peel(line).text
        for row in rows():
            if row.weak:
                found = row.match(line, 0) or row.match(rest, 0)
                if found is not None and found.end() > 0:
                    counts[row.id] = counts.get(row.id, 0) + 1
    best = {name: n for name, n in counts.items() if n * 2 >= len(sample) and n >= 3}
    return frozenset(best)
