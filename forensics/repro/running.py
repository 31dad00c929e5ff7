"""Runs a script and says what came of it. In: `Plan`, limits; out: `ReproOutcome`. Sample:

    run(plan) -> ReproOutcome("reproduced", "the same error as in the log: …", aspects=(Aspect("category", …), …), …)

The script runs the op in a child of its own; here the script is one too: in its own process group, with a time limit and a memory
cap, and its output goes through the same pipeline as the log. Reproduced only where both say so.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from forensics.errors import ForensicsError
from forensics.model import Incident
from forensics.repro import planning
from forensics.repro.judge import Aspect, judge
from forensics.repro.planning import Plan
from forensics.repro.render import render

_KEPT_BYTES = 4 << 20
_GRACE_S = 30.0
_SAY_EVERY_S = 10.0
EXIT_CODES = {"works": 0, "reproduced": 1, "different_failure": 125, "cannot_try": 125}


@dataclass(frozen=True, slots=True)
class Limits:
    """timeout_s: of the op; memory_mib: resident memory of all that it starts; python: the interpreter that has torch;
    any_gpu: try it on another GPU than the log's; unsafe: run what can wedge the node; time: time the op where it works."""

    timeout_s: float = 120.0
    memory_mib: int = 32768
    python: str = sys.executable
    any_gpu: bool = False
    unsafe: bool = False
    time: bool = False


