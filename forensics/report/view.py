"""An incident as ordered sections; every face lays out the same ones and computes nothing. In: an `Incident`; out: a `View`.

view(incident).sections[0] -> Section("what", "What failed", (Pairs((("What", "RuntimeError: …"), …)),))
"""

from __future__ import annotations

from forensics.model.verdict import Incident
from forensics.report import answer, failures, machine, ranks, triage
from forensics.report.blocks import Paragraph, ReproOffer, Section, View
from forensics.report.naming import STATUS_MARKS, Names
from forensics.report.text import one_line, visible


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
        triage.section(tuple(source.name for source in names.sources[:50])),
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
        mark=STATUS_MARKS.get(status, "?"),
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
