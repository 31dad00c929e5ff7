"""What is known of the versions in the log: broken here, mended there. In: facts and what was found; out: `Finding`s. Sample:

    flashinfer 0.6.9 on sm_120, its trtllm-gen MoE failed
    -> Finding("version.flashinfer.trtllm-moe-gate-open", role=ADVICE, title="flashinfer 0.6.9: the trtllm-gen MoE launcher lets …")

Said only where it bears on the failure: of the kernels that failed, or of this GPU where a mismatch with the GPU was found.
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.knowledge.families import symbols_in
from forensics.knowledge.notes import VersionNote, version_notes
from forensics.match.engine import Matcher
from forensics.match.quoting import evidence
from forensics.model.event import EventKind
from forensics.model.verdict import Category, Confidence, Finding, Fix, SignatureRole

_GPU_TROUBLE = (Category.ARCH_MISMATCH, Category.NO_KERNEL_IMAGE, Category.JIT_COMPILE)
_KINDS = (EventKind.PYTHON, EventKind.NATIVE, EventKind.DEVICE_ERROR, EventKind.MESSAGE)
INNER_FRAMES = 10
MOST_EVENTS = 50


def known_versions(matcher: Matcher, findings: Sequence[Finding]) -> list[Finding]:
    """One advice for each row of the table of versions that holds here."""
    facts = matcher.facts
    if not any(f.category in _GPU_TROUBLE and f.role is SignatureRole.ROOT for f in findings):
        return []
    versions = {v.name: v.value for v in reversed(facts.versions)}
    of_any_gpu = {note.id for note in version_notes(versions, None)}
    notes = version_notes(versions, facts.gpu.sm if facts.gpu else None, _families(matcher))
    return [_finding(matcher, note) for note in notes if note.id not in of_any_gpu]


def _families(matcher: Matcher) -> set[str]:
    """The kernel families that failing events name, in their message or their innermost frames."""
    found: set[str] = set()
    for index in matcher.failing(_KINDS)[:MOST_EVENTS]:
        subject = matcher.subjects.event_subject(index)
        frames = " ".join(f"{frame.function} {frame.code or ''}" for frame in subject.frames[-INNER_FRAMES:])
        found.update(id for _, id in symbols_in(f"{subject.text[:4000]} {frames[:8000]}"))
    return found


def _finding(matcher: Matcher, note: VersionNote) -> Finding:
    id, sure = f"version.{note.id}", Confidence.SUPPORTED if note.confidence == "source" else Confidence.HYPOTHESIS
    fixes: tuple[Fix, ...] = ()
    if note.fixed_in or note.fix:
        action = note.fix or f"{note.package} {note.fixed_in} or newer"
        fixes = (Fix(action, note.text, sure, None, id),)
    title = f"{note.package} {note.have}: {note.text}"
    version = next(v for v in matcher.facts.versions if v.name == note.package)
    return Finding(
        id=id,
        role=SignatureRole.ADVICE,
        category=None,
        title=title,
        explanation=f"{note.text}." + (f" Mended in {note.fixed_in}." if note.fixed_in else ""),
        confidence=sure,
        evidence=(evidence(matcher.subjects, version.span, (version.value,), f"{note.package} {note.have}"),),
        domain=note.package,
        fixes=fixes,
        references=(note.source,),
        specificity=10,
        spans=(version.span,),
    )
