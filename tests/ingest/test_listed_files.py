"""Of very many files that a folder lists nobody asks each one's size: all are read, whatever they turn out to be."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from forensics.ingest import Anchor, ReadOptions, files, pieces, read
from forensics.ingest.inputs import names_of
from forensics.ingest.shares import Shares
from forensics.ingest.small import BIGGEST, LISTED, Small
from forensics.ingest.wants import Wants

BOOM = [Anchor(b"BOOM", 1, 1)]
CALM = "[2026-11-29 20:15:20 TP0] calm\n" * 20


def _small() -> Small:
    return Small(Wants(BOOM), Shares(ReadOptions(whole_below=100), 300), 4096)


def _all(folder: Path, processes: int, *, asked: bool = False) -> tuple[object, ...]:
    """What is read; asked: each file's size was, as somebody watches the progress."""
    watch = (lambda done, total: None) if asked else None
    intake = read([str(folder)], BOOM, ReadOptions(whole_below=100, processes=processes, on_progress=watch))
    return intake.sources, intake.lines, intake.activity, intake.skipped, intake.repeats


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1,100 files: calm ones, an empty one, packed ones, tiny ones, and one that no buffer holds."""
    made = tmp_path_factory.mktemp("many")
    for number in range(1_100):
        (made / f"part_{number:04d}.log").write_text(CALM + (f"BOOM {number}\n" if number % 90 == 7 else "") + CALM)
    (made / "part_0011.log").write_text("")
    (made / "part_0012.log").write_bytes(b"\x00\x01\x02\x03" * 600)
    (made / "part_0013.log").write_bytes((CALM + "BOOM packed\n" + CALM).encode("utf-16"))
    (made / "part_0014.log").write_text("BOOM tiny\n")
    (made / "part_0999.log").write_text(CALM * (BIGGEST // len(CALM) + 9) + "BOOM big\n" + CALM)
    return made


@pytest.mark.parametrize("processes", [1, 2])
def test_what_is_read_does_not_depend_on_who_asked_for_sizes(folder: Path, processes: int) -> None:
    listed = _all(folder, processes)
    assert listed == _all(folder, processes, asked=True)
    assert len(listed[0]) == 1_099  # all but the binary one, which is skipped


def test_the_second_process_does_not_read_it_all(folder: Path) -> None:
    names = names_of([str(folder)], [])
    sizes = files._sampled(names)
    assert names.listed and len(sizes) == len(names) == 1_100
    rows: list[files.Sized] = [(name, LISTED) for name in names]
    parts = files._parts(rows, [1 << 20] * 1_100, ReadOptions(processes=2))
    assert [len(part) for part in parts] == [550, 550] and [*parts[0], *parts[1]] == rows
    ahead = files._parts(rows, [1 << 20] * 1_100, ReadOptions(processes=2, meanwhile=lambda: None))
    assert 480 < len(ahead[0]) < 550 and [*ahead[0], *ahead[1]] == rows


def test_a_giant_that_the_sample_missed_is_read_by_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(1_100):
        (tmp_path / f"part_{number:04d}.log").write_text(CALM)
    (tmp_path / "part_0003.log").write_text(CALM * (3 * BIGGEST // len(CALM)) + "BOOM\n" + CALM)
    monkeypatch.setattr(files, "BIG", BIGGEST)
    shared: list[str] = []
    scan_file = pieces.scan_file

    def watched(path: str, *rest: Any) -> Any:
        found = scan_file(path, *rest)
        shared.extend([path] if found is not None else [])
        return found

    monkeypatch.setattr(pieces, "scan_file", watched)
    found = read([str(tmp_path)], BOOM, ReadOptions(whole_below=100, processes=2))
    assert [path[-8:] for path in shared] == ["0003.log"]
    assert [line.text for line in found.lines if "BOOM" in line.text] == ["BOOM"] and len(found.sources) == 1_100


@pytest.mark.parametrize("size", [0, 100, BIGGEST, BIGGEST + 1])
def test_what_is_too_small_or_too_big_is_opened_as_any_other(tmp_path: Path, size: int) -> None:
    path = tmp_path / "one"
    path.write_bytes(b"x" * size)
    assert _small().taken(str(path), LISTED) is None
    path.write_bytes(b"x" * (BIGGEST - 1))
    taken = _small().taken(str(path), LISTED)
    assert taken is not None and taken.size == BIGGEST - 1


def test_a_file_that_goes_on_is_not_taken_for_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network's file system may give less than there is."""
    path = tmp_path / "one"
    path.write_text(CALM)

    def some(file: int, views: tuple[memoryview]) -> int:
        data = os.read(file, 200)
        views[0][: len(data)] = data
        return len(data)

    monkeypatch.setattr(os, "readv", some)
    assert _small().taken(str(path), LISTED) is None


def test_only_folders_of_plain_files_are_known_to_hold_just_these(tmp_path: Path) -> None:
    inside = tmp_path / "run"
    inside.mkdir()
    (inside / "a.log").write_text("a")
    assert names_of([str(tmp_path)], []).listed
    assert not names_of([str(tmp_path), str(inside / "a.log")], []).listed
    assert not names_of(["-"], []).listed
    os.symlink(inside / "a.log", inside / "b.log")
    assert not names_of([str(tmp_path)], []).listed
