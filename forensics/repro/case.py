"""What repro needs to know of a failure. In: an `Incident`, or a JSON report; out: `Case`. Sample:

case_of_report({"schema": "forensics-report/1", …}) -> Case(category="arch_mismatch", type="RuntimeError", messages=("No supported…",), …)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from forensics.errors import UsageError
from forensics.model import Failure, Incident
from forensics.model.record import field, record

_MOST_TEXTS = 400


@record
class Text:
    """A piece of the log. source: the input's name; line: its first line (1-based), None where not known."""

    text: str
    source: str | None = None
    line: int | None = None


@record
class Case:
    """A failure, as far as repro is concerned. messages: innermost cause first; symbols: functions, files and kernel names on the
    way; texts: where parameters are looked for, nearest to the failure first; sm: of the log's GPU; fingerprint: of the failure."""

    status: str
    category: str
    title: str
    kind: str = ""
    type: str | None = None
    root_type: str | None = None
    messages: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    kernel: str | None = None
    kernel_family: str | None = None
    texts: tuple[Text, ...] = ()
    settings: Mapping[str, Text] = field(default_factory=dict)
    facts: Mapping[str, Text] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    sm: str | None = None
    device: str | None = None
    fingerprint: str = ""
    sources: tuple[str, ...] = ()
    signature: str | None = None

    @property
    def root_message(self) -> str:
        """What the innermost cause said, "" where nothing was said."""
        return self.messages[0] if self.messages else ""


def _failure_texts(failure: Failure, names: tuple[str, ...]) -> Iterable[Text]:
    for evidence in failure.evidence:
        span = evidence.span
        name = names[span.source] if span is not None and 0 <= span.source < len(names) else None
        for offset, line in enumerate(evidence.quote.splitlines()):
            yield Text(line, name, span.first_line + offset if span is not None else None)
    for event in failure.events:
        name = names[event.span.source] if 0 <= event.span.source < len(names) else None
        yield Text(event.message, name, event.span.first_line)
        for raised in event.chain.exceptions if event.chain else ():
            yield Text(f"{raised.type}: {raised.message}", name, raised.span.first_line if raised.span else None)
    for frame in failure.frames:
        if frame.code:
            yield Text(frame.code, None, frame.log_line)
        yield Text(frame.function, None, frame.log_line)


def case_of_incident(incident: Incident, lines: Iterable[Text] = ()) -> Case:
    """The case of an analysed log. lines: more of the log, for parameters that stand far from the failure."""
    primary, facts = incident.primary, incident.facts
    names = tuple(source.name for source in incident.sources or incident.coverage.sources)
    settings: dict[str, Text] = {}
    for setting in facts.settings:
        if setting.value is not None and setting.name not in settings:
            name = names[setting.span.source] if 0 <= setting.span.source < len(names) else None
            settings[setting.name] = Text(setting.value, name, setting.span.first_line)
    known: dict[str, Text] = {"sm": Text(incident.facts.gpu.sm)} if incident.facts.gpu and incident.facts.gpu.sm else {}
    if facts.world_size is not None:
        known["world_size"] = Text(str(facts.world_size))
    if incident.collective is not None:
        for key in ("op", "numel_in", "numel_out", "dtype", "timeout_ms"):
            value = getattr(incident.collective, key)
            if value is not None:
                known[f"collective_{key}"] = Text(str(value))
        if incident.verdict.rank is not None and incident.verdict.rank.number is not None:
            known["culprit_rank"] = Text(str(incident.verdict.rank.number))
    texts: list[Text] = []
    symbols: list[str] = [kernel.name for kernel in facts.kernels]
    symbols += [use.via for use in facts.families]
    if primary is not None:
        texts += [Text(message) for message in (primary.root_message, primary.message) if message]
        texts += _failure_texts(primary, names)
        for raised in primary.chain:
            symbols += [
                part for frame in raised.frames for part in (frame.function, frame.path, frame.code or "")
            ]
        symbols += [part for frame in primary.frames for part in (frame.function, frame.path, frame.code or "")]
        symbols += [primary.kernel.name] if primary.kernel else []
    for finding in incident.findings:
        texts += [Text(evidence.quote) for evidence in finding.evidence]
    for evidence in incident.verdict.evidence:
        texts.append(Text(evidence.quote))
    for failure in incident.failures:
        texts += [Text(message) for message in (failure.root_message, failure.message) if message]
    gpu = facts.gpu
    return Case(
        status=incident.status.value,
        category=incident.verdict.category.value,
        title=incident.verdict.title,
        kind=primary.kind if primary else "",
        type=primary.type if primary else None,
        root_type=primary.root_type if primary else None,
        messages=tuple(m for m in dict.fromkeys((primary.root_message, primary.message)) if m) if primary else (),
        symbols=tuple(dict.fromkeys(symbols)),
        families=tuple(dict.fromkeys(use.family.id for use in facts.families)),
        kernel=primary.kernel.name if primary and primary.kernel else None,
        kernel_family=primary.kernel.family if primary and primary.kernel else None,
        texts=(*texts[:_MOST_TEXTS], *lines),
        settings=settings,
        facts=known,
        versions={version.name: version.value for version in reversed(facts.versions)},
        sm=gpu.sm if gpu else None,
        device=gpu.name if gpu else None,
        fingerprint=primary.fingerprint if primary else "",
        sources=names,
        signature=incident.verdict.signature,
    )


