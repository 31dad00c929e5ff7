"""The console face: one screen that a tired person understands. In: a `View`; out: text, with ANSI codes if asked. Sample:

    ✗ CRASHED   arch_mismatch   established
    A trtllm-gen MoE kernel for 10.x GPUs was chosen on a 12.x GPU

    What      RuntimeError: Error in function 'run' at …/trtllm_batched_gemm_runner.cu:286: Error occurred when running GEMM!
    Path      engine: nextn → mlp ▸ kernel library: trtllm routed MoE

Log text is put into `Text` objects and never read as markup. Roles and levels are words or marks; colour only repeats them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from forensics.report.blocks import (
    Block,
    Cell,
    FrameRow,
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
from forensics.report.layout import Line, Text, ansi, beside, cells, plain, table
from forensics.report.text import places

#: lines are hard to follow beyond this
WIDEST = 110
#: columns where there is no terminal to ask
USUAL = 100
MARGIN = 10
#: rows of ranks, and lanes of the timeline, on a screen
MOST_ROWS, MOST_LANES = 16, 64
#: a longer command is left to --explain
SHORT_COMMAND = 200
#: what stands on one line with others
SHORT_CELL = 28

#: sections that begin a new thought
APART = frozenset({"why", "actions", "evidence", "certainty"})

STATUS_STYLE = {
    "crashed": "bold white on red",
    "hung": "bold white on magenta",
    "killed": "bold white on red",
    "degraded": "bold black on yellow",
    "healthy": "bold white on green",
    "unknown": "bold white on blue",
}
ROLE_STYLE = {
    "initiating": "bold red",
    "missing": "bold red",
    "same": "red",
    "waiting": "yellow",
    "cascade": "yellow",
    "teardown": "dim",
    "unknown": "magenta",
    "silent": "dim",
    "ok": "green",
}
LEVEL_STYLE = {"established": "bold green", "supported": "green", "hypothesis": "yellow", "unknown": "magenta"}
OWNER_STYLE = {
    "user": "bold magenta",
    "engine": "cyan",
    "framework": "blue",
    "kernel library": "bold yellow",
    "runtime": "dim",
    "driver": "dim",
}
TONE_STYLE = {"warn": "yellow", "bad": "red", "good": "green", "dim": "dim"}


def write(
    view: View, *, explain: bool = False, brief: bool = False, color: bool = False, width: int | None = None
) -> str:
    """The report as text. brief: the verdict's line only; explain: also the sections of detail, nothing shortened."""
    if brief:
        word = "nothing found" if _is_unseen(view) else f"{view.status} {view.category}"
        lines = Text(f"{word} ({view.confidence}): {view.title}").lines()
    else:
        lines = laid_out(view, max(40, min(width or _columns(), WIDEST)), explain=explain)
    return ansi(lines) if color else plain(lines)


def laid_out(view: View, width: int, *, explain: bool = False) -> list[Line]:
    """The whole report in lines of at most `width` columns."""
    lines = [*_headline(view, width), []]
    for section in view.sections:
        if section.detail:
            if explain:
                lines += [[], *Text(section.title, "bold underline").lines(width)]
                lines += [[("  ", ""), *line] for line in section_lines(section, width - 2, whole=True)]
        else:
            if section.id in APART:
                lines.append([])
            lines += margin_lines(section, width, whole=explain)
    if not explain and any(section.detail for section in view.sections):
        told = ", ".join(section.id for section in view.sections if section.detail)
        lines += Text(f"\n--explain adds: {told}", "dim").lines(width)
    return lines


def section_lines(section: Section, width: int, *, whole: bool) -> list[Line]:
    """A section without its title. whole: nothing shortened."""
    return [line for block in section.blocks for line in _block(block, width, whole)]


def margin_lines(section: Section, width: int, *, whole: bool) -> list[Line]:
    """A section with its name in the margin at the left, its blocks at the right."""
    lines: list[Line] = []
    room = width - MARGIN - 1
    name = (section.short or section.title)[:MARGIN]
    for block in section.blocks:
        if isinstance(block, Pairs) and section.id in ("what", "hang"):
            for label, value in block.rows:
                lines += beside(label[:MARGIN], Text(value).lines(room), MARGIN + 1, "bold")
            continue
        lines += beside(name, _block(block, room, whole), MARGIN + 1, "bold")
        name = ""
    return lines


def _columns() -> int:
    """The terminal's width, COLUMNS first; a usual one where there is no terminal."""
    if os.environ.get("COLUMNS", "").isdigit():
        return int(os.environ["COLUMNS"]) or USUAL
    for stream in (1, 2):
        try:
            return os.get_terminal_size(stream).columns or USUAL
        except OSError:
            continue
    return USUAL


def _is_unseen(view: View) -> bool:
    """True where nothing failed, and nothing worked either."""
    return view.status == "healthy" and view.mark == "?"


