"""An incident as ordered sections; every face lays out the same ones and computes nothing. In: an `Incident`; out: a `View`.

view(incident).sections[0] -> Section("what", "What failed", (Pairs((("What", "RuntimeError: …"), …)),))
"""

from __future__ import annotations

import os

from forensics.model.verdict import Confidence, Incident
from forensics.report import answer, failures, machine, ranks
from forensics.report.blocks import Paragraph, ReproOffer, Section, View
from forensics.report.naming import STATUS_MARKS, Names
from forensics.report.text import one_line, visible

#: of the file with a person's notes beside a log (see `triage`)
SUFFIX = ".triage.json"


def view(incident: Incident, repro: ReproOffer | None = None) -> View:
    """The answer first, then what it rests on (`Section.detail`), in the order a reader needs them."""
    names = Names(incident)
    sections = (
        answer.what(incident, names),
        failures.path(incident),
        ranks.ranks(incident, names),
        machine.hang(incident, names),
        machine.hardware(incident, names),
        answer.read(incident),
        answer.machine(incident),
        answer.why(incident, names),
        answer.contradictions(incident, names),
        answer.actions(incident, names, repro),
        failures.evidence(incident, names),
        answer.certainty(incident),
        answer.others(incident, names),
        _notes(tuple(source.name for source in names.sources[:50])),
        answer.unread(incident),
        ranks.timeline(incident, names),
        failures.failures(incident, names),
        failures.stacks(incident),
        machine.settings(incident, names),
        machine.software(incident, names),
        machine.findings(incident, names),
        _repro(repro),
        machine.coverage(incident, names),
    )
    verdict = incident.verdict
    status = incident.status.value
    return View(
        status=status,
        # no failure, and no sign of a job at work: no tick
        mark="?" if status == "healthy" and verdict.confidence is Confidence.HYPOTHESIS else STATUS_MARKS.get(status, "?"),
        category=verdict.category.value,
        title=one_line(verdict.title, 300),
        confidence=verdict.confidence.value,
        sections=tuple(section for section in sections if section is not None),
        sources=tuple(visible(source.name) for source in names.sources),
    )


def _repro(offer: ReproOffer | None) -> Section | None:
    if offer is None or not offer.recipe:
        return None
    told = f"recipe {offer.recipe}" + (f"; {one_line(offer.reason, 300)}" if offer.reason else "")
    return Section("repro", "Repro", (Paragraph(told),), detail=True)


def _notes(logs: tuple[str, ...]) -> Section | None:
    """What a person wrote beside these logs; most have nothing, and that costs one look each."""
    if not any(os.path.exists(f"{log}{SUFFIX}") for log in logs if log != "-") and not os.path.exists(f"stdin{SUFFIX}"):
        return None
    from forensics.report.triage import section

    return section(logs)
