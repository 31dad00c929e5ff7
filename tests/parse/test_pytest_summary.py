"""Tests of which only pytest's summary tells that they failed."""

from __future__ import annotations

import pytest

from forensics.ingest import from_text
from forensics.model.event import EventKind
from forensics.parse import anchors, parse

HEAD = "============================= test session starts ==============================\ncollected 14 items\n\n"
SUMMARY = "=========================== short test summary info ============================\n"
END = "======================== 1 failed, 13 passed in 82.11s =========================\n"


def _events(text: str) -> list[tuple[str, str | None, str]]:
    return [(event.kind, event.type, event.message) for event in parse(from_text(text, anchors=anchors())) if event.parser == "pytest_summary"]


@pytest.mark.parametrize(
    ("row", "kind", "type_", "message"),
    [
        ("FAILED tests/test_moe.py::test_it[fp8-128] - ValueError: bad head size", EventKind.PYTHON, "ValueError", "bad head size"),
        ("ERROR tests/test_ops.py - ImportError: libcudart.so.12: cannot open", EventKind.PYTHON, "ImportError", "libcudart.so.12: cannot open"),
        ("FAILED tests/test_moe.py::TestIt::test_it - assert 3 == 4", EventKind.PYTHON, "AssertionError", "assert 3 == 4"),
        ("FAILED tests/test_moe.py::test_it", EventKind.MESSAGE, None, "tests/test_moe.py::test_it failed"),
    ],
)
def test_a_row_of_the_summary_is_a_failure(row: str, kind: str, type_: str | None, message: str) -> None:
    assert _events(HEAD + SUMMARY + row + "\n" + END) == [(kind, type_, message)]


def test_what_is_shown_in_full_is_not_told_twice() -> None:
    shown = "=================================== FAILURES ===================================\n"
    row = "FAILED tests/test_moe.py::test_it - ValueError: bad head size\n"
    assert not _events(HEAD + shown + SUMMARY + row + END)


@pytest.mark.parametrize("row", ["SKIPPED [1] tests/test_moe.py:12: needs two GPUs", "XFAIL tests/test_moe.py::test_it - known", "FAILED to open the pod bay doors"])
def test_other_rows_are_none(row: str) -> None:
    assert not _events(HEAD + SUMMARY + row + "\n" + END.replace("1 failed, ", "")) and not _events(row + "\n")
