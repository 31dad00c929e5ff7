"""Any window of any log, however its lines and blocks fall."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from forensics.tui import rawlog
from forensics.tui.rawlog import RawLog


def opened(path: Path) -> RawLog:
    log = RawLog(str(path))
    while log.advance():
        pass
    return log


@pytest.mark.parametrize("step", [7, 16, 64, 1000])
def test_every_window_is_what_splitting_the_file_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    monkeypatch.setattr(rawlog, "STEP", step)
    chance = random.Random(step)
    for trial in range(30):
        rows = ["x" * chance.choice([0, 1, 3, 15, 40]) + str(i) for i in range(chance.randrange(1, 40))]
        text = "\n".join(rows) + chance.choice(["", "\n"])
        path = tmp_path / f"{trial}.log"
        path.write_text(text)
        expected = text.split("\n")
        if expected[-1] == "":
            expected.pop()
        log = opened(path)
        assert log.lines == len(expected)
        for first in range(1, len(expected) + 2):
            assert log.read(first, 3) == expected[first - 1 : first + 2], (trial, first)
            assert [text.decode() for _, text in log.scan(first)] == expected[first - 1 :]
            assert [n for n, _ in log.scan(first)] == list(range(first, len(expected) + 1))


def test_an_overlong_line_is_cut_and_the_next_one_found(tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    path.write_bytes(b"a\n" + b"b" * (3 * rawlog.STEP) + b"\nc\n")
    log = opened(path)
    assert log.lines == 3
    assert log.read(2, 2) == ["b" * rawlog.LINE_CAP, "c"]
    assert log.read(3, 1) == ["c"]


def test_a_growing_file_shows_its_new_lines(tmp_path: Path) -> None:
    path = tmp_path / "grow.log"
    path.write_bytes(b"one\ntw")
    log = opened(path)
    assert log.lines == 2
    with path.open("ab") as more:
        more.write(b"o\nthree\n")
    while log.advance():
        pass
    assert log.lines == 3
    assert log.read(1, 9) == ["one", "two", "three"]


def test_finding_ignores_case_and_starts_where_told(tmp_path: Path) -> None:
    path = tmp_path / "find.log"
    path.write_bytes(b"Error a\nfine\nERROR b\nerror c\n")
    log = opened(path)
    assert list(log.find(b"error", 1, limit=9)) == [1, 3, 4]
    assert list(log.find(b"error", 2)) == [3]
    assert list(log.find(b"error", 1, ignore_case=False, limit=9)) == [4]
