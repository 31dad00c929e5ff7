"""One-line dialects as tables. In: an `Intake` and rows; out: one event a matching line. Stands above reading.py. Sample:

Row("Connection closed by localRank", EventKind.COMMUNICATION, r"Connection closed by localRank (?P<local_rank>\\d+)")
host:343:1213 [5] NCCL INFO [Service thread] Connection closed by localRank 7
-> Event(EventKind.COMMUNICATION, message="Connection closed by localRank 7", fields={"local_rank": 7})
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.model.source import LogLine, Rank
from forensics.parse.reading import Lazy, clipped, fold, hits, make


class Row(NamedTuple):
    """literal: must stand in the line; pattern: searched in it ("" = the literal is enough): the groups `type` and `message` go
    to the event, every other one to its fields (as int where it is a plain number); without a `message` group the message is the
    text from the match on. type, level, fields: constants. unless: words that make it another line. after, before: lines to keep
    around it. fill(groups, line) -> more fields; who(groups, line) -> the rank the line speaks of."""

    literal: str
    kind: EventKind
    pattern: str = ""
    type: str | None = None
    level: str | None = None
    fields: Mapping[str, Any] = {}
    unless: tuple[str, ...] = ()
    after: int = 0
    before: int = 0
    fill: Callable[[Mapping[str, str | None], LogLine], Mapping[str, Any]] | None = None
    who: Callable[[Mapping[str, str | None], LogLine], Rank | None] | None = None


class Table:
    """Rows of one parser, with their patterns. owner: the parser's name."""

    def __init__(self, owner: str, rows: Sequence[Row]) -> None:
        self.owner = owner
        self.rows = tuple(rows)
        self._patterns = [Lazy(row.pattern) if row.pattern else None for row in rows]

    def anchors(self) -> tuple[Anchor, ...]:
        """One anchor a row."""
        return tuple(Anchor(row.literal.encode(), row.before, row.after, self.owner) for row in self.rows)

    def read(self, intake: Intake, folded: bool = True) -> list[Event]:
        """The events of all rows in the order of the lines; of two rows that match a line the first counts."""
        found: dict[int, Event] = {}
        for row, pattern in zip(self.rows, self._patterns, strict=True):
            for index in hits(intake, row.literal):
                if index not in found:
                    event = None if _is_code(intake, index) else self._event(row, pattern, intake.lines[index])
                    if event is not None:
                        found[index] = event
        events = [found[index] for index in sorted(found)]
        return fold(events) if folded else events

    def _event(self, row: Row, pattern: Lazy | None, line: LogLine) -> Event | None:
        # a prefix that ingest took off may hold the literal ("slurmstepd: error:"): then the raw line is read
        text = line.text if row.literal in line.text else line.raw
        text = clipped(text, row.literal)
        if any(word in text for word in row.unless):
            return None
        groups: Mapping[str, str | None] = {}
        message = text[text.find(row.literal) :] if not pattern else ""
        if pattern is not None:
            match = pattern.search(text)
            if match is None:
                return None
            groups = match.groupdict()
            message = groups.get("message") or text[match.start() :]
        fields: dict[str, Any] = dict(row.fields)
        fields.update({k: _plain(v) for k, v in groups.items() if k not in ("type", "message") and v is not None})
        if row.fill is not None:
            fields.update(row.fill(groups, line))
        return make(
            row.kind,
            line,
            parser=self.owner,
            type=groups.get("type") or row.type,
            message=message,
            rank=row.who(groups, line) if row.who else None,
            fields=fields,
            level=row.level,
        )


def _is_code(intake: Intake, index: int) -> bool:
    """True for the source line that a traceback shows under `File "…", line N`: it may quote any message."""
    if index == 0:
        return False
    line, before = intake.lines[index], intake.lines[index - 1]
    return line.text[:2] == "  " and before.text.lstrip().startswith('File "') and before.source == line.source


def _plain(value: str) -> str | int:
    return int(value) if value.isascii() and value.isdigit() and len(value) < 19 else value
