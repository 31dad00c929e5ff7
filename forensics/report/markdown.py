"""The Markdown face, for issues and chat. In: a `View`; out: GitHub-flavoured Markdown. Sample:

    ## ✗ crashed: A trtllm-gen MoE kernel for 10.x GPUs was chosen on a 12.x GPU

    **Category** `arch_mismatch` · **confidence** established

Log text stands in code spans and fenced blocks as a quotation; what stands in sentences is escaped, mentions and links broken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from forensics.report.blocks import (
    Block,
    Item,
    Items,
    Pairs,
    Paragraph,
    Path,
    Quote,
    Quotes,
    Section,
    Stack,
    Strip,
    Table,
    Timeline,
    View,
)
from forensics.visible import markdown as escape

_TICKS = re.compile(r"`+")
#: labels whose values are text of the log
_VERBATIM = frozenset({"What", "Seen as", "Seen", "Read"})
#: sections folded away in the short report
_FOLDED = frozenset({"evidence"})


def write(view: View, *, explain: bool = False, redacted: str = "") -> str:
    """The report; explain: with the sections of detail, folded; redacted: what was replaced, in words."""
    lines = [f"## {view.mark} {view.status}: {escape(view.title)}", ""]
    lines += [f"**Category** {code(view.category)} · **confidence** {view.confidence}", ""]
    for section in view.sections:
        if not section.detail or explain:
            lines += _section(section)
    note = f" Redacted: {redacted}." if redacted else ""
    lines.append(f"*Text in code blocks is quoted from the log.{note}*")
    return "\n".join(lines) + "\n"


def code(text: str) -> str:
    """A code span, whatever backticks the text has."""
    flat = " ".join(text.split()) or " "
    ticks = "`" * (max((len(run) for run in _TICKS.findall(flat)), default=0) + 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{ticks}{pad}{flat}{pad}{ticks}"


def fence(lines: Iterable[str], language: str = "text") -> list[str]:
    """A fenced block that no line can close."""
    rows = list(lines)
    longest = max((len(run) for row in rows for run in _TICKS.findall(row)), default=0)
    ticks = "`" * max(3, longest + 1)
    return [ticks + language, *rows, ticks, ""]


def _section(section: Section) -> list[str]:
    body = [line for block in section.blocks for line in _block(block, section)]
    if section.detail or section.id in _FOLDED:
        return [f"<details><summary>{escape(section.title)}</summary>", "", *body, "</details>", ""]
    if section.id == "what":
        return body
    return [f"### {escape(section.title)}", "", *body]


def _block(block: Block, section: Section) -> list[str]:
    match block:
        case Paragraph(text):
            return [escape(text), ""]
        case Pairs(rows):
            return [*(f"- **{escape(label)}** {_value(label, value)}" for label, value in rows), ""]
        case Items():
            return _items(block)
        case Path():
            return _path(block)
        case Strip():
            return [*(f"- {mark} {told}: {escape(who)}" for mark, told, who in block.legend), ""]
        case Quotes(quotes):
            return [line for quote in quotes for line in _quote(quote)]
        case Stack():
            return _stack(block)
        case Table(columns, rows):
            return _table(columns, rows)
        case Timeline():
            return _timeline(block)


def _value(label: str, value: str) -> str:
    return code(value) if label in _VERBATIM else escape(value)


def _items(block: Items) -> list[str]:
    lines: list[str] = []
    for number, item in enumerate(block.items, 1):
        lines += _item(item, f"{number}." if block.ordered else "-")
    return [*lines, ""]


def _item(item: Item, bullet: str) -> list[str]:
    head = f"{bullet} **{escape(item.text)}**" if item.detail or item.command else f"{bullet} {escape(item.text)}"
    head += f" ({escape(item.tag)})" if item.tag else ""
    head += f" {code(item.place)}" if item.place else ""
    indent = " " * (len(bullet) + 1)
    lines = [head]
    if item.detail:
        lines.append(indent + escape(item.detail))
    if item.command:
        lines += ["", *(indent + line for line in fence(item.command.split("\n"), "sh")[:-1])]
    return lines


def _path(block: Path) -> list[str]:
    lines = [" → ".join(f"{code(step.label)} ({step.owner})" for step in block.steps), ""]
    lines += [f"> After {code(step.label)}: {escape(step.gap)}\n" for step in block.steps if step.gap]
    return lines


def _quote(quote: Quote) -> list[str]:
    shows = f": {escape(quote.shows)}" if quote.shows else ""
    also = f" (also {', '.join(map(code, quote.also[:8]))})" if quote.also else ""
    return [f"{code(quote.place)}{shows}{also}", "", *fence(quote.lines)]


def _stack(block: Stack) -> list[str]:
    link = f" ({block.link})" if block.link else ""
    rows = []
    for frame in block.frames:
        times = f" ×{frame.repeated}" if frame.repeated > 1 else ""
        rows.append(f"{frame.place} {frame.function}{times}" + (f"  [{frame.owner}]" if frame.owner else ""))
        if frame.code:
            rows.append(f"    {frame.code}")
    return [code(block.title) + link, "", *fence(rows)]


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    lines += ["| " + " | ".join(escape(cell) for cell in row) + " |" for row in rows]
    return [*lines, ""]


def _timeline(block: Timeline) -> list[str]:
    rows = [
        (lane.label, mark.role, f"{mark.at - block.start:+.3f} s", mark.label, mark.place)
        for lane in block.lanes
        for mark in lane.marks
    ]
    rows.sort(key=lambda row: float(row[2].removesuffix(" s")))
    return _table(("rank", "role", "after the first line", "what", "where in the log"), rows[:200])
