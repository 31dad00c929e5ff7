"""`forensics repro`: a log or a report in, a script and what came of it out. In: paths; out: text and an exit code. Sample:

forensics repro crash.log -o repro.py --run
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from forensics.cli.output import emit
from forensics.cli.talk import say
from forensics.errors import ExitCode, ForensicsError, UsageError

if TYPE_CHECKING:
    from forensics.repro.case import Text
    from forensics.repro.planning import Plan
    from forensics.repro.running import Limits, ReproOutcome

_SKIP = 125
_REPORT_BYTES = 256 << 20
_PARAMETER_LINES = 20_000


@click.command(
    epilog="""\b
Examples:
  forensics repro crash.log -o repro.py          write the script
  forensics repro crash.log --run                run it and compare what fails
  forensics repro report.json --compare          the same op through every backend, timed
  forensics repro crash.log --minimize -o small.py
  forensics repro crash.log --compile-only --gpu sm_120
  forensics repro crash.log --run --issue > bug.md

\b
Exit codes with --run, --minimize and --compile-only: 1 reproduced (or refused by the target), 0 the op works (or
compiles), 125 anything else, as `git bisect run` expects. Otherwise 0 a script was written, 2 wrong usage, 3 no recipe."""
)
@click.argument("paths", nargs=-1, type=click.Path(), metavar="[LOG|REPORT.json]…")
@click.option("-o", "--output", type=click.Path(), help="Write the script (with --issue: the bug report) to this file.")
@click.option("--run", "run_", is_flag=True, help="Run the op in a child and compare what fails with the log.")
@click.option("--compare", "compare_", is_flag=True, help="Run the op through every backend known for it.")
@click.option("--minimize", "minimize_", is_flag=True, help="Find the smallest parameters that fail alike.")
@click.option("--compile-only", "compile_", is_flag=True, help="Compile for --gpu (else the log's GPU) instead of running.")
@click.option("--issue", "issue_", is_flag=True, help="A bug report in Markdown, without personal data.")
@click.option("--gpu", metavar="NAME", help='The GPU, where the log does not say; the target of --compile-only: "sm_120".')
@click.option("--variant", metavar="NAME", default="as-logged", show_default=True, help="The backend or form to run.")
@click.option("--set", "given", multiple=True, metavar="NAME=VALUE", help="Override a parameter; may be repeated.")
@click.option("--recipe", metavar="ID", help="Take this recipe instead of the one that fits best.")
@click.option("--list", "list_", is_flag=True, help="List the recipes.")
@click.option("--timeout", type=click.FloatRange(min=1), help="Seconds for one run; else the recipe's.")
@click.option("--total-timeout", type=click.FloatRange(min=1), default=600.0, show_default=True, help="Seconds for --minimize.")
@click.option("--memory", type=click.IntRange(min=64), default=32768, show_default=True, help="MiB that a run may use.")
@click.option("--python", metavar="PATH", help="The interpreter that has torch and the libraries; else this one.")
@click.option("--any-gpu", is_flag=True, help="Run although this is not the log's GPU.")
@click.option("--yes-run-unsafe", is_flag=True, help="Run what is known to wedge a node.")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to say what came of it.")
@click.option("-q", "--quiet", is_flag=True, help="Do not show the child's output and progress.")
@click.option("--debug", is_flag=True, help="Let an error inside forensics end with its traceback.")
def repro(paths: tuple[str, ...], **options: Any) -> int:
    """Rebuild the failing op of a log, run it, and say whether it reproduced.

    Without --run, --compare, --minimize or --compile-only the script is written and nothing runs.
    """
    if options["debug"]:
        os.environ["FORENSICS_DEBUG"] = "1"
    if options["list_"]:
        return _list(options["format_"])
    if not paths and (sys.stdin is None or sys.stdin.isatty()):
        raise UsageError("no input", help="forensics repro crash.log, or … | forensics repro")
    acts = [name for name in ("run_", "compare_", "minimize_", "compile_") if options[name]]
    if len(acts) > 1 and acts != ["minimize_", "compile_"]:
        raise UsageError(
            "--run, --compare, --minimize and --compile-only are for one at a time",
            help="only --minimize --compile-only go together: the smallest parameters that a target refuses",
        )
    try:
        plan = _planned(paths or ("-",), options)
    except _NoRecipe as none:
        say(f"no repro: {none}")
        if options["format_"] == "json":
            _print_json({"schema": "forensics-repro/1", "outcome": "cannot_try", "why": str(none), "recipe": None})
        return _SKIP if acts else ExitCode.NOT_UNDERSTOOD
    say(f"recipe {plan.recipe.id}: {plan.why}")
    act = {"run_": _run, "compare_": _compare, "minimize_": _minimize, "compile_": _compile}
    if acts:
        return act[acts[0]](plan, options)
    _write(plan, None, options)
    return ExitCode.HEALTHY


class _NoRecipe(Exception):
    """No recipe answers the failure; the text says why."""


def _list(format_: str) -> int:
    from forensics.repro.recipe import load_recipes

    recipes = load_recipes()
    if format_ == "json":
        _print_json([{"id": r.id, "title": r.title, "op": r.op, "parameters": [p.name for p in r.parameters], "variants": [v.name for v in r.variants]} for r in recipes])
        return ExitCode.HEALTHY
    width = max(len(recipe.id) for recipe in recipes)
    emit("".join(f"{recipe.id:<{width}}  {recipe.title}\n" for recipe in recipes).encode())
    return ExitCode.HEALTHY


def _planned(paths: tuple[str, ...], options: dict[str, Any]) -> Plan:
    """The plan for the inputs: a report where the one input is one, else logs to analyse first."""
    from forensics.repro.case import case_of_incident, case_of_report
    from forensics.repro.planning import plan_case, plan_with

    report, digest = _report(paths), _sha256(paths)
    if report is not None:
        case = case_of_report(report)
    else:
        from forensics.pipeline import analyze

        inputs: list[Any] = [sys.stdin.buffer.read() if path == "-" else path for path in paths]
        case = case_of_incident(analyze(inputs, gpu=None if options["compile_"] else options["gpu"]), _lines(inputs))
    if options["recipe"]:
        plan: Plan | None = plan_with(case, options["recipe"], digest)
    else:
        plan = plan_case(case, digest)
    if plan is None:
        raise _NoRecipe("nothing failed" if case.category in ("none", "") else f"no recipe rebuilds this failure ({case.category}); --list shows the recipes")
    return plan.with_values(_given(options["given"])) if options["given"] else plan


def _report(paths: tuple[str, ...]) -> dict[str, Any] | None:
    """The JSON report, where the one input is one."""
    if len(paths) != 1 or not paths[0].endswith(".json") or not os.path.isfile(paths[0]) or os.path.getsize(paths[0]) > _REPORT_BYTES:
        return None
    try:
        with open(paths[0], encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) and str(content.get("schema", "")).startswith("forensics-report/") else None


def _sha256(paths: tuple[str, ...]) -> str:
    """What identifies the log: of one plain file the digest of its bytes."""
    import hashlib

    if len(paths) != 1 or not os.path.isfile(paths[0]):
        return ""
    with open(paths[0], "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _lines(inputs: list[Any]) -> list[Text]:
    """Head and tail of the logs, where servers print the sizes of their model."""
    from forensics.ingest import ReadOptions, read
    from forensics.repro.case import Text

    intake = read(inputs, (), ReadOptions(whole_below=2 << 20, edge_lines=4000))
    return [Text(line.text, intake.sources[line.source].name, line.number) for line in intake.lines[:_PARAMETER_LINES]]


def _given(items: tuple[str, ...]) -> dict[str, Any]:
    values = {}
    for item in items:
        name, found, text = item.partition("=")
        if not found:
            raise UsageError(f"--set {item!r} has no value", help="--set name=value")
        try:
            values[name] = json.loads(text)
        except ValueError:
            values[name] = text
    return values


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


def _run(plan: Plan, options: dict[str, Any]) -> int:
    from forensics.repro.running import run

    if options["variant"] not in {variant.name for variant in plan.recipe.variants}:
        raise UsageError(f"recipe {plan.recipe.id} has no variant {options['variant']!r}", help=", ".join(v.name for v in plan.recipe.variants))
    show, wait = _output_tap(options)
    outcome = run(plan, _limits(plan, options), variant=options["variant"], on_output=show, on_wait=wait)
    if options["output"] or options["issue_"]:
        _write(plan, outcome, options)
    if options["format_"] == "json":
        _print_json(outcome.as_json())
    elif not (options["issue_"] and not options["output"]):
        rows = [f"{outcome.outcome.replace('_', ' ')}: {outcome.why}\n"]
        rows += [f"  {_mark(a.same)} {a.name}: {a.observed or 'not said'} (log: {a.expected or 'not said'})\n" for a in outcome.aspects]
        emit("".join(rows).encode("utf-8", "replace"))
    return outcome.exit_code


def _mark(same: bool | None) -> str:
    return {True: "=", False: "≠", None: "?"}[same]


def _compare(plan: Plan, options: dict[str, Any]) -> int:
    from forensics.repro.comparing import compare

    rows = compare(plan, _limits(plan, options), on_row=lambda row: say(f"{row.variant}: {row.state}"))
    if options["format_"] == "json":
        _print_json([{"variant": r.variant, "title": r.title, "state": r.state, "why": r.why, "ms": r.ms, "setting": r.setting} for r in rows])
        return ExitCode.HEALTHY
    width = max(len(row.variant) for row in rows)
    text = ""
    for row in rows:
        shown = (f"{row.ms:.4f} ms" if row.ms is not None else "") if row.state == "works" else " ".join(row.why.split())[:160]
        text += f"{row.variant:<{width}}  {row.state:<16} {shown}\n"
        text += f"{'':<{width}}  {row.setting}\n" if row.setting and row.state == "works" else ""
    emit(text.encode("utf-8", "replace"))
    return ExitCode.HEALTHY


def _minimize(plan: Plan, options: dict[str, Any]) -> int:
    from forensics.repro.minimizing import minimize

    target = _compile_target(plan, options) if options["compile_"] else None
    found = minimize(
        plan, _limits(plan, options), target=target, seconds=options["total_timeout"],
        on_try=lambda t: say(f"{'kept' if t.kept else 'no  '} {_short(t.values)}: {t.outcome}"),
    )  # fmt: skip
    smaller = plan.with_values(found.values)
    if options["output"]:
        _write(smaller, None, options)
    if options["format_"] == "json":
        tries = [{"values": dict(t.values), "outcome": t.outcome, "why": t.why, "kept": t.kept} for t in found.tries]
        _print_json({"schema": "forensics-repro/1", "values": dict(found.values), "minimal": found.minimal, "why": found.why, "tries": tries})
    else:
        emit(f"{_short(found.values)}\n{'minimal' if found.minimal else 'not minimal'}: {found.why} ({len(found.tries)} tries)\n".encode())
    return 1 if any(t.kept for t in found.tries) else _SKIP


def _short(values: Any) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())


def _compile(plan: Plan, options: dict[str, Any]) -> int:
    from forensics.repro.compiling import compile_only

    found = compile_only(plan, _compile_target(plan, options), _limits(plan, options), variant=options["variant"])
    if options["format_"] == "json":
        row = {"target": found.target, "state": found.state, "why": found.why, "kind": found.kind}
        _print_json({"schema": "forensics-repro/1", **row, "shared_bytes": found.shared_bytes, "limit_bytes": found.limit_bytes})
    else:
        sizes = f" (shared memory {found.shared_bytes} of {found.limit_bytes} bytes)" if found.shared_bytes is not None else ""
        emit(f"{found.state}: {found.why}{sizes}\n".encode("utf-8", "replace"))
    return {"compiles": 0, "refused": 1}.get(found.state, _SKIP)


def _compile_target(plan: Plan, options: dict[str, Any]) -> str:
    """--gpu, else the GPU of the log."""
    target = _target(options["gpu"]) or plan.case.sm
    if not target:
        raise UsageError("--compile-only wants a target", help="--gpu sm_120")
    return target


def _target(gpu: str | None) -> str | None:
    """"sm_120" for a name; an SM with its suffix stays as it is."""
    import re

    if gpu is None or re.fullmatch(r"sm_\d{2,3}[af]?", gpu):
        return gpu
    from forensics.knowledge import gpu_named

    found = gpu_named(gpu)
    if found is None or found.sm is None:
        raise UsageError(f"--gpu {gpu!r} is no GPU that I know", help="sm_90, sm_120a, or a product's name")
    return found.sm


def _write(plan: Plan, outcome: ReproOutcome | None, options: dict[str, Any]) -> None:
    from forensics.repro import issue, script

    output = options["output"]
    text = issue(plan, outcome) if options["issue_"] else script(plan, os.path.basename(output or "repro.py"))
    emit(text.encode("utf-8", "replace"), output)
    if output:
        if not options["issue_"]:
            try:
                os.chmod(output, 0o755)
            except OSError as error:
                raise ForensicsError("cannot make the script executable", why=str(error), where=output) from error
        say(f"wrote {output}")


def _print_json(value: Any) -> None:
    emit((json.dumps(value, indent=2) + "\n").encode())
