"""Titled cases in text files: `== title`, the log, `-- expect`, what the parser makes of it, one event a paragraph. Sample:

== One frame
Traceback (most recent call last):
  File "/srv/a.py", line 3, in load
    return table[key]
KeyError: 'w13'
-- expect
python 1-4
  KeyError: 'w13'
    a.py:3 load
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from forensics import parse
from forensics.ingest import from_text
from forensics.model import Event, Frame
from forensics.parse import python

FIXTURES = Path(__file__).parents[2] / "fixtures" / "python"


@dataclass(frozen=True)
class Case:
    """A log and what should come out; file and title say where it stands."""

    file: str
    title: str
    log: str
    expected: str

    def __str__(self) -> str:
        return f"{self.file}: {self.title}"


def all_cases() -> list[Case]:
    """Every case of every file, in order."""
    found = []
    for path in sorted(FIXTURES.glob("*.txt")):
        for part in f"\n{path.read_text(encoding='utf-8')}".split("\n== ")[1:]:
            title, _, body = part.partition("\n")
            log, _, expected = body.partition("-- expect\n")
            found.append(Case(path.stem, title.strip(), log, expected.strip("\n")))
    return found


def told(events: list[Event]) -> str:
    """Events as the fixtures write them."""
    return "\n".join(line for event in events for line in _told(event))


def _told(event: Event) -> list[str]:
    span = event.span
    words = [event.kind.value, f"{span.first_line}-{span.last_line}"]
    if event.rank:
        words.append(f"rank={event.rank.label}")
    if event.count > 1:
        words.append(f"count={event.count}")
    chain = event.chain
    if chain and chain.heading:
        words.append(f"heading={chain.heading!r}")
    if chain and chain.handled:
        words.append("handled")
    if chain and chain.ambiguous:
        words.append(f"ambiguous={chain.ambiguous}")
    for name, value in event.fields.items():
        if name == "extension_modules":
            words.append(f"modules={len(value)}")
        elif value not in (None, "", ()) and not (name == "states" and not any(value)):
            words.append(f"{name}={value!r}")
    lines = [" ".join(words)]
    if chain is None:
        lines.append("  " + ": ".join(part for part in (event.type, _one_line(event.message)) if part))
        for stack in event.stacks:
            lines.append(f"    thread {stack.thread}")
            lines += [f"      {_frame(frame)}" for frame in stack.frames]
        return lines
    for raised in chain.exceptions:
        link = f"[{raised.link}] " if raised.link else ""
        lines.append(f"  {link}{raised.type or '?'}: {_one_line(raised.message)}".rstrip())
        lines += [f"    {_frame(frame)}" for frame in raised.frames]
    return lines


def _one_line(text: str) -> str:
    return text.replace("\n", " / ")


def _frame(frame: Frame) -> str:
    place = (frame.file or frame.module or "?").rsplit("/", 1)[-1]
    text = f"{place}:{frame.line} {frame.function}"
    if frame.marked:
        text += f" ^{frame.marked}^"
    return text + (f" x{frame.repeated}" if frame.repeated > 1 else "")


@pytest.mark.parametrize("case", all_cases(), ids=str)
def test_case(case: Case) -> None:
    intake = from_text(case.log, anchors=python.ANCHORS)
    events = sorted(python.parse(intake), key=lambda e: (e.span.first_line, e.span.last_line))
    assert told(events) == case.expected


def test_titles_are_unique() -> None:
    titles = [str(case) for case in all_cases()]
    assert len(titles) == len(set(titles)) > 60


def test_a_failing_parser_leaves_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(intake: object) -> list[object]:
        raise RecursionError("too deep")

    monkeypatch.setattr(python, "parse", broken)
    monkeypatch.setattr(parse, "PARSERS", ("python",))
    intake = from_text("Traceback (most recent call last):\nValueError: x\n")
    assert parse.parse(intake) == []
    assert "python parser gave up: RecursionError" in intake.notes[0].text


@pytest.mark.parametrize("case", all_cases(), ids=str)
def test_anchors_keep_every_line_that_is_needed(case: Case) -> None:
    """What a scan of a big log keeps, the lines around the anchors, gives the same events as the whole log."""
    intake = from_text(case.log, anchors=python.ANCHORS)
    kept: set[int] = set()
    for n, line in enumerate(intake.lines):
        raw = line.raw.encode()
        for anchor in python.ANCHORS:
            if anchor.literal in raw:
                kept.update(range(n - anchor.before, n + anchor.after + 1))
    intake.lines = [line for n, line in enumerate(intake.lines) if n in kept]
    events = sorted(python.parse(intake), key=lambda e: (e.span.first_line, e.span.last_line))
    assert told(events) == case.expected
