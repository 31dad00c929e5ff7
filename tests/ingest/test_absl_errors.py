"""Error lines of absl's and glog's loggers in the middle of a big log."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import parse
from forensics.ingest import ReadOptions, read

CALM = "2026-05-23 12:00:41.000123: I external/xla/xla/stream.cc:80] iteration finished in 7 us\n"
ERROR = "2026-05-23 12:07:41.000123: E external/xla/xla/client.cc:123] lost the connection to shard 7\n"


def test_they_are_kept() -> None:
    text = (CALM * 20_000 + ERROR + CALM * 20_000).encode()
    intake = read([text], parse.anchors(), ReadOptions(whole_below=0, edge_lines=10))
    assert [line.number for line in intake.lines if "lost the connection" in line.text] == [20_001]
    assert len(intake.lines) < 500  # the calm ones are not


GLOG = "I0523 12:00:41.000123 71 server.cc:80] iteration finished in 7 us\n"
GLOG_ERROR = "E0523 12:07:41.000123 71 pool.cc:123] lost the connection to shard 7\n"


@pytest.mark.parametrize("at", [0, 1, 19_000, 39_999])
def test_glogs_are_kept_by_their_letter(at: int) -> None:
    lines = [GLOG] * 40_000
    lines[at] = GLOG_ERROR
    intake = read(["".join(lines).encode()], parse.anchors(), ReadOptions(whole_below=0, edge_lines=0))
    assert [line.number for line in intake.lines if line.level == "ERROR"] == [at + 1]
    assert len(intake.lines) < 500


@pytest.mark.parametrize("processes", [1, 2])
def test_glogs_are_kept_whoever_reads_them(tmp_path: Path, processes: int) -> None:
    """One of very many files, and the second half of a big one."""
    for number in range(300):
        (tmp_path / f"rank_{number}.log").write_text(GLOG * 300 + (GLOG_ERROR if number == 271 else "") + GLOG * 300)
    intake = read([str(tmp_path)], parse.anchors(), ReadOptions(whole_below=0, processes=processes))
    assert [(line.rank and line.rank.number, line.number) for line in intake.lines if line.level == "ERROR"] == [(271, 301)]


def test_such_words_in_another_log_are_no_errors() -> None:
    lines = ["step 7 took 8 ms\n"] * 40_000
    lines[19_000] = GLOG_ERROR.replace("pool.cc:123]", "is the name of a file")
    intake = read(["".join(lines).encode()], parse.anchors(), ReadOptions(whole_below=0, edge_lines=0))
    assert not [line for line in intake.lines if "name of a file" in line.text]
