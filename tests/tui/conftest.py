"""An app over a sample log, analysed in this process."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from forensics.model.verdict import Incident
from forensics.pipeline import analyze
from forensics.tui.app import TriageApp

SAMPLES = Path(__file__).parents[2] / "sample_logs"


@functools.cache
def analysed(path: str) -> Incident:
    """Each log once: screens are under test here, not the analysis."""
    return analyze([path])


class Ready(TriageApp):
    """Shows the verdict as soon as it is mounted."""

    def analyse(self) -> None:
        """In this process, at once."""
        self.show_incident(analysed(self.inputs[0]))


@pytest.fixture
def app(tmp_path: Path) -> Callable[[str], Ready]:
    """app("all_ranks_moe") -> an app over a copy of that sample, so that notes are written beside the copy."""

    def make(name: str) -> Ready:
        source = next(iter(sorted((SAMPLES / name).glob("*.log"))))
        copy = tmp_path / source.name
        copy.write_bytes(source.read_bytes())
        return Ready([str(copy)])

    return make
