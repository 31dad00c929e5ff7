"""Asked for one backend, another one ran. In: settings, the families seen failing; out: `Contradiction`s. Sample:

    speculative_moe_runner_backend='triton' in server_args, trtllm_fp4_block_scale_routed_moe in the draft's stack
    -> Contradiction("speculative_moe_runner_backend", "triton", "flashinfer_trtllm_routed", "…", component="draft_model")

What ran is read from the failing stack and from kernel names, never from the settings. A fallback that the engine announces
explains what ran and is no contradiction. The mechanism is said with the versions it is known for, as a hypothesis where the
version is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from forensics.knowledge import families_for_symbol
from forensics.knowledge.releases import between
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


@dataclass(frozen=True, slots=True)
class _Ran:
    """An op seen in a failing stack: its families, the word that named it, where."""

    families: tuple[str, ...]
    via: str
    subject: Subject
    component: str | None


def contradicted(matcher: Matcher) -> list[Contradiction]:
    """Each setting once that asked for something else than what ran, for the target and the draft model apart."""
    facts, found = matcher.facts, dict[tuple[str, str | None], Contradiction]()
    for ran in _ran(matcher):
        for choice in leading_to(ran.families, facts.engine)[:1]:
            setting = _asked(facts, choice, ran.component)
            if setting is None or (setting.value or "None").lower() in _NOT_A_CHOICE:
                continue
            if _leads_to(setting, choice, ran.families, facts) or _announced(facts, choice, ran, setting):
                continue
            found.setdefault((setting.name, ran.component), _contradiction(matcher, setting, choice, ran))
    return list(found.values())


def _ran(matcher: Matcher) -> Iterable[_Ran]:
    """What the failing events of the log had called, innermost first."""
    for index, event in enumerate(matcher.subjects.events):
        if event.kind not in (EventKind.PYTHON, EventKind.NATIVE) or (event.chain and event.chain.handled):
            continue
        subject = matcher.subjects.event_subject(index)
        texts = [subject.text[:4000]]
        texts += [f"{f.function} {f.code or ''}"[:2000] for f in reversed(subject.frames[-INNER_FRAMES:])]
        for text in texts:
            rows = families_for_symbol(text)
            if rows and leading_to([row.id for row in rows], matcher.facts.engine):
                via = next((s for row in rows for s in row.symbols if s in text), rows[0].title)
                yield _Ran(tuple(row.id for row in rows), via, subject, matcher.places.component(subject))
                break


def _asked(facts: Facts, choice: Choice, component: str | None) -> Setting | None:
    """What was asked of this op for this part of the model; the draft's own setting first."""
    asked = [s for s in facts.settings if s.how in ("asked", "flag", "server_args", "environment")]
    names = [choice.setting]
    if component == "draft_model":
        names.insert(0, f"speculative_{choice.setting}")
    for name in names:
        for setting in asked:
            if setting.name == name and setting.component in (None, component or setting.component):
                return setting
    return None


def _leads_to(setting: Setting, choice: Choice, families: tuple[str, ...], facts: Facts) -> bool:
    """True where the value asked for is one that may run these kernels (or is no value we know)."""
    row = named(facts.engine, choice.setting, setting.value or "")
    return row is None or bool(set(row.families) & set(families))


def _announced(facts: Facts, choice: Choice, ran: _Ran, asked: Setting) -> bool:
    """True where the engine said that it would use what ran instead of what was asked for."""
    for setting in facts.settings:
        if setting.how != "resolved" or not setting.name.endswith(choice.setting) or setting.value is None:
            continue
        if setting.component not in (None, ran.component) or setting.value == asked.value:
            continue
        row = named(facts.engine, choice.setting, setting.value)
        if row is not None and set(row.families) & set(ran.families):
            return True
    return False


def _contradiction(matcher: Matcher, setting: Setting, choice: Choice, ran: _Ran) -> Contradiction:
    facts = matcher.facts
    part = f" for the {ran.component.replace('_', ' ')}" if ran.component else ""
    head = (
        f"{setting.name}={setting.value!r} was asked for{part}, but {ran.via} ran, which only "
        f"{' or '.join(c.value for c in leading_to(ran.families, facts.engine))} leads to."
    )
    reasons = [text for text, _ in mechanisms(facts, ran.component, choice)]
    known_for_sure = any(sure for _, sure in mechanisms(facts, ran.component, choice))
    quotes: list[Evidence] = [
        evidence(matcher.subjects, setting.span, (setting.spelled or setting.name,), f"asked for {setting.value}"),
        evidence(matcher.subjects, ran.subject.span, (ran.via,), f"{choice.value} ran", ran.subject.stream),
    ]
    quantization = facts.setting("quantization")
    if quantization is not None and reasons and quantization.span != setting.span:
        quotes.append(evidence(matcher.subjects, quantization.span, ("quantization",), f"quantization={quantization.value}"))
    explanation = " ".join([head, *reasons])
    confidence = Confidence.ESTABLISHED if known_for_sure or not reasons else Confidence.SUPPORTED
    return Contradiction(setting.name, str(setting.value), choice.value, explanation, tuple(quotes), ran.component, confidence)


def mechanisms(facts: Facts, component: str | None, choice: Choice) -> list[tuple[str, bool]]:
    """(why the setting may not have acted, whether this version is known for it), the likeliest first.

    Read in SGLang 0.5.3 to 0.5.23 (server_args, arg_groups/overrides, speculative workers, modelopt_quant).
    """
    if facts.engine not in ("sglang", None) or choice.op != "moe":
        return []
    version = facts.version("sglang")
    found: list[tuple[str, bool]] = []
    quantization = facts.setting("quantization")
    named_fp4 = re.search(r"nvfp4|fp4", facts.model or "", re.IGNORECASE)
    if quantization is not None and quantization.value in (None, "None") and named_fp4:
        where = "in this version" if version and between(version, "0.5.9", "0.5.23") else "in some versions"
        text = (
            f"quantization is None although the model's name says {named_fp4[0].upper()}: the format was detected from the "
            f"checkpoint, so overrides that stand behind quantization == 'modelopt_fp4' (which {where} move a draft's experts "
            "to triton) do not act. Hypothesis: the log does not show which branch ran."
        )
        found.append((text, False))
    if component == "draft_model":
        if version and not between(version, "0.5.6", None):
            found.append(("This SGLang has no backend of its own for drafts: a draft shares the target's.", True))
        algorithm = facts.setting("speculative_algorithm")
        if algorithm is not None and (algorithm.value or "").upper() in ("DFLASH", "DSPARK", "NGRAM"):
            found.append((f"{algorithm.value} workers run with the target's backend and ignore the draft's flag.", True))
        elif version is None:
            text = "Which backend a draft gets changed between SGLang 0.5.6, 0.5.9, 0.5.12 and 0.5.20; the log names no version."
            found.append((text, False))
    return found
