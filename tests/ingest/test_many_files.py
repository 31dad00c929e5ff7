"""Very many inputs: each still tells of its rank, and what all say alike is not kept around again and again."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.ingest import Anchor, ReadOptions, read
from forensics.ingest.retain import _ALIKE

CALM = "calm {n}\n" * 400


def _folder(tmp_path: Path, files: int, text: str) -> str:
    for number in range(files):
        (tmp_path / f"rank_{number}.log").write_text(CALM + text.format(n=number) + CALM)
    return str(tmp_path)


@pytest.mark.parametrize("processes", [1, 2])
def test_every_rank_keeps_its_failure_and_the_first_their_surroundings(tmp_path: Path, processes: int) -> None:
    folder = _folder(tmp_path, 300, "BOOM at step {n}\nafter\n")
    intake = read([folder], [Anchor(b"BOOM", 2, 3)], ReadOptions(whole_below=0, processes=processes))
    booms = [line for line in intake.lines if "BOOM" in line.text]
    assert {line.rank.number for line in booms if line.rank} == set(range(300))
    around = [line for line in intake.lines if line.text == "after"]
    assert len(around) == _ALIKE * processes
    assert len(intake.sources) == 300 and all(source.lines == 802 for source in intake.sources)


def test_a_failure_of_its_own_keeps_its_surroundings(tmp_path: Path) -> None:
    folder = _folder(tmp_path, 300, "BOOM at step {n}\nafter\n")
    Path(folder, "rank_299.log").write_text(CALM + "another BOOM\nafter\n" + CALM)
    intake = read([folder], [Anchor(b"BOOM", 2, 3)], ReadOptions(whole_below=0, processes=1))
    odd = next(index for index, line in enumerate(intake.lines) if line.text == "another BOOM")
    assert intake.lines[odd + 1].text == "after"


def test_stacks_are_kept_whole_in_every_file(tmp_path: Path) -> None:
    stack = "BOOM {n}\n" + "".join(f"  frame {k}\n" for k in range(20))
    folder = _folder(tmp_path, 300, stack)
    intake = read([folder], [Anchor(b"BOOM", 0, 24)], ReadOptions(whole_below=0, processes=1))
    assert sum(line.text.strip() == "frame 19" for line in intake.lines) == 300
