"""What a signature's TOML may hold, and what is wrong with one that does not. In: an entry and its file; out: `Problem`s.
Sample:

    check_shape({"id": "nccl.x", …}, "rules/nccl/x.toml") -> [Problem("rules/nccl/x.toml", 3, "role: \"rot\" is none of root, …")]

This is the quick half of the lint: keys, types, words and patterns. Whether the examples match is `forensics.match.linting`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from forensics.ingest.pattern import Pattern
from forensics.model.event import EventKind
from forensics.model.record import record
from forensics.model.verdict import Category, Confidence, SignatureRole

ID = Pattern(r"[a-z0-9_]+(?:\.[a-z0-9_-]+)+\Z")
NAME = Pattern(r"\{([a-z_][a-z0-9_.]*)(?:\|([^{}]*))?\}")
#: names that stand for facts of the log rather than for captures
FACT_NAMES = ("gpu", "sm", "engine", "model", "world_size", "component", "phase", "ranks")
CONDITION_KEYS = ("sm", "vendor", "engine", "versions", "settings", "component", "phase", "runs", "cannot_run")
STATUSES = ("draft", "stable", "retired")
COMPONENTS = ("target_model", "draft_model", "tokenizer", "scheduler", "dataloader", "launcher")
PHASES = (
    "startup", "weight_load", "graph_capture", "warmup", "prefill", "decode", "train_step", "checkpoint", "shutdown",
)  # fmt: skip

#: how a file with several begins each
_SIGNATURE = "[[signature]]"

Kinds = Mapping[str, Callable[[Any], bool]]


@record
class Problem:
    """One thing wrong. line: 1-based line in the file; detail: more lines, e.g. a caret under where a pattern stopped."""

    path: str
    line: int
    text: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}" + (f"\n{self.detail}" if self.detail else "")


class _Check:
    """Collects the problems of one entry."""

    def __init__(self, path: str, line: int, source: str) -> None:
        self.path, self.first, self.source, self.problems = path, line, _lines(source), list[Problem]()

    def add(self, text: str, key: str = "") -> None:
        self.problems.append(Problem(self.path, line_of(self.source, key, self.first), text))

    def typed(self, table: Mapping[str, Any], where: str, kinds: Mapping[str, Callable[[Any], bool]]) -> None:
        """Every key known, every value of its type."""
        for key, value in table.items():
            if key not in kinds:
                self.add(f"{where}{key}: no such key; known: {', '.join(kinds)}", key)
            elif not kinds[key](value):
                self.add(f"{where}{key}: {value!r:.60} has the wrong type (see docs/add-a-signature.md)", key)

    def pattern(self, pattern: Any, key: str) -> set[str]:
        """The pattern's group names; a problem where it does not compile or could run away."""
        if not isinstance(pattern, str):
            return set()
        try:
            compiled = re.compile(pattern)
        except re.error as error:
            self.add(f"{key}: not a regular expression: {error}", key)
            return set()
        if danger := runaway(pattern):
            self.add(f"{key}: {danger}", key)
        return set(compiled.groupindex)


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(_text(one) for one in value)


def _table(value: Any) -> bool:
    return isinstance(value, dict)


def _tables(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)


def _number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 100


def _pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(n, int) and 0 <= n <= 200 for n in value)


def _string_table(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())


TOP = {
    "id": _text, "title": _text, "status": _text, "role": _text, "category": _text, "domain": _text,
    "confidence": _text, "specificity": _number, "why": _text, "next_steps": _texts, "must_not_prove": _text,
    "references": _texts, "match": _table, "fixes": _tables, "examples": _tables, "counterexamples": _tables,
}  # fmt: skip
MATCH = {
    "literals": _texts, "any_literals": _texts, "none_literals": _texts, "pattern": _text, "exception": _text,
    "frame": _text, "code": _text, "events": _texts, "nearby": _texts, "not_nearby": _texts, "window": _number, "keep": _pair,
    "when": _table, "unless": _table,
}  # fmt: skip
CONDITION = {
    "sm": _texts, "vendor": _text, "engine": _texts, "versions": _string_table, "settings": _string_table,
    "component": _texts, "phase": _texts, "runs": _text, "cannot_run": _text,
}  # fmt: skip
FIX = {
    "action": _text, "why": _text, "component": _text, "confidence": _text, "when": _table, "unless": _table,
    "lowers": _text, "raises": _text,
}  # fmt: skip
CONTEXT = {
    "gpu": _text, "engine": _text, "versions": _string_table, "settings": _string_table, "component": _text, "phase": _text,
}  # fmt: skip
EXAMPLE = {"text": _text, "captures": _string_table, "title": _text, **CONTEXT}
COUNTEREXAMPLE = {"text": _text, "because": _text, **CONTEXT}


