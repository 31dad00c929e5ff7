"""Error lines of absl's logger in the middle of a big log."""

from __future__ import annotations

from forensics import parse
from forensics.ingest import ReadOptions, read

CALM = "2026-05-23 12:00:41.000123: I external/xla/xla/stream.cc:80] iteration finished in 7 us\n"
ERROR = "2026-05-23 12:07:41.000123: E external/xla/xla/client.cc:123] lost the connection to shard 7\n"


def test_they_are_kept() -> None:
    text = (CALM * 20_000 + ERROR + CALM * 20_000).encode()
    intake = read([text], parse.anchors(), ReadOptions(whole_below=0, edge_lines=10))
    assert [line.number for line in intake.lines if "lost the connection" in line.text] == [20_001]
    assert len(intake.lines) < 500  # the calm ones are not