def case_of_report(report: Mapping[str, Any], lines: Iterable[Text] = ()) -> Case:
    """The case of a JSON report (schema forensics-report/1). Raises UsageError where it is not one."""
    if str(report.get("schema", "")).split("/")[0] != "forensics-report" or not isinstance(
        report.get("verdict"), Mapping
    ):
        raise UsageError(
            "this is not a forensics report",
            why="it lacks the schema or the verdict of one",
            help="give a log, or what `forensics analyze --format json` printed",
        )
    try:
        return _case_of(report, lines)
    except (AttributeError, TypeError, KeyError, ValueError, IndexError) as error:
        raise UsageError(
            "this report cannot be used",
            why=f"something in it is not what its schema says: {str(error)[:200]}",
            help="make it anew with `forensics analyze --format json`",
        ) from error


def _case_of(report: Mapping[str, Any], lines: Iterable[Text]) -> Case:
    verdict, primary = report["verdict"], report.get("primary") or {}
    device, kernel, collective = report.get("device") or {}, primary.get("kernel") or {}, report.get("collective") or {}
    messages = [_text(primary.get("root_message")), _text(primary.get("message"))]
    messages += [_text(link.get("message")) for link in primary.get("chain") or ()]
    frames = [frame for link in primary.get("chain") or () for frame in link.get("frames") or ()] + list(
        primary.get("frames") or ()
    )
    evidence = [*(primary.get("evidence") or ()), *(verdict.get("evidence") or ())]
    for finding in report.get("findings") or ():
        evidence += finding.get("evidence") or ()
    texts = [Text(message) for message in messages if message]
    for row in evidence:
        for offset, line in enumerate(_text(row.get("quote")).splitlines()):
            first = row.get("first_line")
            texts.append(Text(line, row.get("source"), first + offset if isinstance(first, int) else None))
    texts += [Text(_text(frame.get("code"))) for frame in frames if frame.get("code")]
    texts += [Text(_text(failure.get("root_message"))) for failure in report.get("failures") or ()]
    known = {
        f"collective_{key}": Text(str(collective[key]))
        for key in ("op", "numel_in", "numel_out", "dtype", "timeout_ms")
        if collective.get(key) is not None
    }
    if device.get("sm"):
        known["sm"] = Text(str(device["sm"]))
    if report.get("world_size") is not None:
        known["world_size"] = Text(str(report["world_size"]))
    if collective and isinstance((verdict.get("rank") or {}).get("number"), int):
        known["culprit_rank"] = Text(str(verdict["rank"]["number"]))
    symbols = [
        _text(part)
        for frame in frames
        for part in (frame.get("function"), frame.get("file"), frame.get("code"))
        if part
    ]
    return Case(
        status=_text(report.get("status")),
        category=_text(verdict.get("category")),
        title=_text(verdict.get("title")),
        kind=_text(primary.get("kind")),
        type=primary.get("type"),
        root_type=primary.get("root_type"),
        messages=tuple(dict.fromkeys(message for message in messages if message)),
        symbols=tuple(dict.fromkeys([*symbols, *([kernel["name"]] if kernel.get("name") else [])])),
        families=(kernel["family"],) if kernel.get("family") else (),
        kernel=kernel.get("name"),
        kernel_family=kernel.get("family"),
        texts=(*texts[:_MOST_TEXTS], *lines),
        settings={name: Text(str(value)) for name, value in (report.get("config") or {}).items() if value is not None},
        facts=known,
        versions={name: str(value) for name, value in (report.get("software") or {}).items() if value},
        sm=device.get("sm"),
        device=device.get("name"),
        fingerprint=_text(primary.get("fingerprint")),
        sources=tuple(
            _text(source.get("name"))
            for source in (report.get("coverage") or {}).get("sources") or ()
            if isinstance(source, Mapping)
        ),
        signature=verdict.get("signature"),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
