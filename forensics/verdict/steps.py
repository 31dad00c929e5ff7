"""What to do next. In: a failure, what was concluded of it, its category's advice; out: at most a few sentences. Sample:

    no signature, "… requires setting the environment variable CUDA_DEVICE_MAX_CONNECTIONS to 1"
    -> ("Set CUDA_DEVICE_MAX_CONNECTIONS=1 for every process.", "Change the setting that the message speaks of. …")

What is known of this very failure (its signature, the rank that is to blame, what its stack waits for, the values that a setting may
have) comes alone; only where nothing is, what helps with any failure of the kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from forensics.callpath import is_plumbing, owner_of, packages_in
from forensics.ingest.compiled import pattern_of
from forensics.knowledge.faults import FaultCode
from forensics.model.knowledge import Facts
from forensics.model.source import Rank
from forensics.model.stack import Frame
from forensics.model.verdict import Category, Failure, Owner
from forensics.verdict.category import Judgement
from forensics.verdict.choices import choice_in, step_for
from forensics.verdict.hang import Hang
from forensics.verdict.memory import Memory, steps_of
from forensics.verdict.remedies import remedies_in
from forensics.verdict.stuck import Stuck

_MOST = 3
#: one step that sets a variable is enough
_ASSIGNMENT = pattern_of(r"\b[A-Z][A-Z0-9]{0,30}_[A-Z0-9_]{2,60}=\w+")
#: where a value that was refused is what has to be changed
_OF_SETTINGS = (
    Category.CONFIG_ERROR, Category.UNSUPPORTED_DTYPE_OR_QUANT, Category.SHAPE_OR_DTYPE_ASSERT, Category.MODEL_LOAD, Category.USER_CODE,
)  # fmt: skip


class Known(NamedTuple):
    """What is known of a failure beside its signature. fault: an Xid's row; memory: of a GPU that was full; stands: in what a hanging
    process waits."""

    fault: FaultCode | None
    memory: Memory | None
    stands: Stuck | None


def steps_for(
    primary: Failure, judgement: Judgement, facts: Facts, hang: Hang | None, advice: Mapping[str, Any], known: Known
) -> tuple[str, ...]:
    """The steps, the most telling first. advice: the category's, for this situation."""
    steps = _of_this(primary, judgement, facts, hang, advice, known)
    if steps and judgement.category is not Category.HANG_OR_WATCHDOG:
        return tuple(steps)
    for step in _of_the_kind(primary, judgement, advice, known.fault):
        told = _ASSIGNMENT.findall(" ".join(steps))
        if len(steps) < _MOST and step not in steps and not any(one in told for one in _ASSIGNMENT.findall(step)):
            steps.append(step)
    return tuple(steps)


def _of_this(
    primary: Failure, judgement: Judgement, facts: Facts, hang: Hang | None, advice: Mapping[str, Any], known: Known
) -> list[str]:
    """What is known of this very failure."""
    if known.stands is not None:
        return list(known.stands.steps)
    if hang is not None and hang.culprit is not None:
        return _about(hang.culprit, advice.get("culprit", {}).get("next_steps", ()))
    steps = list(judgement.finding.next_steps) if judgement.finding is not None else []
    if not steps and known.memory is not None:
        offered = [fix.action for fix in judgement.finding.fixes] if judgement.finding is not None else []
        return [step for step in steps_of(known.memory) if not any(action in step for action in offered)]
    refused = choice_in(primary.root_message or primary.message) if judgement.category in _OF_SETTINGS else None
    return [step_for(refused, facts.engine), *steps] if refused is not None else steps


def _of_the_kind(primary: Failure, judgement: Judgement, advice: Mapping[str, Any], fault: FaultCode | None) -> list[str]:
    """What the message itself says, then what helps with any failure of the category."""
    steps = list(advice.get("next_steps", ()))
    if judgement.category is Category.VERSION_MISMATCH and (packages := packages_in(primary.frames)):
        named = {"packages": " ".join(packages), "package": packages[0]}
        steps = [step.format_map(named) for step in advice["named"]["next_steps"]]
    if judgement.finding is None:
        steps = [*remedies_in(primary.root_message or primary.message), *steps]
    if fault is not None and fault.action:
        # what a program's own error looks like from the driver is no reason to take a node out of service
        steps = [f"{fault.action[0].upper()}{fault.action[1:]}.", *([] if fault.application else steps)]
    # where a library raised it, deep below the user's code, it is the library's frames that say what was wrong
    near = any(owner_of(frame) is Owner.USER for frame in primary.frames[-3:])
    place = _place_of(primary.frames, near and judgement.category is Category.USER_CODE)
    return [step.replace("{place}", place) for step in steps]


def _place_of(frames: Sequence[Frame], of_user: bool) -> str:
    """Where to read, as a part of a sentence: the innermost frame of the user's code, else that of anybody's but the runtime's; not one
    that only passes the call on (torch's op table, a module's __call__) while there is another."""
    known = [frame for frame in frames if frame.file and frame.line]
    wanted = [frame for frame in known if owner_of(frame) is Owner.USER] if of_user else []
    told = [frame for frame in known if owner_of(frame) is not Owner.RUNTIME]
    wanted = wanted or [frame for frame in told if not is_plumbing(frame)] or told
    if not wanted:
        return ""
    frame = wanted[-1]
    return f" ({frame.path.rsplit('/', 1)[-1]}:{frame.line}, {frame.function})"


def _about(culprit: Rank, steps: Sequence[str]) -> list[str]:
    """Steps with the blamed rank in them."""
    where = f" on {culprit.node}" if culprit.node else ""
    pid = str(culprit.pid) if culprit.pid is not None else "PID"
    return [step.replace("{culprit}", culprit.label).replace("{where}", where).replace("{pid}", pid) for step in steps]
