"""`forensics repro` as a command: what it writes, what it says, and its exit codes."""

from __future__ import annotations

import ast
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[bytes]]

SHAPE = b"""Traceback (most recent call last):
  File "/srv/engine/model.py", line 60, in forward
    return linear(x, self.weight)
RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x8 and 16x32)
"""
SMEM = b"""[2026-11-29 20:14:57 TP0] device=NVIDIA H200 capability=(9, 0) torch=2.11.0+cu130 cuda=13.0
Traceback (most recent call last):
  File "/srv/engine/moe.py", line 60, in forward
    kernel[grid](a, b, c, BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, num_stages=5)
triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 245760, Hardware limit: 232448. Reducing block sizes
"""
NO_RECIPE = b"""Traceback (most recent call last):
  File "/srv/app.py", line 6, in main
    load(path)
FileNotFoundError: [Errno 2] No such file or directory: '/models/a/config.json'
"""


def test_the_script_goes_to_standard_output_or_to_a_file(forensics: Run, tmp_path: Path) -> None:
    log = tmp_path / "crash.log"
    log.write_bytes(SHAPE)
    shown = forensics("repro", str(log))
    assert shown.returncode == 0 and b"recipe torch-shape" in shown.stderr
    ast.parse(shown.stdout)
    target = tmp_path / "repro.py"
    written = forensics("repro", str(log), "-o", str(target))
    assert written.returncode == 0 and not written.stdout
    assert target.stat().st_mode & 0o111 and b"'inner_a': 8" in target.read_bytes()


def test_a_pipe_and_a_report_give_the_same_script(forensics: Run, tmp_path: Path) -> None:
    log, report = tmp_path / "crash.log", tmp_path / "report.json"
    log.write_bytes(SHAPE)
    report.write_bytes(forensics("analyze", str(log), "--format", "json").stdout)

    def parameters(done: subprocess.CompletedProcess[bytes]) -> object:
        assert done.returncode == 0, done.stderr
        tree = ast.parse(done.stdout)
        return next(
            ast.literal_eval(n.value)
            for n in tree.body
            if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "PARAMETERS"
        )

    own = {"op": "matmul", "rows": 4, "inner_a": 8, "inner_b": 16, "columns": 32}
    expected = own | {"batch_a": 2, "batch_b": 2, "columns_b": 8}  # those of its other ops
    assert parameters(forensics("repro", str(log))) == expected
    assert parameters(forensics("repro", str(report))) == expected
    assert parameters(forensics("repro", stdin=SHAPE)) == expected


def test_run_says_what_came_of_it(forensics: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    done = forensics("repro", "--run", stdin=SHAPE)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith(b"reproduced: ") and b"= category: shape_or_dtype_assert" in done.stdout
    assert b"  | RuntimeError: mat1 and mat2 shapes" in done.stderr, "the child's output is shown while it runs"
    quiet = forensics("repro", "--run", "-q", "--format", "json", "--variant", "fitting", stdin=SHAPE)
    answer = json.loads(quiet.stdout)
    assert (quiet.returncode, answer["outcome"], answer["schema"]) == (0, "works", "forensics-repro/1")
    assert b"  | " not in quiet.stderr


def test_a_wrong_gpu_cannot_be_tried(forensics: Run) -> None:
    pytest.importorskip("torch")
    done = forensics("repro", "--run", "-q", "--format", "json", stdin=SMEM)
    assert done.returncode == 125 and json.loads(done.stdout)["outcome"] == "cannot_try"


def test_compile_only_through_the_command(forensics: Run) -> None:
    pytest.importorskip("triton")
    refused = forensics("repro", "--compile-only", "--gpu", "RTX PRO 6000", "--format", "json", stdin=SMEM)
    compiles = forensics("repro", "--compile-only", stdin=SMEM)
    assert (refused.returncode, json.loads(refused.stdout)["kind"]) == (1, "shared memory")
    assert (compiles.returncode, compiles.stdout.split(b":")[0]) == (0, b"compiles"), "the log's own GPU is the target"


@pytest.mark.parametrize(
    ("words", "log", "code"),
    [
        ((), NO_RECIPE, 3),
        (("--run",), NO_RECIPE, 125),
        (("--compile-only", "--gpu", "sm_90"), NO_RECIPE, 125),
        ((), b"step 1 loss 2.0\nstep 2 loss 1.9\ndone\n", 3),
        (("--run", "--compare"), SHAPE, 2),
        (("--set", "rows"), SHAPE, 2),
        (("--set", "rows=-3"), SHAPE, 2),
        (("--set", "nothing=3"), SHAPE, 2),
        (("--recipe", "no-such-recipe"), SHAPE, 2),
        (("--run", "--variant", "nothing"), SHAPE, 2),
        (("--compile-only", "--gpu", "a toaster"), SMEM, 2),
        (("--compile-only",), SHAPE, 2),
        (("--run", "--python", "/nonexistent/python"), SHAPE, 4),
    ],
)
def test_exit_codes(forensics: Run, words: tuple[str, ...], log: bytes, code: int) -> None:
    done = forensics("repro", *words, stdin=log)
    assert done.returncode == code, done.stderr
    assert done.stderr and b"Traceback" not in done.stderr


def test_a_missing_input(forensics: Run) -> None:
    done = forensics("repro", "/nonexistent/crash.log")
    assert done.returncode == 4 and b"Traceback" not in done.stderr


def test_a_parameter_given_by_hand_is_in_the_script(forensics: Run) -> None:
    done = forensics("repro", "--set", "rows=77", stdin=SHAPE)
    assert b"'rows': 77,  # given by hand" in done.stdout


def test_the_list(forensics: Run) -> None:
    text, rows = forensics("repro", "--list"), json.loads(forensics("repro", "--list", "--format", "json").stdout)
    assert len(text.stdout.splitlines()) == len(rows) >= 30
    assert all(row["variants"][0] == "as-logged" for row in rows)


def test_a_bug_report_without_a_run(forensics: Run) -> None:
    done = forensics("repro", "--issue", stdin=SHAPE.replace(b"/srv/engine", b"/home/anna/engine"))
    assert done.returncode == 0 and b"It was not run" in done.stdout
    assert b"anna" not in done.stdout and b"```python" in done.stdout


def test_hostile_names_of_logs(forensics: Run, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    log = tmp_path / "x');open('marker','w');(' \n\"\"\".log"
    log.write_bytes(SHAPE)
    target = tmp_path / "r.py"
    assert forensics("repro", str(log), "-o", str(target)).returncode == 0
    ast.parse(target.read_text())
    subprocess.run([str(target), "--variant", "none"], cwd=tmp_path, capture_output=True, check=False)
    assert not marker.exists()
