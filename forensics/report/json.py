"""The JSON face: an incident as the contract's one object. In: an `Incident`; out: bytes of JSON. Sample:

write(incident) -> b'{\\n  "schema": "forensics-report/1",\\n  "status": "crashed", …'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

from forensics.model import knowledge, source, stack
from forensics.model import verdict as judged
from forensics.report.blocks import ReproOffer

if TYPE_CHECKING:
    from forensics.report import contract

#: ranks and sources from which on the report is not indented
_MANY_ROWS = 1_000
#: always present in `software`, null where the log does not say
SOFTWARE = ("torch", "cuda", "flashinfer", "nccl", "driver")


def write(incident: judged.Incident, repro: ReproOffer | None = None, redactor: Any = None) -> bytes:
    """The report as indented UTF-8 JSON with a newline at its end; redactor: goes over every value."""
    report: Any = report_of(incident, repro)
    if redactor is not None:
        report = redactor.value(report)
    try:
        return _text(report).encode() + b"\n"
    except (UnicodeEncodeError, ValueError):
        # lone surrogates and endless numbers from damaged input: replaced here, and only here, since they are rare
        return _text(repaired(report)).encode() + b"\n"


def _text(report: Mapping[str, Any]) -> str:
    """Indented; where there are very many rows, one line a key: only without indentation the encoder is not Python's own."""
    import json

    if len(report["ranks"]) + len(report["coverage"]["sources"]) <= _MANY_ROWS:
        return json.dumps(report, ensure_ascii=False, allow_nan=False, indent=2)
    rows = (f'  "{key}": {json.dumps(value, ensure_ascii=False, allow_nan=False)}' for key, value in report.items())
    return "{\n" + ",\n".join(rows) + "\n}"


def report_of(incident: judged.Incident, repro: ReproOffer | None = None) -> contract.Report:
    """The incident as the contract's one object, of plain values."""
    return _Writer(incident).report(repro)


