"""Reads single lines by rows of a table. In: retained lines and rows (anchor, pattern, fields); out: matches. Sample row:

    [[line]]
    anchor  = "compute capability"                       # literal that must stand in the line
    pattern = 'Device (?P<index>\\d+): (?P<name>[^,]{2,80}), compute capability (?P<cc>\\d+\\.\\d)'
    weight  = 100                                        # whatever else the table's reader wants

A row's pattern runs on lines with its anchor only, on at most 4,000 characters around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from forensics.data import table
from forensics.ingest.anchors import Anchor
from forensics.ingest.compiled import pattern_of
from forensics.ingest.intake import Intake
from forensics.model import LogLine, Span
from forensics.model.record import record

_WINDOW = 4_000
#: lines looked at for one row; the first and the last of more
MAX_HITS = 400
#: lines of a source that rows with where = "head" look at
HEAD = 400
#: lines that all heads together may have
_HEADS = 20_000


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return pattern_of(pattern)


@record
class LineRule:
    """A row. anchors: literals, one of which stands in the line; source: its regular expression as text, compiled when first
    used; refused: what the line must not say; where: "" (scanned for) or "head" (too common: the first lines only); lines: how
    many lines after the anchor's the pattern is tried on too; fields: all other keys."""

    anchors: tuple[str, ...]
    source: str
    refused: str = ""
    where: str = ""
    lines: int = 0
    fields: Mapping[str, Any] = MappingProxyType({})

    @property
    def pattern(self) -> re.Pattern[str]:
        """The compiled pattern. Raises re.error where it is wrong."""
        return _compiled(self.source)

    @property
    def unless(self) -> re.Pattern[str] | None:
        """What the line must not say, compiled."""
        return _compiled(self.refused) if self.refused else None


class LineMatch(NamedTuple):
    """A row that fits a line. at: index into Intake.lines."""

    rule: LineRule
    found: re.Match[str]
    line: LogLine
    at: int

    @property
    def span(self) -> Span:
        """The line."""
        return Span(self.line.source, self.line.number, self.line.number)


@cache
def rules(name: str, key: str = "line") -> tuple[LineRule, ...]:
    """The rows of signatures/facts/<name>.toml, patterns compiled when first used, which raises re.error where one is wrong."""
    found = []
    for row in table(f"facts/{name}").get(key, ()):
        anchors = row["anchor"] if isinstance(row["anchor"], list) else [row["anchor"]]
        rest = {k: v for k, v in row.items() if k not in ("anchor", "pattern", "unless", "where", "lines")}
        found.append(
            LineRule(
                tuple(anchors), row["pattern"], row.get("unless", ""), row.get("where", ""), row.get("lines", 0), rest
            )
        )
    return tuple(found)


def rule_anchors(owner: str, rows: Iterable[LineRule]) -> list[Anchor]:
    """One anchor a literal; `before` and `after` of a row widen what is kept around it."""
    wanted: dict[str, Anchor] = {}
    for row in rows:
        if row.where == "head":
            continue
        before, after = int(row.fields.get("before", 0)), int(row.fields.get("after", row.lines))
        for literal in row.anchors:
            old = wanted.get(literal, Anchor(literal.encode(), 0, 0, owner))
            wanted[literal] = old._replace(before=max(before, old.before), after=max(after, old.after))
    return list(wanted.values())


class Sightings:
    """Which retained lines hold which literal: from the scan's marks, or by searching where an intake has none."""

    def __init__(self, intake: Intake, rows: Iterable[LineRule]) -> None:
        self.intake = intake
        self._marks: Mapping[bytes, Sequence[int]] = intake.marks
        scanned: set[str] = set()
        heads: set[str] = set()
        for row in rows:
            (heads if row.where == "head" else scanned).update(row.anchors)
        if not intake.scanned and intake.lines:
            self._marks = _searched(intake, range(len(intake.lines)), scanned)
        self._heads = _searched(intake, _head(intake), heads)

    def of(self, literal: str, where: str = "") -> Sequence[int]:
        """Indices of the retained lines with the literal, at most MAX_HITS of them: the first and the last."""
        found = (self._heads if where == "head" else self._marks).get(literal.encode(), ())
        if len(found) <= MAX_HITS:
            return found
        return [*found[: MAX_HITS // 2], *found[-MAX_HITS // 2 :]]

    def matches(self, rows: Iterable[LineRule]) -> Iterator[LineMatch]:
        """Every row on every line it is for, rows in their order, lines in the log's."""
        for row in rows:
            seen: set[int] = set()
            for literal in row.anchors:
                for start in self.of(literal, row.where):
                    for index in range(start, min(start + row.lines + 1, len(self.intake.lines))):
                        if index not in seen:
                            seen.add(index)
                            yield from self._tried(row, index, literal)

    def _tried(self, row: LineRule, index: int, literal: str) -> Iterator[LineMatch]:
        line = self.intake.lines[index]
        text = window(line.raw, literal)
        if (found := row.pattern.search(text)) and not (row.unless and row.unless.search(text)):
            yield LineMatch(row, found, line, index)


def _head(intake: Intake) -> list[int]:
    """Indices of the first lines of every source: HEAD of each, fewer where there are very many sources."""
    share = min(HEAD, max(40, _HEADS // max(1, len(intake.sources))))
    return [index for index, line in enumerate(intake.lines) if line.number <= share]


def window(text: str, literal: str) -> str:
    """The text, or 4,000 characters of it around the literal where it is longer."""
    if len(text) <= _WINDOW:
        return text
    start = max(0, text.find(literal) - _WINDOW // 2)
    return text[start : start + _WINDOW]


def _searched(intake: Intake, indices: Iterable[int], literals: set[str]) -> dict[bytes, list[int]]:
    """Marks made here. Overlapping literals each get theirs: a shared head must not hide the longer one."""
    found: dict[bytes, list[int]] = {}
    if not literals:
        return found
    any_of = pattern_of("|".join(re.escape(text) for text in sorted(literals)))
    for index in indices:
        raw = intake.lines[index].raw
        if any_of.search(raw):
            for literal in literals:
                if literal in raw:
                    found.setdefault(literal.encode(), []).append(index)
    return found
