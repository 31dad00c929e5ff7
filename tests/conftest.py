"""What every test shares: the samples, and a command line that runs in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SAMPLES = ROOT / "sample_logs"


@pytest.fixture(scope="session")
def samples() -> Path:
    """The folder of sample logs."""
    return SAMPLES


@pytest.fixture
def forensics() -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Runs `forensics WORDS…` in a new process; `stdin` is what is piped in."""

    def run(*words: str, stdin: bytes | None = None, **env: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "forensics", *words],
            input=stdin if stdin is not None else b"",
            capture_output=True,
            timeout=120,
            env={**os.environ, "COLUMNS": "100", **env},
            check=False,
        )

    return run