class _Writer:
    """Turns records into plain values; it knows the sources' names, which evidence needs."""

    def __init__(self, incident: judged.Incident) -> None:
        self.incident = incident
        self.names = [one.name for one in (incident.sources or incident.coverage.sources)]

    def report(self, repro: ReproOffer | None) -> contract.Report:
        it = self.incident
        facts = it.facts
        primary = self.primary(it.primary) if it.primary else None
        return {
            "schema": "forensics-report/1",
            "status": it.status,
            "verdict": self.verdict(it.verdict),
            "primary": primary,
            "failures": [self.failure(one) for one in it.failures],
            "call_path": self.steps(it.primary.call_path) if it.primary else [],
            "contradictions": [self.contradiction(one) for one in it.contradictions],
            "collective": self.collective(it.collective) if it.collective else None,
            "hardware": [self.hardware(one) for one in it.hardware],
            "engine": {"name": facts.engine, "version": facts.version(facts.engine) if facts.engine else None},
            "device": self.device(facts),
            "software": self.software(facts),
            "config": {one.name: one.value for one in reversed(facts.settings)},
            "ranks": [self.rank_row(row) for row in it.ranks],
            "world_size": facts.world_size,
            "incidents": [self.other(one) for one in it.others],
            "findings": [self.finding(one) for one in it.findings],
            "repro": self.repro(repro),
            "coverage": self.coverage(it.coverage),
        }

    def rank(self, rank: source.Rank | None) -> contract.Rank | None:
        return self.rank_of(rank) if rank else None

    def rank_of(self, rank: source.Rank) -> contract.Rank:
        return {"label": rank.label, "number": rank.number, "axes": dict(rank.axes), "node": rank.node, "pid": rank.pid}

    def ranks(self, ranks: Iterable[source.Rank]) -> list[contract.Rank]:
        return [self.rank_of(one) for one in ranks]

    def evidence(self, rows: Iterable[source.Evidence]) -> list[contract.Evidence]:
        return [
            {
                "source": self.name(row.span),
                "first_line": row.span.first_line,
                "last_line": row.span.last_line,
                "quote": row.quote,
                "shows": row.shows,
            }
            for row in rows
        ]

    def name(self, span: source.Span) -> str:
        return self.names[span.source] if 0 <= span.source < len(self.names) else "?"

    def fixes(self, fixes: Iterable[judged.Fix]) -> list[contract.Fix]:
        return [
            {
                "action": x.action,
                "component": x.component,
                "why": x.why,
                "confidence": x.confidence,
                "source": x.source,
                "command": x.command,
            }
            for x in fixes
        ]

    def verdict(self, it: judged.Verdict) -> contract.Verdict:
        return {
            "category": it.category,
            "title": it.title,
            "explanation": it.explanation,
            "confidence": it.confidence,
            "signature": it.signature,
            "rank": self.rank(it.rank),
            "same_failure_ranks": self.ranks(it.same_failure_ranks),
            "culprit_note": it.culprit_note,
            "fixes": self.fixes(it.fixes),
            "next_steps": list(it.next_steps),
            "must_not_prove": it.must_not_prove,
            "settled_by": list(it.settled_by),
            "evidence": self.evidence(it.evidence),
            "alternatives": [{"category": x.category, "why": x.why, "confidence": x.confidence} for x in it.alternatives],
        }

    def frames(self, frames: Sequence[stack.Frame], owners: Sequence[judged.Owner] = ()) -> list[contract.Frame]:
        return [
            {
                "file": frame.file,
                "line": frame.line,
                "function": frame.function,
                "owner": owners[index] if index < len(owners) else None,
                "code": frame.code,
                "module": frame.module,
                "repeated": frame.repeated,
                "log_line": frame.log_line,
            }
            for index, frame in enumerate(frames)
        ]

    def kernel(self, it: knowledge.KernelName | None) -> contract.Kernel | None:
        if it is None:
            return None
        return {
            "name": it.name,
            "family": it.family,
            "op": it.op,
            "dtypes": dict(it.dtypes),
            "tile": list(it.tile),
            "archs": list(it.archs),
            "runs_on": list(it.runs_on),
            "sentence": it.sentence,
        }

    def primary(self, it: judged.Failure) -> contract.Primary:
        return {
            "kind": cast(Any, it.kind),
            "type": it.type,
            "message": it.message,
            "root_type": it.root_type,
            "root_message": it.root_message,
            "chain": [
                {"type": x.type, "message": x.message, "link": cast(Any, x.link), "frames": self.frames(x.frames)} for x in it.chain
            ],
            "frames": self.frames(it.frames, it.frame_owners),
            "kernel": self.kernel(it.kernel),
            "rank": self.rank(it.rank),
            "time": it.time,
            "phase": cast(Any, it.phase),
            "component": cast(Any, it.component),
            "fingerprint": it.fingerprint,
            "evidence": self.evidence(it.evidence),
        }

    def failure(self, it: judged.Failure) -> contract.Failure:
        return {
            **self.primary(it),
            "role": it.role,
            "role_why": it.role_why,
            "count": it.count,
            "ranks": self.ranks(it.ranks),
        }

    def steps(self, path: judged.CallPath) -> list[contract.CallStep]:
        gaps = {gap.after_step: gap.why for gap in path.gaps}
        return [
            {"label": step.label, "owner": step.owner, "frame": step.frame, "gap_after": gaps.get(index)}
            for index, step in enumerate(path.steps)
        ]

    def contradiction(self, it: judged.Contradiction) -> contract.Contradiction:
        return {
            "setting": it.setting,
            "requested": it.requested,
            "observed": it.observed,
            "explanation": it.explanation,
            "component": it.component,
            "confidence": it.confidence,
            "evidence": self.evidence(it.evidence),
        }

    def collective(self, it: judged.CollectiveVerdict) -> contract.Collective:
        return {
            "process_group": it.process_group,
            "op": it.op,
            "sequence": it.sequence,
            "numel_in": it.numel_in,
            "numel_out": it.numel_out,
            "dtype": it.dtype,
            "timeout_ms": it.timeout_ms,
            "started_time": it.started_time,
            "waiting": self.ranks(it.waiting),
            "missing": self.ranks(it.missing),
            "desync": [self.desync(row) for row in it.desync],
            "suspects": [{"rank": self.rank_of(x.rank), "why": x.why, "confidence": x.confidence} for x in it.suspects],
            "known_from": list(it.known_from),
        }

    def desync(self, row: Mapping[str, Any]) -> contract.Desync:
        rank = row.get("rank")
        return {
            "rank": self.rank_of(rank if isinstance(rank, source.Rank) else source.Rank(f"rank {rank}")),
            "op": row.get("op"),
            "sequence": row.get("sequence"),
            "numel_in": row.get("numel_in"),
            "numel_out": row.get("numel_out"),
        }

    def hardware(self, it: judged.HardwareRow) -> contract.Hardware:
        return {
            "code": it.code,
            "kind": it.kind,
            "name": it.name,
            "device": it.device,
            "rank": self.rank(it.rank),
            "meaning": it.meaning,
            "action": it.action,
            "evidence": self.evidence(it.evidence),
        }

    def device(self, facts: knowledge.Facts) -> contract.Device:
        gpu = facts.gpu
        if gpu is None:
            return {"name": None, "sm": None, "count": None, "source": None}
        return {"name": gpu.name, "sm": gpu.sm, "count": gpu.count, "source": cast(Any, gpu.source)}

    def software(self, facts: knowledge.Facts) -> dict[str, str | None]:
        found: dict[str, str | None] = dict.fromkeys(SOFTWARE)
        for one in reversed(facts.versions):
            found[one.name] = one.value
        return found

    def rank_row(self, row: judged.RankRow) -> contract.RankRow:
        seen = row.activity
        return {
            "label": row.rank.label,
            "number": row.rank.number,
            "node": row.rank.node,
            "first_time": seen.first_time if seen else None,
            "last_time": seen.last_time if seen else None,
            "last_step": seen.last_step if seen else None,
            "outcome": row.outcome,
        }

    def other(self, it: judged.OtherIncident) -> contract.OtherIncident:
        return {
            "status": it.status,
            "category": it.category,
            "title": it.title,
            "rank": self.rank(it.rank),
            "time": it.time,
            "evidence": self.evidence(it.evidence),
        }

    def finding(self, it: judged.Finding) -> contract.Finding:
        return {
            "id": it.id,
            "role": it.role,
            "category": it.category,
            "domain": it.domain,
            "title": it.title,
            "explanation": it.explanation,
            "confidence": it.confidence,
            "ranks": self.ranks(it.ranks),
            "count": it.count,
            "evidence": self.evidence(it.evidence),
            "fixes": self.fixes(it.fixes),
            "next_steps": list(it.next_steps),
            "references": list(it.references),
            "captures": {key: str(value) for key, value in it.captures.items()},
        }

    def repro(self, offer: ReproOffer | None) -> contract.Repro:
        if offer is None:
            return {"recipe": None, "runnable": False, "reason": None}
        return {"recipe": offer.recipe, "runnable": offer.runnable, "reason": offer.reason}

    def coverage(self, it: judged.Coverage) -> contract.Coverage:
        return {
            "bytes": it.bytes,
            "lines": it.lines,
            "claimed_lines": it.claimed_lines,
            "sources": [
                {
                    "name": x.name,
                    "bytes": x.bytes,
                    "lines": x.lines,
                    "encoding": x.encoding,
                    "compression": x.compression,
                    "clock": x.clock.kind,
                }
                for x in (it.sources or self.incident.sources)
            ],
            "skipped": [{"name": x.name, "why": x.why, "bytes": x.bytes} for x in it.skipped],
            "notes": [
                {
                    "stage": x.stage,
                    "text": x.text,
                    "source": self.name(x.span) if x.span else None,
                    "line": x.span.first_line if x.span else None,
                }
                for x in it.notes
            ],
        }


def repaired(value: Any) -> Any:
    """The same with every lone surrogate replaced and null for what is no number, whatever the depth."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {repaired(key): repaired(one) for key, one in value.items()}
    if isinstance(value, list):
        return [repaired(one) for one in value]
    return None if isinstance(value, float) and not isfinite(value) else value
