"""Which of a signature's fixes suit this engine, GPU and component. In: [[fixes]] tables and facts; out: `Fix`es. Sample:

    --moe-runner-backend flashinfer_trtllm on sm_120 -> left out: knowledge says that backend has no kernel there

A fix whose conditions are known not to hold, or that is for another model than the one that failed, is left out; one whose
conditions cannot be checked stays, as a hypothesis.
"""

from __future__ import annotations

from collections.abc import Callable

from forensics.match.conditions import Context, holds
from forensics.match.signature import Signature
from forensics.model.knowledge import Facts
from forensics.model.verdict import Confidence, Fix

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
        if fits is False or excluded or elsewhere or unnamed:
            continue
        confidence = Confidence(table.get("confidence", "supported"))
        if fits is None:
            confidence = Confidence.HYPOTHESIS
        found.append(
            Fix(say(table["action"]), say(table.get("why", "")), confidence, table.get("component"), one.id)
        )
    return tuple(found)
