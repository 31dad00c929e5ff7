"""The script by itself: every outcome and its exit code, limits, and what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from forensics.repro.planning import Plan
from forensics.repro.render import render
from tests.repro.conftest import execute

Make = Callable[..., Plan]
FAILS = "def call():\n    raise ValueError('the wanted failure of run 12')\nreturn call"
WORKS = "return lambda: None"


@pytest.mark.parametrize(
    ("body", "code", "outcome", "why"),
    [
        (WORKS, 0, "works", "the op ran"),
        (FAILS, 1, "reproduced", "the same error"),
        ("raise ValueError('the wanted failure, while preparing')", 1, "reproduced", "the same error"),
        ("raise ValueError('something else')", 125, "different_failure", "something else than the log"),
        ("raise TypeError('the wanted failure')", 125, "different_failure", "the exception is not"),
        (
            "try:\n    raise ValueError('the wanted failure')\nexcept ValueError as e:\n    raise RuntimeError('outer') from e",
            1,
            "reproduced",
            "same",
        ),
        ("raise CannotTry('no such card')", 125, "cannot_try", "no such card"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", 125, "different_failure", "SIGSEGV"),
        ("os._exit(3)", 125, "different_failure", "exit"),
        ("os._exit(0)", 125, "different_failure", "without a word"),
        ("raise SystemExit('bye')", 125, "different_failure", "something else"),
        ("raise KeyboardInterrupt", 125, "different_failure", "something else"),
    ],
)
def test_every_outcome_has_its_exit_code(
    plan_with: Make, tmp_path: Path, body: str, code: int, outcome: str, why: str
) -> None:
    got, result, _ = execute(plan_with(body), tmp_path)
    assert (got, result["outcome"]) == (code, outcome), result
    assert why in result["why"]


def test_a_signal_that_the_log_shows_is_reproduced(plan_with: Make, tmp_path: Path) -> None:
    plan = plan_with(
        "os.kill(os.getpid(), signal.SIGABRT)",
        signs=[{"id": "s", "pattern": "the wanted failure", "signal": "SIGABRT"}],
    )
    code, result, _ = execute(plan, tmp_path)
    assert (code, result["error"]["type"]) == (1, "SIGABRT")


@pytest.mark.parametrize(("hang", "code"), [(False, 125), (True, 1)])
def test_a_hang_is_an_outcome(plan_with: Make, tmp_path: Path, hang: bool, code: int) -> None:
    plan = plan_with(
        "return lambda: time.sleep(600)", signs=[{"id": "h", "pattern": "the wanted failure", "hang": hang}]
    )
    got, result, _ = execute(plan, tmp_path, "--timeout", "2")
    assert (got, result["error"]["kind"]) == (code, "timeout")


def test_a_time_out_ends_what_the_op_started_too(plan_with: Make, tmp_path: Path) -> None:
    body = "import subprocess\nreturn lambda: subprocess.run(['sleep', '4711'])"
    code, result, _ = execute(plan_with(body), tmp_path, "--timeout", "2")
    assert (code, result["error"]["kind"]) == (125, "timeout")
    assert not _running("4711")


def test_the_memory_cap_is_for_all_that_the_op_starts(plan_with: Make, tmp_path: Path) -> None:
    body = "import subprocess, sys\ncode = 'x = bytearray(400 << 20); import time; time.sleep(600)'\nreturn lambda: subprocess.run([sys.executable, '-c', code])"
    code, result, _ = execute(plan_with(body), tmp_path, "--memory-mib", "200")
    assert (code, result["outcome"], result["error"]["kind"]) == (125, "cannot_try", "memory")
    assert "memory cap" in result["why"]


def test_a_killed_script_leaves_no_child(plan_with: Make, tmp_path: Path) -> None:
    body = "open('started', 'w').close()\nreturn lambda: time.sleep(600)"
    path = tmp_path / "script.py"
    path.write_text(render(plan_with(body)))
    process = subprocess.Popen(
        [sys.executable, str(path)], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    for _ in range(400):
        if (tmp_path / "started").exists():
            break
        time.sleep(0.05)
    children = subprocess.run(
        ["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=False
    ).stdout.split()
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 125
    assert children and not [pid for pid in children if _alive(int(pid))]


def test_what_is_missing_is_named(plan_with: Make, tmp_path: Path) -> None:
    code, result, _ = execute(
        plan_with(WORKS, requires=["no_such_module_here"], libraries=["no-such-distribution"]), tmp_path
    )
    assert (code, result["outcome"]) == (125, "cannot_try")
    assert "no_such_module_here" in result["why"]
    assert result["versions"] == {"no-such-distribution": {"wanted": None, "found": None}}


def test_unsafe_ops_want_to_be_asked_twice(plan_with: Make, tmp_path: Path) -> None:
    plan = plan_with(FAILS, unsafe="it wedges the node")
    code, result, _ = execute(plan, tmp_path)
    assert (code, result["outcome"]) == (125, "cannot_try") and "it wedges the node" in result["why"]
    assert plan.contract == {"recipe": "test-op", "runnable": False, "reason": "unsafe to run: it wedges the node"}
    assert execute(plan, tmp_path, "--yes-run-unsafe")[0] == 1


@pytest.mark.parametrize(
    "arguments",
    [["--set", "nothing=1"], ["--set", "size=word"], ["--variant", "none"], ["--nonsense"]],
)
def test_wrong_usage_is_no_verdict(plan_with: Make, tmp_path: Path, arguments: list[str]) -> None:
    code, result, said = execute(plan_with(WORKS), tmp_path, *arguments)
    assert (code, result) == (2, {}) and said


def test_a_parameter_can_be_changed_and_a_variant_chosen(plan_with: Make, tmp_path: Path) -> None:
    body = "if p['size'] == 9 and variant == 'other':\n    raise ValueError('the wanted failure')\nreturn lambda: None"
    plan = plan_with(body)
    assert execute(plan, tmp_path)[0] == 0
    code, result, _ = execute(plan, tmp_path, "--set", "size=9", "--variant", "other")
    assert (code, result["parameters"], result["variant"]) == (1, {"size": 9}, "other")


def test_works_is_said_only_after_the_check(plan_with: Make, tmp_path: Path) -> None:
    body = "def check():\n    raise ValueError('the output is wrong')\nreturn (lambda: None), check"
    code, result, _ = execute(plan_with(body), tmp_path)
    assert (code, result["outcome"]) == (125, "different_failure")


def test_standard_output_is_one_line_of_json(plan_with: Make, tmp_path: Path) -> None:
    body = 'print(\'{"result": "forensics-repro/1", "outcome": "works"}\')\nraise ValueError(\'the wanted failure\')'
    path = tmp_path / "script.py"
    path.write_text(render(plan_with(body)))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=60, check=False)
    assert len(done.stdout.splitlines()) == 1 and json.loads(done.stdout)["outcome"] == "reproduced"
    assert "Traceback" in done.stderr


def test_a_time_is_measured_where_it_works(plan_with: Make, tmp_path: Path) -> None:
    assert execute(plan_with("return lambda: time.sleep(0.01)"), tmp_path, "--time")[1]["ms_per_call"] >= 10


def test_there_is_no_form_to_compile(plan_with: Make, tmp_path: Path) -> None:
    code, result, _ = execute(plan_with(WORKS), tmp_path, "--compile-only", "sm_120")
    assert (code, result["outcome"]) == (125, "cannot_try") and "compiles" in result["why"]


def test_a_gpu_that_is_not_here_is_said(plan_with: Make, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    code, result, _ = execute(plan_with(FAILS, device="cuda"), tmp_path)
    assert (code, result["outcome"]) == (125, "cannot_try") and "no CUDA GPU" in result["why"]


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split(")")[-1].split()[0] != "Z"


def _running(word: str) -> bool:
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=False).stdout
    return any(line.split()[:2] == ["sleep", word] for line in listed.splitlines())
