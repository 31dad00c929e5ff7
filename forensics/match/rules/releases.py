"""Versions known to be broken, and what mends them (facts/known_versions.toml). In: facts, findings; out: `Finding`s. Sample:

    flashinfer 0.6.9 and an arch mismatch in its trtllm-gen MoE -> advice: "from 0.6.16 on FlashInfer says so itself"
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from forensics import data
from forensics.match.conditions import Context, holds
from forensics.match.engine import Matcher
from forensics.match.quoting import evidence
from forensics.match.versions import satisfies
from forensics.model.verdict import Confidence, Finding, Fix, SignatureRole


def known_versions(matcher: Matcher, findings: Sequence[Finding]) -> list[Finding]:
    """One advice for each row whose version is in the log and whose symptom was found."""
    found = []
    for row in data.table("facts/known_versions").get("version", ()):
        version = next((v for v in matcher.facts.versions if v.name == row["package"]), None)
        if version is None or satisfies(version.value, row["broken"]) is not True:
            continue
        if row.get("when") and holds(row["when"], matcher.facts, Context()) is not True:
            continue
        shown_by = [f for f in findings if f.id in row["symptoms"]]
        if shown_by:
            found.append(_finding(matcher, row, version, shown_by[0]))
    return found


def _finding(matcher: Matcher, row: dict[str, Any], version: Any, symptom: Finding) -> Finding:
    title = f"{row['package']} {version.value}: {row['title']}"
    id, sure = f"version.{row['id']}", Confidence(row.get("confidence", "supported"))
    fixes: tuple[Fix, ...] = ()
    if row.get("fixed"):
        fixes = (Fix(f"{row['package']} >= {row['fixed']}", row["why"], sure, None, id),)
    return Finding(
        id=id,
        role=SignatureRole.ADVICE,
        category=None,
        title=title,
        explanation=row["why"],
        confidence=sure,
        evidence=(evidence(matcher.subjects, version.span, (version.value,), title), *symptom.evidence[:1]),
        domain=row["package"],
        fixes=fixes,
        references=tuple(row["references"]),
        specificity=10,
        spans=(version.span,),
    )
