"""Logs whose newest lines come first: read in the order of time, shown with the file's own numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forensics import analyze
from forensics.ingest import from_text
from forensics.ingest.newest import is_newest_first
from forensics.model.source import LogLine
from forensics.model.verdict import Category, Status
from forensics.report import render

STEPS = [f"2026-11-29T20:15:{n:02d}.100000000Z stderr F step {n} loss 2.1" for n in range(10, 40)]
CRASH = [
    f"2026-11-29T20:15:41.{n}00000000Z stderr F {text}"
    for n, text in enumerate(
        [
            "[rank1]: Traceback (most recent call last):",
            '[rank1]:   File "/srv/app/train.py", line 71, in <module>',
            "[rank1]:     main()",
            '[rank1]:   File "/srv/app/train.py", line 12, in main',
            '[rank1]:     raise ValueError("shard 7 is empty")',
            "[rank1]: ValueError: shard 7 is empty",
        ]
    )
]
LINES = STEPS + CRASH


def test_the_verdict_is_that_of_the_log_turned_round_and_the_lines_are_the_files(tmp_path: Path) -> None:
    path = tmp_path / "export.log"
    path.write_text("\n".join(reversed(LINES)) + "\n")
    found, forward = analyze([str(path)]), analyze(["\n".join(LINES).encode()])
    assert (found.status, found.verdict.category) == (forward.status, forward.verdict.category) == (Status.CRASHED, Category.USER_CODE)
    assert found.primary is not None and found.primary.message == "shard 7 is empty"
    assert found.verdict.rank is not None and found.verdict.rank.number == 1
    rows = path.read_text().splitlines()
    report = json.loads(render(found, "json"))
    for proof in (*report["verdict"]["evidence"], *report["primary"]["evidence"]):
        shown = rows[proof["first_line"] - 1 : proof["last_line"]]
        assert any(line in proof["quote"] for line in shown), "a span shows its own lines"
    logged = [frame["log_line"] for frame in report["primary"]["frames"]]
    assert [rows[number - 1] for number in logged] == [CRASH[1], CRASH[3]]


def test_one_file_may_be_turned_and_another_not(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("\n".join(reversed(LINES)) + "\n")
    (tmp_path / "b.log").write_text("\n".join(line.replace("rank1", "rank2") for line in STEPS) + "\n")
    found = analyze([str(tmp_path)])
    assert found.primary is not None and found.primary.evidence[0].span.first_line <= 6
    assert [source.turn for source in found.sources] == [len(LINES) + 1, 0]


@pytest.mark.parametrize(
    ("order", "is_it"),
    [
        ([9, 8, 7, 6, 5], True),
        ([9, 8, 8, 8, 7, 6], True),  # a burst of one moment
        ([1, 2, 3, 4, 5], False),
        ([5, 4, 3], False),  # too few to tell
        ([5, 9, 4, 8, 3, 7, 2, 6], False),  # two writers
        ([5, 4, 3, 2, 9], False),
        ([], False),
    ],
)
def test_only_times_that_fall_from_line_to_line_are_such(order: list[int], is_it: bool) -> None:
    lines = [LogLine(0, number, "x", "x", time=float(second)) for number, second in enumerate(order, 1)]
    assert is_newest_first(lines) is is_it


def test_records_of_several_lines_keep_their_order() -> None:
    text = "\n".join(json.dumps({"time": f"2026-11-29T20:15:{n:02d}Z", "message": f"{n} first\n{n} second"}) for n in range(30, 20, -1))
    lines = from_text(text).lines
    assert [line.text for line in lines[:4]] == ["21 first", "21 second", "22 first", "22 second"]
    assert [line.number for line in lines[:4]] == [1, 1, 2, 2]
