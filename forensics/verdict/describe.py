"""A group of sightings as the report's `Failure`. In: a group, its role, the facts; out: a `Failure`. Sample:

four ranks, RuntimeError in trtllm_fp4_block_scale_routed_moe -> Failure(kind="python", count=4, ranks=(TP1, TP2, TP0, TP3),
phase="graph_capture", component="draft_model", kernel=KernelName(…), call_path=CallPath(…), …)
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.callpath import build, component_of, kernel_of, owners_of, phase_of
from forensics.model.event import Event
from forensics.model.knowledge import Facts, KernelName
from forensics.model.source import Evidence, Rank
from forensics.model.verdict import CausalRole, Failure
from forensics.verdict.fold import Group
from forensics.verdict.quotes import Quotes
from forensics.verdict.sighting import Sighting
from forensics.verdict.situations import situations
from forensics.verdict.torn import WHY

_MOST_EVIDENCE = 4
#: lifecycle words of a job that is past its start; a prefill may be its warm-up
_WORK = frozenset(("decode", "train_step", "ready"))


def describe(
    group: Group, role: CausalRole, why: str, facts: Facts, events: Sequence[Event], quotes: Quotes, rank: Rank | None
) -> Failure:
    """Everything the report says of one failure. events: the run's lifecycle; rank: where another line than its own says whose
    it is."""
    first = group.first
    texts = first.texts
    frames = _best_frames(group)
    kernel = _kernel(first, texts, frames, facts)
    message, root_message = first.message, first.root_message
    root_type = first.root_type
    if first.inner is not None and len(first.chain) <= 1:
        root_type, root_message = first.inner[0] or root_type, first.inner[1]
    amd = "amd" in situations("\n".join(text[:4_000] for text in texts), facts, None)
    return Failure(
        kind=first.kind,
        type=first.type,
        message=message,
        root_type=root_type,
        root_message=root_message,
        role=role,
        fingerprint=group.fingerprint,
        evidence=_evidence(group, quotes),
        chain=first.chain,
        frames=frames,
        frame_owners=owners_of(frames),
        kernel=kernel,
        rank=rank or first.rank,
        time=first.time,
        phase=None if root_type and root_type.endswith("SignalException") else phase_of(frames, _lifecycle_before(first, events)),
        component=component_of(frames),
        count=group.count,
        ranks=group.ranks,
        role_why=why,
        call_path=build(frames, "\n".join(texts), kernel, _blocking(facts), amd),
        events=tuple(event for member in group.members[:16] for event in member.events),
    )


def _best_frames(group: Group) -> tuple:  # type: ignore[type-arg]
    """The representative's frames; where its stack was torn, the longest alike one's."""
    first = group.first
    if len(first.frames) >= 3:
        return first.frames
    return max((member.frames for member in group.members), key=len, default=first.frames)


def _kernel(first: Sighting, texts: Sequence[str], frames: Sequence, facts: Facts) -> KernelName | None:  # type: ignore[type-arg]
    if first.events[0].parser == "kernel_trace":
        return None  # the operating system's functions are no device's
    for event in first.events:
        name = event.fields.get("kernel")
        if isinstance(name, str) and name:
            from forensics.knowledge import decode_kernel

            return decode_kernel(name)
    return kernel_of(texts, frames, facts, first.spans)


def _blocking(facts: Facts) -> bool:
    setting = facts.setting("CUDA_LAUNCH_BLOCKING") or facts.setting("cuda_launch_blocking")
    return setting is not None and setting.value not in (None, "0", "")


def _lifecycle_before(first: Sighting, events: Sequence[Event]) -> list[Event]:
    """events: the lifecycle events of the run. Of other writers of the job only their work counts: where one rank decodes or
    trains, none is starting any more."""
    found: list[tuple[int, Event]] = []
    for event in events:
        if event.span.source != first.span.source:
            continue
        line = event.span.first_line
        if not event.stream or not first.stream or event.stream == first.stream or event.rank is None:
            if line < first.span.first_line:
                found.append((line, event))
        elif event.fields.get("phase") in _WORK:
            begun = event.fields.get("first_line")  # the event stands at the writer's last line of this work
            line = line if line < first.span.first_line or not isinstance(begun, int) else begun
            if line < first.span.first_line:
                found.append((line, event))
    return [event for _, event in sorted(found, key=lambda one: one[0])]


def _evidence(group: Group, quotes: Quotes) -> tuple[Evidence, ...]:
    first = group.first
    found: list[Evidence] = []
    if first.heading and first.kind == "python":
        found.append(
            quotes.of(
                type(first.span)(first.span.source, first.span.first_line, first.span.first_line),
                "where it was printed",
            )
        )
    found.append(
        quotes.near(
            first.span, first.message or first.type or "", _cut(first) or ("what was raised last" if first.chain else "what was printed")
        )
    )
    if first.root_message and first.root_message != first.message:
        home = next(
            (e.span for e in first.events if first.root_message[:60] and first.root_message[:60] in e.message),
            first.span,
        )
        found.append(quotes.near(home, first.root_message, "the innermost cause"))
    for event in first.events[1:]:
        found.append(quotes.near(event.span, event.message, "the same failure, told again"))
    for member in group.members[1:]:
        found.append(
            quotes.near(
                member.span, member.message, _cut(member) or (f"the same on {member.rank.label}" if member.rank else "the same again")
            )
        )
    unique: dict[tuple[int, int, int], Evidence] = {}
    for proof in found:
        if proof.quote:
            unique.setdefault((proof.span.source, proof.span.first_line, proof.span.last_line), proof)
    return tuple(unique.values())[:_MOST_EVIDENCE]


def _cut(seen: Sighting) -> str:
    """That a traceback was cut off and completed from another rank's, "" for a whole one."""
    return f"{seen.rank.label if seen.rank else 'this process'}: {WHY}" if seen.events[0].fields.get("finished") else ""
