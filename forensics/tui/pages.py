"""The views beside the log: each a scrolled page or a table made of the report's sections. In: a `View`; out: widgets. Sample:

    Rows("failures", view.section("failures").blocks) -> a table; Enter on a row posts Rows.Picked(place="server.log:812-846")
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.message import Message
from textual.widgets import DataTable, Static

from forensics.report.blocks import Block, FrameRow, Pairs, Section, Stack, Table, View
from forensics.report.console import OWNER_STYLE
from forensics.report.text import counted
from forensics.tui.filters import Filter
from forensics.tui.laid import Laid

PLACE = re.compile(r"(?P<name>.+):(?P<first>\d+)(?:-(?P<last>\d+))?$")

#: sections on each page, in order
PAGES: dict[str, tuple[str, ...]] = {
    "setup": ("contradictions", "settings"),
    "hang": ("hang",),
    "gpu": ("hardware", "software", "coverage"),
    "path": ("path",),
    "notes": ("triage",),
}
EMPTY = {
    "setup": "No settings were seen in this log.",
    "hang": "No hang: no collective timed out in this log.",
    "gpu": "Nothing was said about hardware or software.",
    "path": "No stack was seen, so there is no call path.",
    "notes": "No notes yet. In the log view: m marks a line, a writes a note.",
}


class Page(VerticalScroll, can_focus=True):
    """A scrolled page of sections."""

    BINDINGS: list[BindingType] = [
        Binding("j", "scroll_down", "Down", show=False),
        Binding("k", "scroll_up", "Up", show=False),
        Binding("g", "scroll_home", "Top", show=False),
        Binding("G", "scroll_end", "End", show=False),
    ]

    def __init__(self, *, id: str) -> None:
        super().__init__(Static(id=f"{id}-text"), id=id)

    def show(self, content: RenderableType) -> None:
        """Replaces the page."""
        self.query_one(Static).update(content)


def page(view: View, wanted: Sequence[str], empty: str) -> RenderableType:
    """The named sections under their titles."""
    parts: list[RenderableType] = []
    for name in wanted:
        section = view.section(name)
        if section is not None:
            parts += [Text(section.title, "bold underline"), Laid(section), Text("")]
    return Group(*parts) if parts else Text(empty, "dim")


class Rows(DataTable[Text]):
    """A table of the report; Enter goes to the row's place in the log."""

    BINDINGS: list[BindingType] = [
        Binding("j", "cursor_down", "Down", show=False),
        Binding("k", "cursor_up", "Up", show=False),
        Binding("g", "scroll_top", "Top", show=False),
        Binding("G", "scroll_bottom", "End", show=False),
    ]

    class Picked(Message):
        """Enter on a row: place is "file:line" or "file:first-last", "" where the row has none."""

        def __init__(self, place: str) -> None:
            super().__init__()
            self.place = place

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id, cursor_type="row", zebra_stripes=True)
        self._places: list[str] = []

    def show(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> int:
        """Replaces the rows; a cell that is a place makes its row lead there. Gives the number of rows."""
        self.clear(columns=True)
        self._places = []
        self.add_columns(*columns)
        for row in rows:
            self.add_row(*(Text(cell, no_wrap=True, overflow="ellipsis") for cell in row))
            self._places.append(next((cell for cell in row if PLACE.fullmatch(cell) and " " not in cell), ""))
        return len(self._places)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Enter or a click on the row that is selected."""
        event.stop()
        if 0 <= event.cursor_row < len(self._places):
            self.post_message(self.Picked(self._places[event.cursor_row]))


def failures(view: View, only: Filter) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Columns and rows of the failures that pass, in causal order."""
    section = view.section("failures")
    if section is None or not isinstance(section.blocks[0], Table):
        return ("failure",), []
    table = section.blocks[0]
    kept = []
    for row in table.rows:
        mark_role = row[0].split(" ", 1)
        role = mark_role[1] if len(mark_role) > 1 else ""
        ranks = tuple(_spelled(row[1])) if row[1] else None
        if only.passes(" ".join(row), ranks=ranks, role=role):
            kept.append(_place_first(row))
    return _place_first(table.columns), kept


def _place_first(row: tuple[str, ...]) -> tuple[str, ...]:
    """role, ranks, time, place, failure, why: what is short stands where a narrow screen shows it."""
    return (*row[:3], row[-1], *row[3:-1])


def _spelled(ranks: str) -> Iterable[str]:
    """ "TP0–TP3, rank 6" -> TP0, TP1, TP2, TP3, rank 6."""
    for part in ranks.split(", "):
        first, dash, last = part.partition("–")
        a, b = re.fullmatch(r"(.*?)(\d+)", first), re.search(r"(\d+)$", last)
        if dash and a and b and int(b[1]) - int(a[2]) < 100_000:
            yield from (f"{a[1]}{number}" for number in range(int(a[2]), int(b[1]) + 1))
        else:
            yield part


def findings(view: View, only: Filter) -> list[tuple[str, ...]]:
    """(role, confidence, place, title, id) of the findings that pass, in the order they were made."""
    section = view.section("findings")
    rows: list[tuple[str, ...]] = []
    blocks: list[Block] = list(section.blocks) if section else []
    for index, block in enumerate(blocks):
        item = block.items[0] if hasattr(block, "items") and block.items else None
        if item is None:
            continue
        role, confidence, title = ([*item.text.split(" · ", 2), "", ""])[:3]
        details = blocks[index + 1] if index + 1 < len(blocks) else None
        place = ""
        if isinstance(details, Pairs):
            place = next((value.split(": ", 1)[0] for label, value in details.rows if label == "Seen"), "")
        if only.passes(f"{title} {item.tag}", role=role):
            rows.append((role, confidence, place, title, item.tag))
    return rows


def finding_details(view: View, id: str) -> RenderableType:
    """Everything a finding says: why, ranks, captures, fixes, sources."""
    section = view.section("findings")
    blocks: Sequence[Block] = section.blocks if section else ()
    for index, block in enumerate(blocks):
        if hasattr(block, "items") and block.items and block.items[0].tag == id:
            return Laid(Section("finding", "", tuple(blocks[index : index + 2])))
    return Text("")


def frames(view: View, folded: bool) -> RenderableType:
    """The stacks. folded: only the frames on the call path, the others counted."""
    section = view.section("stacks")
    parts: list[RenderableType] = []
    for block in section.blocks if section else ():
        if not isinstance(block, Stack):
            continue
        text = Text(f"\n{block.title}" + (f"  [{block.link}]" if block.link else ""), "bold")
        hidden = 0
        foldable = folded and any(frame.on_path for frame in block.frames)
        for frame in block.frames:
            if foldable and not frame.on_path:
                hidden += 1
                continue
            if hidden:
                text.append(f"\n    … {counted(hidden, 'frame')} folded (o opens them)", "dim")
                hidden = 0
            _frame(text, frame)
        if hidden:
            text.append(f"\n    … {counted(hidden, 'frame')} folded (o opens them)", "dim")
        parts.append(text)
    return Group(*parts)


def _frame(text: Text, frame: FrameRow) -> None:
    text.append("\n▸ " if frame.on_path else "\n  ")
    text.append(frame.function, OWNER_STYLE.get(frame.owner, ""))
    text.append(f"  {frame.place}", "dim")
    if frame.owner:
        text.append(f"  {frame.owner}", "dim")
    if frame.repeated > 1:
        text.append(f"  ×{frame.repeated}")
    if frame.code:
        text.append(f"\n      {frame.code}", "dim")
