"""Which of the contract's categories a failure is. In: a group and the findings; out: a `Judgement`. Sample:

finding nccl.shm-full overlapping the failure -> (Category.NCCL, established, the finding)
no finding, "CUDA out of memory. Tried to allocate …" -> (Category.OOM_GPU, established, row of categories.toml)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from forensics.callpath import is_plumbing, owner_of
from forensics.data import table
from forensics.ingest.compiled import pattern_of
from forensics.ingest.needles import needles_of_table
from forensics.ingest.pattern import Pattern
from forensics.model.event import EventKind
from forensics.model.record import record
from forensics.model.verdict import Category, Confidence, Finding, SignatureRole
from forensics.verdict.consequences import caller_of, owner_in
from forensics.verdict.fold import Group
from forensics.verdict.hardware import fault_of, is_page_fault

_RANK = {Confidence.ESTABLISHED: 3, Confidence.SUPPORTED: 2, Confidence.HYPOTHESIS: 1, Confidence.UNKNOWN: 0}
#: signatures up to this specificity name a wrapper, not a cause
_WRAPPER = 10
_LOOKED_AT = 4_000
#: how many lines before a failure a signature's line may stand and still speak of it
_BEFORE = 400


_WARNED = pattern_of(
    r"\W{0,4}(?:\([\w ]{1,40}pid=\d+[^)]{0,60}\) )?(?:WARNING|Warning:|WARN|INFO|DEBUG)(?!\w)"
    r"|\S{1,300}\.py:\d{1,7}: \w{0,40}Warning: |(?:\S{1,120} ){0,2}NCCL INFO "
)


@record
class Judgement:
    """category and confidence; finding: the signature or rule behind it, None where a row of words or nothing is; title: of the
    row; others: findings and rows that say another category."""

    category: Category
    confidence: Confidence
    finding: Finding | None = None
    title: str = ""
    others: tuple[tuple[Category, str, Confidence], ...] = ()


class Row(NamedTuple):
    """One row of categories.toml."""

    category: Category
    confidence: Confidence
    title: str
    type: Pattern[str] | None
    message: Pattern[str] | None
    frames: Pattern[str] | None
    kinds: frozenset[str]
    owners: frozenset[str]
    callers: frozenset[str]
    phases: frozenset[str]
    needs_device: bool
    innermost: frozenset[str]
    by: frozenset[str]
    rules_out: frozenset[str]


@lru_cache(maxsize=1)
def _rows() -> tuple[Row, ...]:
    def pattern(row: dict[str, Any], key: str, words: dict[str, Any]) -> Pattern[str] | None:
        return Pattern(row[key], re.DOTALL, words[key]) if row.get(key) else None

    rows = table("verdict/categories")["category"]
    needles = needles_of_table("verdict/categories", "category", ("type", "message", "frames"), re.DOTALL)
    return tuple(
        Row(
            Category(row["category"]),
            Confidence(row["confidence"]),
            row["title"],
            pattern(row, "type", words),
            pattern(row, "message", words),
            pattern(row, "frames", words),
            frozenset(row.get("kinds", ())),
            frozenset(row.get("owners", ())),
            frozenset(row.get("callers", ())),
            frozenset(row.get("phases", ())),
            bool(row.get("needs_device")),
            frozenset(row.get("innermost", ())),
            frozenset(row.get("by", ())),
            frozenset(row.get("rules_out", ())),
        )
        for row, words in zip(rows, needles, strict=True)
    )


def categorize(group: Group, findings: Sequence[Finding], phase: str | None, beside: Sequence[Group] = ()) -> Judgement:
    """The category of one group: by the most specific root finding that speaks of it, else by its words, else unknown.

    beside: the run's other groups; a finding that speaks of one of them says nothing of this one."""
    roots = [f for f in findings if f.role is SignatureRole.ROOT and f.category is not None]
    spoken = sorted(
        (f for f in roots if _speaks_of(f, group)), key=lambda f: (_of_the_root(f, group), *_strength(f)), reverse=True
    )
    words = _by_words(group, phase)
    if spoken:
        best = spoken[0]
        if _nearer_words(best, words, group):
            assert words is not None
            return words
        others = tuple(
            (f.category, f.title, f.confidence) for f in spoken[1:] if f.category not in (best.category, None)
        )
        assert best.category is not None
        if best.specificity <= _WRAPPER:
            # A wrapper's own signature says only where the cause was caught.
            if words is not None and words.category is not best.category:
                return words
            return Judgement(best.category, _weaker(best.confidence), best, best.title, others)
        # cuBLAS that failed, and the illegal access that the same process raised after it: one failure, proven by the second
        alike = [f.confidence for f in spoken if f.category is best.category and f.specificity > _WRAPPER]
        return Judgement(best.category, max(alike, key=_RANK.__getitem__), best, best.title, others)
    near = [f for f in roots if _just_before(f, group) and not any(_speaks_of(f, o) for o in beside if o is not group)]
    if words is not None and group.first.kind == "python":  # what a process raises later is no word of those that waited
        near = [f for f in near if f.category is words.category or f.category is not Category.HANG_OR_WATCHDOG]
    near.sort(key=_strength, reverse=True)
    if near and (words is None or words.confidence is Confidence.HYPOTHESIS or near[0].category is words.category):
        best = near[0]
        assert best.category is not None
        same = words is not None and words.category is best.category
        confidence = best.confidence if same else _weaker(best.confidence)
        others = ((words.category, words.title, words.confidence),) if words is not None and not same else ()
        return Judgement(best.category, confidence, best, best.title, others)
    if words is not None:
        return words
    return Judgement(Category.UNKNOWN, Confidence.UNKNOWN)


