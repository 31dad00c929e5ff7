"""What differs between a good and a bad run. In: two incidents; out: `Change`s, sections. Sample:

    changes(good, bad)[0] -> Change("setting", "moe_runner_backend", "triton", "flashinfer_trtllm", "bad.log:12")

Values are compared as the logs print them; what only one log says is a change too, with None on the other side.
"""

from __future__ import annotations

from collections.abc import Iterator

from forensics.model.record import record
from forensics.model.verdict import Incident
from forensics.report.blocks import Section, Table, View
from forensics.report.naming import STATUS_MARKS, Names
from forensics.report.text import counted, duration, one_line, words

SCHEMA = "forensics-diff/1"

#: kind -> (heading, the same in a margin), in the order of the report
KINDS = {
    "outcome": ("Outcome", "Outcome"),
    "setting": ("Settings", "Settings"),
    "version": ("Versions", "Versions"),
    "device": ("GPUs and ranks", "GPUs"),
    "progress": ("How far they came", "Reached"),
    "finding": ("Findings", "Findings"),
    "contradiction": ("Asked for, but something else ran", "But"),
    "hardware": ("Hardware", "Hardware"),
}
#: differ from run to run and mean nothing
_NOISE = frozenset({"random_seed", "seed", "port", "nccl_port", "dist_init_addr", "master_port"})


@record
class Change:
    """One difference. kind: a key of KINDS; good, bad: the values as printed, None where that log does not say; place: where the
    bad log (else the good one) says it."""

    kind: str
    name: str
    good: str | None
    bad: str | None
    place: str = ""


def changes(good: Incident, bad: Incident) -> list[Change]:
    """All differences, in the order of KINDS and of the logs."""
    return [change for change in _all(good, bad) if change.good != change.bad]


def sections(good: Incident, bad: Incident) -> list[Section]:
    """The differences as tables; one that says so where there is none."""
    found = changes(good, bad)
    made = []
    for kind, (title, short) in KINDS.items():
        rows = tuple(
            (one_line(one.name, 80), _shown(one.good), _shown(one.bad), one.place) for one in found if one.kind == kind
        )
        if rows:
            made.append(Section(kind, title, (Table(("", "good", "bad", "where in the log"), rows),), short))
    return made


def view(good: Incident, bad: Incident) -> View:
    """The differences as a report of their own."""
    made = sections(good, bad)
    number = sum(len(block.rows) for section in made for block in section.blocks if isinstance(block, Table))
    status = bad.status.value
    return View(
        status=status,
        mark=STATUS_MARKS.get(status, "?"),
        category=bad.verdict.category.value,
        title=one_line(f"{counted(number, 'difference')}: {bad.verdict.title}" if made else "No difference found", 300),
        confidence=bad.verdict.confidence.value,
        sections=tuple(made),
    )


