"""Patterns that stay compiled: the same as `re` makes, whatever lies in the cache."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forensics import data
from forensics.ingest import compiled


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache; what a start keeps lies in the file returned."""
    monkeypatch.setenv("FORENSICS_CACHE_DIR", str(tmp_path / "cache"))
    start_again(monkeypatch)
    return Path(compiled._path())


def start_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("_kept", None), ("_new", {}), ("_made", {})):
        monkeypatch.setattr(compiled, name, value)


def strings(value: Any) -> Iterator[str]:
    """Every text of a table."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from strings(one)


def some_patterns() -> list[str]:
    found = []
    for path in sorted(data.root().rglob("*.toml"))[::4]:
        for text in strings(tomllib.loads(path.read_text())):
            if "\\" in text or "(?" in text:
                try:
                    re.compile(text)
                except re.error:
                    continue
                found.append(text)
    return found


def test_a_kept_pattern_is_the_one_that_re_makes(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = some_patterns()
    assert len(sources) > 100
    for flags in (0, re.IGNORECASE | re.MULTILINE):
        first = [compiled.pattern_of(source, flags) for source in sources]
        compiled.keep()
        start_again(monkeypatch)
        again = [compiled.pattern_of(source, flags) for source in sources]
        assert not compiled._new
        wanted = [re.compile(source, flags) for source in sources]
        assert first == again == wanted
        assert [one.groupindex for one in again] == [one.groupindex for one in wanted]


def test_bytes_and_text_are_two_patterns(kept: Path) -> None:
    assert compiled.pattern_of(rb"a+").search(b"caat")
    assert compiled.pattern_of(r"a+").search("caat")


def test_no_pattern_is_an_error(kept: Path) -> None:
    with pytest.raises(re.error):
        compiled.pattern_of(r"(")


@pytest.mark.parametrize("at", [0, 5, 24, 25, 60, -1])
def test_a_damaged_file_is_not_used(kept: Path, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    sources = [rf"rank{number}(\d+)" for number in range(9)]
    for source in sources:
        compiled.pattern_of(source)
    compiled.keep()
    raw = bytearray(kept.read_bytes())
    raw[at] ^= 1
    kept.write_bytes(raw)
    start_again(monkeypatch)
    assert compiled.pattern_of(sources[0]).search("rank012")
    assert len(compiled._new) == 1


def test_a_file_others_may_write_is_not_read(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(9):
        compiled.pattern_of(rf"rank{number}(\d+)")
    compiled.keep()
    kept.chmod(0o666)
    start_again(monkeypatch)
    compiled.pattern_of(r"rank1(\d+)")
    assert len(compiled._new) == 1


def test_patterns_that_nobody_asks_for_any_more_are_let_go(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_MOST", 30)
    for n in range(28):
        compiled.pattern_of(f"old {n}")
    compiled.keep()
    start_again(monkeypatch)
    compiled.pattern_of("old 3")
    for n in range(8):
        compiled.pattern_of(f"new {n}")
    compiled.keep()
    start_again(monkeypatch)
    compiled.pattern_of("old 3")
    assert {source for source, _ in compiled._read()} == {"old 3", *(f"new {n}" for n in range(8))}
