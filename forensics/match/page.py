"""A signature as a page for people. In: a TOML entry and its path; out: Markdown. Sample:

    page(entry, "signatures/rules/nccl/x.toml") -> "# NCCL could not …\\n\\n`nccl.x` · root · nccl · supported …"
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_TESTS = ("literals", "any_literals", "none_literals", "nearby", "not_nearby")


def page(entry: Mapping[str, Any], path: str) -> str:
    """The page of one signature: what it means, what to do, how it is recognised, from where that is known."""
    facts = (f"`{entry['id']}`", entry["role"], entry.get("category"), entry.get("confidence", "supported"))
    parts = [f"# {entry['title']}", " · ".join(fact for fact in facts if fact), entry["why"].strip()]
    if entry.get("fixes"):
        parts += ["## What to do", "\n".join(_fix(fix) for fix in entry["fixes"])]
    if entry.get("next_steps"):
        parts += ["## What to look at", "\n".join(f"- {step}" for step in entry["next_steps"])]
    if entry.get("must_not_prove"):
        parts.append(f"**It does not prove:** {entry['must_not_prove']}")
    parts += ["## How it is recognised", "\n".join(_recognised(entry["match"]))]
    parts += ["## Examples", *(_quoted(one["text"]) + _given(one) for one in entry.get("examples", []))]
    if entry.get("counterexamples"):
        parts.append("## Near misses")
        parts += [_quoted(one["text"]) + _given(one) + f"\n{one.get('because', '')}" for one in entry["counterexamples"]]
    parts += ["## Sources", "\n".join(f"- {one}" for one in (*entry.get("references", ()), f"`{path}`"))]
    return "\n\n".join(parts) + "\n"


def index(entries: Iterable[Mapping[str, Any]]) -> str:
    """The table of contents: one row a signature, by family."""
    lines = ["# Signatures", "", "| signature | what | role | category |", "|---|---|---|---|"]
    for entry in sorted(entries, key=lambda one: str(one["id"])):
        title = entry["title"].replace("|", "\\|")
        lines.append(f"| [`{entry['id']}`]({entry['id']}.md) | {title} | {entry['role']} | {entry.get('category', '')} |")
    return "\n".join(lines) + "\n"


def _fix(fix: Mapping[str, Any]) -> str:
    where = f" ({fix['component'].replace('_', ' ')})" if fix.get("component") else ""
    when = _conditions(fix.get("when", {}))
    return f"- `{fix['action']}`{where}" + (f", where {when}" if when else "") + (f": {fix['why']}" if fix.get("why") else "")


def _conditions(table: Mapping[str, Any]) -> str:
    words = []
    for key, value in table.items():
        if isinstance(value, Mapping):
            words += [f"{name} {wanted}" for name, wanted in value.items()]
        else:
            words.append(f"{key.replace('_', ' ')} {' or '.join(value) if isinstance(value, list) else value}")
    return " and ".join(words)


def _recognised(match: Mapping[str, Any]) -> Iterable[str]:
    for key in _TESTS:
        for literal in match.get(key, ()):
            yield f"- {key.replace('_', ' ')}: `{literal}`"
    for key in ("pattern", "exception", "frame", "code"):
        if key in match:
            yield f"- {key}: `{match[key]}`"
    for key in ("when", "unless"):
        if key in match:
            yield f"- {key} {_conditions(match[key])}"


def _quoted(text: str) -> str:
    return "```\n" + text.strip("\n") + "\n```"


def _given(example: Mapping[str, Any]) -> str:
    given = {key: example[key] for key in ("gpu", "engine", "versions", "settings", "component", "phase") if key in example}
    return f"\n(with {', '.join(f'{key} {value}' for key, value in given.items())})" if given else ""
