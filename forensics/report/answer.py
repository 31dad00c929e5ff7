"""The answer: what failed where and when, why, what to do, how sure. In: an incident; out: sections. Sample:

Section("what", "What failed", (Pairs((("What", "RuntimeError: Error occurred when running GEMM! …"), …)),))
"""

from __future__ import annotations

from forensics.model.knowledge import KernelName
from forensics.model.source import Rank
from forensics.model.verdict import Contradiction, Failure, Fix, Incident
from forensics.report.blocks import Block, Item, Items, Pairs, Paragraph, ReproOffer, Section
from forensics.report.naming import CONFIDENCE, Names, frame_place
from forensics.report.text import counted, listed, one_line, places, size, visible, words

#: what is said of the rank that kept the others waiting, by how sure that is
_BLAMED = {
    "established": "is to blame",
    "supported": "is most likely to blame",
    "hypothesis": "is perhaps to blame",
    "unknown": "is perhaps to blame",
}
#: what torch adds to every CUDA or HIP error (c10/cuda/CUDAException.cpp, CUDAMiscFunctions.cpp): true, and the same each time
_BOILERPLATE = (
    "Search for `",
    "CUDA kernel errors might be",
    "HIP kernel errors might be",
    "For debugging consider passing",
    "Compile with `TORCH_USE_",
    "Device-side assertion tracking was not",
)


def what(incident: Incident, names: Names) -> Section | None:
    """What, where, when, on what."""
    rows: list[tuple[str, str]] = []
    primary = incident.primary
    if primary is not None:
        rows.append(("What", _raised(primary.root_type, primary.root_message, 500)))
        if (primary.root_type, primary.root_message) != (primary.type, primary.message) and (primary.type or primary.message):
            rows.append(("Seen as", _raised(primary.type, primary.message, 110)))
        rows += _where(incident, primary, names)
        when = names.time(primary.time, primary.evidence[0].span if primary.evidence else None)
        at = names.place(primary.evidence[0].span) if primary.evidence else ""
        if when or at:
            rows.append(("When", " · ".join(filter(None, (when, at)))))
        if primary.kernel is not None:
            rows.append(("Kernel", _kernel(primary.kernel, primary.root_message)))
    return Section("what", "What failed", (Pairs(tuple(rows)),)) if rows else None


def _raised(type_: str | None, message: str, limit: int) -> str:
    """The innermost exception is what failed; what was raised last is only how it was seen."""
    told = " ".join(line for line in message.split("\n") if not line.lstrip().startswith(_BOILERPLATE)).strip()
    if type_ and told.startswith(f"{type_}:"):
        return one_line(told, limit)  # glog's "Check failed: …" is both
    return one_line(f"{type_}: {told}" if type_ and told else (type_ or told or "no message"), limit)


def _where(incident: Incident, primary: Failure, names: Names) -> list[tuple[str, str]]:
    verdict = incident.verdict
    parts = []
    if verdict.rank is not None:
        alike = verdict.same_failure_ranks
        first = names.rank(verdict.rank)
        if alike:
            every = [verdict.rank, *alike]
            all_of = incident.facts.world_size is not None and len(every) >= incident.facts.world_size
            parts.append(
                f"{first} first; {names.ranks(alike)} alike" + (f" (all {len(every)} ranks)" if all_of else "")
            )
        elif incident.status.value == "hung":
            parts.append(f"{first} {_BLAMED[_confidence_in(incident, verdict.rank)]}")
        else:
            parts.append(f"{first} first" if len(incident.ranks) > 1 else first)
    if primary.component:
        parts.append(words(primary.component))
    if primary.phase:
        parts.append(f"during {words(primary.phase)}")
    frame = _telling_frame(primary)
    if frame:
        parts.append(frame)
    return [("Where", " · ".join(parts))] if parts else []


def _confidence_in(incident: Incident, rank: Rank) -> str:
    """How sure it is that a rank kept the others waiting; the verdict's own confidence where no suspect is listed."""
    suspects = incident.collective.suspects if incident.collective is not None else ()
    return next((one.confidence for one in suspects if one.rank.key == rank.key), incident.verdict.confidence).value


def _telling_frame(primary: Failure) -> str:
    """The innermost frame of the user's or the engine's own code: where a person would set a breakpoint."""
    for index in range(len(primary.frames) - 1, -1, -1):
        owner = primary.frame_owners[index].value if index < len(primary.frame_owners) else ""
        if owner in ("user", "engine") and primary.frames[index].file:
            return f"{frame_place(primary.frames[index])} {one_line(primary.frames[index].function, 80)}"
    return ""


def _kernel(kernel: KernelName, said: str) -> str:
    """In words; the name itself only where the message above does not say it."""
    told = kernel.sentence or (words(kernel.op) if kernel.op else "")
    if not told:
        return one_line(kernel.name, 200)
    return one_line(told, 300) if kernel.name in said else f"{one_line(told, 300)} ({one_line(kernel.name, 90)})"


def machine(incident: Incident) -> Section | None:
    """GPU, engine, libraries and model in one row."""
    facts = incident.facts
    parts = []
    gpu = facts.gpu
    if gpu is not None and (gpu.name or gpu.sm):
        origin = {"flag": "as you said", "local": "this machine's", "inferred": "inferred"}.get(gpu.source, "")
        known = ", ".join(filter(None, (gpu.sm if gpu.name else "", origin)))
        name = one_line(gpu.name or gpu.sm or "", 80)
        parts.append(f"{gpu.count} × {name}" if gpu.count else name)
        parts[-1] += f" ({known})" if known else ""
    if facts.engine:
        parts.append(" ".join(filter(None, (facts.engine, facts.version(facts.engine)))))
    for name in ("torch", "flashinfer", "triton", "nccl", "cuda", "driver"):
        value = facts.version(name)
        if value and name != facts.engine:
            parts.append(f"{name} {one_line(value, 60)}")
    if facts.model:
        parts.append(one_line(facts.model, 120))
    return Section("machine", "On", (Paragraph(" · ".join(parts)),)) if parts else None


