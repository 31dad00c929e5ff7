"""The engines agree, and hyperscan's database carries the literal that keeps its stride short."""

from __future__ import annotations

import random
from pathlib import Path

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


def test_a_database_is_kept_and_a_damaged_one_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hyperscan

    monkeypatch.setenv("FORENSICS_CACHE_DIR", str(tmp_path / "cache"))
    literals = sorted(set(_literals(300)))
    text = b" healthy ".join(literals[:40])
    expected = engine(literals, "find").scan(text)
    assert engine(literals, "hyperscan").scan(text) == expected
    [kept] = (tmp_path / "cache").iterdir()
    whole = kept.read_bytes()
    made: list[int] = []
    compile_ = hyperscan.Database.compile

    def counted(*arguments: object, **named: object) -> object:
        made.append(1)
        return compile_(*arguments, **named)

    class Counting(hyperscan.Database):  # type: ignore[misc]
        compile = counted

    monkeypatch.setattr(hyperscan, "Database", Counting)
    assert engine(literals, "hyperscan").scan(text) == expected
    assert not made
    step = max(1, len(whole) // 400)
    for at in range(0, len(whole), step):
        kept.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        made.clear()
        assert engine(literals, "hyperscan").scan(text) == expected
        assert made, f"a file damaged at byte {at} was taken"
    for damaged in (b"", whole[:-1], whole[: len(whole) // 2], whole + b"x"):
        kept.write_bytes(damaged)
        assert engine(literals, "hyperscan").scan(text) == expected


def test_a_database_of_other_literals_or_of_another_owner_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORENSICS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(engine_module, "_place", lambda patterns: str(tmp_path / "cache" / "literals.bin"))
    one, other = sorted(set(_literals(300))), sorted(set(_literals(301)))
    engine(one, "hyperscan")
    assert engine(other, "hyperscan").scan(other[7]) == engine(other, "find").scan(other[7])
    kept = tmp_path / "cache" / "literals.bin"
    kept.chmod(0o666)
    assert engine_module._kept([*other, engine_module._MENDS_STRIDE]) is None
    kept.chmod(0o600)
    assert engine_module._kept([*other, engine_module._MENDS_STRIDE]) is not None


def test_nothing_is_built_for_a_small_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORENSICS_CACHE_DIR", str(tmp_path / "cache"))
    assert engine(_literals(300), "auto", 10_000).name == "find"
    assert engine(_literals(300), "auto", 100_000).name == "find"
    assert engine(_literals(300), "auto", 10_000_000).name != "find"
    assert engine(_literals(300), "auto", 100_000).name != "find"  # now it lies there
    assert engine(_literals(300), "auto", 10_000).name == "find"


def test_without_hyperscan_another_engine_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "hyperscan", None)
    assert engine([b"needle"]).name == "ahocorasick"
    monkeypatch.setitem(sys.modules, "ahocorasick_rs", None)
    assert engine([b"needle"]).name == "find"
