"""Why another backend runs than was asked for, by engine and version. In: facts and a setting; out: `ResolutionNote`s. Sample:

    resolution_notes("sglang", "0.5.20", "moe_runner_backend", "draft_model", facts)
    -> [ResolutionNote(id="sglang.draft-auto-on-sm120", result="flashinfer_trtllm", confidence="supported", …), …]

A rule (signatures/facts/resolution.toml) is left out where one of its conditions is known to be false. What is not known, the
version above all, makes it a hypothesis.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from forensics.data import table
from forensics.ingest.compiled import pattern_of
from forensics.knowledge.architectures import parse_target
from forensics.knowledge.releases import between
from forensics.model import Confidence, Facts
from forensics.model.record import record

_RANK = {Confidence.ESTABLISHED: 0, Confidence.SUPPORTED: 1, Confidence.HYPOTHESIS: 2, Confidence.UNKNOWN: 3}


@record
class ResolutionNote:
    """A mechanism. result: the backend that follows ("the target's", "auto" too); why: in words; versions: "0.5.16 to 0.5.23" or
    "any version read"; log: what the engine prints then, "" for nothing; overrides: the setting asked for does not act;
    confidence: supported where version and all conditions are known to fit and the rule was read in the source, else hypothesis;
    unknown: conditions of which the log says nothing."""

    id: str
    result: str
    why: str
    versions: str
    confidence: Confidence
    overrides: bool = False
    log: str = ""
    unknown: tuple[str, ...] = ()


@cache
def _rules() -> tuple[Mapping[str, Any], ...]:
    return tuple(table("facts/resolution")["rule"])


def resolution_notes(
    engine: str | None, version: str | None, setting: str, component: str | None, facts: Facts
) -> list[ResolutionNote]:
    """Rules that can explain what a setting became, the surest first.

    engine: as in `Facts.engine`; version: None where not known; component: target_model, draft_model, or None for any.
    """
    found = []
    for rule in _rules():
        if rule["setting"] != setting or engine not in (None, rule["engine"]):
            continue
        if component and rule.get("component") not in (None, component):
            continue
        note = _applied(rule, engine, version, facts)
        if note:
            found.append(note)
    return sorted(found, key=lambda note: (_RANK[note.confidence], len(note.unknown)))


def _applied(rule: Mapping[str, Any], engine: str | None, version: str | None, facts: Facts) -> ResolutionNote | None:
    """The note of a rule, None where a condition is known to be false."""
    if version is not None and not between(version, rule.get("first"), rule.get("last")):
        return None
    unknown = [] if version is not None or not (rule.get("first") or rule.get("last")) else ["version"]
    for name, test in (
        ("sms", _sm),
        ("model", _model),
        ("quantization", _quantization),
        ("algorithm", _algorithm),
        ("asked", _asked),
        ("environment", _variable),
    ):
        if name in rule:
            holds = test(rule, facts)
            if holds is False:
                return None
            if holds is None:
                unknown.append(name)
    sure = not unknown and engine is not None and rule["confidence"] == "source"
    return ResolutionNote(
        id=rule["id"],
        result=rule["result"],
        why=rule["why"],
        versions=_span(rule),
        confidence=Confidence.SUPPORTED if sure else Confidence.HYPOTHESIS,
        overrides=rule.get("overrides", False),
        log=rule["log"],
        unknown=tuple(unknown),
    )


def _span(rule: Mapping[str, Any]) -> str:
    first, last = rule.get("first"), rule.get("last")
    if first and last:
        return first if first == last else f"{first} to {last}"
    return f"from {first} on" if first else f"up to {last}" if last else "any version read"


def _sm(rule: Mapping[str, Any], facts: Facts) -> bool | None:
    target = parse_target(facts.gpu.sm) if facts.gpu and facts.gpu.sm else None
    return None if target is None else target.sm in rule["sms"]


def _model(rule: Mapping[str, Any], facts: Facts) -> bool | None:
    return None if not facts.model else pattern_of(rule["model"]).search(facts.model) is not None


def _value(facts: Facts, name: str, component: str | None) -> str | None:
    """The value asked for, "unset" where a dump shows None, None where the log shows nothing."""
    for setting in facts.settings:
        if setting.name == name and setting.component in (component, None) and setting.how == "asked":
            return setting.value if setting.value is not None else "unset"
    return None


def _quantization(rule: Mapping[str, Any], facts: Facts) -> bool | None:
    value = _value(facts, "quantization", "target_model")
    return None if value is None else pattern_of(rule["quantization"]).search(value) is not None


def _algorithm(rule: Mapping[str, Any], facts: Facts) -> bool | None:
    value = _value(facts, "speculative_algorithm", None)
    return None if value is None else pattern_of(rule["algorithm"]).search(value) is not None


def _asked(rule: Mapping[str, Any], facts: Facts) -> bool | None:
    value = _value(facts, rule["setting"], rule.get("component"))
    return None if value is None else value.lower() in {text.lower() for text in rule["asked"]}


def _variable(rule: Mapping[str, Any], facts: Facts) -> bool | None:
    return any(s.spelled == rule["environment"] for s in facts.settings) or None
