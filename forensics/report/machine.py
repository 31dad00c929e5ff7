"""The hang, the hardware, the settings and the software. In: an incident; out: sections. Sample:

hang(incident, names).blocks[0] -> Pairs((("Collective", "all_reduce #42 in default_pg, 1,048,576 elements"), …))
"""

from __future__ import annotations

from forensics.model.verdict import CollectiveVerdict, Incident
from forensics.report.blocks import Block, Item, Items, Pairs, Section, Table
from forensics.report.failures import quote
from forensics.report.naming import Names
from forensics.report.text import duration, one_line, visible, words

#: so many inputs are named one by one
_MOST_INPUTS = 50


def hang(incident: Incident, names: Names) -> Section | None:
    """The collective the job hung in: who waited, who was missing, who ran another one."""
    it = incident.collective
    if it is None:
        return None
    rows = [("Collective", _collective(it))]
    if it.timeout_ms is not None:
        rows.append(("Time-out", duration(it.timeout_ms / 1000)))
    if it.started_time is not None:
        rows.append(("Started", names.time(it.started_time)))
    if it.waiting:
        rows.append(("Waiting", names.ranks(it.waiting)))
    if it.missing:
        rows.append(("Missing", names.ranks(it.missing)))
    for suspect in it.suspects:
        why = one_line(suspect.why, 240)
        rows.append(("Suspect", f"{names.rank(suspect.rank)}: {why} ({suspect.confidence.value})"))
    if it.known_from:
        rows.append(("From", ", ".join(words(one) for one in it.known_from)))
    blocks: list[Block] = [Pairs(tuple(rows))]
    if it.desync:
        states = it.desync[:64]
        shown = [(key, title) for key, title in _DESYNC if any(one.get(key) is not None for one in states)]
        table = tuple((_rank_text(one.get("rank"), names), *(_counted(key, one.get(key)) for key, _ in shown)) for one in states)
        blocks.append(Table(("rank", *(title for _, title in shown)), table))
    return Section("hang", "The hang", tuple(blocks), short="Hang")


#: what a table of ranks in different collectives shows, where it is known
_DESYNC = (
    ("op", "collective"),
    ("sequence", "number"),
    ("numel_in", "elements in"),
    ("numel_out", "elements out"),
    ("shape", "shape"),
    ("dtype", "type"),
)


def _collective(it: CollectiveVerdict) -> str:
    parts = [one_line(it.op or ("another one on each side" if it.desync else "unknown operation"), 60)]
    if it.sequence is not None:
        parts.append(f"number {it.sequence}")
    if it.process_group:
        parts.append(f"in group {one_line(it.process_group, 80)}")
    if it.numel_in is not None:
        parts.append(f"{it.numel_in:,} elements" + (f" of {it.dtype}" if it.dtype else ""))
    return ", ".join(parts)


def _rank_text(rank: object, names: Names) -> str:
    from forensics.model.source import Rank

    return names.rank(rank) if isinstance(rank, Rank) else _cell(rank)


def _counted(key: str, value: object) -> str:
    return str(value) if key == "sequence" and value is not None else _cell(value)


