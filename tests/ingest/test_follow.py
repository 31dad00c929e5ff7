"""Following a log through growth, rotation and truncation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from forensics.errors import ForensicsError
from forensics.ingest import Anchor, ReadOptions
from forensics.ingest.follow import Update, follow

ANCHORS = [Anchor(b"BOOM", 1, 1)]


def _news(updates: Iterator[Update]) -> list[str]:
    """The lines of the next update that brought a hit."""
    return [line.text for line in next(update for update in updates if update.is_new).intake.lines]


def test_follow(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("start\n")
    updates = follow(str(path), ANCHORS, ReadOptions(whole_below=0))
    first = next(updates)
    assert not first.is_new
    with path.open("a") as file:
        file.write("[rank1]: BOOM one\n")
        file.flush()
        assert "BOOM one" in _news(updates)
        path.rename(tmp_path / "a.log.1")
        file.write("BOOM late\n")
    path.write_text("BOOM rotated\n")
    assert "BOOM late" in _news(updates)
    assert "BOOM rotated" in _news(updates)
    path.write_text("BOOM x\n")
    assert "BOOM x" in _news(updates)
    with path.open("a") as file:
        file.write("BOOM unfinished")
    last = _news(updates)
    assert last[-1] == "BOOM unfinished" and "BOOM one" in last


def test_follow_ends_when_idle(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("a\nBOOM\nb\n")
    updates = list(follow(str(path), ANCHORS, idle=0.05))
    assert updates[-1].ended and [line.text for line in updates[-1].intake.lines] == ["a", "BOOM", "b"]
    assert updates[-1].intake.marks == {b"BOOM": [1]}


def test_follow_stays_bounded(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("".join(f"[rank{n % 8}]: healthy {n}\n" for n in range(200_000)) + "BOOM\n")
    last = list(follow(str(path), ANCHORS, ReadOptions(whole_below=1000), idle=0.05))[-1]
    assert len(last.intake.lines) < 600 and last.intake.sources[0].lines == 200_001
    assert any(line.text == "BOOM" for line in last.intake.lines)


def test_follow_names_what_it_cannot_read(tmp_path: Path) -> None:
    with pytest.raises(ForensicsError):
        next(follow(str(tmp_path / "none.log"), ANCHORS))
