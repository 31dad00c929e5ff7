"""What the tests of repro share: reports of failures, plans for them, and scripts whose op is a few lines."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forensics.repro.case import Case, case_of_report
from forensics.repro.planning import Plan, plan_case
from forensics.repro.recipe import Recipe, read
from forensics.repro.render import render


def report(error: str, message: str, category: str, **more: Any) -> dict[str, Any]:
    """A JSON report with one Python failure. more: device, frames, kernel, config, collective, … as in the contract."""
    kind, frames, kernel = more.pop("kind", "python"), more.pop("frames", []), more.pop("kernel", None)
    primary = {
        "kind": kind, "type": error, "root_type": error, "message": message, "root_message": message,
        "frames": frames, "kernel": kernel, "fingerprint": "f00d",
    }  # fmt: skip
    verdict = {"category": category, "title": more.pop("title", "a failure")}
    return {"schema": "forensics-report/1", "status": "crashed", "verdict": verdict, "primary": primary, **more}


def case(error: str, message: str, category: str, **more: Any) -> Case:
    """The case of such a report."""
    return case_of_report(report(error, message, category, **more))


def plan_for(error: str, message: str, category: str, **more: Any) -> Plan:
    """The plan for such a report; fails the test where no recipe answers it."""
    found = plan_case(case(error, message, category, **more))
    assert found is not None, f"no recipe answers {error}: {message}"
    return found


#: a recipe of three lines, for tests of the runtime: its op is whatever the test writes
ROW: dict[str, Any] = {
    "id": "test-op",
    "title": "An op of a test",
    "op": "test op",
    "device": "cpu",
    "requires": [],
    "libraries": [],
    "timeout_s": 60,
    "signs": [{"id": "wanted", "pattern": "the wanted failure", "types": ["ValueError"]}],
    "variants": [{"name": "as-logged", "title": "as in the log"}, {"name": "other", "title": "another backend"}],
    "parameters": [{"name": "size", "default": 4, "why": "any", "minimum": 1, "maximum": 100, "shrink": "step"}],
}


@pytest.fixture
def recipe_with(tmp_path: Path) -> Callable[..., Recipe]:
    """recipe_with(body, **row): a recipe whose `prepare(p, variant)` has this body."""

    def make(body: str, **row: Any) -> Recipe:
        script = tmp_path / "op.py"
        indented = "\n".join("    " + line for line in body.strip().splitlines())
        script.write_text(
            '"""An op of a test."""\n\nimport os\nimport signal\nimport time\n\nfrom runtime import CannotTry, main\n\n\n'
            f'def prepare(p, variant):\n{indented}\n\n\nif __name__ == "__main__":\n    main(globals())\n'
        )
        return read({**ROW, "script": str(script), **row}, "test")

    return make


@pytest.fixture
def plan_with(recipe_with: Callable[..., Recipe]) -> Callable[..., Plan]:
    """plan_with(body, **row): the plan of such a recipe for "ValueError: the wanted failure"."""

    def make(body: str, **row: Any) -> Plan:
        recipe = recipe_with(body, **row)
        from forensics.repro.choose import parameters, rate

        failed = case("ValueError", "the wanted failure of run 7", "user_code")
        choice = rate(recipe, failed)
        assert choice is not None
        return Plan(recipe, parameters(choice, failed), failed, choice.sign, choice.why)

    return make


def execute(plan: Plan, folder: Path, *arguments: str, seconds: float = 120) -> tuple[int, dict[str, Any], str]:
    """Runs the plan's script as a user would: (exit code, its JSON line, what it said on standard error)."""
    path = folder / "script.py"
    path.write_text(render(plan, "script.py"))
    done = subprocess.run(
        [sys.executable, str(path), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    lines = done.stdout.strip().splitlines()
    return done.returncode, json.loads(lines[-1]) if lines else {}, done.stderr