def check_shape(entry: Mapping[str, Any], path: str, number: int = 0, source: str | None = None) -> list[Problem]:
    """All problems of one entry's shape. number: which [[signature]] of the file; source: the file's text, read where not given."""
    if source is None:
        try:
            with open(path, encoding="utf-8") as file:
                source = file.read()
        except OSError:
            source = ""
    check = _Check(path, entry_line(source, number), source)
    check.typed(entry, "", TOP)
    for key in ("id", "title", "role", "why", "match"):
        if key not in entry:
            check.add(f"{key} is missing")
    _check_words(check, entry)
    groups = _check_match(check, entry["match"]) if _table(entry.get("match")) else set()
    for place, table, kinds in _tables_of(entry):
        check.typed(table, place, kinds)
    _check_conditions(check, entry)
    _check_templates(check, entry, groups)
    return check.problems


def _tables_of(entry: Mapping[str, Any]) -> Iterable[tuple[str, Mapping[str, Any], Kinds]]:
    for name, kinds in (("fixes", FIX), ("examples", EXAMPLE), ("counterexamples", COUNTEREXAMPLE)):
        if _tables(entry.get(name, [])):
            for number, table in enumerate(entry.get(name, []), 1):
                yield f"{name}[{number}].", table, kinds


def _check_words(check: _Check, entry: Mapping[str, Any]) -> None:
    if _text(entry.get("id")) and not ID.match(entry["id"]):
        check.add(f"id: {entry['id']!r} is not family.short-name in lower case", "id")
    allowed: dict[str, Sequence[str]] = {"role": list(SignatureRole), "category": list(Category)}
    allowed |= {"confidence": list(Confidence), "status": STATUSES}
    for key, words in allowed.items():
        if _text(entry.get(key)) and entry[key] not in words:
            check.add(f"{key}: {entry[key]!r} is none of {', '.join(words)}", key)
    if entry.get("role") == "root" and "category" not in entry:
        check.add("category is missing: a root signature names what the failure is", "role")
    for number, fix in enumerate(entry.get("fixes", []) if _tables(entry.get("fixes")) else [], 1):
        if "action" not in fix:
            check.add(f"fixes[{number}]: action is missing", "fixes")
        if "component" in fix and fix["component"] not in COMPONENTS:
            check.add(f"fixes[{number}].component: none of {', '.join(COMPONENTS)}", "component")
        if "confidence" in fix and fix["confidence"] not in list(Confidence):
            check.add(f"fixes[{number}].confidence: none of {', '.join(Confidence)}", "confidence")


def _check_match(check: _Check, match: Mapping[str, Any]) -> set[str]:
    check.typed(match, "match.", MATCH)
    literals = [text for key in ("literals", "any_literals") if _texts(match.get(key)) for text in match[key]]
    if not literals:
        check.add("match: literals or any_literals must name what stands in the text", "match")
    elif not any(len(text.encode()) >= 8 for text in match.get("literals", [])) and (
        any(len(text.encode()) < 8 for text in match.get("any_literals", [])) or not match.get("any_literals")
    ):
        check.add("match: one literal (or every one of any_literals) needs 8 bytes or more: it is what the scan looks for", "match")
    for key in ("literals", "any_literals", "none_literals", "nearby", "not_nearby"):
        for text in match.get(key, []) if _texts(match.get(key, [])) else []:
            if "\n" in text:
                check.add(f"match.{key}: {text!r:.60} spans lines; use one literal a line", key)
    for kind in match.get("events", []) if _texts(match.get("events", [])) else []:
        if kind not in list(EventKind):
            check.add(f"match.events: {kind!r} is none of {', '.join(EventKind)}", "events")
    groups = check.pattern(match.get("pattern"), "pattern")
    check.pattern(match.get("exception"), "exception")
    check.pattern(match.get("frame"), "frame")
    check.pattern(match.get("code"), "code")
    return groups


