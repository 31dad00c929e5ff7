"""Titled cases in text files: what a log says and the events it must give, read whole and read out of a large log of which only the
anchors' windows are kept. Shape of tests/fixtures/native/<parser>.txt:

    ### a title in words
    log lines, as they stand
    --- events
    native c10::Error rank=rank_3#3 lines=2-9 frames=7 outermost>…>innermost | message
        fields
    --- nothing            (instead: a near miss, no event at all)

NATIVE_UPDATE=1 writes what the parsers give; read the difference before you commit it.
"""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from forensics.ingest.intake import Intake
from forensics.ingest.options import ReadOptions
from forensics.ingest.read import from_text, read
from forensics.model.event import Collective, Event, HardwareFault, ProcessExit

FOLDER = Path(__file__).parents[2] / "fixtures" / "native"


@dataclass
class Case:
    """One titled case of the file of a parser."""

    parser: str
    title: str
    text: str
    expected: str


def cases() -> list[Case]:
    """Every case of every file; the file's name is the parser's."""
    found = []
    for path in sorted(FOLDER.glob("*.txt")):
        for part in path.read_text(encoding="utf-8").split("### ")[1:]:
            title, _, rest = part.partition("\n")
            body, marker, expected = rest.partition("\n--- ")
            assert marker, f"{path.name}: {title}: no expectation"
            found.append(Case(path.stem, title.strip(), body, expected.strip()))
    return found


def write(renewed: list[Case]) -> None:
    """Writes the files anew."""
    for parser in sorted({case.parser for case in renewed}):
        parts = [f"### {c.title}\n{c.text}\n--- {c.expected}\n\n" for c in renewed if c.parser == parser]
        (FOLDER / f"{parser}.txt").write_text("".join(parts).rstrip() + "\n", encoding="utf-8")


def told(events: list[Event]) -> str:
    """The events as the fixture files spell them."""
    if not events:
        return "nothing"
    return "events\n" + "\n".join(_one(event) for event in events)


def _one(event: Event) -> str:
    words = [event.kind.value, event.type or "-"]
    if event.count > 1:
        words.append(f"x{event.count}")
    if event.rank:
        words.append(
            f"rank={event.rank.label.replace(' ', '_')}"
            + ("" if event.rank.number is None else f"#{event.rank.number}")
        )
    words.append(f"lines={event.span.first_line}-{event.span.last_line}")
    for stack in event.stacks:
        names = [f.function.partition("(")[0][:60] for f in stack.frames]
        path = ">".join([names[0], "…", names[-1]] if len(names) > 2 else names)
        words.append(f"frames={len(names)} {path}")
    fields = ", ".join(f"{k}={_value(v)}" for k, v in event.fields.items())
    text = (" ".join(words) + " | " + event.message.replace("\n", "\\n")).rstrip()
    return f"{text}\n    {fields}" if fields else text


def _value(value: Any) -> str:
    if isinstance(value, (Collective, ProcessExit, HardwareFault)):
        given = [(n, getattr(value, n)) for n in value.__dataclass_fields__]
        return "(" + " ".join(f"{n}={v!r}" for n, v in given if v not in (None, "")) + ")"
    return repr(value)


CASES = cases()
FILLER = "".join(f"all is well, request {n} served in 12 ms\n" for n in range(3_000))


def _events(case: Case, intake: Intake) -> list[Event]:
    return sorted(
        importlib.import_module(f"forensics.parse.{case.parser}").parse(intake),
        key=lambda e: (e.span.first_line, e.span.last_line, e.kind, e.message),
    )


def _anchors(case: Case) -> tuple:
    return importlib.import_module(f"forensics.parse.{case.parser}").ANCHORS


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.parser}: {c.title}")
def test_case(case: Case) -> None:
    given = told(_events(case, from_text(case.text, anchors=_anchors(case))))
    if os.environ.get("NATIVE_UPDATE"):
        case.expected = given
        write(CASES)
    assert given == case.expected


@pytest.mark.parametrize(
    "case",
    [c for c in CASES if _anchors(c)],
    ids=lambda c: f"{c.parser}: {c.title}",
)
def test_anchors_are_complete(case: Case) -> None:
    """What a parser needs of a log is inside its anchors' windows, wherever in the log it stands."""
    large = FILLER + case.text.rstrip("\n") + "\n" + FILLER
    intake = read([large.encode()], _anchors(case), ReadOptions(whole_below=0))
    assert len(intake.lines) < 5_000, "the log was kept whole: the test shows nothing"
    for event in _events(case, intake):
        assert event.span.first_line > 3_000 and event.span.last_line <= 3_000 + case.text.count("\n") + 1
    whole = told(_events(case, from_text(case.text, anchors=_anchors(case))))
    assert _without_lines(told(_events(case, intake))) == _without_lines(whole)


def _without_lines(text: str) -> str:
    return "\n".join(" ".join(w for w in line.split(" ") if not w.startswith("lines=")) for line in text.splitlines())
