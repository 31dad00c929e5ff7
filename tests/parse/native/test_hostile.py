"""Hostile lines: every parser meets its own words in lines made to hurt it, and neither raises nor returns much."""

from __future__ import annotations

import importlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forensics.ingest.read import from_text
from forensics.parse import PARSERS

NATIVE = [name for name in PARSERS if name != "python"]
PIECES = (
    " ",
    "a",
    "0x1",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    ":",
    "'",
    "`",
    "12",
    ", ",
    " in ",
    " at ",
    "{",
    "-",
    "#0 ",
    "\t",
    "é",
    "\u2588",
    "Error: ",
)


@pytest.mark.parametrize("name", NATIVE)
def test_long_and_repeated_lines(name: str) -> None:
    module = importlib.import_module(f"forensics.parse.{name}")
    words = [anchor.literal.decode() for anchor in module.ANCHORS] or ["step"]
    lines = []
    for word in words:
        lines += [
            word * 200,
            word + "a" * 20_000,
            word + " (" * 4_000,
            "x:" * 4_000 + word,
            word + " " * 8_000 + "x",
            word + "0x1 " * 3_000,
            word,
        ]
    lines += [words[0]] * 500
    intake = from_text("\n".join(lines), anchors=module.ANCHORS)
    events = module.parse(intake)
    assert len(events) <= len(lines)
    assert all(len(event.message) <= 8_000 for event in events)


@pytest.mark.parametrize("name", NATIVE)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_text_around_the_words(name: str, data: st.DataObject) -> None:
    module = importlib.import_module(f"forensics.parse.{name}")
    words = [anchor.literal.decode() for anchor in module.ANCHORS] or ["iteration "]
    piece = st.sampled_from([*words, *PIECES])
    lines = data.draw(st.lists(st.lists(piece, max_size=12).map("".join), max_size=12))
    intake = from_text("\n".join(lines), anchors=module.ANCHORS)
    for event in module.parse(intake):
        assert 1 <= event.span.first_line <= event.span.last_line <= len(lines)
