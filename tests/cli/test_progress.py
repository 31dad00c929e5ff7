"""The progress bar: only on a terminal, only after a while, on standard error."""

from __future__ import annotations

import io
import sys

import pytest

from forensics.cli import progress
from forensics.cli.progress import Progress


class Terminal(io.StringIO):
    """Standard error on a terminal."""

    def isatty(self) -> bool:
        return True


def test_not_on_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with Progress() as bar:
        assert bar.callback is None


def test_not_when_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with Progress(silent=True) as bar:
        assert bar.callback is None


def test_not_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "PATIENCE_S", 3600.0)
    with Progress() as bar:
        bar.callback(1000, 2000)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("total", [2_000_000, None])
def test_after_a_while(monkeypatch: pytest.MonkeyPatch, total: int | None) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "PATIENCE_S", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    with Progress() as bar:
        for done in range(0, 2_000_000, 500_000):
            bar.callback(done, total)
    assert "reading" in terminal.getvalue()
