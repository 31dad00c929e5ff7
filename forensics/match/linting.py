"""Everything wrong with signature files, all at once. In: files or folders; out: `Problem`s (file, line, what, caret). Sample:

    lint(["signatures/rules"]) -> [Problem("…/nccl/x.toml", 31, "examples[1] does not match: pattern", "    …\n       ^ …")]

A shipped signature needs an example that matches and a counterexample that is close and does not; its literals and its pattern
must earn their place: with one literal dropped, some example or counterexample must come out wrong.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from forensics import data
from forensics.match.explain import explain_line
from forensics.match.load import entries_of, read_entries
from forensics.match.schema import Problem, entry_line, line_of
from forensics.match.signature import Signature
from forensics.match.subject import shows_a_user
from forensics.match.template import fill
from forensics.match.trial import facts_from, from_entry, try_text


def lint(paths: Iterable[str], *, strict: bool = True) -> list[Problem]:
    """All problems below the paths. strict: as for shipped signatures (counterexamples, references, quiet on healthy prompts)."""
    problems: list[Problem] = []
    seen: dict[str, str] = {}
    for base in paths:
        if not os.path.exists(base):
            problems.append(Problem(base, 1, "there is no such file or folder"))
        for path in data.toml_files(base) if os.path.exists(base) else []:
            problems += _lint_file(path, seen, strict)
    return problems


def _lint_file(path: str, seen: dict[str, str], strict: bool) -> list[Problem]:
    good, problems = entries_of(path)
    if not good:
        return problems
    with open(path, encoding="utf-8") as file:
        source = file.read()
    order = [entry.get("id") for entry in read_entries(path)]
    for entry in good:
        start = entry_line(source, order.index(entry["id"]))
        if entry["id"] in seen:
            problems.append(Problem(path, start, f"id: {entry['id']} stands in {seen[entry['id']]} too"))
        seen[entry["id"]] = path
        try:
            problems += lint_entry(entry, path, source, start, strict=strict)
        except TimeoutError as error:
            problems.append(Problem(path, start, f"{entry['id']}: {error}"))
    return problems


def lint_entry(
    entry: Mapping[str, Any], path: str, source: str = "", start: int = 1, *, strict: bool = True
) -> list[Problem]:
    """What is wrong with one well-formed signature beyond its shape."""
    one = from_entry(entry, path, trusted=strict)
    found = _unwritten(entry, path, source.splitlines(), start)
    places = {key: _places(source, key, start) for key in ("examples", "counterexamples")}
    for number, example in enumerate(entry.get("examples", []), 1):
        line = _nth(places["examples"], number, start)
        found += [Problem(path, line, f"{one.id}: examples[{number}] {text}", more) for text, more in example_faults(one, example)]
    for number, example in enumerate(entry.get("counterexamples", []), 1):
        line = _nth(places["counterexamples"], number, start)
        if "text" in example and try_text(one, example["text"], example):
            why = example.get("because", "no reason given")
            found.append(Problem(path, line, f"{one.id}: counterexamples[{number}] matches, but must not: {why}"))
    if not entry.get("examples"):
        found.append(Problem(path, start, f"{one.id}: no [[examples]]: a signature proves itself"))
    if strict:
        found += _strict_faults(one, entry, path, source.splitlines(), start)
    return found


def _unwritten(entry: Mapping[str, Any], path: str, lines: list[str], start: int) -> list[Problem]:
    """What `signatures new` left to be written and nobody wrote."""
    found = []
    for name, value in _texts_of(entry):
        if value.lstrip().startswith("TODO"):
            found.append(Problem(path, line_of(lines, name, start), f"{entry['id']}: {name}: still what `signatures new` put there"))
    return found


def _texts_of(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Every text of an entry, with the key that it stands at."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts_of(inner, str(key))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts_of(inner, name)


def example_faults(one: Signature, example: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(what is wrong, where it stopped) for each way in which an example does not do what it says."""
    if "text" not in example:
        return [("has no text", "")]
    hits = try_text(one, example["text"], example)
    if not hits:
        steps = explain_line(one, example["text"], example)
        failed = next((step for step in steps if not step.ok), None)
        return [(f"does not match: {failed.what}" if failed else "does not match", failed.detail if failed else "")]
    faults = []
    for name, value in example.get("captures", {}).items():
        got = hits[0].captures.get(name)
        if got != value:
            faults.append((f"captures {name} = {got!r}, not {value!r}", ""))
    if title := example.get("title"):
        got = fill(one.title, hits[0].captures, facts_from(example))
        if got != title:
            faults.append((f"makes the title {got!r}, not {title!r}", ""))
    return faults


