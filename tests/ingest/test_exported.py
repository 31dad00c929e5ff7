"""Exports of log stores: one JSON array of records, a table as CSV."""

from __future__ import annotations

import csv
import io
import json

import pytest

from forensics import analyze
from forensics.ingest import from_text
from forensics.ingest.exported import records

TEXTS = [
    *(f"2026-11-29 20:15:{n:02d} INFO step {n} loss 2.1" for n in range(10, 20)),
    "[rank2]: Traceback (most recent call last):",
    '[rank2]:   File "/srv/app/train.py", line 12, in main',
    "[rank2]: ValueError: shard 7 is empty",
]
ROWS = [
    {"severity": "DEFAULT", "textPayload": text, "timestamp": f"2026-11-29T20:15:{n:02d}Z", "labels": {"a": [1, {"b": 2}]}}
    for n, text in enumerate(TEXTS, 10)
]


@pytest.mark.parametrize("rows", [ROWS, ROWS[::-1]], ids=["oldest first", "newest first"])
def test_an_array_is_read_as_its_records(rows: list[dict[str, object]]) -> None:
    text = json.dumps(rows, indent=2) + "\n"
    incident = analyze([text.encode()])
    assert incident.primary is not None and incident.primary.message == "shard 7 is empty"
    assert incident.verdict.rank is not None and incident.verdict.rank.number == 2
    shown = incident.primary.evidence[0].span
    record = "\n".join(text.splitlines()[shown.first_line - 1 : shown.last_line + 12])
    assert "shard 7 is empty" in record


def test_what_stands_before_the_cut_of_an_export_is_read() -> None:
    text = json.dumps(ROWS, indent=2)
    found = records(list(enumerate(text[: len(text) // 2].splitlines(), 1)))
    assert found is not None and 3 < len(found) < len(ROWS)
    assert [number for number, _ in found] == [2 + place * 13 for place in range(len(found))]
    assert json.loads(found[0][1])["textPayload"] == TEXTS[0]


@pytest.mark.parametrize("text", ["[2026-11-29 20:15:20 TP0] boom\n", "[1, 2, 3]\n", "[\n", "", "{}\n", "[{ torn\n", "step,loss,time\n1,2.5,3\n", 'time,message\n2026,"torn\n', "time,message\n"])
def test_other_texts_are_left_alone(text: str) -> None:
    assert records(list(enumerate(text.splitlines(), 1)) or [(1, "")]) is None
    assert [line.raw for line in from_text(text).lines] == text.splitlines()


def test_an_array_on_one_line_has_no_lines_to_point_at() -> None:
    assert records([(1, json.dumps(ROWS))]) is None


def _table(header: list[str], rows: list[list[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *rows])
    return out.getvalue()


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("turn", [1, -1], ids=["oldest first", "newest first"])
def test_a_table_is_read_as_its_rows(turn: int, end: str) -> None:
    rows = [[f"2026-11-29T20:15:{n:02d}Z", "node4", text] for n, text in enumerate(TEXTS, 10)]
    text = _table(["@timestamp", "host", "message"], rows[::turn]).replace("\n", end)
    incident = analyze([text.encode()])
    assert incident.primary is not None and incident.primary.message == "shard 7 is empty"
    assert incident.verdict.rank is not None and incident.verdict.rank.number == 2
    shown = incident.primary.evidence[0].span
    assert "shard 7 is empty" in "\n".join(text.splitlines()[shown.first_line - 1 : shown.last_line])


def test_a_cell_of_several_lines_is_one_record() -> None:
    text = _table(["Date", "Content"], [["2026-11-29T20:15:20Z", "one\ntwo"], ["2026-11-29T20:15:21Z", "three, or more"]])
    assert [(line.number, line.text) for line in from_text(text).lines] == [(2, "one"), (2, "two"), (4, "three, or more")]
