"""`forensics repro`: a log or a report in, a script and what came of it out. In: paths; out: text and an exit code. Sample:

forensics repro crash.log -o repro.py --run
"""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from forensics.cli.output import emit, keep_inputs
from forensics.cli.repro_actions import (
    SKIP,
    compare_plan,
    compile_plan,
    minimize_plan,
    print_json,
    run_plan,
    write_plan,
)
from forensics.cli.repro_input import NoRecipe, planned
from forensics.cli.talk import say
from forensics.errors import ExitCode, UsageError


class Seconds(click.FloatRange):
    """One second and more; NaN is neither, and no time-out would end what waits for it."""

    def __init__(self) -> None:
        super().__init__(min=1, max=10_000_000)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = float(super().convert(value, param, ctx))
        if seconds != seconds:
            self.fail("it is not a number", param, ctx)
        return seconds


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
@click.option(
    "--compile-only", "compile_", is_flag=True, help="Compile for --gpu (else the log's GPU) instead of running."
)
@click.option("--issue", "issue_", is_flag=True, help="A bug report in Markdown, without personal data.")
@click.option(
    "--gpu", metavar="NAME", help='The GPU, where the log does not say; the target of --compile-only: "sm_120".'
)
@click.option("--variant", metavar="NAME", default="as-logged", show_default=True, help="The backend or form to run.")
@click.option("--set", "given", multiple=True, metavar="NAME=VALUE", help="Override a parameter; may be repeated.")
@click.option("--recipe", metavar="ID", help="Take this recipe instead of the one that fits best.")
@click.option("--list", "list_", is_flag=True, help="List the recipes.")
@click.option("--timeout", type=Seconds(), help="Seconds for one run; else the recipe's.")
@click.option("--total-timeout", type=Seconds(), default=600.0, show_default=True, help="Seconds for --minimize.")
@click.option("--memory", type=click.IntRange(min=64), default=32768, show_default=True, help="MiB that a run may use.")
@click.option("--python", metavar="PATH", help="The interpreter that has torch and the libraries; else this one.")
@click.option("--any-gpu", is_flag=True, help="Run although this is not the log's GPU.")
@click.option("--yes-run-unsafe", is_flag=True, help="Run what is known to wedge a node.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to say what came of it.",
)
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
        raise UsageError(
            "no input",
            why="no PATH is given and standard input is closed or a terminal",
            help="forensics repro crash.log, or … | forensics repro",
        )
    acts = [name for name in ("run_", "compare_", "minimize_", "compile_") if options[name]]
    if len(acts) > 1 and acts != ["minimize_", "compile_"]:
        raise UsageError(
            "--run, --compare, --minimize and --compile-only are for one at a time",
            why=f"{len(acts)} of them are asked for",
            help="only --minimize --compile-only go together: the smallest parameters that a target refuses",
        )
    keep_inputs(options["output"], paths)
    try:
        plan = planned(paths or ("-",), options)
    except NoRecipe as none:
        say(f"no repro: {none}")
        if options["format_"] == "json":
            print_json({"schema": "forensics-repro/1", "outcome": "cannot_try", "why": str(none), "recipe": None})
        return SKIP if acts else ExitCode.NOT_UNDERSTOOD
    say(f"recipe {plan.recipe.id}: {plan.why}")
    act = {"run_": run_plan, "compare_": compare_plan, "minimize_": minimize_plan, "compile_": compile_plan}
    if acts:
        return act[acts[0]](plan, options)
    write_plan(plan, None, options)
    return ExitCode.HEALTHY


def _list(format_: str) -> int:
    from forensics.repro.recipe import load_recipes

    recipes = load_recipes()
    if format_ == "json":
        print_json(
            [
                {
                    "id": r.id,
                    "title": r.title,
                    "op": r.op,
                    "parameters": [p.name for p in r.parameters],
                    "variants": [v.name for v in r.variants],
                }
                for r in recipes
            ]
        )
        return ExitCode.HEALTHY
    width = max(len(recipe.id) for recipe in recipes)
    emit("".join(f"{recipe.id:<{width}}  {recipe.title}\n" for recipe in recipes).encode())
    return ExitCode.HEALTHY
