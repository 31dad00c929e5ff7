"""What to rebuild of a failure. In: an `Incident` or a JSON report; out: `Plan`. Sample:

plan(incident).contract -> {"recipe": "triton-shared-memory", "runnable": true, "reason": null}
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from forensics.errors import UsageError
from forensics.model import Incident
from forensics.model.record import record, replace
from forensics.repro.case import Case, Text, case_of_incident, case_of_report
from forensics.repro.choose import LONGEST_TEXT, Choice, Parameter, choose, parameters, rate
from forensics.repro.masking import masked
from forensics.repro.recipe import ParameterSpec, Recipe, Sign, recipe_of

#: newer and older names of the same exception: torch 2.9 turned CUDA errors into AcceleratorError
_SAME_TYPE = (("AcceleratorError", "RuntimeError"), ("OutOfMemoryError", "RuntimeError"))


@record
class Plan:
    """A recipe with its parameters for one failure. why: how the recipe was chosen; log_sha256: of the input's bytes, "" unknown."""

    recipe: Recipe
    parameters: tuple[Parameter, ...]
    case: Case
    sign: Sign | None
    why: str
    log_sha256: str = ""

    @property
    def contract(self) -> dict[str, Any]:
        """The report's "repro" object."""
        reason = f"unsafe to run: {self.recipe.unsafe}" if self.recipe.unsafe else None
        return {"recipe": self.recipe.id, "runnable": reason is None, "reason": reason}

    @property
    def values(self) -> dict[str, Any]:
        """Parameter name -> value."""
        return {parameter.name: parameter.value for parameter in self.parameters}

    @property
    def expected(self) -> dict[str, Any]:
        """What the script compares its failure with: recipe data where a sign is known, else the log's message without its numbers."""
        known: dict[str, Any] = {
            "category": self.case.category,
            "hang": False,
            "signal": None,
            "types": [],
            "patterns": [],
            "message": None,
        }
        name = (self.case.root_type or self.case.type or "").rsplit(".", 1)[-1]
        types = {name} if name.isidentifier() and self.case.kind in ("python", "device_assert") else set()
        for pair in _SAME_TYPE:
            types |= set(pair) if types & set(pair) else set()
        if self.sign is not None:
            known |= {
                "sign": self.sign.id,
                "patterns": [self._words(self.sign)],
                "hang": self.sign.hang,
                "signal": self.sign.signal,
            }
            known["types"] = sorted(self.sign.types or types)
        else:
            known |= {"message": masked(self.case.root_message)[:300] or None, "types": sorted(types)}
        return known

    def _words(self, sign: Sign) -> str:
        """What the failure has to say: the sign's pattern, or the log's own words where they name the op."""
        texts = (self.case.root_message, *self.case.messages, *(text.text for text in self.case.texts)) if sign.exact else ()
        own = next((found[0] for text in texts if (found := sign.regex.search(text[:LONGEST_TEXT]))), None)
        return sign.pattern if own is None else re.escape(own)

    def with_values(self, given: Mapping[str, Any]) -> Plan:
        """The same plan with other parameter values. Raises UsageError for a name or value that the recipe does not take."""
        specs = {spec.name: spec for spec in self.recipe.parameters}
        changed = {parameter.name: parameter for parameter in self.parameters}
        for name, value in given.items():
            spec = specs.get(name)
            if spec is None:
                raise UsageError(
                    f"recipe {self.recipe.id} has no parameter {name!r}",
                    why="its script takes others",
                    where="--set",
                    help=f"it has {', '.join(specs) or 'none'}",
                )
            if isinstance(spec.default, float) and isinstance(value, int) and not isinstance(value, bool):
                value = float(value)
            if not spec.accepts(value):
                raise UsageError(
                    f"parameter {name} does not take {value!r}",
                    why="it is of another kind or out of its range",
                    where="--set",
                    help=_wanted(spec),
                )
            changed[name] = Parameter(name, value, "given", "given by hand")
        return replace(self, parameters=tuple(changed.values()))


def _wanted(spec: ParameterSpec) -> str:
    if spec.choices:
        return f"one of {', '.join(map(str, spec.choices))}"
    return f"a value of type {type(spec.default).__name__} from {spec.minimum} to {spec.maximum}"


def plan_case(case: Case, log_sha256: str = "") -> Plan | None:
    """The plan for a case, None where no recipe answers it."""
    choice: Choice | None = choose(case)
    if choice is None:
        return None
    return Plan(choice.recipe, parameters(choice, case), case, choice.sign, choice.why, log_sha256)


def plan_with(case: Case, recipe_id: str, log_sha256: str = "") -> Plan:
    """The plan for a case with a recipe that somebody chose. Raises UsageError where there is no such recipe."""
    recipe = recipe_of(recipe_id)
    if recipe is None:
        raise UsageError(
            f"there is no recipe {recipe_id!r}",
            why="no file under recipes has this id",
            where="--recipe",
            help="forensics repro --list shows them",
        )
    choice = rate(recipe, case) or Choice(recipe, None, 0, "chosen by hand")
    return Plan(recipe, parameters(choice, case), case, choice.sign, choice.why, log_sha256)


def plan(incident: Incident, lines: Iterable[Text] = (), log_sha256: str = "") -> Plan | None:
    """The plan for an analysed log. lines: more of the log, for parameters that stand far from the failure."""
    return plan_case(case_of_incident(incident, lines), log_sha256)


def plan_report(report: Mapping[str, Any], lines: Iterable[Text] = (), log_sha256: str = "") -> Plan | None:
    """The plan for a JSON report of `forensics analyze`. Raises UsageError where it is none."""
    return plan_case(case_of_report(report, lines), log_sha256)


def contract(incident: Incident) -> dict[str, Any]:
    """The report's "repro" object for an incident, with the reason where there is no recipe."""
    found = plan(incident)
    if found is not None:
        return found.contract
    reason = "nothing failed" if incident.verdict.category.value == "none" else "no recipe rebuilds this failure"
    return {"recipe": None, "runnable": False, "reason": reason}
