"""A raw log of any size on the screen. In: a `RawLog`, evidence, notes; out: lines where they stand. Sample:

       811 │ [2026-11-29 20:15:20 TP0] Decode batch. #running-req: 8
     ┃ 812 │ [2026-11-29 20:15:20 TP1] Scheduler hit an exception: Traceback (most recent call last):

Only the window is read. ┃ stands before evidence, ✎ before a line with a note, ▶ before the line the keys act on.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from forensics.report.text import visible
from forensics.report.triage import Triage
from forensics.tui.rawlog import RawLog


@dataclass(frozen=True, slots=True)
class Marked:
    """Lines that a report quotes. first, last: 1-based; shows: what to see in them."""

    first: int
    last: int
    shows: str = ""


class LogView(ScrollView, can_focus=True):
    """One log. `cursor` is the 1-based line that keys act on."""

    COMPONENT_CLASSES = {"log--gutter", "log--evidence", "log--cursor", "log--hit", "log--note"}
    DEFAULT_CSS = """
    LogView { height: 1fr; width: 1fr; }
    LogView > .log--gutter { color: $text-muted; }
    LogView > .log--evidence { text-style: bold; background: $warning 15%; }
    LogView > .log--cursor { background: $primary 30%; }
    LogView > .log--hit { background: $accent 60%; text-style: bold; }
    LogView > .log--note { color: $success; text-style: bold; }
    """
    BINDINGS: list[BindingType] = [
        Binding("j,down", "move(1)", "Down", show=False),
        Binding("k,up", "move(-1)", "Up", show=False),
        Binding("ctrl+d,pagedown,space", "page(1)", "Page down", show=False),
        Binding("ctrl+u,pageup", "page(-1)", "Page up", show=False),
        Binding("g,home", "edge(-1)", "Top", show=False),
        Binding("G,end", "edge(1)", "End", show=False),
        Binding("h,left", "sideways(-8)", "Left", show=False),
        Binding("l,right", "sideways(8)", "Right", show=False),
    ]

    cursor: reactive[int] = reactive(1)

    class Moved(Message):
        """The cursor stands on another line."""

        def __init__(self, view: LogView) -> None:
            super().__init__()
            self.view = view

    def __init__(self, log: RawLog | None = None, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.log_file = log
        self.evidence: list[Marked] = []
        self.triage: Triage | None = None
        self.needle = ""
        #: line numbers that pass the filter, ascending; None: all lines
        self.only: list[int] | None = None
        self._window: tuple[tuple[int, int, int], list[tuple[int, str]]] = ((-1, -1, -1), [])
        self._widest = 80

    def show_log(self, log: RawLog, evidence: list[Marked], triage: Triage | None) -> None:
        """Shows another log from its first line."""
        self.log_file, self.evidence, self.triage = log, evidence, triage
        self.only, self._widest = None, 80
        self.cursor = 1
        self.grown()
        self.scroll_to(0, 0, animate=False)

    def grown(self) -> None:
        """The log's index moved on, or its filter changed."""
        self._window = ((-1, -1, -1), [])
        self.virtual_size = Size(self._widest + self._gutter, self.rows)
        self.refresh()

    @property
    def rows(self) -> int:
        """Lines that can be shown now."""
        if self.only is not None:
            return len(self.only)
        return self.log_file.lines if self.log_file else 0

    @property
    def _gutter(self) -> int:
        return max(6, len(str(self.log_file.lines if self.log_file else 0))) + 5

    def goto(self, line: int, *, center: bool = True) -> None:
        """Puts the cursor on a line and brings it into the window."""
        self.cursor = max(1, min(line, self.log_file.lines if self.log_file else 1))
        row, height = self._row_of(self.cursor), max(1, self.size.height)
        top = self.scroll_offset.y
        if not top <= row < top + height:
            self.scroll_to(y=max(0, row - (height // 3 if center else 0)), animate=False, force=True)

    def current_text(self) -> str:
        """The line under the cursor."""
        return next(iter(self.log_file.read(self.cursor, 1)), "") if self.log_file else ""

    def _row_of(self, line: int) -> int:
        return line - 1 if self.only is None else min(bisect_left(self.only, line), max(0, len(self.only) - 1))

    def _line_of(self, row: int) -> int:
        row = max(0, min(row, self.rows - 1))
        if self.only is not None:
            return self.only[row] if self.only else 1
        return row + 1

    def action_move(self, by: int) -> None:
        """One line on."""
        self._go_row(self._row_of(self.cursor) + by)

    def action_page(self, by: int) -> None:
        """One screen on."""
        height = max(1, self.size.height - 1)
        self.scroll_to(y=self.scroll_offset.y + by * height, animate=False, force=True)
        self._go_row(self._row_of(self.cursor) + by * height)

    def action_edge(self, which: int) -> None:
        """First or last line."""
        self._go_row(0 if which < 0 else self.rows - 1)

    def action_sideways(self, by: int) -> None:
        """Columns."""
        self.scroll_to(x=max(0, self.scroll_offset.x + by), animate=False, force=True)

    def _go_row(self, row: int) -> None:
        row = max(0, min(row, self.rows - 1))
        self.cursor = self._line_of(row)
        height, top = max(1, self.size.height), self.scroll_offset.y
        if row < top:
            self.scroll_to(y=row, animate=False, force=True)
        elif row >= top + height:
            self.scroll_to(y=row - height + 1, animate=False, force=True)

    def on_click(self, event: events.Click) -> None:
        """The mouse sets the cursor."""
        self.cursor = self._line_of(self.scroll_offset.y + event.y)

    def watch_cursor(self) -> None:
        """Draws the cursor and tells the app."""
        self.refresh()
        if self.is_mounted:
            self.post_message(self.Moved(self))

    def _lines(self) -> list[tuple[int, str]]:
        """(number, text) of the window, read once per window."""
        if self.log_file is None:
            return []
        top, height = self.scroll_offset.y, self.size.height
        key = (top, height, self.log_file.indexed_bytes)
        if self._window[0] != key:
            if self.only is None:
                found = list(enumerate(self.log_file.read(top + 1, height), top + 1))
            else:
                numbers = self.only[top : top + height]
                found = [(number, next(iter(self.log_file.read(number, 1)), "")) for number in numbers]
            found = [(number, visible(text.expandtabs(8))) for number, text in found]
            self._window = (key, found)
            widest = max((len(text) for _, text in found), default=0)
            if widest > self._widest:
                self._widest = widest
                self.call_later(self._widen)
        return self._window[1]

    def _widen(self) -> None:
        self.virtual_size = Size(self._widest + self._gutter, self.rows)

    def render_line(self, y: int) -> Strip:
        """One row of the window."""
        width, lines = self.scrollable_content_region.width, self._lines()
        if y >= len(lines):
            return Strip.blank(width, self.rich_style)
        number, text = lines[y]
        quoted = any(mark.first <= number <= mark.last for mark in self.evidence)
        noted = self.triage is not None and number in self.triage.notes
        base = self.rich_style
        if quoted:
            base += self.get_component_rich_style("log--evidence")
        if number == self.cursor:
            base += self.get_component_rich_style("log--cursor")
        marks = ("▶" if number == self.cursor else " ") + ("✎" if noted else " ") + ("┃" if quoted else " ")
        gutter_style = self.get_component_rich_style("log--note" if noted else "log--gutter")
        gutter = Segment(f"{marks}{number:>{self._gutter - 5}} │", gutter_style)
        body = Strip(self._highlighted(text, base)).crop(self.scroll_offset.x, self.scroll_offset.x + width - self._gutter)
        return Strip([gutter, *body]).extend_cell_length(width, base).crop(0, width)

    def _highlighted(self, text: str, base: object) -> list[Segment]:
        from rich.style import Style

        assert isinstance(base, Style)
        needle = self.needle.lower()
        if not needle or needle not in (low := text.lower()):
            return [Segment(text, base)]
        hit = base + self.get_component_rich_style("log--hit")
        found, start = [], 0
        while (at := low.find(needle, start)) >= 0:
            found += [Segment(text[start:at], base), Segment(text[at : at + len(needle)], hit)]
            start = at + len(needle)
        return [*found, Segment(text[start:], base)]

    def evidence_at(self, line: int) -> Marked | None:
        """The quotation a line belongs to."""
        return next((mark for mark in self.evidence if mark.first <= line <= mark.last), None)

    def cursor_region(self) -> Region:
        """Where the cursor is, in rows of the whole log."""
        return Region(0, self._row_of(self.cursor), 1, 1)
