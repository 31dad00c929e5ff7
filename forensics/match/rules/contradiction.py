"""Asked for one backend, another one ran. In: settings, the families seen failing; out: `Contradiction`s. Sample:

    --speculative-moe-runner-backend triton, and trtllm_fp4_block_scale_routed_moe in the draft's stack
    -> Contradiction("moe_runner_backend", "triton", "flashinfer_trtllm_routed", "…", component="draft_model")

That something else ran is established by the log; why is said with the versions it is known for, as a hypothesis otherwise.
What ran is read from the failing stack and from kernel names, never from the settings. A fallback that the engine announces
explains what ran and is no contradiction.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from forensics.ingest.compiled import pattern_of
from forensics.knowledge.families import symbols_in
from forensics.knowledge.resolution import ResolutionNote, resolution_notes
from forensics.match.engine import Matcher
from forensics.match.quoting import evidence
from forensics.match.rules.backends import Choice, leading_to, named
from forensics.match.subject import Subject
from forensics.model.event import EventKind
from forensics.model.knowledge import Facts, Setting
from forensics.model.source import Evidence
from forensics.model.verdict import Confidence, Contradiction

_NOT_A_CHOICE = ("auto", "none", "default", "")
INNER_FRAMES = 12
MOST_NOTES = 3


class _Ran(NamedTuple):
    """An op seen in a failing stack. choices: the values that lead to the most telling of its families; via: the word that
    named it; families: all that were seen."""

    choices: tuple[Choice, ...]
    via: str
    families: frozenset[str]
    subject: Subject
    component: str | None


def contradicted(matcher: Matcher) -> list[Contradiction]:
    """Each setting once that asked for something else than what ran, for the target and the draft model apart."""
    facts, found = matcher.facts, dict[tuple[str, str | None], Contradiction]()
    for index in matcher.failing((EventKind.PYTHON, EventKind.NATIVE)):
        ran = _ran(matcher, matcher.subjects.event_subject(index))
        setting = _asked(facts, ran.choices[0].setting, ran.component) if ran else None
        if ran is None or setting is None or (setting.value or "None").lower() in _NOT_A_CHOICE:
            continue
        if _leads_to(setting.name, setting.value, ran, facts) or _announced(facts, ran, setting):
            continue
        found.setdefault((setting.name, ran.component), _contradiction(matcher, setting, ran))
    return list(found.values())


def _ran(matcher: Matcher, subject: Subject) -> _Ran | None:
    """What a failing event had called: its message and its innermost frames, of the family that the fewest values lead to."""
    texts = [subject.text[:4000]]
    texts += [f"{f.function} {f.code or ''}"[:2000] for f in reversed(subject.frames[-INNER_FRAMES:])]
    seen: dict[str, str] = {}
    for text in texts:
        for word, id in symbols_in(text):
            seen.setdefault(id, word)
    told = {id: choices for id in seen if (choices := leading_to({id}, matcher.facts.engine))}
    if not told:
        return None
    telling = min(told, key=lambda id: len(told[id]))
    told[telling] = tuple(sorted(told[telling], key=lambda choice: not choice.propose))
    return _Ran(told[telling], seen[telling], frozenset(seen), subject, matcher.places.component(subject))


def _asked(facts: Facts, name: str, component: str | None) -> Setting | None:
    """What was asked for this part of the model; a draft without a setting of its own has the target's."""
    asked = [s for s in facts.settings if s.how == "asked" and s.name == name]
    wanted = [component, None] if component else [None, "target_model"]
    wanted += ["target_model"] if component == "draft_model" else []
    return next((s for part in wanted for s in asked if s.component == part), None)


def _leads_to(name: str, value: str | None, ran: _Ran, facts: Facts) -> bool:
    """True where a value is one that may run these kernels, or is no value we know."""
    row = named(facts.engine, name, value or "")
    return row is None or row in ran.choices or bool(set(row.families) & ran.families)


