"""The engines agree, and hyperscan's database carries the literal that keeps its stride short."""

from __future__ import annotations

import random

import pytest

from forensics.ingest import engine as engine_module
from forensics.ingest.engine import engine


def _literals(count: int) -> list[bytes]:
    rnd = random.Random(count)
    return [("".join(rnd.choice("abcdefgh ") for _ in range(rnd.randrange(8, 16)))).encode() for _ in range(count)]


@pytest.mark.parametrize("kind", ["hyperscan", "ahocorasick", "find"])
@pytest.mark.parametrize("count", [1, 60, 400])
def test_engines_agree(kind: str, count: int) -> None:
    literals = sorted(set(_literals(count)))
    rnd = random.Random(7)
    text = b"".join(rnd.choice([rnd.choice(literals), b" healthy line 12\n"]) for _ in range(500))
    expected = sorted(
        (at + len(literal), index)
        for index, literal in enumerate(literals)
        for at in range(len(text))
        if text.startswith(literal, at)
    )
    assert engine(literals, kind).scan(memoryview(text)) == expected


def test_short_literals_are_found_without_a_library() -> None:
    literals = [b"Xid", b"ab", *_literals(100)]
    assert (6, 0) in engine(literals, "find").scan(b"a: Xid (PCI)")


def test_the_stride_is_mended() -> None:
    """Between 250 and 1,000 literals the scan takes twice as long without the literal that never occurs."""
    found = engine(sorted(set(_literals(400))), "hyperscan")
    assert found._dummy == len(found._literals)  # type: ignore[attr-defined]
    assert engine_module._MENDS_STRIDE == b"\xff\xfe"
    assert found.scan(b"binary \xff\xfe\xfd rubbish") == []


def test_nothing_is_built_for_a_small_input() -> None:
    assert engine(_literals(300), "auto", 10_000).name == "find"
    assert engine(_literals(300), "auto", 10_000_000).name != "find"


def test_without_hyperscan_another_engine_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "hyperscan", None)
    assert engine([b"needle"]).name == "ahocorasick"
    monkeypatch.setitem(sys.modules, "ahocorasick_rs", None)
    assert engine([b"needle"]).name == "find"
