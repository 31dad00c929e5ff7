"""What a person marked and wrote in a log, kept beside it. In: a log's path; out: `Triage`, saved whole or not at all. Sample:

server.log.triage.json: {"schema": "forensics-triage/1", "notes": [{"line": 812, "text": "draft model only?", "quote": "…"}]}
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from typing import Any

from forensics.drafts import write_whole
from forensics.errors import ForensicsError
from forensics.report.blocks import Item, Items, Section
from forensics.report.text import one_line, visible

SCHEMA = "forensics-triage/1"
#: a triage file is typed by a person; a larger one is something else
MOST_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class TriageNote:
    """line: 1-based; text: "" for a mere mark; quote: the line's beginning, so that a changed log is noticed."""

    line: int
    text: str = ""
    quote: str = ""


@dataclass(slots=True)
class Triage:
    """The notes of one log, by line."""

    path: str
    notes: dict[int, TriageNote] = field(default_factory=dict)

    def toggle(self, line: int, quote: str) -> bool:
        """Marks a line, or takes an empty mark away; True where it is marked now. A line with text stays."""
        note = self.notes.get(line)
        if note is None:
            self.notes[line] = TriageNote(line, quote=quote[:200])
        elif not note.text:
            del self.notes[line]
        return line in self.notes

    def write(self, line: int, text: str, quote: str) -> None:
        """Sets a line's text; empty text takes the note away."""
        if text.strip():
            self.notes[line] = TriageNote(line, text.strip(), quote[:200])
        else:
            self.notes.pop(line, None)

    def save(self) -> None:
        """Writes the file in one step: a process killed at any moment leaves the old file or the new. Raises ForensicsError."""
        content = {"schema": SCHEMA, "notes": [asdict(self.notes[line]) for line in sorted(self.notes)]}
        text = json.dumps(content, ensure_ascii=False, indent=1)
        try:
            write_whole(self.path, text.encode("utf-8", "replace"), sync=True)
        except OSError as error:
            raise ForensicsError(
                "the notes could not be saved",
                why=error.strerror or str(error),
                where=self.path,
                help="they stay on the screen; free space or open a copy of the log in a folder you can write to",
            ) from error


def triage_path(log: str) -> str:
    """Where the notes of a log are kept; those of standard input stand in the working folder."""
    return "stdin.triage.json" if log == "-" else f"{log}.triage.json"


def load(log: str) -> Triage:
    """The notes of a log; none where there is no file. Raises ForensicsError where the file is not one of ours."""
    path = triage_path(log)
    try:
        if os.path.getsize(path) > MOST_BYTES:
            raise ValueError("it is larger than notes can be")
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        return Triage(path, {note.line: note for note in map(_note, _rows(content))})
    except FileNotFoundError:
        return Triage(path)
    except (OSError, ValueError, RecursionError) as error:
        raise ForensicsError(
            "the notes of this log cannot be read",
            why=str(error)[:200],
            where=path,
            help="move the file away, or mend it",
        ) from error


def _rows(content: Any) -> list[Any]:
    if not isinstance(content, dict) or content.get("schema") != SCHEMA or not isinstance(content.get("notes"), list):
        raise ValueError(f"not a file of schema {SCHEMA}")
    return list(content["notes"])


def _note(row: Any) -> TriageNote:
    if not isinstance(row, dict) or not isinstance(row.get("line"), int):
        raise ValueError("a note without a line number")
    return TriageNote(row["line"], str(row.get("text", "")), str(row.get("quote", "")))


def section(logs: tuple[str, ...]) -> Section | None:
    """The notes beside these logs, for every report; a file that cannot be read is said instead."""
    items: list[Item] = []
    for log in logs:
        try:
            notes = load(log).notes
        except ForensicsError as error:
            items.append(Item(one_line(str(error), 300), tag="unread"))
            continue
        short = one_line(log.rsplit("/", 1)[-1], 80)
        for line in sorted(notes):
            note = notes[line]
            items.append(
                Item(
                    visible(note.text) or "marked",
                    detail=one_line(note.quote, 200),
                    place=f"{short}:{line}",
                    tag="note",
                )
            )
    return Section("triage", "Notes by hand", (Items(tuple(items)),), short="Notes") if items else None
