"""The table of line prefixes (`signatures/dialects/`). In: the left end of a line; out: who wrote it and when. Sample:

peel("[rank3]:[E1129 20:15:34.123 ProcessGroupNCCL.cpp:632] boom", rows)
-> Peeled(text="boom", captures={"rank": "3", "level": "E", …}, dialects=("torch.rank", "torch.cpp"))
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

from forensics import data
from forensics.ingest.compiled import pattern_of

#: prefixes stack (compose, Kubernetes, engine, level, rank), but never deeper than this
_DEEPEST = 7
_HINT_REACH = 160
_ALIAS = pattern_of(r"_\d$")
#: groups that name a rank
_RANK_GROUPS = frozenset(("axes", "rank", "local_rank"))
#: an outer stamp stays: every line has it, and it is one clock; everything else is known best by the innermost
_OUTER_WINS = frozenset(("time", "node"))
_JSON_CAP = 1 << 20
#: what counts as the shape of a line, and how many are remembered
_SHAPE, _MOST_PLANS = 72, 4_096
#: a prefix that ends before is followed by enough of the shape to tell whether another one does
_SURE = 48
#: what a backslash and a letter stand for in a quoted value; of any other one it is the letter itself
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_ESCAPED = pattern_of(r"\\(.)")
_ZEROS = bytes.maketrans(b"123456789", b"000000000")
#: lines of a source that are asked for weak prefixes
_VOTERS = 40


class Dialect:
    """One row. starts: characters that can open it ("" = any); hint: literal near the left end ("" = none); weak, serves, collects, keep,
    quoted, json: see signatures/dialects/README.md."""

    __slots__ = (
        "_compiled", "_groups", "apart", "beside", "collects", "counterexamples", "examples", "hint", "id", "json", "keep", "quoted",
        "regex", "second", "serves", "starts", "title", "weak",
    )  # fmt: skip

    def __init__(self, row: dict[str, Any]) -> None:
        self.id: str = row["id"]
        self.title: str = row["title"]
        self.regex: str = row["regex"]
        self.starts: str = row.get("starts", "")
        self.second: frozenset[str] = frozenset(_letters(row.get("second", "")))
        self.hint: str = row.get("hint", "")
        self.weak: bool = row.get("weak", False)
        self.beside: tuple[str, ...] = tuple(row.get("beside", ()))
        self.apart: tuple[str, ...] = tuple(row.get("apart", ()))
        self.serves: bool = row.get("serves", False)
        self.collects: bool = row.get("collects", False)
        self.keep: bool = row.get("keep", False)
        self.quoted: bool = row.get("quoted", False)
        self.json: dict[str, list[str]] = row.get("json", {})
        self.examples: list[dict[str, Any]] = row.get("examples", [])
        self.counterexamples: list[dict[str, Any]] = row.get("counterexamples", [])
        self._compiled: re.Pattern[str] | None = None
        self._groups: tuple[tuple[int, str], ...] | None = None

    def match(self, text: str, at: int) -> re.Match[str] | None:
        """The prefix at position `at`, compiled on first use."""
        if self._compiled is None:
            self._compiled = pattern_of(self.regex)
        return self._compiled.match(text, at)

    def groups(self) -> tuple[tuple[int, str], ...]:
        """(number, name) of the groups, spellings (`rank_2`) under the one name. Of a row that matched."""
        if self._groups is None and self._compiled is not None:
            self._groups = tuple((index, _ALIAS.sub("", name)) for name, index in self._compiled.groupindex.items())
        return self._groups or ()


class Peeled(NamedTuple):
    """What the prefixes said. captures: group name to text; axes: "TP1 DP0" texts in order; dialects: row ids, outermost first;
    rank_at: where the first group that names a rank stands in the line; given: the level is one that a collector gave the line;
    relayed: what the collector wrote its record around has a prefix of its own, so that somebody else wrote it."""

    text: str
    captures: dict[str, str]
    axes: str = ""
    dialects: tuple[str, ...] = ()
    rank_at: tuple[int, int] | None = None
    given: bool = False
    relayed: bool = False


@lru_cache(maxsize=1)
def rows() -> tuple[Dialect, ...]:
    """All rows of the shipped table, in order."""
    found = []
    for _, content in data.folder("dialects"):
        for row in content.get("dialect", ()):
            found.append(Dialect(row))
    return tuple(found)


@lru_cache(maxsize=1)
def serving() -> frozenset[str]:
    """Ids of the rows that only engines write which train nothing."""
    return frozenset(row.id for row in rows() if row.serves)


class Table:
    """Rows by the character that can open them. weak: ids of weak rows that this source may use."""

    __slots__ = ("_by_first", "_plans")

    def __init__(self, weak: frozenset[str] = frozenset()) -> None:
        #: left end of a line without its digits -> the rows that fitted
        self._plans: dict[bytes, tuple[Dialect, ...]] = {}
        groups: dict[str, list[Dialect]] = {}
        for row in rows():
            if row.weak and row.id not in weak:
                continue
            for letter in _letters(row.starts):
                groups.setdefault(letter, []).append(row)
        self._by_first: dict[str, tuple[Dialect, ...]] = {letter: tuple(group) for letter, group in groups.items()}

    def peel(self, line: str) -> Peeled:
        """Takes prefixes off until none fits. `line` has no ANSI codes."""
        at, size = 0, len(line)
        captures: dict[str, str] = {}
        axes: list[str] = []
        used: list[str] = []
        rank_at: tuple[int, int] | None = None
        given = collected = relayed = False
        if not size or line[0] not in self._by_first:
            return Peeled(line, captures)
        # lines of one shape have the same prefixes: those are tried by themselves
        shape = line[:_SHAPE].encode("utf-8", "replace").translate(_ZEROS)
        plan = self._plans.get(shape)
        fitted: list[Dialect] = []
        while at < size and len(used) < _DEEPEST:
            if plan is not None and len(used) == len(plan):
                if at <= _SURE:
                    break
                plan = None  # what stands behind so long a prefix is no part of the shape
            group = self._by_first.get(line[at]) if plan is None else (plan[len(used)],)
            if group is None:
                break
            row, found = _first(group, line, at, used)
            if row is None or found is None:
                if plan is None:
                    break
                plan = None  # the shape deceived: the rest is looked at in full
                continue
            fitted.append(row)
            if row.json:
                inner = _from_json(row, line[at:])
                if inner is None:
                    break
                if "level" in inner.captures:
                    given = row.collects and not collected
                relayed, collected = relayed or collected, collected or row.collects
                line, at, size = inner.text, 0, len(inner.text)
                _merge(captures, inner.captures)
                used.append(row.id)
                continue
            relayed = relayed or collected
            for index, name in row.groups():
                value = found[index]
                if not value:
                    continue
                if name == "level":
                    given = row.collects and not collected
                if name == "axes":
                    axes.append(value)
                elif not (name in captures and (name in _OUTER_WINS or row.keep)):
                    captures[name] = value
                if rank_at is None and name in _RANK_GROUPS:
                    rank_at = found.span(index)
            collected = collected or row.collects
            used.append(row.id)
            if row.keep:
                break
            at = found.end()
            if row.quoted:
                line, at = _unquoted(line[at:]), 0
                size = len(line)
        if plan is None and len(self._plans) < _MOST_PLANS and not any(row.json or row.quoted for row in fitted):
            self._plans[shape] = tuple(fitted)
        return Peeled(line[at:], captures, " ".join(axes), tuple(used), rank_at, given, relayed)


@lru_cache(maxsize=64)
def table_of(weak: frozenset[str] = frozenset()) -> Table:
    """The table with these weak rows, made once."""
    return Table(weak)


def _first(
    group: tuple[Dialect, ...], line: str, at: int, used: list[str]
) -> tuple[Dialect | None, re.Match[str] | None]:
    """The first row that fits here. A weak row fits once a line."""
    for row in group:
        if row.second and line[at + 1 : at + 2] not in row.second:
            continue
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


@lru_cache(maxsize=512)
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


def _unquoted(text: str) -> str:
    """What stands in a quoted value up to the line's end, without its closing quote."""
    return _ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[1]), text.rstrip().removesuffix('"'))


