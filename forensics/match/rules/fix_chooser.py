"""Backends that can run this op on this GPU. In: the families that failed, facts, component; out: `Fix`es. Sample:

    FP4 MoE on sm_120, SGLang, draft model -> --speculative-moe-runner-backend flashinfer_cutlass, …, drop --speculative-*

A value is proposed only where one of its families lists the GPU, its kernels take the weights, and the engine's version has it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from forensics.knowledge import family, supported
from forensics.knowledge.releases import at_least
from forensics.match.launch import values_of, with_action
from forensics.match.rules.backends import Choice, choices, named, ops_of
from forensics.model.knowledge import Facts, KernelName
from forensics.model.record import replace
from forensics.model.verdict import Confidence, Fix

SOURCE = "rule.backend-choice"
#: how each engine is told to do without a draft model
_WITHOUT_DRAFT = {"sglang": "drop --speculative-*", "vllm": "drop --speculative-config"}
_WEIGHTS = (
    ("nvfp4", "nvfp4"), ("mxfp4", "mxfp4"), ("int4", "int4"), ("mxfp8", "fp8"), ("fp8", "fp8"), ("bf16", "bf16"),
)  # fmt: skip
MOST = 3


def choose(
    failed: Collection[str], facts: Facts, component: str | None = None, kernel: KernelName | None = None
) -> tuple[Fix, ...]:
    """What to set instead of what led to the failed families, best first; empty where the GPU or the engine is not known."""
    sm = facts.gpu.sm if facts.gpu else None
    if sm is None or facts.engine is None:
        return ()
    weights = weights_of(failed, facts, component, kernel)
    found = []
    for op in ops_of(failed, facts.engine):
        rows = sorted((c for c in choices() if c.engine == facts.engine and c.op == op and c.propose), key=lambda c: c.rank)
        for row in rows:
            if fix := _proposal(row, failed, facts, sm, component, weights):
                found.append(fix)
    found = found[:MOST]
    if component == "draft_model" and facts.engine in _WITHOUT_DRAFT:
        why = "without speculative decoding the draft model is not loaded; the target model runs on its own"
        off = _fix(_WITHOUT_DRAFT[facts.engine], why, Confidence.SUPPORTED, component, facts)
        return (off, *map(_doubted, found)) if _draft_flag_was_given(found, facts) else (*found, off)
    return tuple(found)


def _draft_flag_was_given(found: Sequence[Fix], facts: Facts) -> bool:
    """True where the setting that these fixes change had been given for the draft, and something else ran all the same."""
    names = {c.setting for c in choices() for fix in found if c.draft_flag and fix.action.startswith(c.draft_flag + " ")}
    return any(s.name in names and s.component == "draft_model" and s.value not in (None, "auto") for s in facts.settings)


def _doubted(fix: Fix) -> Fix:
    why = f"{fix.why}; the same flag with another value did not act in this run, so this one may not either"
    return replace(fix, why=why, confidence=Confidence.HYPOTHESIS)


def _proposal(
    row: Choice, failed: Collection[str], facts: Facts, sm: str, component: str | None, weights: str | None
) -> Fix | None:
    flag = row.draft_flag if component == "draft_model" else row.flag
    version = facts.version(facts.engine or "")
    if not flag or (weights and row.weights and weights not in row.weights):
        return None
    if version and row.since and not at_least(version, row.since):
        return None
    if facts.command and values_of(facts.command, [flag]).get(flag) == row.value:
        return None  # asked for already, and this is what came of it
    if _asked_already(row, facts, component):
        return None
    usable = [id for id in row.families if id not in failed and _runs(id, sm, facts)]
    if not usable:
        return None
    known = family(usable[0])
    sure = known.confidence == "source" and weights is not None
    why = f"{known.title} runs on {sm}" + (f"; {row.note}" if row.note else "")
    action = f"{flag}{'' if flag.endswith('=') else ' '}{row.value}"
    return _fix(action, why, Confidence.SUPPORTED if sure else Confidence.HYPOTHESIS, component, facts)


def _asked_already(row: Choice, facts: Facts, component: str | None) -> bool:
    asked = facts.setting(row.setting, component) or (None if component else facts.setting(row.setting))
    return asked is not None and (asked.value or "").lower() == row.value.lower()


def _runs(id: str, sm: str, facts: Facts) -> bool:
    return supported(id, sm, {v.name: v.value for v in facts.versions}).answer == "yes"


def _fix(action: str, why: str, confidence: Confidence, component: str | None, facts: Facts) -> Fix:
    command = with_action(facts.command, action) if facts.command else None
    return Fix(action, why, confidence, component, SOURCE, command)


def weights_of(
    failed: Collection[str], facts: Facts, component: str | None = None, kernel: KernelName | None = None
) -> str | None:
    """The weights' format: from the kernel's operands; of the target also from the settings and the model's name; else None.

    A draft's experts may be stored in another format than the target's, so nothing said of the whole model counts for it.
    """
    said = [kernel.dtypes.get(key, "") for key in ("a", "b")] if kernel else []
    said += [id for id in failed if "bf16" in id]
    if component != "draft_model":
        quantization = facts.setting("quantization")
        said += [(quantization.value or "") if quantization else "", facts.model or ""]
    text = " ".join(said).lower().replace("modelopt_fp4", "nvfp4").replace("bfloat16", "bf16")
    return next((weights for word, weights in _WEIGHTS if word in text), None)


def vetted(fixes: Sequence[Fix], facts: Facts) -> tuple[Fix, ...]:
    """A signature's own fixes without those naming a backend that this GPU is known not to run, with the user's command."""
    sm = facts.gpu.sm if facts.gpu else None
    kept = []
    for fix in fixes:
        row = _named_in(fix.action, facts)
        if sm and row and row.families and all(_refused(id, sm, facts) for id in row.families):
            continue
        command = fix.command or (with_action(facts.command, fix.action) if facts.command else None)
        kept.append(Fix(fix.action, fix.why, fix.confidence, fix.component, fix.source, command))
    return tuple(kept)


def _refused(id: str, sm: str, facts: Facts) -> bool:
    return supported(id, sm, {v.name: v.value for v in facts.versions}).answer == "no"


def _named_in(action: str, facts: Facts) -> Choice | None:
    flags = {flag: c.setting for c in choices() if facts.engine in (None, c.engine) for flag in (c.flag, c.draft_flag) if flag}
    for flag, value in values_of(action, flags).items():
        if found := named(facts.engine, flags[flag], value):
            return found
    return None
