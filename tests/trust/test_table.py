"""The table of docs/security.md is what the tests are, and every test it names exists."""

from __future__ import annotations

import re
from pathlib import Path

from .mutations import ROWS, table

ROOT = Path(__file__).parent.parent.parent


def test_the_document_has_the_table() -> None:
    assert table() in (ROOT / "docs" / "security.md").read_text(encoding="utf-8"), "python -m tests.trust.mutations --table"


def test_every_test_it_names_exists() -> None:
    for name in {test for row in ROWS for test in row.tests.split()}:
        path, _, function = name.partition("::")
        text = (ROOT / path).read_text(encoding="utf-8")
        assert not function or re.search(rf"^def {function}\(", text, re.M), name


def test_every_defence_is_where_the_table_says() -> None:
    """The edit that takes a defence out still finds it (`python -m tests.trust.mutations` then wants the tests to fail)."""
    lost = [row.threat for row in ROWS if row.file and row.old not in (ROOT / row.file).read_text(encoding="utf-8")]
    assert not lost