def _headline(view: View, width: int) -> list[Line]:
    top = Text()
    unseen = _is_unseen(view)
    word = "NOTHING FOUND" if unseen else view.status.upper()
    top.append(f" {view.mark} {word} ", STATUS_STYLE.get("unknown" if unseen else view.status, "bold"))
    if view.category not in ("none", view.status):
        top.append(f"  {view.category}", "bold")
    if view.status != "healthy" or unseen:
        top.append("  ")
        top.append(view.confidence, LEVEL_STYLE.get(view.confidence, ""))
    return [*top.lines(width), *Text(view.title, "bold").lines(width)]


def _block(block: Block, width: int, whole: bool) -> list[Line]:
    match block:
        case Paragraph(text, tone):
            return Text(text, TONE_STYLE.get(tone, "")).lines(width)
        case Pairs(rows):
            return _pairs(rows, width)
        case Items():
            return _items(block, width, whole)
        case Path():
            return _path(block).lines(width)
        case Strip():
            return _strip(block).lines(width)
        case Quotes(quotes):
            return _quotes(quotes, width, whole)
        case Stack():
            return _stack(block).lines(width)
        case Table(columns, rows):
            return table(columns, rows, width) if _fits(block, width) else _cards(rows, width)
        case Timeline():
            return _timeline(block).lines(width)


def _pairs(rows: Sequence[tuple[str, str]], width: int) -> list[Line]:
    labels = [label if len(label) <= 24 else label[:23] + "…" for label, _ in rows]
    room = max(map(cells, labels), default=0) + 1
    lines: list[Line] = []
    for label, (_, value) in zip(labels, rows, strict=True):
        lines += beside(label, Text(value).lines(width - room), room, "dim")
    return lines


def _items(block: Items, width: int, whole: bool) -> list[Line]:
    lines: list[Line] = []
    most = len(block.items) if whole else 4
    room = 3 if len(block.items[:most]) < 10 or not block.ordered else 4
    for number, item in enumerate(block.items[:most], 1):
        fits = item.command is not None and (whole or (number == 1 and len(item.command) <= SHORT_COMMAND))
        told = _item(item, item.command if fits else None)
        lines += beside(f"{number}." if block.ordered else "•", told.lines(width - room), room)
    if len(block.items) > most:
        lines += beside("", Text(f"and {len(block.items) - most} more (--explain)", "dim").lines(width - room), room)
    return lines


def _item(item: Item, command: str | None) -> Text:
    text = Text(item.text, "bold" if item.detail or command else "")
    if item.tag:
        text.append(f"  [{item.tag}]", LEVEL_STYLE.get(item.tag, "dim"))
    if item.place:
        text.append(f"  {item.place}", "cyan")
    if item.detail:
        text.append("\n" + item.detail)
    if command:
        text.append(f"\n$ {command}", "green")
    return text


def _path(block: Path) -> Text:
    text, owner = Text(), ""
    for step in block.steps:
        if text:
            text.append(" → " if step.owner == owner else " ▸ ", "dim")
        if step.owner != owner:
            text.append(f"{step.owner}: ", "dim")
            owner = step.owner
        text.append(step.label if len(step.label) <= 48 else step.label[:47] + "…", OWNER_STYLE.get(step.owner, ""))
    for step in block.steps:
        if step.gap:
            text.append(f"\n⚠ after {step.label}: {step.gap}", "yellow")
    return text


def _strip(block: Strip) -> Text:
    text = Text()
    if len(block.cells) <= 16:
        for cell in block.cells:
            text.append(f"{cell.mark} {cell.label}", ROLE_STYLE.get(cell.role, ""))
            text.append("  ")
        text.append("\n" + "   ".join(f"{mark} {told}" for mark, told, _ in block.legend), "dim")
        return text
    _grid_of_marks(block, text)
    for mark, told, who in block.legend:
        text.append(f"\n{mark} {told}: ", "dim")
        text.append(who)
    return text


def _grid_of_marks(block: Strip, text: Text) -> None:
    """32 ranks a row with the first one's number before them; rows alike throughout are told in one. Of too many rows those with
    the most blamed ranks are shown."""
    grid = _rows_of_marks(block)
    blame = {mark: place for place, (mark, _, _) in reversed(list(enumerate(block.legend)))}
    worst = sorted(range(len(grid)), key=lambda n: (min(blame.get(cell.mark, len(blame)) for cell in grid[n][2]), n))
    shown, hidden = set(worst[:MOST_ROWS]), 0
    for place, (first, several, row) in enumerate(grid):
        if place not in shown:
            hidden += len(row)
            continue
        if hidden:
            text.append(f"\n      … {hidden} more ranks", "dim")
            hidden = 0
        text.append(("\n" if text else "") + f"{'' if first is None else first:>5} ", "dim")
        if several:
            text.append(f"{row[0].mark} all of {len(row)}", ROLE_STYLE.get(row[0].role, ""))
            continue
        for index, cell in enumerate(row):
            text.append(" " if index and index % 8 == 0 else "")
            text.append(cell.mark, ROLE_STYLE.get(cell.role, ""))
    if hidden:
        text.append(f"\n      … {hidden} more ranks", "dim")


