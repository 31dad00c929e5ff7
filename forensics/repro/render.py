"""Writes the script. In: `Plan`; out: the text of a standalone Python program. Sample:

    render(plan) -> '#!/usr/bin/env python3\n\"\"\"A Triton GEMM…\"\"\"\n…PARAMETERS = {\n    "m": 256,  # from line 12…'

Text from a log enters only as literals of `ascii()`; comments and code come from the recipe. The written data is read back and compared.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from forensics import data
from forensics.errors import ForensicsError
from forensics.repro.choose import Parameter
from forensics.repro.planning import Plan

_RUNTIME_IMPORT = re.compile(r"^from (runtime|compile_runtime|supervision) import [^\n]*\n", re.MULTILINE)
_DATA_BLOCK = re.compile(r"^# --- data ---\n.*?^# --- end of data ---\n", re.MULTILINE | re.DOTALL)
_LIMITS_BLOCK = re.compile(r"^# --- limits ---\n.*?^# --- end of limits ---\n", re.MULTILINE | re.DOTALL)
_DOCSTRING = re.compile(r'\A"""(.*?)"""\n', re.DOTALL)
_MAIN = 'if __name__ == "__main__":\n    main(globals())\n'

_HEADER = '''#!/usr/bin/env python3
"""{title}

Written by `forensics repro`. Rebuilds the op of a failure seen in a log: where from, which versions and which error stand in
PROVENANCE and EXPECTED below, what it is called with in PARAMETERS.

