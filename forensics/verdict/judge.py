"""From events, facts and findings to an `Incident`. In: what the lower floors found; out: one `Incident`. Sample:

    judge(intake, events, facts, findings, contradictions).verdict.category -> Category.ARCH_MISMATCH
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.ingest.intake import Intake
from forensics.model.event import Event
from forensics.model.knowledge import Facts
from forensics.model.verdict import (
    Category,
    Confidence,
    Contradiction,
    Coverage,
    Finding,
    Incident,
    Status,
    Verdict,
)


def judge(
    intake: Intake,
    events: Sequence[Event],
    facts: Facts,
    findings: Sequence[Finding],
    contradictions: Sequence[Contradiction],
    *,
    incident: int | None = None,
) -> Incident:
    """The incident that ended the job. incident: report this one of several instead (1-based, in the log's order)."""
    verdict = Verdict(Category.UNKNOWN, "Something may have failed", "", Confidence.UNKNOWN)
    coverage = Coverage(
        bytes=sum(s.bytes for s in intake.sources),
        lines=sum(s.lines for s in intake.sources),
        sources=intake.sources,
        skipped=intake.skipped,
        notes=tuple(intake.notes),
    )
    return Incident(
        Status.UNKNOWN, verdict, None, (), tuple(contradictions), None, (), facts, (), (), tuple(findings), coverage,
        intake.sources,
    )