def _rows_of_marks(block: Strip) -> list[tuple[int | None, bool, tuple[Cell, ...]]]:
    """Rows of 32 ranks: the first one's number if it has one, whether three or more rows alike throughout are one, the cells."""
    rows = [block.cells[start : start + 32] for start in range(0, len(block.cells), 32)]
    numbered = any(cell.number is not None for cell in block.cells)
    found, place = [], 0
    while place < len(rows):
        row, last = rows[place], place
        marks = {cell.mark for cell in row}
        while len(marks) == 1 and last + 1 < len(rows) and {cell.mark for cell in rows[last + 1]} == marks:
            last += 1
        first = row[0].number if row[0].number is not None or numbered else place * 32
        last = last if last > place + 1 else place
        found.append((first, last > place, tuple(cell for one in rows[place : last + 1] for cell in one)))
        place = last + 1
    return found


def _quotes(quotes: Sequence[Quote], width: int, whole: bool) -> list[Line]:
    lines: list[Line] = []
    most = len(quotes) if whole else 3
    for quote in quotes[:most]:
        head = Text(quote.place, "cyan")
        if quote.shows:
            head.append(f"  {quote.shows}", "dim")
        if quote.also:
            head.append(f"  also {places((quote.place, *quote.also)).partition(', ')[2]}", "dim")
        lines += head.lines(width)
        for line in _telling(quote.lines, whole):
            lines += beside("│", Text(line if whole else _window(line, quote.focus)).lines(width - 2), 2, "dim")
    if len(quotes) > most:
        lines += Text(f"also {places(one.place for one in quotes[most:])}", "dim").lines(width)
    return lines


def _telling(lines: tuple[str, ...], whole: bool) -> tuple[str, ...]:
    """The first line and the last ones: where a traceback says what it is, and how it ended."""
    if whole or len(lines) <= 6:
        return lines
    return (lines[0], f"… {len(lines) - 4} lines …", *lines[-3:])


def _window(line: str, focus: str, width: int = 180) -> str:
    """A long line cut to where there is something to see: around the focus, else its beginning and end."""
    if len(line) <= width:
        return line
    at = line.replace("-", "_").find(focus.replace("-", "_")) if focus else -1
    if at < 0:
        return f"{line[: width * 2 // 3]} … {line[-width // 3 :]}"
    start, end = max(0, at - 60), min(len(line), at + width - 60)
    return ("… " if start else "") + line[start:end] + (" …" if end < len(line) else "")


def _stack(block: Stack) -> Text:
    text = Text(f"{block.title}" + (f"  [{block.link}]" if block.link else ""), "bold")
    for frame in block.frames:
        text.append("\n")
        text.append("▸ " if frame.on_path else "  ")
        text.extend(_frame(frame))
    return text


def _frame(frame: FrameRow) -> Text:
    text = Text(frame.function, OWNER_STYLE.get(frame.owner, ""))
    if frame.repeated > 1:
        text.append(f" ×{frame.repeated}")
    text.append(f"  {frame.place}", "dim")
    if frame.owner:
        text.append(f"  {frame.owner}", "dim")
    if frame.code:
        text.append(f"\n      {frame.code}", "dim")
    return text


def _fits(block: Table, width: int) -> bool:
    """Whether a table's columns keep their words whole, or nearly: of few columns always."""
    every = [block.columns, *block.rows]
    natural = [max(cells(row[at]) for row in every) for at in range(len(block.columns))]
    return len(natural) < 5 or sum(natural) + 2 * len(natural) <= width * 1.3


def _cards(rows: Sequence[Sequence[str]], width: int) -> list[Line]:
    """Rows that are too wide for columns: what is short on one line, what is long below it."""
    lines: list[Line] = []
    for row in rows:
        head = Text()
        for cell in row:
            if cell and cells(cell) <= SHORT_CELL:
                head.append("  " if head else "", "")
                head.append(cell, "" if head else "bold")
        lines += head.lines(width)
        for cell in row:
            if cells(cell) > SHORT_CELL:
                lines += beside("", Text(cell).lines(width - 4), 4)
    return lines


def _timeline(block: Timeline) -> Text:
    """Lanes 60 columns wide: "─" while the rank was seen, a role's mark where something failed."""
    from forensics.report.naming import ROLES

    wide, span = 60, (block.end - block.start) or 1.0

    def column(at: float) -> int:
        return min(wide - 1, max(0, int((at - block.start) / span * wide)))

    text = Text(f"{block.ticks[0][1]} … {block.ticks[-1][1]}", "dim")
    lanes = block.foremost(MOST_LANES)
    for lane in lanes:
        cells = [" "] * wide
        if lane.first is not None and lane.last is not None:
            for place in range(column(lane.first), column(lane.last) + 1):
                cells[place] = "─"
        for mark in lane.marks:
            cells[column(mark.at)] = ROLES.get(mark.role, ("~", ""))[0]
        text.append(f"\n{lane.label:>10} ")
        text.append("".join(cells), ROLE_STYLE.get(lane.role, ""))
    if len(block.lanes) > len(lanes):
        text.append(f"\n… {len(block.lanes) - len(lanes)} more lanes", "dim")
    return text
