"""kill -9: five moments here, `python -m tests.trust.kills 100` for more."""

from __future__ import annotations

import sys

import pytest

from .kills import kills


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_killed_run_leaves_nothing_damaged() -> None:
    assert kills(1, seed=1000) == []
