"""torchrun's log folders: DIR/RUN/attempt_N/LOCAL_RANK/stderr.log."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import analyze
from forensics.model.verdict import Category

SAID = "[rank{rank}]:[W1129 20:15:0{local}.100000000 ProcessGroupNCCL.cpp:5068] Guessing device ID based on global rank. This can cause a hang.\n"
FAILED = """\
Traceback (most recent call last):
  File "/srv/app/train.py", line 71, in <module>
    main()
  File "/srv/app/train.py", line 12, in main
    raise ValueError("{}")
ValueError: {}
"""


def _write(folder: Path, attempt: int, local: int, text: str) -> None:
    place = folder / f"attempt_{attempt}" / str(local)
    place.mkdir(parents=True, exist_ok=True)
    (place / "stderr.log").write_text(text)


def _rank(folder: Path) -> int | None:
    incident = analyze([str(folder)])
    return incident.verdict.rank.number if incident.verdict.rank is not None else None


@pytest.mark.parametrize("silent", [False, True])
def test_a_file_that_names_no_rank_has_that_of_its_place(tmp_path: Path, silent: bool) -> None:
    for node in range(3):
        for local in range(4):
            failed = node == 2 and local == 3
            said = "" if failed and silent else SAID.format(rank=4 * node + local, local=local)
            _write(tmp_path / f"node{node}", 0, local, said + (FAILED.format("a", "a") if failed else ""))
    assert _rank(tmp_path) == 11


@pytest.mark.parametrize("ranks", [{0: 4}, {0: 4, 1: 9}, {}])
def test_a_folder_that_says_too_little_or_two_things_tells_nothing(tmp_path: Path, ranks: dict[int, int]) -> None:
    for local in range(4):
        said = SAID.format(rank=ranks[local], local=local) if local in ranks else ""
        _write(tmp_path, 0, local, said + (FAILED.format("a", "a") if local == 3 else "starting\n"))
    incident = analyze([str(tmp_path)])
    assert incident.verdict.rank is not None and (incident.verdict.rank.label, incident.verdict.rank.number) == ("local rank 3", None)


def test_each_attempt_is_a_run_and_the_last_one_decides(tmp_path: Path) -> None:
    for attempt, (bad, words) in enumerate([(1, "the first shard"), (2, "the second shard")]):
        for local in range(4):
            failed = FAILED.format(words, words)
            if attempt:
                failed = failed.replace("ValueError", "IndexError").replace("line 12, in main", "line 90, in save")
            text = SAID.format(rank=local, local=local) + (failed if local == bad else "")
            _write(tmp_path, attempt, local, text)
    incident = analyze([str(tmp_path)])
    assert incident.primary is not None and incident.primary.message == "the second shard" and incident.verdict.category is Category.USER_CODE
    assert [other.rank.number for other in incident.others if other.rank] == [1]
    first = analyze([str(tmp_path)], incident=1)
    assert first.primary is not None and first.primary.message == "the first shard"
