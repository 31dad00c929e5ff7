"""What was learnt of how an engine's lines begin changes no answer."""

from __future__ import annotations

import re
from random import Random

import pytest

from forensics import data
from forensics.ingest import asked

PARTS = ["'", '"', "(", ")", "{", "}", "[", "]", "\\", "a", " ", "n", ", {", "\\'", "7", "text=", "rid="]


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked, "_BEGINNINGS", [])


@pytest.mark.parametrize("seed", range(8))
def test_beginnings_that_were_seen_change_no_answer(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = Random(seed)
    literals = [literal.decode() for literal, _, _ in asked._requests()]
    cases = []
    for _ in range(3_000):
        body = "".join(chance.choice(PARTS) for _ in range(chance.randrange(24)))
        line = f"{chance.choice(literals)}{body}{chance.choice(literals)}{body[::-1]}".encode()
        cases.append((line, chance.randrange(1, len(line) + 1)))
    learning = [asked.is_asked(line, 0, stop) for line, stop in cases]
    assert asked._BEGINNINGS
    for (line, stop), answer in zip(cases, learning, strict=True):
        monkeypatch.setattr(asked, "_BEGINNINGS", [])
        assert asked.is_asked(line, 0, stop) == answer, (line, stop)


def test_an_engines_line_is_read_once_as_far_as_its_text_begins() -> None:
    lines = [f"[20:15:{n:02d}] Receive: obj=GenerateReqInput(rid='{n:032x}', text='it said: CUDA error, why?', n=1)".encode() for n in range(40)]
    at = lines[0].index(b"CUDA")
    assert all(asked.is_asked(line, 0, at) for line in lines)
    assert len(asked._BEGINNINGS) == 1 and len(asked._BEGINNINGS[0][1]) == 1
    torn = lines[0].replace(b"it said: ", b"it said.')")[: at + 2] + b" CUDA error: out of memory"
    assert not asked.is_asked(torn, 0, len(torn))


def test_what_stands_before_a_text_is_remembered_only_where_it_is_short() -> None:
    asked._severe.cache_clear()
    for n in range(20):
        line = b"x" * 100_000 + b"%c" % (97 + n) + b" obj=GenerateReqInput(text='a CUDA error'"
        assert asked.is_asked(line, 0, len(line) - 1)
        assert not asked.is_asked(b"ERROR " + line, 0, len(line) + 5)
    assert asked._severe.cache_info().currsize == 0


def test_no_line_is_passed_over_that_shows_a_text() -> None:
    """`may_quote` spares the pattern; every example of the table in which it finds something gets through, and others do not."""
    rows = [row for _, content in data.folder("dialects") for kind in ("request", "field", "mark") for row in content.get(kind, ())]
    shown = [line for row in rows for line in row["examples"] if re.search(asked.begins(), line)]
    assert len(shown) > len(rows) / 2 and all(asked.may_quote(line) and asked.may_quote(line.replace("'", '"')) for line in shown)
    assert not asked.may_quote("[2026-11-29 20:15:20 TP1] CUDA error: an illegal memory access was encountered")
