"""Following a log through growth, rotation and truncation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from forensics.errors import ForensicsError
from forensics.ingest import Anchor, ReadOptions
from forensics.ingest.follow import Update, follow
from forensics.model.source import LogLine

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


@pytest.mark.parametrize("whole_below", [0, 1 << 20])
def test_a_line_that_comes_in_parts_is_one_line(tmp_path: Path, whole_below: int) -> None:
    path = tmp_path / "a.log"
    path.write_text("start\nBOOM one")
    updates = follow(str(path), ANCHORS, ReadOptions(whole_below=whole_below))
    assert _numbered(_rest(updates)) == [(1, "start"), (2, "BOOM one")]
    for part, now in ((" two", "BOOM one two"), (" three\nnext\nBOOM four\nlast", "BOOM one two three")):
        with path.open("a") as file:
            file.write(part)
        update = _rest(updates)
        assert _numbered(update)[1] == (2, now)
    assert _numbered(update)[2:] == [(3, "next"), (4, "BOOM four"), (5, "last")]
    assert update.intake.sources[0].lines == 5


def test_a_line_of_megabytes_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("start\n" + "x" * 3_000_000)
    updates = follow(str(path), ANCHORS)
    _rest(updates)
    with path.open("a") as file:
        file.write("y" * 2_000_000 + " BOOM one " + "z" * 500_000 + " end\nBOOM two\nlast\n")
    found = _rest(updates).intake
    said = {line.number: line.text for line in found.lines}
    assert list(said) == [1, 2, 3, 4] and said[3] == "BOOM two"
    assert "BOOM one" in said[2] and said[2].endswith("z end") and found.sources[0].lines == 4


def test_an_interrupt_amid_a_block_neither_loses_nor_floods(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("start\n")
    calls: list[int] = []

    def interrupt_once(lines: list[LogLine]) -> None:
        calls.append(len(lines))
        if len(calls) == 1:
            raise KeyboardInterrupt

    updates = follow(str(path), ANCHORS, ReadOptions(whole_below=0), on_news=interrupt_once)
    update = _rest(updates)
    with path.open("a") as file:
        file.write("".join(f"calm {n}\n" for n in range(20_000)) + "BOOM\nlast\n")
    with pytest.raises(KeyboardInterrupt):
        next(updates)
    kept = _numbered(update)
    assert kept[-2:] == [(20_002, "BOOM"), (20_003, "last")] and len(kept) < 600


def _rest(updates: Iterator[Update]) -> Update:
    return next(update for update in updates if update.at_rest)


def _numbered(update: Update) -> list[tuple[int, str]]:
    return [(line.number, line.text) for line in update.intake.lines]
