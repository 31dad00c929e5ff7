"""A user's signatures may be slow, wrong or hostile: each is named, none stops the analysis or the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import ForensicsError, analyze

from . import logs

RULE = """
id = "mine.slow"
title = "Mine"
role = "root"
category = "user_code"
why = "Because."
next_steps = ["Look."]

[match]
literals = ["boom: it fell"]
pattern = '''{pattern}'''

[[examples]]
text = "RuntimeError: boom: it fell"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for signatures, and a cache of its own."""
    monkeypatch.setenv("FORENSICS_CACHE_DIR", str(tmp_path / "cache"))
    place = tmp_path / "mine"
    place.mkdir()
    return place


HOSTILE = "boom: it fell " + "ab" * 2_000 + "!"


@pytest.mark.parametrize("pattern", ["fell (?:a|b|ab|ba){1,2000}~", "fell (?:a?b?){1,900}~", "fell (?:[ab]{1,40}){1,200}~"])
@pytest.mark.parametrize("place", ["pattern", "exception", "frame"])
def test_a_catastrophic_pattern_is_given_up_and_named(pattern: str, place: str, folder: Path) -> None:
    rule = RULE.format(pattern=pattern)
    if place != "pattern":
        rule = rule.replace("pattern =", f"{place} =").replace("fell ", ".{0,9}")
    (folder / "slow.toml").write_text(rule)
    names = "ab" * 40 + "!"
    log = logs.crash(HOSTILE).replace("in forward", f"in {names}").replace("RuntimeError", "ab" * 40 + "Error")
    other = logs.crash("CUDA error: an illegal memory access was encountered")
    incident = analyze([log.encode() + other.encode()], signatures=[folder])
    assert not [finding for finding in incident.findings if finding.id == "mine.slow"]
    said = [note.text for note in incident.coverage.notes if "mine.slow" in note.text]
    assert place != "pattern" or "more than 0.1 s of time" in said[0]
    assert "cuda.illegal-memory-access" in {finding.id for finding in incident.findings}


@pytest.mark.parametrize("pattern", ["(a+)+$", r"(?:\s*x)+y", "(.*a){9}", "boom.*x"])
def test_a_pattern_that_can_explode_is_refused_where_it_stands(pattern: str, folder: Path) -> None:
    (folder / "slow.toml").write_text(RULE.format(pattern=pattern))
    with pytest.raises(ForensicsError, match=r"slow\.toml:\d+: pattern: an unbounded"):
        analyze([logs.crash("boom").encode()], signatures=[folder])


def test_checking_a_slow_signature_ends_and_names_it(folder: Path) -> None:
    from forensics.match.linting import lint

    text = RULE.format(pattern="fell (?:a|b|ab|ba){1,2000}c").replace("boom: it fell\"\n", HOSTILE + "\"\n")
    assert HOSTILE in text
    (folder / "slow.toml").write_text(text)
    assert [problem for problem in lint([str(folder)], strict=False) if "mine.slow" in problem.text and "0.1 s" in problem.text]


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\x00\xff\xfe", b"id = ", b"id = 'x'\n" * 2, b"[match]\nliterals = 5", b"a" * 1_000_000, b"x = " + b"[" * 5_000,
        RULE.format(pattern="(unclosed").encode(), RULE.format(pattern="boom").replace('role = "root"', 'role = "admin"').encode(),
    ],
    ids=["empty", "bytes", "cut", "twice", "types", "long", "deep", "pattern", "role"],
)  # fmt: skip
def test_a_wrong_file_is_named(content: bytes, folder: Path) -> None:
    path = folder / "wrong.toml"
    path.write_bytes(content)
    with pytest.raises(ForensicsError) as told:
        analyze([logs.crash("boom").encode()], signatures=[folder])
    assert "wrong.toml" in str(told.value)


def test_a_good_one_works(folder: Path) -> None:
    (folder / "good.toml").write_text(RULE.format(pattern="boom").replace("mine.slow", "mine.good"))
    incident = analyze([logs.crash("boom: it fell").encode()], signatures=[folder])
    assert [finding.id for finding in incident.findings if finding.id.startswith("mine.")] == ["mine.good"]
