"""Failures, their paths, stacks and evidence. In: an incident; out: sections. Sample:

path(incident).blocks[0] -> Path((Step("nextn", "engine", "deepseek_v4_nextn.py:98"), Step("mlp", …), …))
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from forensics.model.record import replace
from forensics.model.source import Evidence
from forensics.model.stack import Frame
from forensics.model.verdict import Failure, Incident, Owner
from forensics.report.blocks import Block, FrameRow, Path, Quote, Quotes, Section, Stack, Step, Table
from forensics.report.naming import ROLES, Names, frame_place
from forensics.report.text import block, one_line, visible, words

_VARYING = re.compile(r"\d+|0x[0-9a-f]+")
#: more frames than this are a recursion or a torn log; the middle is left out
MOST_FRAMES = 200


def path(incident: Incident) -> Section | None:
    """The primary failure's call path."""
    primary = incident.primary
    if primary is None or not primary.call_path.steps:
        return None
    gaps = {gap.after_step: gap.why for gap in primary.call_path.gaps}
    steps = []
    for index, step in enumerate(primary.call_path.steps):
        frame = primary.frames[step.frame] if step.frame is not None and step.frame < len(primary.frames) else None
        steps.append(
            Step(
                label=one_line(step.label, 120),
                owner=words(step.owner.value),
                place=frame_place(frame) if frame else "",
                gap=visible(gaps.get(index, "")),
                frame=step.frame,
            )
        )
    return Section("path", "Call path", (Path(tuple(steps)),), short="Path")


def failures(incident: Incident, names: Names) -> Section | None:
    """Every failure in causal order."""
    rows = []
    for one in incident.failures:
        first = one.evidence[0].span if one.evidence else None
        rows.append(
            (
                ROLES.get(one.role.value, ("~", ""))[0] + " " + one.role.value,
                names.ranks(one.ranks) or names.rank(one.rank),
                names.time(one.time, first),
                one_line(f"{one.type}: {one.message}" if one.type else one.message, 200)
                + (f" (×{one.count})" if one.count > 1 else ""),
                one_line(one.role_why, 240),
                names.place(first) if first else "",
            )
        )
    if not rows:
        return None
    columns = ("role", "ranks", "time", "failure", "why this role", "where in the log")
    table = Table(columns, tuple(rows), tuple(_labels(one) for one in incident.failures))
    return Section("failures", "Failures in causal order", (table,), detail=True)


def _labels(failure: Failure) -> tuple[str, ...]:
    whose = failure.ranks or ((failure.rank,) if failure.rank else ())
    return tuple(one_line(rank.label, 40) for rank in whose)


def stacks(incident: Incident) -> Section | None:
    """The primary failure's stacks: of its chain, innermost exception first, else of the crashing thread."""
    primary = incident.primary
    if primary is None:
        return None
    on_path = {step.frame for step in primary.call_path.steps}
    found: list[Block] = []
    for index, link in enumerate(primary.chain):
        if not link.frames:
            continue
        own = link.frames == primary.frames
        found.append(
            Stack(
                title=one_line(f"{link.type}: {link.message}" if link.message else link.type, 300),
                frames=_rows(link.frames, primary.frame_owners if own else (), on_path if own else set()),
                link=(link.link or "") if index else "",
            )
        )
    if not found and primary.frames:
        title = one_line(f"{primary.type or primary.kind}: {primary.message}", 300)
        found.append(Stack(title, _rows(primary.frames, primary.frame_owners, on_path)))
    return Section("stacks", "Stack, outermost call first", tuple(found), detail=True) if found else None


def _rows(frames: Sequence[Frame], owners: Sequence[Owner], on_path: set[int | None]) -> tuple[FrameRow, ...]:
    rows = []
    for index, frame in enumerate(frames):
        if len(frames) > MOST_FRAMES and MOST_FRAMES // 2 <= index < len(frames) - MOST_FRAMES // 2:
            if index == MOST_FRAMES // 2:
                rows.append(FrameRow("", f"… {len(frames) - MOST_FRAMES} frames left out …", ""))
            continue
        rows.append(
            FrameRow(
                place=_full_place(frame),
                function=one_line(frame.function, 200),
                owner=words(owners[index].value) if index < len(owners) else "",
                code=one_line(frame.code, 200) if frame.code else "",
                log_line=frame.log_line,
                on_path=index in on_path,
                repeated=frame.repeated,
            )
        )
    return tuple(rows)


def _full_place(frame: Frame) -> str:
    if frame.file:
        return one_line(f"{frame.file}:{frame.line}" if frame.line is not None else frame.file, 240)
    return one_line(frame.module or "", 200)


def evidence(incident: Incident, names: Names) -> Section | None:
    """What the verdict rests on: its first evidence, the contradictions', then the rest. Each place once; what says the same of
    other ranks is told by its place."""
    own = [(row, "") for row in incident.verdict.evidence]
    against = [(row, one.setting) for one in incident.contradictions for row in one.evidence]
    rows = [*own[:1], *against, *own[1:]]
    if incident.primary is not None:
        rows += [(row, "") for row in incident.primary.evidence]
    kept: dict[str, list[tuple[Evidence, str]]] = {}
    seen: set[tuple[int, int]] = set()
    for row, focus in rows:
        start = (row.span.source, row.span.first_line)
        if row.quote.strip() and start not in seen:
            seen.add(start)
            kept.setdefault(_alike(row.quote), []).append((row, focus))
    quotes = []
    for group in kept.values():
        first, focus = group[0]
        also = tuple(names.place(row.span) for row, _ in group[1:])
        shows = "" if first.shows == incident.verdict.title else one_line(first.shows, 160)
        quotes.append(replace(quote(first, names), shows=shows, focus=focus, also=also))
    return Section("evidence", "Evidence", (Quotes(tuple(quotes)),)) if quotes else None


def _alike(text: str) -> str:
    """The text without what differs from rank to rank and from moment to moment."""
    return _VARYING.sub("0", text)


def quote(row: Evidence, names: Names) -> Quote:
    """One piece of evidence, its lines safe to print."""
    return Quote(
        place=names.place(row.span),
        lines=block(row.quote, width=2_000),
        shows=one_line(row.shows, 160),
        source=visible(names.source(row.span)),
        first_line=row.span.first_line,
        last_line=row.span.last_line,
    )
