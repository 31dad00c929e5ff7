"""Which of a signature's fixes suit this engine, GPU and component. In: [[fixes]] tables and facts; out: `Fix`es. Sample:

    --moe-runner-backend flashinfer_trtllm on sm_120 -> left out: knowledge says that backend has no kernel there

    --max-model-len 8192 where the log shows max_model_len = 4096  -> left out: it is meant to lower that

A fix whose conditions are known not to hold, or that is for another model than the one that failed, is left out, and so is one whose
number is no change in its direction, or whose value the message does not tell; one whose conditions cannot be checked stays, as a
hypothesis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from forensics.ingest.pattern import Pattern
from forensics.match.conditions import Context, holds
from forensics.match.launch import steps_of
from forensics.match.signature import Signature
from forensics.match.template import names_in
from forensics.model.knowledge import Facts
from forensics.model.verdict import Confidence, Fix

_NUMBER = Pattern(r"\d{1,12}(?:\.\d{1,6})?$")
#: the parts of a model that have settings of their own
_MODELS = ("target_model", "draft_model")


def fixes_of(one: Signature, context: Context, facts: Facts, say: Callable[[str], str]) -> tuple[Fix, ...]:
    """The fixes to show for a match, in the signature's order."""
    found = []
    for table in one.fixes:
        fits = holds(table["when"], facts, context) if "when" in table else True
        excluded = holds(table["unless"], facts, context) is True if "unless" in table else False
        elsewhere = table.get("component") in _MODELS and context.component in _MODELS and table["component"] != context.component
        # a flag of a program that nothing names is a guess; of a GPU that nothing names it is worth a try
        unnamed = fits is None and facts.engine is None and "engine" in table["when"]
        untold = any(f"(?P<{name}>" in one.pattern and not context.captures.get(name) for name in names_in(table["action"]))
        action = say(table["action"])
        if fits is False or excluded or elsewhere or unnamed or untold or _is_no_change(table, action, facts):
            continue
        confidence = Confidence(table.get("confidence", "supported"))
        if fits is None:
            confidence = Confidence.HYPOTHESIS
        found.append(
            Fix(action, say(table.get("why", "")), confidence, table.get("component"), one.id)
        )
    return tuple(found)


def _is_no_change(table: Mapping[str, Any], action: str, facts: Facts) -> bool:
    """True where the setting that a fix lowers (or raises) is known to be as low (or high) already as what it sets."""
    for key, sign in (("lowers", -1), ("raises", 1)):
        if key in table:
            wanted = _numbers(value for _, _, value in steps_of(action) or ())
            now = _numbers(s.value for s in facts.settings if s.name == table[key])
            return any((new - old) * sign <= 0 for new in wanted[:1] for old in now)
    return False


def _numbers(texts: Iterable[str | None]) -> list[float]:
    """Those of some values that are numbers."""
    return [float(text) for text in texts if text is not None and _NUMBER.match(text)]