def _cell(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else one_line(str(value), 60)


def hardware(incident: Incident, names: Names) -> Section | None:
    """Xids, ECC, bus and link faults, with what the vendor says they mean."""
    items = []
    for row in incident.hardware:
        head = " ".join(filter(None, (row.kind.upper(), "" if row.code is None else str(row.code), row.name or "")))
        where = ", ".join(filter(None, (row.device or "", names.rank(row.rank))))
        items.append(
            Item(
                one_line(head, 160) + (f" on {one_line(where, 80)}" if where else ""),
                detail=visible("; ".join(filter(None, (row.meaning.rstrip(" .;"), row.action)))),
                place=names.place(row.evidence[0].span) if row.evidence else "",
            )
        )
    return Section("hardware", "Hardware", (Items(tuple(items)),)) if items else None


def settings(incident: Incident, names: Names) -> Section | None:
    """Settings seen, asked against resolved against observed."""
    rows = tuple(
        (
            one_line(one.name, 80),
            one_line(one.value, 120) if one.value is not None else "None",
            one.how,
            words(one.component) if one.component else "",
            names.place(one.span),
        )
        for one in incident.facts.settings
    )
    if not rows:
        return None
    table = Table(("setting", "value", "how known", "for", "where in the log"), rows)
    return Section("settings", "Settings", (table,), detail=True)


def software(incident: Incident, names: Names) -> Section | None:
    """Versions and kernels seen."""
    facts = incident.facts
    blocks: list[Block] = []
    if facts.versions:
        rows = tuple((one_line(v.name, 60), one_line(v.value, 80), v.how, names.place(v.span)) for v in facts.versions)
        blocks.append(Table(("software", "version", "how known", "where in the log"), rows))
    if facts.kernels:
        rows = tuple(
            (
                one_line(k.name, 120),
                one_line(k.sentence, 200),
                ", ".join(k.runs_on),
                names.place(k.span) if k.span else "",
            )
            for k in facts.kernels
        )
        blocks.append(Table(("kernel", "in words", "runs on", "where in the log"), rows))
    if facts.command:
        place = names.place(facts.command_span) if facts.command_span else ""
        blocks.append(Items((Item("Launched with", command=visible(facts.command), place=place),)))
    return Section("software", "Software and kernels", tuple(blocks), detail=True) if blocks else None


def findings(incident: Incident, names: Names) -> Section | None:
    """Every signature and rule that matched, in the order the analysis found them."""
    blocks: list[Block] = []
    for one in incident.findings:
        rows = [("What", visible(one.explanation))] if one.explanation else []
        if one.ranks:
            rows.append(("Ranks", names.ranks(one.ranks)))
        if one.captures:
            rows.append(("Read", one_line(", ".join(f"{k}={v}" for k, v in one.captures.items()), 300)))
        rows += [("Fix", f"{visible(fix.action)}: {visible(fix.why)} ({fix.confidence.value})") for fix in one.fixes]
        rows += [("Seen", f"{quoted.place}: {quoted.lines[0]}") for quoted in _quotes(one.evidence[:2], names)]
        rows += [("Source", visible(ref)) for ref in one.references[:3]]
        title = f"{one.role.value} · {one.confidence.value} · {one_line(one.title, 160)}"
        blocks.append(Items((Item(title, tag=one.id),)))
        blocks.append(Pairs(tuple(rows)))
    return Section("findings", "Findings, in the order they were made", tuple(blocks), detail=True) if blocks else None


def _quotes(rows: tuple, names: Names) -> list:  # type: ignore[type-arg]
    return [one for one in (quote(row, names) for row in rows) if one.lines]


def coverage(incident: Incident, names: Names) -> Section:
    """What was read, and every note of the analysis."""
    from forensics.report.text import size

    it = incident.coverage
    rows = [
        ("Read", f"{size(it.bytes)}, {it.lines:,} lines, {it.claimed_lines:,} of them understood as part of something")
    ]
    sources = incident.sources or it.sources
    for source in sources[:_MOST_INPUTS]:
        told = ", ".join(filter(None, (size(source.bytes), source.encoding, source.compression or "")))
        rows.append(("Input", one_line(f"{source.name}: {told}", 240)))
    if len(sources) > _MOST_INPUTS:
        rows.append(("Input", f"and {len(sources) - _MOST_INPUTS:,} more"))
    for skipped in it.skipped[:_MOST_INPUTS]:
        rows.append(("Not read", one_line(f"{skipped.name}: {skipped.why}", 240)))
    if len(it.skipped) > _MOST_INPUTS:
        rows.append(("Not read", f"and {len(it.skipped) - _MOST_INPUTS:,} more"))
    for note in it.notes:
        where = f" ({names.place(note.span)})" if note.span else ""
        rows.append((f"Note, {note.stage}", one_line(note.text, 400) + where))
    return Section("coverage", "Read and not read", (Pairs(tuple(rows)),), detail=True)
