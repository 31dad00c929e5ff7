"""Every row of the prefix table holds its own examples and counterexamples."""

from __future__ import annotations

import pytest

from forensics.ingest import from_text
from forensics.ingest.dialects import Dialect, Table, rows
from forensics.ingest.lines import LineMaker
from forensics.model.source import LogLine
from forensics.parse import progress


def _first(text: str, row: Dialect) -> LogLine:
    sample = [text] * 4 if row.weak else [text]
    return LineMaker(0, None, sample).parse(1, text)[0]


def _dialects(text: str, row: Dialect) -> tuple[str, ...]:
    from forensics.ingest.dialects import Table

    return Table(frozenset([row.id])).peel(text).dialects


@pytest.mark.parametrize(
    ("row", "example"), [pytest.param(r, e, id=f"{r.id}-{i}") for r in rows() for i, e in enumerate(r.examples)]
)
def test_example(row: Dialect, example: dict[str, object]) -> None:
    text = str(example["text"])
    assert row.id in _dialects(text, row)
    line = _first(text, row)
    assert line.text == example["rest"]
    for key, want in example.items():
        if key in ("text", "rest"):
            continue
        if key == "rank_label":
            got: object = line.rank.label if line.rank else None
        elif key == "pid":
            got = line.rank.pid if line.rank else int(line.stream.partition("pid=")[2] or -1)
        else:
            got = getattr(line, key)
        assert got == (pytest.approx(want) if isinstance(want, float) else want), key


@pytest.mark.parametrize(
    ("row", "example"), [pytest.param(r, e, id=f"{r.id}-{i}") for r in rows() for i, e in enumerate(r.counterexamples)]
)
def test_counterexample(row: Dialect, example: dict[str, object]) -> None:
    assert row.id not in _dialects(str(example["text"]), row), example["because"]


def test_a_step_in_the_lines_of_an_engine_that_trains_nothing_is_none() -> None:
    assert {row.id.split(".")[0] for row in rows() if row.serves} == {"sglang", "vllm", "trtllm", "llama_cpp"}
    said = "Step 2 of the clean-up: loss 3"
    for prefix, count in (("[2026-11-29 20:15:20 TP1] ", 0), ("INFO 11-29 20:15:20 [core.py:515] ", 0), ("[rank1]: ", 1), ("", 1)):
        assert len(progress.parse(from_text(f"{prefix}{said}\n"))) == count, prefix


def test_every_row_has_both() -> None:
    for row in rows():
        assert row.examples and row.counterexamples and row.title, row.id
    assert len({row.id for row in rows()}) == len(rows())


@pytest.mark.parametrize("order", [1, -1])
def test_what_follows_a_long_prefix_is_peeled_whatever_followed_it_before(order: int) -> None:
    prefix = "(RayWorkerWrapper pid=12, ip=10.0.0.2) ERROR 11-29 20:15:20 worker_base.py:464] "
    lines = [f"{prefix}Traceback (most recent call last):", f"{prefix}**RuntimeError: shapes (4x8 and 9x2)"]
    fresh = Table()
    found = {line: fresh.peel(line).text for line in lines[::order]}
    assert [found[line] for line in lines] == ["Traceback (most recent call last):", "RuntimeError: shapes (4x8 and 9x2)"]