def _nearer_words(finding: Finding, words: Judgement | None, group: Group) -> bool:
    """True where a generic signature stands beside the cause and the innermost words themselves say another category."""
    if (
        words is None
        or words.category is finding.category
        or finding.specificity >= 40
        or words.confidence is Confidence.HYPOTHESIS
    ):
        return False
    root = group.first.root_message.strip()[:60]
    return (
        bool(root)
        and root != group.first.message.strip()[:60]
        and not any(root in proof.quote for proof in finding.evidence)
    )


def _strength(finding: Finding) -> tuple[int, int]:
    return (finding.specificity, _RANK[finding.confidence])


def _of_the_root(finding: Finding, group: Group) -> bool:
    """True where a finding quotes the innermost cause, or where there is only one message; wrappers' words come second."""
    first = group.first
    root = first.root_message.strip().split("\n", 1)[0][:60]
    if not root or root == first.message.strip().split("\n", 1)[0][:60] or root in first.message:
        return True
    return finding.specificity >= 90 or any(root in proof.quote for proof in finding.evidence)


def _weaker(confidence: Confidence) -> Confidence:
    return Confidence.HYPOTHESIS if confidence is not Confidence.UNKNOWN else confidence


def _speaks_of(finding: Finding, group: Group) -> bool:
    """True where the finding's lines are the failure's own."""
    spans = [span for member in group.members for span in member.spans]
    spans += [event.span for member in group.members for event in member.events]
    return any(proof.span.overlaps(span) for proof in finding.evidence for span in spans)


def _just_before(finding: Finding, group: Group) -> bool:
    """True where the finding's line stands shortly before or inside the failure's surroundings, by no other process."""
    first = group.first.span
    for proof in finding.evidence:
        if _WARNED.match(proof.quote):
            continue  # the process said that it goes on without it
        if (
            proof.span.source == first.source
            and first.first_line - _BEFORE <= proof.span.first_line <= first.last_line + 40
        ):
            return True
    return False


def _by_words(group: Group, phase: str | None) -> Judgement | None:
    """The first row whose patterns fit any exception of the failure; innermost words are asked first."""
    first = group.first
    texts = [text[:_LOOKED_AT] for text in first.texts]
    texts += [event.message[:_LOOKED_AT] for event in first.events[1:12] if event.message]
    if first.inner is not None:
        texts.insert(0, first.inner[1][:_LOOKED_AT])
    types = list(first.types) + ([first.inner[0]] if first.inner and first.inner[0] else [])
    if (first.root_type or "").rsplit(".", 1)[-1] == "KeyboardInterrupt":  # what was being handled then did not end it
        texts, types = [first.root_message], [first.root_type or ""]
    frames = [frame for frame in first.frames if not is_plumbing(frame)][-8:]
    owner = owner_in(frames)
    told = [
        f"{t}: {m}"
        for t, m in zip([first.root_type, first.type], [first.root_message, first.message], strict=True)
        if t
    ]
    found: list[Row] = []
    for row in _rows():
        if row.kinds and first.kind not in row.kinds:
            continue
        if row.category is Category.STORAGE and first.events[0].kind is EventKind.COMMUNICATION:
            continue  # a transport's "Input/output error" is the network's
        if (
            row.needs_device
            and first.kind != "device_assert"
            and not any(pattern_of("device-side assert(?!ions)|HSA_STATUS|cudaErrorAssert").search(text) for text in texts)
        ):
            continue
        if row.owners and (owner is None or owner.value not in row.owners):
            continue
        if row.callers and ((caller := caller_of(first)) is None or caller.value not in row.callers):
            continue
        if row.by and first.events[0].fields.get("by") not in row.by:
            continue
        if row.innermost and not (first.frames and owner_of(first.frames[-1]).value in row.innermost):
            continue
        if row.phases and phase not in row.phases:
            continue
        if row.type and not any(row.type.search(name) for name in types):
            continue
        if row.message and not any(row.message.search(text) for text in (*texts, *[t[:_LOOKED_AT] for t in told])):
            continue
        if row.frames and not any(row.frames.search(f"{f.path} {f.function}") for f in frames):
            continue
        found.append(row)
    if first.kind == "device_assert" and not any(row.category is Category.DEVICE_ASSERT for row in found[:1]):
        return Judgement(Category.DEVICE_ASSERT, Confidence.ESTABLISHED, title="An assertion failed inside a kernel")
    if first.kind == "hardware":
        fault = fault_of(first.events[0])
        if fault is not None and is_page_fault(fault):
            title = "A kernel touched memory it must not, as the driver reports"
            return Judgement(Category.ILLEGAL_MEMORY_ACCESS, Confidence.SUPPORTED, title=title)
        return Judgement(
            Category.DRIVER_OR_HARDWARE, Confidence.ESTABLISHED, title="The hardware or its driver reported a fault"
        )
    if not found and first.events[0].kind is EventKind.COMMUNICATION:
        return Judgement(Category.NCCL, Confidence.HYPOTHESIS, title="The communication between the processes failed")
    if not found:
        return None
    best = found[0]
    others = tuple(
        {
            row.category: (row.category, row.title, Confidence.HYPOTHESIS)
            for row in found[1:]
            if row.category is not best.category and row.category.value not in best.rules_out
        }.values()
    )
    return Judgement(best.category, best.confidence, None, best.title, others[:3])