def why(incident: Incident, names: Names) -> Section | None:
    """The explanation and the culprit note; what a contradiction says by itself is not said twice."""
    verdict = incident.verdict
    told = verdict.explanation
    for one in incident.contradictions:
        if one.explanation:
            told = told.replace(one.explanation.strip(), "")
    parts = [" ".join(visible(part).split()) for part in told.split("\n\n")]
    if verdict.culprit_note and verdict.culprit_note.strip(" .").lower() not in verdict.explanation.lower():
        parts.append(visible(verdict.culprit_note))
    blocks: list[Block] = [Paragraph(part) for part in dict.fromkeys(parts) if part]
    return Section("why", "Why", tuple(blocks)) if blocks else None


def contradictions(incident: Incident, names: Names) -> Section | None:
    """Settings that did not take effect."""
    items = tuple(_against(one, names) for one in incident.contradictions)
    return (
        Section("contradictions", "Asked for, but something else ran", (Items(items),), short="But") if items else None
    )


def _against(one: Contradiction, names: Names) -> Item:
    whose = f" for the {words(one.component)}" if one.component else ""
    return Item(
        f"asked for {one_line(one.setting, 80)} = {one_line(one.requested, 80)}{whose}; "
        f"{one_line(one.observed, 120)} ran",
        tag=one.confidence.value,
        detail=visible(one.explanation),
        place=places(names.place(e.span) for e in one.evidence),
    )


def actions(incident: Incident, names: Names, repro: ReproOffer | None) -> Section | None:
    """Fixes first, then the next steps, then the repro."""
    verdict = incident.verdict
    items = [_fix(fix) for fix in verdict.fixes]
    items += [Item(visible(step)) for step in verdict.next_steps]
    if repro is not None and repro.recipe:
        text = f"Reproduce it alone: recipe {repro.recipe}"
        items.append(
            Item(text, command=f"forensics repro {names.command_line()}", detail=one_line(repro.reason or "", 200))
        )
    return Section("actions", "What to do", (Items(tuple(items), ordered=True),), short="Do") if items else None


def _fix(fix: Fix) -> Item:
    whose = f" ({words(fix.component)})" if fix.component else ""
    return Item(
        visible(fix.action) + whose,
        tag=fix.confidence.value,
        detail=visible(fix.why),
        command=visible(fix.command) if fix.command else None,
    )


def certainty(incident: Incident) -> Section | None:
    """How sure, what it does not prove, what else it could be, and what would settle it."""
    verdict = incident.verdict
    if incident.status.value == "healthy" and not (verdict.alternatives or verdict.must_not_prove):
        return None
    level = verdict.confidence.value
    blocks: list[Block] = [Paragraph(f"{level}: {CONFIDENCE.get(level, level)}")]
    rows = []
    if verdict.must_not_prove:
        rows.append(("Not proven", visible(verdict.must_not_prove)))
    for other in verdict.alternatives:
        rows.append(("Or else", f"{other.category.value}: {visible(other.why)} ({other.confidence.value})"))
    for settle in verdict.settled_by:
        rows.append(("Settled by", visible(settle)))
    if rows:
        blocks.append(Pairs(tuple(rows)))
    return Section("certainty", "How sure", tuple(blocks), short="Sure")


def others(incident: Incident, names: Names) -> Section | None:
    """Other incidents of the same input."""
    items = []
    for number, one in enumerate(incident.others, 1):
        when = names.time(one.time, one.evidence[0].span if one.evidence else None)
        where = ", ".join(filter(None, (names.rank(one.rank), when)))
        items.append(
            Item(
                f"{one.status.value}, {one.category.value}: {one_line(one.title, 160)}"
                + (f" ({where})" if where else ""),
                place=names.place(one.evidence[0].span) if one.evidence else "",
                tag=str(number),
            )
        )
    title = f"{counted(len(items), 'other incident')} in this input"
    return Section("incidents", title, (Items(tuple(items)),), short="Also") if items else None


def read(incident: Incident) -> Section | None:
    """How much was looked at, where the answer is that nothing failed or nothing was understood."""
    if incident.primary is not None:
        return None
    it = incident.coverage
    inputs = counted(len(incident.sources or it.sources), "input")
    seen, all_ = len(incident.ranks), incident.facts.world_size
    of_all = f"{seen:,} of " if all_ is not None and 0 < seen < all_ else ""
    ranks = f", {of_all}{counted(all_ if of_all and all_ else seen, 'rank')}" if seen else ""
    told = f"{counted(it.lines, 'line')} ({size(it.bytes)}) of {inputs}{ranks}"
    return Section("read", "Read", (Paragraph(told),))


def unread(incident: Incident) -> Section | None:
    """Inputs that were not read: a verdict without them may be wrong."""
    rows = [f"{one_line(one.name, 80)}: {one_line(one.why, 160)}" for one in incident.coverage.skipped]
    if not rows:
        return None
    return Section("unread", "Not read", (Paragraph(listed(rows, 4), tone="warn"),), short="Unread")