def _strict_faults(one: Signature, entry: Mapping[str, Any], path: str, lines: list[str], start: int) -> list[Problem]:
    def problem(text: str, key: str = "") -> Problem:
        return Problem(path, line_of(lines, key, start), f"{one.id}: {text}")

    found = []
    if not entry.get("counterexamples"):
        found.append(problem("no [[counterexamples]]: a near miss shows where it ends"))
    for number, example in enumerate(entry.get("counterexamples", []), 1):
        if not example.get("because"):
            found.append(problem(f"counterexamples[{number}] does not say because of what it must not match", "counterexamples"))
    if not entry.get("references"):
        found.append(problem("references: name the source that prints this text (project, file, version, or a thread)"))
    if one.role == "root" and not entry.get("fixes") and not entry.get("next_steps"):
        found.append(problem("a root signature needs fixes or next_steps"))
    for owner in (entry["match"], *entry.get("fixes", ())):
        named = [name for key in ("when", "unless") for name in owner.get(key, {}).get("engine", ())]
        found += [problem(f"engine: {name!r} is none of {', '.join(engines())}", "engine") for name in named if name not in engines()]
    for what, key, mutant in mutants(entry):
        if not noticed(entry, mutant):
            found.append(problem(f"no example or counterexample notices when {what} is dropped", key))
    for literal in one.anchor_literals:
        if one.role == "root" and one.specificity > 20 and literal.lower() in healthy_prompts():
            found.append(problem(f"the anchor {literal!r} stands in healthy text; choose one that does not", "literals"))
    return found


def mutants(entry: Mapping[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """(what was dropped, its key, the [match] without it) for each literal and each other test of a signature."""
    match = entry["match"]
    found = []
    for key in ("literals", "any_literals", "none_literals", "nearby", "not_nearby"):
        for literal in match.get(key, ()):
            found.append((f"{literal!r} of {key}", key, {**match, key: [one for one in match[key] if one != literal]}))
    for key in ("pattern", "exception", "frame", "code", "events", "when", "unless"):
        if key in match:
            found.append((key, key, {name: value for name, value in match.items() if name != key}))
    return found


def noticed(entry: Mapping[str, Any], match: dict[str, Any]) -> bool:
    """True where a signature with this [match] instead of its own fails an example or a counterexample, or has no literal left."""
    if not match.get("literals") and not match.get("any_literals"):
        return True
    mutant = from_entry({**entry, "match": match})
    return any(example_faults(mutant, example) for example in entry.get("examples", [])) or any(
        try_text(mutant, example["text"], example) for example in entry.get("counterexamples", []) if "text" in example
    )


@lru_cache(maxsize=1)
def healthy_prompts() -> str:
    """Text as users of a service write it, in lower case: rules that fire on it would fire on request logs."""
    here = os.path.join(os.path.dirname(data.base()), "tests", "fixtures", "healthy_prompts.txt")
    try:
        with open(here, encoding="utf-8") as file:
            return "".join(line for line in file if not shows_a_user(line)).lower()
    except OSError:
        return ""


@lru_cache(maxsize=1)
def engines() -> tuple[str, ...]:
    """The names that facts use for engines."""
    return tuple(str(row["name"]) for row in data.table("facts/engines")["engine"])


def _places(source: str, name: str, start: int) -> list[int]:
    lines = source.splitlines()
    return [n for n in range(start, len(lines) + 1) if lines[n - 1].strip() in (f"[[{name}]]", f"[[signature.{name}]]")]


def _nth(places: list[int], number: int, otherwise: int) -> int:
    return places[number - 1] if number <= len(places) else otherwise