def as_json(good: Incident, bad: Incident) -> bytes:
    """{"schema", "good", "bad", "changes"} as UTF-8 JSON."""
    import json

    def side(it: Incident) -> dict[str, object]:
        return {
            "sources": [source.name for source in it.sources or it.coverage.sources],
            "status": it.status.value,
            "category": it.verdict.category.value,
            "title": it.verdict.title,
        }

    rows = [{name: getattr(one, name) for name in Change.__match_args__} for one in changes(good, bad)]  # type: ignore[attr-defined]
    told = {"schema": SCHEMA, "good": side(good), "bad": side(bad), "changes": rows}
    return (json.dumps(told, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "replace")


def _shown(value: str | None) -> str:
    return "not said" if value is None else one_line(value, 200)


def _all(good: Incident, bad: Incident) -> Iterator[Change]:
    yield from _outcome(good, bad)
    yield from _settings(good, bad)
    yield from _versions(good, bad)
    yield from _devices(good, bad)
    yield from _progress(good, bad)
    yield from _named("finding", _findings(good), _findings(bad))
    yield from _named("contradiction", _contradictions(good), _contradictions(bad))
    yield from _named("hardware", _hardware(good), _hardware(bad))


def _outcome(good: Incident, bad: Incident) -> Iterator[Change]:
    yield Change("outcome", "status", good.status.value, bad.status.value)
    yield Change("outcome", "category", good.verdict.category.value, bad.verdict.category.value)
    yield Change("outcome", "failure", _failure(good), _failure(bad), _failure_place(bad) or _failure_place(good))


def _failure(it: Incident) -> str | None:
    one = it.primary
    return None if one is None else ": ".join(filter(None, (one.root_type, one.root_message)))


def _failure_place(it: Incident) -> str:
    return Names(it).place(it.primary.evidence[0].span) if it.primary and it.primary.evidence else ""


def _settings(good: Incident, bad: Incident) -> Iterator[Change]:
    def seen(it: Incident) -> dict[str, tuple[str, str]]:
        names = Names(it)
        found: dict[str, tuple[str, str]] = {}
        for one in it.facts.settings:
            if one.name in _NOISE:
                continue
            whose = f" ({words(one.component)})" if one.component else ""
            how = f", {one.how}" if one.how != "asked" else ""
            found.setdefault(f"{one.name}{whose}{how}", (str(one.value), names.place(one.span)))
        return found

    yield from _pairs("setting", seen(good), seen(bad))


def _versions(good: Incident, bad: Incident) -> Iterator[Change]:
    def seen(it: Incident) -> dict[str, tuple[str, str]]:
        names = Names(it)
        found: dict[str, tuple[str, str]] = {}
        for one in it.facts.versions:
            found.setdefault(one.name, (one.value, names.place(one.span)))
        return found

    yield Change("version", "engine", good.facts.engine, bad.facts.engine)
    yield Change("version", "model", good.facts.model, bad.facts.model)
    yield from _pairs("version", seen(good), seen(bad))


def _devices(good: Incident, bad: Incident) -> Iterator[Change]:
    def text(value: object) -> str | None:
        return None if value is None else str(value)

    one, two = good.facts.gpu, bad.facts.gpu
    for name in ("name", "sm", "count"):
        yield Change("device", f"GPU {name}", text(getattr(one, name, None)), text(getattr(two, name, None)))
    yield Change("device", "ranks", text(good.facts.world_size), text(bad.facts.world_size))


def _progress(good: Incident, bad: Incident) -> Iterator[Change]:
    def step(it: Incident) -> str | None:
        steps = [row.activity.last_step for row in it.ranks if row.activity and row.activity.last_step is not None]
        return str(max(steps)) if steps else None

    def lasted(it: Incident) -> str | None:
        seen = [row.activity for row in it.ranks if row.activity]
        times = [at for one in seen for at in (one.first_time, one.last_time) if at is not None]
        return duration(max(times) - min(times)) if times else None

    def phase(it: Incident) -> str | None:
        return words(it.primary.phase) if it.primary and it.primary.phase else None

    yield Change("progress", "last step", step(good), step(bad))
    yield Change("progress", "failed during", phase(good), phase(bad))
    yield Change("progress", "time in the log", lasted(good), lasted(bad))


def _findings(it: Incident) -> dict[str, tuple[str, str]]:
    names = Names(it)
    return {one.id: (one.title, names.place(one.evidence[0].span) if one.evidence else "") for one in it.findings}


def _contradictions(it: Incident) -> dict[str, tuple[str, str]]:
    names = Names(it)
    return {
        one.setting: (
            f"{one.requested} asked, {one.observed} ran",
            names.place(one.evidence[0].span) if one.evidence else "",
        )
        for one in it.contradictions
    }


def _hardware(it: Incident) -> dict[str, tuple[str, str]]:
    names = Names(it)
    return {
        f"{one.kind} {one.code} {one.device or ''}".strip(): (
            one.name or one.meaning,
            names.place(one.evidence[0].span) if one.evidence else "",
        )
        for one in it.hardware
    }


def _named(kind: str, good: dict[str, tuple[str, str]], bad: dict[str, tuple[str, str]]) -> Iterator[Change]:
    """Things that are there or not: their wording may differ from run to run without being a change."""
    for name in dict.fromkeys([*bad, *good]):
        if (name in good) != (name in bad):
            yield from _pairs(
                kind, {n: v for n, v in good.items() if n == name}, {n: v for n, v in bad.items() if n == name}
            )


def _pairs(kind: str, good: dict[str, tuple[str, str]], bad: dict[str, tuple[str, str]]) -> Iterator[Change]:
    for name in dict.fromkeys([*bad, *good]):
        one, two = good.get(name), bad.get(name)
        yield Change(kind, name, one[0] if one else None, two[0] if two else None, (two or one or ("", ""))[1])
