"""The JSON face: an incident as the contract's one object. In: an `Incident`; out: bytes of JSON. Sample:

write(incident) -> b'{\\n  "schema": "forensics-report/1",\\n  "status": "crashed", …'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from forensics.model import knowledge, source, stack
from forensics.model import verdict as judged
from forensics.report import contract
from forensics.report.blocks import ReproOffer

#: always present in `software`, null where the log does not say
SOFTWARE = ("torch", "cuda", "flashinfer", "nccl", "driver")


def write(incident: judged.Incident, repro: ReproOffer | None = None, redactor: Any = None) -> bytes:
    """The report as indented UTF-8 JSON with a newline at its end; redactor: goes over every value."""
    report = report_of(incident, repro)
    try:
        text = msgspec.json.encode(report if redactor is None else redactor.value(msgspec.to_builtins(report)))
    except (UnicodeEncodeError, ValueError):
        # lone surrogates from damaged input: replaced here, and only here, since they are rare
        plain = msgspec.to_builtins(report)
        text = msgspec.json.encode(repaired(plain if redactor is None else redactor.value(plain)))
    return msgspec.json.format(text, indent=2) + b"\n"


def report_of(incident: judged.Incident, repro: ReproOffer | None = None) -> contract.Report:
    """The incident as the contract's structs."""
    return _Writer(incident).report(repro)


