"""Logs as text to incidents."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from forensics.model.verdict import Failure, Incident
from forensics.pipeline import analyze

Told = Callable[..., Incident]


def primary(incident: Incident) -> Failure:
    """The failure that started it; fails the test where there is none."""
    assert incident.primary is not None
    return incident.primary


def number(incident: Incident) -> int | None:
    """The global number of the rank that is blamed, None where there is none."""
    return incident.verdict.rank.number if incident.verdict.rank else None


@pytest.fixture
def told(tmp_path: Path) -> Told:
    """Writes texts to files (one each) and analyses them together."""

    def run(*texts: str, **options: object) -> Incident:
        paths = []
        for number, text in enumerate(texts):
            path = tmp_path / f"{chr(97 + number)}.log"
            path.write_text(text, encoding="utf-8")
            paths.append(path)
        return analyze(paths, **options)  # type: ignore[arg-type]

    return run
