"""What a request quotes opens no window; what an engine says itself does, however deep in its line."""

from __future__ import annotations

from typing import Any

import pytest

from forensics import data
from forensics.ingest import Anchor, ReadOptions, read
from forensics.ingest.hits import SHALLOW, is_quoted
from forensics.ingest.wants import Wants
from forensics.match import load_signatures
from forensics.pipeline import anchors_for

WANTS = Wants(anchors_for(load_signatures([])))
ROWS: list[dict[str, Any]] = [row for _, content in data.folder("dialects") for row in content.get("request", ())]
PARAMETERS = ", params: SamplingParams(n=1, presence_penalty=0.0, frequency_penalty=0.0, temperature=0.7, top_p=1.0)" * 3
STACK = "".join(f"  frame {number}\n" for number in range(12))


def _is_quoted(line: str) -> bool:
    buf = bytearray(line.encode() + b"\n")
    hits = WANTS.engine.scan(buf)
    assert hits, "nothing is wanted of this line"
    return hits[0][0] > SHALLOW and is_quoted(WANTS.heads, buf, 0, 0, len(buf) - 1, hits, 0)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_what_stands_behind_a_requests_beginning_is_quoted(row: dict[str, Any]) -> None:
    assert row["examples"] and row["counterexamples"] and row["source"]
    for line in row["examples"]:
        assert row["literal"] in line
        assert _is_quoted(line)
    for line in row["counterexamples"]:
        assert not _is_quoted(line)


def _kept(line: str) -> list[str]:
    text = "calm\n" * 60 + line + "\n" + STACK + "calm\n" * 60
    anchors = [Anchor(b"Traceback (most recent call last)", 0, 12)]
    return [kept.text.strip() for kept in read([text.encode()], anchors, ReadOptions(whole_below=0, edge_lines=0)).lines]


def test_a_quoted_traceback_keeps_its_line_only() -> None:
    asked = "[2026-11-29 20:15:20] Receive: obj=GenerateReqInput(text='what is a Traceback (most recent call last): in it'" + PARAMETERS
    assert len(_kept(asked)) == 1


@pytest.mark.parametrize(
    "line",
    [
        "[2026-11-29 20:15:20 TP0] ERROR aborted GenerateReqInput(text='a long one, of many words and more') " + "x" * 40 + " Traceback (most recent call last):",
        "[2026-11-29 20:15:20 TP0] GenerateReqInput(text='x') is invalid: Traceback (most recent call last):",
        "[2026-11-29 20:15:20 TP0] Scheduler hit an exception while it was at the batch of five: Traceback (most recent call last):" + " " * 90,
    ],
    ids=["severe", "short", "no request"],
)
def test_what_an_engine_says_itself_keeps_its_window(line: str) -> None:
    assert "frame 11" in _kept(line)