@dataclass(frozen=True, slots=True)
class ReproOutcome:
    """What came of one run. outcome: reproduced, works, different_failure or cannot_try; aspects: what was compared with the log;
    result: the script's own JSON line; output: the end of what the child printed; script: the text that ran; seconds: wall time."""

    outcome: str
    why: str
    recipe: str
    variant: str
    aspects: tuple[Aspect, ...] = ()
    result: Mapping[str, Any] = field(default_factory=dict)
    output: str = ""
    script: str = ""
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """0 works, 1 reproduced, 125 anything else."""
        return EXIT_CODES[self.outcome]

    def as_json(self) -> dict[str, Any]:
        """The outcome as data for `--format json`."""
        return {
            "schema": "forensics-repro/1",
            "outcome": self.outcome,
            "why": self.why,
            "recipe": self.recipe,
            "variant": self.variant,
            "aspects": [
                {"name": a.name, "expected": a.expected, "observed": a.observed, "same": a.same} for a in self.aspects
            ],
            "seconds": round(self.seconds, 2),
            "run": dict(self.result),
        }


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Asks the script to end (it ends its own child), then ends it."""
    for number, wait in ((signal.SIGTERM, 8.0), (signal.SIGKILL, 5.0)):
        with contextlib.suppress(OSError):
            os.killpg(process.pid, number)
        try:
            process.wait(timeout=wait)
            return
        except subprocess.TimeoutExpired:
            continue


def _command(path: Path, limits: Limits, variant: str, values: Mapping[str, Any], target: str | None) -> list[str]:
    command = [
        limits.python,
        str(path),
        "--variant",
        variant,
        "--timeout",
        str(limits.timeout_s),
        "--memory-mib",
        str(limits.memory_mib),
    ]
    for name, value in values.items():
        command.append(f"--set={name}={json.dumps(value)}")
    flags = (("--any-gpu", limits.any_gpu), ("--yes-run-unsafe", limits.unsafe), ("--time", limits.time))
    command += [flag for flag, on in flags if on]
    return command + ([f"--compile-only={target}"] if target else [])


def run_script(
    text: str,
    limits: Limits,
    *,
    variant: str = "as-logged",
    values: Mapping[str, Any] | None = None,
    target: str | None = None,
    on_output: Callable[[bytes], None] | None = None,
    on_wait: Callable[[float], None] | None = None,
) -> tuple[dict[str, Any], str, float]:
    """Runs a rendered script. Returns (its result line, the end of its output, seconds). Raises ForensicsError where it cannot start.

    on_output: gets the child's output as it comes; on_wait: gets the seconds passed, every ten."""
    with tempfile.TemporaryDirectory(prefix="forensics-repro-") as folder:
        path = Path(folder) / "repro.py"
        path.write_text(text, encoding="utf-8")
        started = time.monotonic()
        try:
            process = subprocess.Popen(
                _command(path, limits, variant, values or {}, target),
                cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise ForensicsError(
                "cannot start the script", why=str(error), where=limits.python, help="--python names an interpreter"
            ) from error
        kept, answer = bytearray(), bytearray()

        def copy(stream: Any, into: bytearray, tell: Callable[[bytes], None] | None) -> None:
            while block := os.read(stream.fileno(), 65536):
                into.extend(block)
                if len(into) > _KEPT_BYTES:
                    del into[: len(into) - _KEPT_BYTES]
                if tell is not None:
                    tell(block)

        readers = [
            threading.Thread(target=copy, args=(process.stderr, kept, on_output), daemon=True),
            threading.Thread(target=copy, args=(process.stdout, answer, None), daemon=True),
        ]
        for reader in readers:
            reader.start()
        said, late = 0.0, False
        try:
            while process.poll() is None:
                passed = time.monotonic() - started
                if passed > limits.timeout_s + _GRACE_S:
                    late = True
                    break
                if on_wait is not None and passed - said >= _SAY_EVERY_S:
                    said = passed
                    on_wait(passed)
                time.sleep(0.05)
        finally:
            if process.poll() is None:
                _stop(process)
        for reader in readers:
            reader.join(timeout=5)
        seconds = time.monotonic() - started
    output = kept.decode("utf-8", "replace")
    return _result(bytes(answer), output, late, process.returncode), output, seconds


def _result(answer: bytes, output: str, late: bool, code: int | None) -> dict[str, Any]:
    """The script's last line as data; a script that ended without one could not be tried."""
    for line in reversed(answer.decode("utf-8", "replace").splitlines()):
        with contextlib.suppress(ValueError):
            row = json.loads(line)
            if isinstance(row, dict) and row.get("result") == "forensics-repro/1" and row.get("outcome") in EXIT_CODES:
                return row
    why = "the script did not end in time" if late else f"the script ended with code {code} and without a result line"
    last = output.strip().splitlines()[-1:] or [""]
    return {"outcome": "cannot_try", "why": f"{why}{': ' + last[0][:300] if last[0] else ''}", "error": None}


def run(
    plan: Plan,
    limits: Limits | None = None,
    *,
    variant: str = "as-logged",
    on_output: Callable[[bytes], None] | None = None,
    on_wait: Callable[[float], None] | None = None,
) -> ReproOutcome:
    """Runs a plan and compares what failed with what the log shows. Raises ForensicsError where no script can start."""
    limits = limits or Limits(timeout_s=float(plan.recipe.timeout_s))
    text = render(plan)
    result, output, seconds = run_script(text, limits, variant=variant, on_output=on_output, on_wait=on_wait)
    outcome = ReproOutcome(
        outcome=result["outcome"], why=str(result.get("why", "")), recipe=plan.recipe.id, variant=variant,
        result=result, output=output, script=text, seconds=seconds,
    )  # fmt: skip
    if outcome.outcome != "reproduced":
        return outcome
    same, why, aspects = judge(plan, result, output)
    return replace(
        outcome,
        outcome="reproduced" if same else "different_failure",
        why=outcome.why if same else why,
        aspects=aspects,
    )


def reproduce(
    found: Incident | Mapping[str, Any], limits: Limits | None = None, *, variant: str = "as-logged"
) -> ReproOutcome:
    """Rebuilds and runs the failing op of an incident, or of a JSON report. Where no recipe answers it, the outcome says so."""
    made = planning.plan(found) if isinstance(found, Incident) else planning.plan_report(found)
    if made is None:
        return ReproOutcome("cannot_try", "no recipe rebuilds this failure", recipe="", variant=variant)
    return run(made, limits, variant=variant)