def _from_json(row: Dialect, text: str) -> Peeled | None:
    """The message and the fields of a JSON line, or None where it has no message."""
    text = text.rstrip()
    if not text.endswith("}") or len(text) > _JSON_CAP:
        return None
    import json

    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    # a launcher that relays its children's output says through which pipe it came
    relayed = content.get("data") if content.get("pipe") in ("stdout", "stderr") else None
    message = relayed if isinstance(relayed, str) else _lookup(content, row.json["message"])
    if message is None:
        return None
    captures = {}
    for name in ("time", "level", "node", "place", "pid", "rank"):
        value = _lookup(content, row.json[name])
        if value:
            captures[name] = value
    from forensics.ingest.decode import visible
    from forensics.ingest.jsonfields import error_in, stack_in

    if any(ord(letter) < 32 for letter in message):
        # a terminal's escapes and redrawn bars, which the record spelled out
        message = "\n".join(shown for part in message.split("\n") for shown in visible(part))
    stack = stack_in(content, message)
    if "Traceback (" not in stack and (error := error_in(content, message, captures.get("level", ""))):
        message = f"{message}: {error}"
    if stack:
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


@lru_cache(maxsize=1)
def _weak_rows() -> list[tuple[Dialect, frozenset[str]]]:
    return [(row, frozenset(_letters(row.starts))) for row in rows() if row.weak]


def _company(row: Dialect, lines: list[str]) -> bool:
    """True where the lines hold what the row stands beside, and nothing of what it stands apart from."""
    if row.beside and not any(word in line for line in lines for word in row.beside):
        return False
    return not any(word in line for line in lines for word in row.apart)


def votes(lines: list[str]) -> frozenset[str]:
    """Ids of the weak rows that at least half of these lines carry (and at least three of them)."""
    sample = [line for line in lines if line.strip()]
    sample = sample[:: max(1, len(sample) // _VOTERS)]
    if len(sample) < 3:
        return frozenset()
    weak = [(row, starts) for row, starts in _weak_rows() if _company(row, lines)]
    strong: Table | None = None
    counts: dict[str, int] = {}
    for line in sample:
        rest = None
        for row, starts in weak:
            found = row.match(line, 0) if line[0] in starts else None
            if found is None or found.end() == 0:
                if rest is None:
                    strong = strong or table_of()
                    rest = strong.peel(line).text
                found = row.match(rest, 0) if rest != line and rest[:1] in starts else None
            if found is not None and found.end() > 0:
                counts[row.id] = counts.get(row.id, 0) + 1
    return frozenset(name for name, n in counts.items() if n * 2 >= len(sample) and n >= 3)