def _check_conditions(check: _Check, entry: Mapping[str, Any]) -> None:
    places = [("match", entry.get("match"))]
    places += [(f"fixes[{n}]", fix) for n, fix in enumerate(entry.get("fixes", []), 1) if isinstance(fix, dict)]
    for where, owner in places:
        for key in ("when", "unless"):
            table = owner.get(key) if isinstance(owner, dict) else None
            if not isinstance(table, dict):
                continue
            check.typed(table, f"{where}.{key}.", CONDITION)
            for name, words in (("component", COMPONENTS), ("phase", PHASES)):
                for value in table.get(name, []) if _texts(table.get(name, [])) else []:
                    if value not in words:
                        check.add(f"{where}.{key}.{name}: {value!r} is none of {', '.join(words)}", name)
            for pattern in table.get("settings", {}).values() if _string_table(table.get("settings", {})) else []:
                check.pattern(pattern, "settings")


def _check_templates(check: _Check, entry: Mapping[str, Any], groups: set[str]) -> None:
    texts = [(key, entry.get(key)) for key in ("title", "why", "must_not_prove")]
    texts += [("next_steps", one) for one in entry.get("next_steps", []) if _texts(entry.get("next_steps"))]
    for fix in entry.get("fixes", []) if _tables(entry.get("fixes", [])) else []:
        texts += [(key, fix.get(key)) for key in ("action", "why")]
    for key, text in texts:
        for name, _ in NAME.findall(text) if isinstance(text, str) else []:
            if name not in groups and name not in FACT_NAMES and not name.startswith(("version.", "setting.")):
                known = sorted(groups) + list(FACT_NAMES)
                check.add(f"{key}: {{{name}}} is no group of the pattern and no fact; known: {', '.join(known)}", key)


def runaway(pattern: str) -> str:
    """Why a pattern could take very long on a hostile line, or "" where it cannot: nested or many unbounded repeats."""
    try:
        from re import _constants, _parser  # type: ignore[attr-defined]
    except ImportError:
        return ""
    endless = _constants.MAXREPEAT
    repeats = {_constants.MAX_REPEAT, _constants.MIN_REPEAT}
    total = 0

    def walk(items: Any, inside: bool) -> str:
        nonlocal total
        for operator, argument in items:
            if operator in repeats and argument[1] == endless:
                total += 1
                if inside:
                    return "an unbounded repeat inside another one"
                if any(op is _constants.ANY for op, _ in argument[2]):
                    return "an unbounded `.*`; write .{0,200} or a class such as [^']+"
                if why := walk(argument[2], True):
                    return why
            else:
                for child in argument if isinstance(argument, (list, tuple)) else ():
                    if isinstance(child, _parser.SubPattern):
                        if why := walk(child, inside):
                            return why
                    elif isinstance(child, list):
                        for branch in child:
                            if isinstance(branch, _parser.SubPattern) and (why := walk(branch, inside)):
                                return why
        return ""

    found = walk(_parser.parse(pattern), False)
    return found or ("more than eight unbounded repeats" if total > 8 else "")


def entry_line(source: str, number: int) -> int:
    """The 1-based line at which the number-th signature of a file begins."""
    starts = _starts(source)
    return starts[number] if number < len(starts) else 1


@lru_cache(maxsize=1)
def _lines(source: str) -> list[str]:
    """Asked for each signature of a file: one may hold thousands."""
    return source.splitlines()


@lru_cache(maxsize=1)
def _starts(source: str) -> list[int]:
    return [n for n, line in enumerate(_lines(source), 1) if line.strip() == _SIGNATURE]


def line_of(source: list[str], key: str, start: int = 1) -> int:
    """The 1-based line of a key or table of the signature at `start`; `start` itself where there is none."""
    if key:
        wanted = re.compile(rf"\s*(?:\[+[\w.]*\b{re.escape(key)}\]+|{re.escape(key)}\s*=)")
        for number in range(start - 1, len(source)):
            if wanted.match(source[number]):
                return number + 1
            if number >= start and source[number].strip() == _SIGNATURE:
                break
    return start