class _Writer:
    """Turns records into structs; it knows the sources' names, which evidence needs."""

    def __init__(self, incident: judged.Incident) -> None:
        self.incident = incident
        self.names = [one.name for one in (incident.sources or incident.coverage.sources)]

    def report(self, repro: ReproOffer | None) -> contract.Report:
        it = self.incident
        facts = it.facts
        primary = self.primary(it.primary) if it.primary else None
        return contract.Report(
            schema="forensics-report/1",
            status=it.status,
            verdict=self.verdict(it.verdict),
            primary=primary,
            failures=[self.failure(one) for one in it.failures],
            call_path=self.steps(it.primary.call_path) if it.primary else [],
            contradictions=[self.contradiction(one) for one in it.contradictions],
            collective=self.collective(it.collective) if it.collective else None,
            hardware=[self.hardware(one) for one in it.hardware],
            engine=contract.Engine(facts.engine, facts.version(facts.engine) if facts.engine else None),
            device=self.device(facts),
            software=self.software(facts),
            config={one.name: one.value for one in reversed(facts.settings)},
            ranks=[self.rank_row(row) for row in it.ranks],
            world_size=facts.world_size,
            incidents=[self.other(one) for one in it.others],
            findings=[self.finding(one) for one in it.findings],
            repro=self.repro(repro),
            coverage=self.coverage(it.coverage),
        )

    def rank(self, rank: source.Rank | None) -> contract.Rank | None:
        return self.rank_of(rank) if rank else None

    def rank_of(self, rank: source.Rank) -> contract.Rank:
        return contract.Rank(rank.label, rank.number, dict(rank.axes), rank.node, rank.pid)

    def ranks(self, ranks: Iterable[source.Rank]) -> list[contract.Rank]:
        return [self.rank_of(one) for one in ranks]

    def evidence(self, rows: Iterable[source.Evidence]) -> list[contract.Evidence]:
        return [
            contract.Evidence(self.name(row.span), row.span.first_line, row.span.last_line, row.quote, row.shows)
            for row in rows
        ]

    def name(self, span: source.Span) -> str:
        return self.names[span.source] if 0 <= span.source < len(self.names) else "?"

    def fixes(self, fixes: Iterable[judged.Fix]) -> list[contract.Fix]:
        return [contract.Fix(x.action, x.component, x.why, x.confidence, x.source, x.command) for x in fixes]

    def verdict(self, it: judged.Verdict) -> contract.Verdict:
        return contract.Verdict(
            category=it.category,
            title=it.title,
            explanation=it.explanation,
            confidence=it.confidence,
            signature=it.signature,
            rank=self.rank(it.rank),
            same_failure_ranks=self.ranks(it.same_failure_ranks),
            culprit_note=it.culprit_note,
            fixes=self.fixes(it.fixes),
            next_steps=list(it.next_steps),
            must_not_prove=it.must_not_prove,
            settled_by=list(it.settled_by),
            evidence=self.evidence(it.evidence),
            alternatives=[contract.Alternative(x.category, x.why, x.confidence) for x in it.alternatives],
        )

    def frames(self, frames: Sequence[stack.Frame], owners: Sequence[judged.Owner] = ()) -> list[contract.Frame]:
        return [
            contract.Frame(
                file=frame.file,
                line=frame.line,
                function=frame.function,
                owner=owners[index] if index < len(owners) else None,
                code=frame.code,
                module=frame.module,
                repeated=frame.repeated,
                log_line=frame.log_line,
            )
            for index, frame in enumerate(frames)
        ]

    def kernel(self, it: knowledge.KernelName | None) -> contract.Kernel | None:
        if it is None:
            return None
        return contract.Kernel(
            name=it.name,
            family=it.family,
            op=it.op,
            dtypes=dict(it.dtypes),
            tile=list(it.tile),
            archs=list(it.archs),
            runs_on=list(it.runs_on),
            sentence=it.sentence,
        )

    def failure_fields(self, it: judged.Failure) -> dict[str, Any]:
        return {
            "kind": it.kind,
            "type": it.type,
            "message": it.message,
            "root_type": it.root_type,
            "root_message": it.root_message,
            "chain": [
                contract.ChainLink(x.type, x.message, cast(Any, x.link), self.frames(x.frames)) for x in it.chain
            ],
            "frames": self.frames(it.frames, it.frame_owners),
            "kernel": self.kernel(it.kernel),
            "rank": self.rank(it.rank),
            "time": it.time,
            "phase": it.phase,
            "component": it.component,
            "fingerprint": it.fingerprint,
            "evidence": self.evidence(it.evidence),
        }

    def primary(self, it: judged.Failure) -> contract.Primary:
        return contract.Primary(**self.failure_fields(it))

    def failure(self, it: judged.Failure) -> contract.Failure:
        return contract.Failure(
            **self.failure_fields(it),
            role=it.role,
            role_why=it.role_why,
            count=it.count,
            ranks=self.ranks(it.ranks),
        )

    def steps(self, path: judged.CallPath) -> list[contract.CallStep]:
        gaps = {gap.after_step: gap.why for gap in path.gaps}
        return [
            contract.CallStep(step.label, step.owner, step.frame, gaps.get(index))
            for index, step in enumerate(path.steps)
        ]

    def contradiction(self, it: judged.Contradiction) -> contract.Contradiction:
        return contract.Contradiction(
            it.setting,
            it.requested,
            it.observed,
            it.explanation,
            it.component,
            it.confidence,
            self.evidence(it.evidence),
        )

    def collective(self, it: judged.CollectiveVerdict) -> contract.Collective:
        return contract.Collective(
            process_group=it.process_group,
            op=it.op,
            sequence=it.sequence,
            numel_in=it.numel_in,
            numel_out=it.numel_out,
            dtype=it.dtype,
            timeout_ms=it.timeout_ms,
            started_time=it.started_time,
            waiting=self.ranks(it.waiting),
            missing=self.ranks(it.missing),
            desync=[self.desync(row) for row in it.desync],
            suspects=[contract.Suspect(self.rank_of(x.rank), x.why, x.confidence) for x in it.suspects],
            known_from=list(it.known_from),
        )

    def desync(self, row: Mapping[str, Any]) -> contract.Desync:
        rank = row.get("rank")
        return contract.Desync(
            rank=self.rank_of(rank if isinstance(rank, source.Rank) else source.Rank(f"rank {rank}")),
            op=row.get("op"),
            sequence=row.get("sequence"),
            numel_in=row.get("numel_in"),
            numel_out=row.get("numel_out"),
        )

    def hardware(self, it: judged.HardwareRow) -> contract.Hardware:
        return contract.Hardware(
            it.code,
            it.kind,
            it.name,
            it.device,
            self.rank(it.rank),
            it.meaning,
            it.action,
            self.evidence(it.evidence),
        )

    def device(self, facts: knowledge.Facts) -> contract.Device:
        gpu = facts.gpu
        if gpu is None:
            return contract.Device(None, None, None, None)
        return contract.Device(gpu.name, gpu.sm, gpu.count, cast(Any, gpu.source))

    def software(self, facts: knowledge.Facts) -> dict[str, str | None]:
        found: dict[str, str | None] = dict.fromkeys(SOFTWARE)
        for one in reversed(facts.versions):
            found[one.name] = one.value
        return found

    def rank_row(self, row: judged.RankRow) -> contract.RankRow:
        seen = row.activity
        return contract.RankRow(
            label=row.rank.label,
            number=row.rank.number,
            node=row.rank.node,
            first_time=seen.first_time if seen else None,
            last_time=seen.last_time if seen else None,
            last_step=seen.last_step if seen else None,
            outcome=row.outcome,
        )

    def other(self, it: judged.OtherIncident) -> contract.OtherIncident:
        return contract.OtherIncident(
            it.status, it.category, it.title, self.rank(it.rank), it.time, self.evidence(it.evidence)
        )

    def finding(self, it: judged.Finding) -> contract.Finding:
        return contract.Finding(
            id=it.id,
            role=it.role,
            category=it.category,
            domain=it.domain,
            title=it.title,
            explanation=it.explanation,
            confidence=it.confidence,
            ranks=self.ranks(it.ranks),
            count=it.count,
            evidence=self.evidence(it.evidence),
            fixes=self.fixes(it.fixes),
            next_steps=list(it.next_steps),
            references=list(it.references),
            captures={key: str(value) for key, value in it.captures.items()},
        )

    def repro(self, offer: ReproOffer | None) -> contract.Repro:
        if offer is None:
            return contract.Repro(None, False, None)
        return contract.Repro(offer.recipe, offer.runnable, offer.reason)

    def coverage(self, it: judged.Coverage) -> contract.Coverage:
        return contract.Coverage(
            bytes=it.bytes,
            lines=it.lines,
            claimed_lines=it.claimed_lines,
            sources=[
                contract.Source(x.name, x.bytes, x.lines, x.encoding, x.compression, x.clock.kind)
                for x in (it.sources or self.incident.sources)
            ],
            skipped=[contract.Skipped(x.name, x.why, x.bytes) for x in it.skipped],
            notes=[
                contract.Note(
                    x.stage, x.text, self.name(x.span) if x.span else None, x.span.first_line if x.span else None
                )
                for x in it.notes
            ],
        )


def repaired(value: Any) -> Any:
    """The same with every lone surrogate replaced, whatever the depth."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {repaired(key): repaired(one) for key, one in value.items()}
    if isinstance(value, list):
        return [repaired(one) for one in value]
    return value
