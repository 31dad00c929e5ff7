"""What a user's program sees of the public API under mypy --strict."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")
ROOT = Path(__file__).parent.parent.parent

PROGRAM = """
import forensics
from forensics import ForensicsError, Incident, analyze, render


def story(path: str) -> str:
    try:
        incident: Incident = analyze([path, b"more"], gpu="H100")
    except ForensicsError as error:
        return f"{error.what}: {error.why} {int(error.code)}"
    root = incident.primary
    lines = [incident.verdict.title, incident.verdict.category.value, str(incident.coverage.lines)]
    lines += [f"{one.span.first_line}: {one.quote}" for one in incident.verdict.evidence]
    if root is not None:
        lines.append(f"{root.root_type} {root.root_message} {root.rank.label if root.rank else ''}")
    text: str = render(incident, "markdown", explain=True, redact=False)
    return "\\n".join([*lines, text, *forensics.__all__])
"""
WRONG = """
import forensics
from forensics import analyze
forensics.analise
count: int = analyze(["a.log"]).verdict.title
analyze(5)
"""


def _checked(text: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    program = tmp_path / "program.py"
    program.write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir", str(tmp_path / "cache"), "program.py"]
    env = {"MYPYPATH": str(ROOT), "PATH": ""}
    return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=False)


def _of_the_program(told: str) -> list[str]:
    return [line for line in told.splitlines() if line.startswith("program.py")]


@pytest.mark.slow
def test_a_program_of_a_user_is_checked_against_the_types(tmp_path: Path) -> None:
    """py.typed says that there are types; what is public has them all."""
    assert (ROOT / "forensics" / "py.typed").exists()
    done = _checked(PROGRAM, tmp_path)
    assert not _of_the_program(done.stdout), done.stdout + done.stderr
    wrong = _of_the_program(_checked(WRONG, tmp_path).stdout)
    assert {line.split(":")[1] for line in wrong} == {"4", "5", "6"}, wrong
