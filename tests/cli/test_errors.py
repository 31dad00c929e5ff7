"""Every error of the command line says what, why, where and what to do."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
Run = Callable[..., subprocess.CompletedProcess[bytes]]

WRONG = (
    ["no/such.log"], ["--format", "bogus", "x"], ["--rank"], ["--since", "soon", "LOG"], ["--since", "nan", "LOG"], ["--gpu", "bogus", "LOG"],
    ["LOG", "--rank", "99"], ["LOG", "--incident", "99"], ["LOG", "--since", "2099-01-01T00:00:00"], ["LOG", "--output", "no/such/folder/x.md"],
    ["LOG", "--signatures", "no/such"], ["gpu"], ["gpu", "bogus"], ["support", "bogus"], ["binary", "no/such"], ["diff", "LOG"],
    ["diff", "LOG", "no/such"], ["repro", "no/such"], ["repro", "LOG", "--recipe", "bogus"], ["repro", "LOG", "--timeout", "nan"],
    ["repro", "LOG", "--run", "--compare"], ["tui", "no/such"], ["signatures", "show", "bogus"], ["signatures", "bogus"], ["signatures", "new", "X"],
    ["signatures", "check", "no/such"], ["completion", "bogus"], ["schema", "x"],
)  # fmt: skip


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_four_parts(words: list[str], forensics: Run, samples: Path) -> None:
    log = str(samples / "cpu_matmul_shape" / "cpu_matmul_shape.log")
    log = log if os.path.exists(log) else str(samples / "one_oom" / "one_oom.log")
    done = forensics(*[log if word == "LOG" else word for word in words])
    told = done.stderr.decode()
    assert done.returncode in (2, 4) and done.stdout.count(b"Traceback") == 0
    assert re.search(r"^error: [^\n]+: [^\n]+(\n(?!  (?:where|help):)[^\n]*)*\n  where: \S[^\n]*(\n         [^\n]*)*\n  help:  \S", told, re.M), told


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell")
def test_without_standard_input_there_is_no_input() -> None:
    done = subprocess.run(["bash", "-c", f'"{sys.executable}" -m forensics <&-'], capture_output=True, cwd=ROOT, timeout=60, check=False)
    assert done.returncode == 2 and not done.stdout
    assert b"no input: no PATH is given and standard input is closed" in done.stderr and b"\n  where: " in done.stderr


def test_a_file_that_looks_like_an_option(tmp_path: Path) -> None:
    (tmp_path / "-rf.log").write_text("x\n")
    command = [sys.executable, "-m", "forensics"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*command, "-rf.log"], capture_output=True, cwd=tmp_path, env=env, timeout=60, check=False)
    assert done.returncode == 2 and b"./-rf.log" in done.stderr
    for words in (["./-rf.log"], ["--", "-rf.log"]):
        done = subprocess.run([*command, *words], capture_output=True, cwd=tmp_path, env=env, timeout=60, check=False)
        assert done.returncode == 3 and b"error" not in done.stderr.lower(), words


def test_every_error_in_the_code_has_its_reason() -> None:
    """where and help have stand-ins (the command, its --help); the reason has none."""
    bare = []
    for path in (ROOT / "forensics").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("ForensicsError", "UsageError"):
                names = {keyword.arg for keyword in node.keywords}
                bare += [f"{path.name}:{node.lineno}"] if "why" not in names and None not in names else []
    assert not bare
