"""What `forensics repro` does with a plan: run, compare, minimize, compile, write. In: `Plan`, options; out: an exit code. Sample:

run_plan(plan, options) -> 1, and "reproduced: the same error as in the log: …" on standard output
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from forensics.cli.output import emit, emit_text
from forensics.cli.talk import say
from forensics.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from forensics.repro.planning import Plan
    from forensics.repro.running import Limits, ReproOutcome

#: `git bisect run` skips a revision that cannot be judged
SKIP = 125


def _limits(plan: Plan, options: dict[str, Any]) -> Limits:
    from forensics.repro.running import Limits

    return Limits(
        timeout_s=options["timeout"] or float(plan.recipe.timeout_s),
        memory_mib=options["memory"],
        python=options["python"] or sys.executable,
        any_gpu=options["any_gpu"],
        unsafe=options["yes_run_unsafe"],
    )


def _output_tap(options: dict[str, Any]) -> tuple[Callable[[bytes], None] | None, Callable[[float], None] | None]:
    """(what shows the child's output, what says that it still runs); control characters of the child stay out of the terminal."""
    if options["quiet"]:
        return None, None

    def show(block: bytes) -> None:
        for line in block.decode("utf-8", "replace").splitlines():
            say(f"  | {line}")

    return show, lambda seconds: say(f"… {seconds:.0f} s")


def run_plan(plan: Plan, options: dict[str, Any]) -> int:
    """Runs the op and says whether what failed is what the log shows."""
    from forensics.repro.running import run

    if options["variant"] not in {variant.name for variant in plan.recipe.variants}:
        raise UsageError(
            f"recipe {plan.recipe.id} has no variant {options['variant']!r}",
            why="it is not one of its backends or forms",
            where="--variant",
            help=", ".join(v.name for v in plan.recipe.variants),
        )
    show, wait = _output_tap(options)
    outcome = run(plan, _limits(plan, options), variant=options["variant"], on_output=show, on_wait=wait)
    if options["output"] or options["issue_"]:
        write_plan(plan, outcome, options)
    if options["format_"] == "json":
        print_json(outcome.as_json())
    elif not (options["issue_"] and not options["output"]):
        rows = [f"{outcome.outcome.replace('_', ' ')}: {outcome.why}\n"]
        rows += [
            f"  {_mark(a.same)} {a.name}: {a.observed or 'not said'} (log: {a.expected or 'not said'})\n"
            for a in outcome.aspects
        ]
        emit_text("".join(rows))
    return outcome.exit_code


def _mark(same: bool | None) -> str:
    return {True: "=", False: "≠", None: "?"}[same]


def compare_plan(plan: Plan, options: dict[str, Any]) -> int:
    """A table of the backends: works with its time, fails or cannot be tried with the reason."""
    from forensics.repro.comparing import compare

    rows = compare(plan, _limits(plan, options), on_row=lambda row: say(f"{row.variant}: {row.state}"))
    if options["format_"] == "json":
        print_json(
            [
                {
                    "variant": r.variant,
                    "title": r.title,
                    "state": r.state,
                    "why": r.why,
                    "ms": r.ms,
                    "setting": r.setting,
                }
                for r in rows
            ]
        )
        return ExitCode.HEALTHY
    width = max(len(row.variant) for row in rows)
    text = ""
    for row in rows:
        shown = (
            (f"{row.ms:.4f} ms" if row.ms is not None else "")
            if row.state == "works"
            else " ".join(row.why.split())[:160]
        )
        text += f"{row.variant:<{width}}  {row.state:<16} {shown}\n"
        text += f"{'':<{width}}  {row.setting}\n" if row.setting and row.state == "works" else ""
    emit_text(text)
    return ExitCode.HEALTHY


def minimize_plan(plan: Plan, options: dict[str, Any]) -> int:
    """The smallest parameters that fail alike, each try as it is made."""
    from forensics.repro.minimizing import minimize

    target = _compile_target(plan, options) if options["compile_"] else None
    found = minimize(
        plan, _limits(plan, options), target=target, seconds=options["total_timeout"],
        on_try=lambda t: say(f"{'kept' if t.kept else 'no  '} {_short(t.values)}: {t.outcome}"),
    )  # fmt: skip
    smaller = plan.with_values(found.values)
    if options["output"]:
        write_plan(smaller, None, options)
    if options["format_"] == "json":
        tries = [{"values": dict(t.values), "outcome": t.outcome, "why": t.why, "kept": t.kept} for t in found.tries]
        print_json(
            {
                "schema": "forensics-repro/1",
                "values": dict(found.values),
                "minimal": found.minimal,
                "why": found.why,
                "tries": tries,
            }
        )
    else:
        emit_text(
            f"{_short(found.values)}\n{'minimal' if found.minimal else 'not minimal'}: {found.why} ({len(found.tries)} tries)"
        )
    return 1 if any(t.kept for t in found.tries) else SKIP


def _short(values: Any) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())


def compile_plan(plan: Plan, options: dict[str, Any]) -> int:
    """What a target refuses at compile time."""
    from forensics.repro.compiling import compile_only

    found = compile_only(plan, _compile_target(plan, options), _limits(plan, options), variant=options["variant"])
    if options["format_"] == "json":
        row = {"target": found.target, "state": found.state, "why": found.why, "kind": found.kind}
        print_json(
            {"schema": "forensics-repro/1", **row, "shared_bytes": found.shared_bytes, "limit_bytes": found.limit_bytes}
        )
    else:
        sizes = (
            f" (shared memory {found.shared_bytes} of {found.limit_bytes} bytes)"
            if found.shared_bytes is not None
            else ""
        )
        emit_text(f"{found.state}: {found.why}{sizes}")
    return {"compiles": 0, "refused": 1}.get(found.state, SKIP)


def _compile_target(plan: Plan, options: dict[str, Any]) -> str:
    """--gpu, else the GPU of the log."""
    target = _target(options["gpu"]) or plan.case.sm
    if not target:
        raise UsageError(
            "--compile-only wants a target", why="the log names no GPU", where="--gpu", help="--gpu sm_120"
        )
    return target


def _target(gpu: str | None) -> str | None:
    """ "sm_120" for a name; an SM with its suffix stays as it is."""
    import re

    if gpu is None or re.fullmatch(r"sm_\d{2,3}[af]?", gpu):
        return gpu
    from forensics.knowledge import gpu_named

    found = gpu_named(gpu)
    if found is None or found.sm is None:
        raise UsageError(
            f"--gpu {gpu!r} is no GPU that I know",
            why="the tables have no such product or SM",
            where="--gpu",
            help="sm_90, sm_120a, or a product's name",
        )
    return found.sm


def write_plan(plan: Plan, outcome: ReproOutcome | None, options: dict[str, Any]) -> None:
    """The script, or with --issue the bug report, to --output or standard output."""
    from forensics.repro import issue, script

    output = options["output"]
    text = issue(plan, outcome) if options["issue_"] else script(plan, os.path.basename(output or "repro.py"))
    emit(text.encode("utf-8", "replace"), output, mode=None if options["issue_"] else 0o755)
    if output:
        say(f"wrote {output}")


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    emit((json.dumps(value, indent=2) + "\n").encode())