Run:        python {name}                     needs {needs}
Compare:    python {name} --variant NAME      {variants}
Change:     python {name} --set NAME=VALUE    any parameter
Exit codes: 0 the op works, 1 reproduced, 125 anything else (`git bisect run` skips it); the one JSON line on standard output says which.
{more}"""
'''


def _literal(value: Any, depth: int = 0) -> str:
    """A Python literal in ASCII, one key a line for the outer two levels of dicts."""
    if isinstance(value, dict) and value and depth < 2:
        pad = "    " * (depth + 1)
        rows = "".join(f"{pad}{ascii(key)}: {_literal(item, depth + 1)},\n" for key, item in value.items())
        return "{\n" + rows + "    " * depth + "}"
    return ascii(value)


def _comment(parameter: Parameter) -> str:
    """Where a value comes from. Names of files and words of the log stay out: they would be text of a stranger in the code."""
    if parameter.line is not None:
        return f"from line {int(parameter.line)} of the log"
    words = {
        "log": "from the log",
        "setting": "a setting in the log",
        "sign": "implied by the error",
        "given": "given by hand",
    }
    return words.get(parameter.origin, f"default: {parameter.why}")


def _provenance(plan: Plan) -> dict[str, Any]:
    case = plan.case
    return {
        "log": list(case.sources)[:20],
        "log_sha256": plan.log_sha256,
        "failure_fingerprint": case.fingerprint,
        "verdict": case.title[:500],
        "signature": case.signature,
        "error": f"{case.root_type or ''}: {case.root_message}"[:2000],
        "device": case.device,
        "sm": case.sm,
        "versions": dict(case.versions),
        "chosen_because": plan.why,
        "parameters_from": {p.name: {"origin": p.origin, "line": p.line, "log": p.source} for p in plan.parameters},
    }


def _recipe_data(plan: Plan) -> dict[str, Any]:
    recipe = plan.recipe
    return {
        "id": recipe.id,
        "title": recipe.title,
        "op": recipe.op,
        "device": recipe.device,
        "gpus": recipe.gpus,
        "supported_on": list(recipe.sms),
        "sm": plan.case.sm if recipe.gpu_matters else None,
        "required": list(recipe.requires),
        "libraries": list(recipe.libraries),
        "variants": [{"name": variant.name, "title": variant.title} for variant in recipe.variants],
        "timeout_s": recipe.timeout_s,
        "unsafe": recipe.unsafe,
        "processes": recipe.processes or None,
        "launch_blocking": recipe.launch_blocking,
        "environment": dict(recipe.environment),
    }


def _data(plan: Plan) -> str:
    rows = "".join(f"    {ascii(p.name)}: {ascii(p.value)},  # {_comment(p)}\n" for p in plan.parameters)
    blocks = {"EXPECTED": plan.expected, "PROVENANCE": _provenance(plan), "RECIPE": _recipe_data(plan)}
    text = (
        "PARAMETERS = {\n" + rows + "}\n" + "".join(f"{name} = {_literal(value)}\n" for name, value in blocks.items())
    )
    written = {
        n.targets[0].id: ast.literal_eval(n.value)
        for n in ast.parse(text).body
        if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)
    }
    if written != {"PARAMETERS": plan.values, **blocks}:
        raise ForensicsError(
            "a script was not written", why="its data does not read back as it was meant", help="report this log"
        )
    return text


def _limits() -> str:
    rows = data.table("facts/gpus").get("chip", [])
    limits = {
        row["sm"]: row["smem_optin_bytes"]
        for row in rows
        if row.get("smem_optin_bytes") and str(row.get("sm", "")).startswith("sm_")
    }
    return f"SHARED_MEMORY_LIMITS = {limits!r}\n"


def _runtime(name: str) -> str:
    """A shared part without its docstring and its imports of the other parts."""
    text = (data.root() / "recipes" / f"{name}.py").read_text(encoding="utf-8")
    text = _RUNTIME_IMPORT.sub("", _DOCSTRING.sub("", text))
    return _LIMITS_BLOCK.sub(lambda _: _limits(), text) if "# --- limits ---" in text else text


def _split_imports(text: str) -> tuple[list[str], str]:
    """The plain import lines at the top of a part, and the rest."""
    lines = text.strip("\n").split("\n")
    taken = 0
    while taken < len(lines) and (not lines[taken].strip() or lines[taken].startswith(("import ", "from "))):
        taken += 1
    return [line for line in lines[:taken] if line.strip()], "\n".join(lines[taken:]).strip("\n") + "\n"


def render(plan: Plan, name: str = "repro.py") -> str:
    """The script for a plan. name: the file's own name, for its help text; only [A-Za-z0-9._-] of it is kept."""
    recipe = plan.recipe
    template = (data.root() / "recipes" / recipe.script).read_text(encoding="utf-8")
    parts = list(dict.fromkeys(match[1] for match in _RUNTIME_IMPORT.finditer(template)))
    parts = ["runtime", "supervision", *[part for part in parts if part != "runtime"]]
    doc = _DOCSTRING.match(template)
    body = _RUNTIME_IMPORT.sub("", _DOCSTRING.sub("", template))
    body = _DATA_BLOCK.sub("", body).replace(_MAIN, "")
    imports, op = _split_imports(body)
    shared = []
    for part in parts:
        more, rest = _split_imports(_runtime(part))
        imports += more
        shared.append(rest)
    safe_name = re.sub(r"[^A-Za-z0-9._-]", "_", name) or "repro.py"
    needs = ", ".join(recipe.libraries) + (f"; {recipe.gpus} GPU(s)" if recipe.device == "cuda" else "; no GPU")
    about = doc[1].split("\n\n", 1)[-1].strip() if doc and "\n\n" in doc[1] else ""
    header = _HEADER.format(
        title=recipe.title,
        name=safe_name,
        needs=needs,
        variants=", ".join(variant.name for variant in recipe.variants),
        more=f"\n{about}\n" if about else "",
    )
    bar = "# " + "-" * 100
    return "\n".join(
        [
            header,
            "\n".join(sorted(set(imports))),
            f"\n{bar}\n# What the log says. Values are data: change them freely.\n{bar}\n",
            _data(plan),
            f"\n{bar}\n# The op\n{bar}\n",
            op,
            f"\n{bar}\n# How it is run and judged\n{bar}\n",
            "\n\n".join(shared),
            "\n" + _MAIN,
        ]
    )
