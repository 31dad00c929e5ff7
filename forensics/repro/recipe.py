"""Recipes: which op to rebuild, from which parameters, judged by which words. In: signatures/recipes/*.toml; out: `Recipe`. Sample:

triton_shared_memory.toml + triton_shared_memory.py -> Recipe(id="triton-shared-memory", signs=(Sign("out-of-resource", …),), …)
"""

from __future__ import annotations

import functools
import re
from typing import Any

from forensics import data
from forensics.errors import ForensicsError
from forensics.ingest.compiled import pattern_of
from forensics.model.record import field, record


@record
class Sign:
    """Words that mean: this op failed in this way. pattern: over messages and output; types: exception names without modules;
    signal: the child dies of it; hang: it does not come back; category: the report's word for it; parameters: implied by it; exact: the
    words name the op itself, so that only the log's own are the same failure."""

    id: str
    pattern: str
    types: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    signal: str | None = None
    hang: bool = False
    exact: bool = False
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def regex(self) -> re.Pattern[str]:
        """The pattern, compiled when it is asked for: a report plans with one recipe of many."""
        return pattern_of(self.pattern)


@record
class Source:
    """Where a parameter's value may stand: a pattern whose group 1 is the value, or a setting's canonical name; values: the log's
    word -> the parameter's; scale: factor for numbers."""

    pattern: str | None = None
    setting: str | None = None
    fact: str | None = None
    values: dict[str, Any] = field(default_factory=dict)
    scale: float = 1

    @property
    def regex(self) -> re.Pattern[str] | None:
        """The pattern, compiled when it is asked for."""
        return pattern_of(self.pattern) if self.pattern is not None else None


@record
class ParameterSpec:
    """One parameter. why: of the default; minimum, maximum: of numbers; choices: of words; shrink: "", "step" or "double" (minimize);
    multiple: numbers are rounded up to a multiple of it."""

    name: str
    default: Any
    why: str
    sources: tuple[Source, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[Any, ...] = ()
    shrink: str = ""
    multiple: int = 1

    def accepts(self, value: Any) -> bool:
        """Whether a value may enter a script: of the default's type, in the range, one of the choices."""
        if type(value) is not type(self.default):
            return False
        if self.choices:
            return value in self.choices
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            low = self.minimum is None or value >= self.minimum
            return low and (self.maximum is None or value <= self.maximum)
        return not isinstance(value, str)


@record
class Variant:
    """One backend or form of the op for --compare. name "as-logged" is the failing one."""

    name: str
    title: str
    setting: str = ""


@record
class Recipe:
    """One op family. device: "cuda" or "cpu"; sms: where the op is supported, empty for any; gpu_matters: only the log's GPU will do;
    requires: importable modules; libraries: distributions whose versions are printed; unsafe: why it may wedge a node, or "";
    processes: the parameter that counts ranks under torchrun; compiles: has a form for --compile-only."""

    id: str
    title: str
    op: str
    script: str
    signs: tuple[Sign, ...]
    variants: tuple[Variant, ...]
    parameters: tuple[ParameterSpec, ...] = ()
    device: str = "cuda"
    gpus: int = 1
    sms: tuple[str, ...] = ()
    gpu_matters: bool = False
    requires: tuple[str, ...] = ("torch",)
    libraries: tuple[str, ...] = ("torch",)
    symbols: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    weight: int = 0
    timeout_s: int = 120
    unsafe: str = ""
    processes: str = ""
    launch_blocking: bool = True
    compiles: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    references: tuple[str, ...] = ()


def _source(row: dict[str, Any]) -> Source:
    return Source(
        pattern=row.get("pattern"),
        setting=row.get("setting"),
        fact=row.get("fact"),
        values=row.get("values", {}),
        scale=row.get("scale", 1),
    )


def _parameter(row: dict[str, Any]) -> ParameterSpec:
    return ParameterSpec(
        name=row["name"],
        default=row["default"],
        why=row["why"],
        sources=tuple(_source(source) for source in row.get("sources", ())),
        minimum=row.get("minimum"),
        maximum=row.get("maximum"),
        choices=tuple(row.get("choices", ())),
        shrink=row.get("shrink", ""),
        multiple=row.get("multiple", 1),
    )


def _sign(row: dict[str, Any]) -> Sign:
    return Sign(
        id=row["id"],
        pattern=row["pattern"],
        types=tuple(row.get("types", ())),
        categories=tuple(row.get("categories", ())),
        signal=row.get("signal"),
        hang=row.get("hang", False),
        exact=row.get("exact", False),
        parameters=row.get("parameters", {}),
    )


_TUPLES = ("sms", "requires", "libraries", "symbols", "families", "categories", "references")
_PLAIN = (
    "id", "title", "op", "script", "device", "gpus", "gpu_matters", "weight", "timeout_s", "unsafe", "processes",
    "launch_blocking", "compiles", "environment",
)  # fmt: skip
_KNOWN = {*_TUPLES, *_PLAIN, "signs", "variants", "parameters"}


def read(row: dict[str, Any], where: str, *, patterns: bool = True) -> Recipe:
    """One recipe from its TOML content. patterns: compile them all, to find a broken one now. Raises ForensicsError with the
    file's name where the row is not sound."""
    unknown = sorted(set(row) - _KNOWN)
    try:
        if unknown:
            raise ValueError(f"unknown key {unknown[0]!r}")
        plain: dict[str, Any] = {key: tuple(row[key]) for key in _TUPLES if key in row}
        plain |= {key: row[key] for key in _PLAIN if key in row}
        recipe = Recipe(
            signs=tuple(_sign(sign) for sign in row["signs"]),
            variants=tuple(Variant(**variant) for variant in row["variants"]),
            parameters=tuple(_parameter(parameter) for parameter in row.get("parameters", ())),
            **plain,
        )
        for spec in recipe.parameters:
            if not spec.accepts(spec.default):
                raise ValueError(f"parameter {spec.name}: its default {spec.default!r} is not acceptable")
        if patterns:
            for sign in recipe.signs:
                re.compile(sign.pattern)
        if recipe.variants[0].name != "as-logged":
            raise ValueError("the first variant is called as-logged")
        return recipe
    except (KeyError, TypeError, ValueError, IndexError, re.error) as error:
        raise ForensicsError("a recipe is not sound", why=str(error), where=where, help="correct the file") from error


@functools.cache
def load_recipes() -> tuple[Recipe, ...]:
    """All shipped recipes, sorted by file name. Their patterns are checked by the tests, not by every user."""
    return tuple(read(row, where, patterns=False) for where, row in data.folder("recipes"))


def recipe_of(id: str) -> Recipe | None:
    """A recipe by its id, or None."""
    return next((recipe for recipe in load_recipes() if recipe.id == id), None)
