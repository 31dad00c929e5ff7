"""What `forensics repro` starts from. In: paths of logs or of a JSON report; out: a `Plan`. Sample:

planned(("crash.log",), options) -> Plan(recipe=Recipe(id="triton-shared-memory", …), …)
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from forensics.errors import UsageError

if TYPE_CHECKING:
    from forensics.repro.case import Text
    from forensics.repro.planning import Plan

_REPORT_BYTES = 256 << 20
_STDIN_BYTES = 256 << 20
_PARAMETER_LINES = 20_000


class NoRecipe(Exception):
    """No recipe answers the failure; the text says why."""


def planned(paths: tuple[str, ...], options: dict[str, Any]) -> Plan:
    """The plan for the inputs: a report where the one input is one, else logs to analyse first. Raises NoRecipe."""
    from forensics.repro.case import case_of_incident, case_of_report
    from forensics.repro.planning import plan_case, plan_with

    report, digest = _report(paths), _sha256(paths)
    if report is not None:
        case = case_of_report(report)
    else:
        from forensics.pipeline import analyze

        inputs: list[Any] = [_stdin() if path == "-" else path for path in paths]
        case = case_of_incident(analyze(inputs, gpu=None if options["compile_"] else options["gpu"]), _lines(inputs))
    if options["recipe"]:
        plan: Plan | None = plan_with(case, options["recipe"], digest)
    else:
        plan = plan_case(case, digest)
    if plan is None:
        raise NoRecipe(
            "nothing failed"
            if case.category in ("none", "")
            else f"no recipe rebuilds this failure ({case.category}); --list shows the recipes"
        )
    return plan.with_values(_given(options["given"])) if options["given"] else plan


def _stdin() -> bytes:
    """Standard input, which is read twice; without an end it would fill the memory."""
    content = sys.stdin.buffer.read(_STDIN_BYTES + 1)
    if len(content) > _STDIN_BYTES:
        raise UsageError(
            "standard input is too large for a repro",
            why=f"more than {_STDIN_BYTES >> 20} MiB",
            help="write it to a file: forensics repro crash.log",
        )
    return content


def _report(paths: tuple[str, ...]) -> dict[str, Any] | None:
    """The JSON report, where the one input is one."""
    if (
        len(paths) != 1
        or not paths[0].endswith(".json")
        or not os.path.isfile(paths[0])
        or os.path.getsize(paths[0]) > _REPORT_BYTES
    ):
        return None
    try:
        with open(paths[0], encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError, RecursionError):
        return None
    return (
        content
        if isinstance(content, dict) and str(content.get("schema", "")).startswith("forensics-report/")
        else None
    )


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
            raise UsageError(
                f"--set {item!r} has no value", why="there is no = in it", where="--set", help="--set name=value"
            )
        try:
            values[name] = json.loads(text)
        except (ValueError, RecursionError):
            values[name] = text
    return values
