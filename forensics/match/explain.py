"""Why a line does or does not match a signature. In: a signature and a text; out: steps, the failed one with a caret. Sample:

    explain_line(signature, "Hardware limit: 101376") -> (Step(True, "literal", "Hardware limit: "), Step(False, "pattern", …))
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from forensics.match.conditions import Context, holds
from forensics.match.signature import Signature, searcher
from forensics.match.subject import RAISED, quotes_a_user
from forensics.match.trial import facts_from, try_text
from forensics.model.record import record


@record
class Step:
    """One test. ok: passed, failed, or None where it cannot be said; what: which key; detail: what was wanted and found."""

    ok: bool | None
    what: str
    detail: str


def explain_line(signature: Signature, text: str, given: Mapping[str, Any] | None = None) -> tuple[Step, ...]:
    """Every test of a signature on a text, in the matcher's order. given: gpu, engine, versions, settings, component, phase."""
    given = given or {}
    steps = [_literal(text, literal) for literal in signature.literals]
    if signature.any_literals:
        there = [literal for literal in signature.any_literals if literal in text]
        detail = f"found {there[0]!r}" if there else f"none of {list(signature.any_literals)}"
        steps.append(Step(bool(there), "any_literals", detail))
    steps += [
        Step(False, "none_literals", f"{literal!r} must not stand there")
        for literal in signature.rest.get("none_literals", ())
        if literal in text
    ]
    captures: Mapping[str, str] = {}
    if signature.pattern:
        try:
            found = searcher(signature.pattern, signature.trusted)(text)
        except TimeoutError as error:
            return (*steps, Step(False, "pattern", str(error)))
        if found is None:
            steps.append(Step(False, "pattern", how_far(signature.pattern, text)))
        else:
            captures = {name: value for name, value in found.groupdict().items() if value is not None}
            steps.append(Step(True, "pattern", ", ".join(f"{k}={v!r}" for k, v in captures.items()) or "matches"))
    at = text.find(next(iter(signature.literals or signature.any_literals)))
    if at > 0 and "\n" not in text and quotes_a_user(text, at):
        steps.append(Step(False, "quoted", "stands after what looks like a logged prompt or request body"))
    steps += _context_steps(signature, text, given, captures)
    if not try_text(signature, text, given) and all(step.ok for step in steps):
        steps.append(Step(False, "place", "the text is a line of source code, or the event it lies in does not fit"))
    return tuple(steps)


def _context_steps(
    signature: Signature, text: str, given: Mapping[str, Any], captures: Mapping[str, str]
) -> list[Step]:
    rest, steps = signature.rest, []
    if wanted := rest.get("exception"):
        kind = re.search(RAISED, text)
        fits = bool(kind and (re.fullmatch(wanted, kind[0]) or re.fullmatch(wanted, kind[0].rpartition(".")[2])))
        steps.append(Step(fits, "exception", f"wants {wanted}, the text names {kind[0] if kind else 'none'}"))
    for key in ("nearby", "not_nearby"):
        for literal in rest.get(key, ()):
            steps.append(Step((literal in text) == (key == "nearby"), key, repr(literal)))
    context = Context(given.get("component"), given.get("phase"), captures)
    for key in ("when", "unless"):
        for name, wanted in rest.get(key, {}).items():
            answer = holds({name: wanted}, facts_from(given), context)
            ok = answer if key == "when" else None if answer is None else not answer
            steps.append(Step(ok, f"{key}.{name}", f"{wanted!r}: {'not known' if answer is None else answer}"))
    return steps


def _literal(text: str, literal: str) -> Step:
    if literal in text:
        return Step(True, "literal", repr(literal))
    reach = next((n for n in range(len(literal) - 1, 0, -1) if literal[:n] in text), 0)
    if not reach:
        return Step(False, "literal", f"{literal!r} is not there")
    return Step(False, "literal", _caret(text, text.index(literal[:reach]) + reach, f"wanted {literal[reach:]!r} here"))


def how_far(pattern: str, text: str) -> str:
    """The text with a caret where the longest part of the pattern that still matches ended, and the part that did not."""
    import regex

    for end in range(len(pattern) - 1, 0, -1):
        try:
            found = regex.compile(pattern[:end]).search(text, timeout=0.05)
        except (regex.error, TimeoutError):
            continue
        if found and found.end() > found.start():
            return _caret(text, found.end(), f"here the pattern goes on with {pattern[end:]!r:.80}")
    return _caret(text, 0, f"nothing of {pattern!r:.80} matches")


def _caret(text: str, at: int, why: str) -> str:
    """The line of the text that holds a position, cut to 100 characters, and a caret below."""
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    line = text[start : end if end >= 0 else len(text)]
    shift = max(0, at - start - 60)
    return f"    {line[shift : shift + 100]}\n    {' ' * (at - start - shift)}^ {why}"