def _announced(facts: Facts, ran: _Ran, asked: Setting) -> bool:
    """True where the engine said that it would use what ran instead of what was asked for."""
    return any(
        said.how == "resolved"
        and said.name == asked.name
        and said.component in (None, ran.component)
        and said.value not in (None, asked.value)
        and _leads_to(said.name, said.value, ran, facts)
        for said in facts.settings
    )


def _contradiction(matcher: Matcher, setting: Setting, ran: _Ran) -> Contradiction:
    facts = matcher.facts
    part = f" for the {ran.component.replace('_', ' ')}" if ran.component else ""
    inherited = ran.component == "draft_model" and setting.component != "draft_model"
    head = (
        f"{setting.value!r} was asked for as {setting.spelled or setting.name}{part}"
        f"{' (which a draft without a setting of its own shares)' if inherited else ''}, but {_short(ran.via)} ran, to which "
        f"only {' or '.join(choice.value for choice in ran.choices)} leads."
    )
    reasons = mechanisms(facts, setting, ran)
    observed = ran.choices[0].value
    quotes: list[Evidence] = [
        evidence(matcher.subjects, setting.span, (setting.spelled or setting.name,), f"asked for {setting.value}"),
        evidence(matcher.subjects, ran.subject.span, (ran.via,), f"{observed} ran", ran.subject.stream),
    ]
    quantization = facts.setting("quantization")
    if quantization is not None and reasons and quantization.span != setting.span:
        quotes.append(evidence(matcher.subjects, quantization.span, ("quantization",), f"quantization={quantization.value}"))
    explanation = " ".join([head, *reasons])
    return Contradiction(
        setting.name, str(setting.value), observed, explanation, tuple(quotes), ran.component, Confidence.ESTABLISHED
    )


def _short(name: str) -> str:
    return name if len(name) <= 60 else name[:44] + "…" + name[-12:]


def mechanisms(facts: Facts, setting: Setting, ran: _Ran) -> list[str]:
    """Why the setting may not have acted, in sentences, the surest first: what the settings themselves show, then what is known
    of this engine's versions. Each says how sure it is."""
    found = []
    quantization = facts.setting("quantization", "target_model") or facts.setting("quantization")
    fp4 = _fp4(facts)
    if ran.choices[0].op == "moe" and quantization is not None and quantization.value in (None, "None") and fp4:
        found.append(
            f"quantization is None although {fp4}: the format was detected from the checkpoint, so overrides gated on the setting "
            "(modelopt_fp4) do not act."
        )
    version = facts.version(facts.engine or "")
    notes = resolution_notes(facts.engine, version, setting.name, ran.component, facts)
    for note in [note for note in notes if _explains(note, facts, setting, ran)][:MOST_NOTES]:
        where = f"{facts.engine or 'engine'} {note.versions}" + ("" if version else "; the log names no version")
        sure = "" if note.confidence is Confidence.SUPPORTED else "Hypothesis: "
        found.append(f"{sure}{note.why} ({where}).")
    return found


def _explains(note: ResolutionNote, facts: Facts, setting: Setting, ran: _Ran) -> bool:
    """True where what a rule results in is, or may be, what ran."""
    result = note.result
    if result == "the target's":
        target = facts.setting(setting.name, "target_model")
        result = target.value or "auto" if target else "auto"
    elif result.startswith("the same backend"):
        result = setting.value or "auto"
    return named(facts.engine, setting.name, result) is None or _leads_to(setting.name, result, ran, facts)


def _fp4(facts: Facts) -> str:
    """What says that the weights are FP4 although no flag does, in words, or ""."""
    seen = next((s for s in facts.settings if s.name == "quantization" and s.how != "asked" and "fp4" in (s.value or "")), None)
    if seen is not None:
        return f"the log says {(seen.spelled or seen.value or '').strip()!r}"
    found = pattern_of(r"(?:nv|mx)?fp4", re.IGNORECASE).search(facts.model or "")
    return f"the model's name says {found[0].upper()}" if found else ""
