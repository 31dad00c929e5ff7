"""Which recipe answers a failure, and with which parameters. In: `Case`; out: `Choice`, `Parameter`s. Sample:

"out of resource: shared memory, Required: 655360, Hardware limit: 232448" -> triton-shared-memory, sign out-of-resource
"""

from __future__ import annotations

from typing import Any

from forensics.model.record import record
from forensics.repro.case import Case, Text
from forensics.repro.recipe import ParameterSpec, Recipe, Sign, Source, load_recipes

LONGEST_TEXT = 4000


@record
class Choice:
    """A recipe that answers a case. sign: the words that it was recognised by, None where only the op is known; why: in words."""

    recipe: Recipe
    sign: Sign | None
    score: int
    why: str


@record
class Parameter:
    """A value that enters the script. origin: log, setting, default, sign or given; line: 1-based, where the log has it."""

    name: str
    value: Any
    origin: str
    why: str
    source: str | None = None
    line: int | None = None


def _sign_of(recipe: Recipe, case: Case) -> tuple[Sign | None, int]:
    """The recipe's sign that stands nearest to the root cause, and what that is worth."""
    places = [(50, [case.root_message]), (45, case.messages), (30, [text.text for text in case.texts])]
    if case.root_type:
        places.insert(
            1, (48, [f"{case.root_type}: {case.root_message}", f"{case.type}: {(case.messages or ('',))[-1]}"])
        )
    raised = (case.root_type or case.type or "").rsplit(".", 1)[-1]  # two exceptions may say the same
    for worth, texts in places:
        found: list[Sign] = []
        for sign in recipe.signs:
            if sign.categories and case.category not in sign.categories:
                continue
            if any(sign.regex.search(text[:LONGEST_TEXT]) for text in texts):
                found.append(sign)
        if found:
            return next((sign for sign in found if raised in sign.types), found[0]), worth
    return None, 0


def rate(recipe: Recipe, case: Case) -> Choice | None:
    """How well one recipe answers a case, None where it does not."""
    if recipe.categories and case.category not in recipe.categories:
        return None
    symbol = next((word for word in recipe.symbols if any(word in name for name in case.symbols)), None)
    if symbol is None:
        symbol = next((word for word in recipe.symbols if any(word in message for message in case.messages)), None)
    family = next((name for name in recipe.families if name in case.families), None)
    if (recipe.symbols or recipe.families) and symbol is None and family is None:
        return None
    sign, worth = _sign_of(recipe, case)
    if recipe.symbols or recipe.families:
        worth += 30 if symbol else 20
    elif sign is None:
        return None
    parts = [
        f"the error says what sign {sign.id!r} looks for" if sign else "",
        f"{symbol} is on the way" if symbol else "",
    ]
    parts.append(f"op family {family}" if family and not symbol else "")
    return Choice(recipe, sign, worth + recipe.weight, ", ".join(part for part in parts if part))


def choose(case: Case) -> Choice | None:
    """The recipe that answers a case best, None where none does or nothing failed."""
    if case.category in ("none", ""):
        return None
    rated = [choice for recipe in load_recipes() if (choice := rate(recipe, case)) is not None]
    return max(rated, key=lambda choice: choice.score, default=None)


def _converted(raw: str, spec: ParameterSpec, source: Source) -> Any:
    """The log's word as the parameter's type, None where it is not acceptable. The word itself never reaches a script."""
    word = raw.strip().strip("'\"")
    if source.values:
        lowered = {key.lower(): value for key, value in source.values.items()}
        value: Any = lowered.get(word.lower())
    elif isinstance(spec.default, bool):
        value = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}.get(word.lower())
    elif isinstance(spec.default, (int, float)):
        try:
            number = float(word.replace(",", "").replace("_", "")) * source.scale
            if abs(number) > 1e15:
                return None
            value = type(spec.default)(number)
        except (ValueError, OverflowError):
            return None
        if isinstance(value, int) and spec.multiple > 1:
            value = -(-value // spec.multiple) * spec.multiple
    elif isinstance(spec.default, str):
        value = next((choice for choice in spec.choices if str(choice).lower() == word.lower()), None)
    else:
        return None
    return value if value is not None and spec.accepts(value) else None


def _seen(spec: ParameterSpec, case: Case) -> Parameter | None:
    for source in spec.sources:
        places: list[tuple[Text, str]] = []
        regex = source.regex
        if regex is not None:
            for text in case.texts:
                if found := regex.search(text.text[:LONGEST_TEXT]):
                    places.append((text, found[1] if found.re.groups else found[0]))
                    break
        for kind, table in ((source.setting, case.settings), (source.fact, case.facts)):
            if kind is not None and kind in table:
                places.append((table[kind], table[kind].text))
        for text, raw in places:
            value = _converted(raw, spec, source)
            if value is not None:
                origin = "setting" if source.setting else "log"
                why = f"setting {source.setting}" if source.setting else "in the log"
                return Parameter(spec.name, value, origin, why, text.source, text.line)
    return None


def parameters(choice: Choice, case: Case) -> tuple[Parameter, ...]:
    """All parameters of the chosen recipe: from the log where it says them, else the default and why."""
    implied = choice.sign.parameters if choice.sign else {}
    found = []
    for spec in choice.recipe.parameters:
        seen = _seen(spec, case)
        if seen is None and spec.name in implied and spec.accepts(implied[spec.name]):
            seen = Parameter(spec.name, implied[spec.name], "sign", "what the error implies")
        found.append(seen or Parameter(spec.name, spec.default, "default", spec.why))
    return tuple(found)
