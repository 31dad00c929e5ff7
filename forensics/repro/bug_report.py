"""A bug report ready to be filed. In: `Plan`, an outcome where there is one; out: Markdown. Sample:

issue(plan, outcome) -> "### Triton GEMM … : out of resource: shared memory…\\n\\n**What happens** …"
"""

from __future__ import annotations

from forensics.redact import Redactor
from forensics.repro.planning import Plan
from forensics.repro.render import render
from forensics.repro.running import ReproOutcome
from forensics.visible import markdown, visible

_TAIL_LINES = 60

_SAID = {
    "reproduced": "The script below shows the same failure without the application.",
    "works": "The op alone works here: the failure needs more of the application than the script has.",
    "different_failure": "The op alone fails here, but in another way than in the application.",
    "cannot_try": "The script could not be tried where this report was written.",
}


def _fenced(text: str, language: str = "") -> str:
    """A code block whose fence is longer than any inside."""
    fence = "```"
    while fence in text:
        fence += "`"
    text = visible(text)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def _cell(text: object) -> str:
    """Text that stays inside of one table cell, and is no markup, mention or link there."""
    return markdown(visible(" ".join(str(text).split())[:300]))


def _environment(plan: Plan, outcome: ReproOutcome | None) -> str:
    case, run = plan.case, outcome.result if outcome else {}
    rows = [("GPU in the log", f"{case.device or 'not said'} ({case.sm or '?'})")]
    gpu = run.get("gpu") if run else None
    if gpu:
        rows.append(("GPU of the run", f"{gpu.get('name')} ({gpu.get('sm')}), {gpu.get('count')} visible"))
    rows += [(f"{name} in the log", version) for name, version in case.versions.items()]
    rows += [
        (f"{name} of the run", row.get("found") or "not installed") for name, row in (run.get("versions") or {}).items()
    ]
    return "| | |\n|---|---|\n" + "".join(f"| {_cell(name)} | {_cell(value)} |\n" for name, value in rows)


def issue(plan: Plan, outcome: ReproOutcome | None = None) -> str:
    """The report: verdict, environment, script, output. Personal and site data are taken out of all of it."""
    case = plan.case
    error = f"{case.root_type or case.type or 'failure'}: {case.root_message}".strip()
    first = error.splitlines()[0][:200] if error else case.title
    parts = [
        f"### {_cell(plan.recipe.title)}: {_cell(first)}\n",
        f"**What happens.** {_cell(case.title)}\n",
        _fenced(error[:4000]),
    ]
    parts.append(
        _SAID[outcome.outcome] + f" ({_cell(outcome.why)})\n"
        if outcome
        else "The script below calls the op alone. It was not run.\n"
    )
    if outcome and outcome.aspects:
        rows = "".join(
            f"| {_cell(a.name)} | {_cell(a.expected)} | {_cell(a.observed)} | {'yes' if a.same else 'no' if a.same is False else '?'} |\n"
            for a in outcome.aspects
        )
        parts.append("| compared | log | run | same |\n|---|---|---|---|\n" + rows)
    parts += ["**Environment**\n", _environment(plan, outcome)]
    parts += ["**Script** (exit code 1: reproduced, 0: the op works, 125: neither)\n", _fenced(render(plan), "python")]
    if outcome and outcome.output.strip():
        tail = "\n".join(outcome.output.strip().splitlines()[-_TAIL_LINES:])
        parts += ["**Output**\n", _fenced(tail)]
    redactor = Redactor()
    text = redactor.value("\n".join(parts))
    return f"{text}\n*Redacted: {redactor.summary()}. Read it before you publish it.*\n"
