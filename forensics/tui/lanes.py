"""Ranks as lanes over time. In: a `Timeline`; out: one row a rank, zoomed and scrolled with keys. Sample:

      ▶ ✗ TP1        ───────────────────────────✗
        = TP0        ───────────────────────────=

A lane's mark says its causal role without colour; "─" stands while the rank was seen.
"""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from forensics.report.blocks import Lane, Timeline
from forensics.report.console import ROLE_STYLE
from forensics.report.naming import ROLES

HEAD = 20


class Lanes(ScrollView, can_focus=True):
    """`cursor` is the 0-based lane the keys act on; `zoom` 1 shows all of the time."""

    COMPONENT_CLASSES = {"lanes--cursor", "lanes--axis"}
    DEFAULT_CSS = """
    Lanes { height: 1fr; }
    Lanes > .lanes--cursor { background: $primary 30%; }
    Lanes > .lanes--axis { color: $text-muted; }
    """
    BINDINGS: list[BindingType] = [
        Binding("j,down", "move(1)", "Down", show=False),
        Binding("k,up", "move(-1)", "Up", show=False),
        Binding("g,home", "move(-1000000)", "Top", show=False),
        Binding("G,end", "move(1000000)", "End", show=False),
        Binding("plus,equals_sign", "zoom_by(2)", "Zoom in", show=False),
        Binding("minus", "zoom_by(0.5)", "Zoom out", show=False),
        Binding("h,left", "pan(-1)", "Earlier", show=False),
        Binding("l,right", "pan(1)", "Later", show=False),
        Binding("enter", "open", "Show in the log", show=False),
    ]

    cursor: reactive[int] = reactive(0)
    zoom: reactive[float] = reactive(1.0)
    start: reactive[float] = reactive(0.0)

    class Picked(Message):
        """Enter on a lane: its first mark's place ("file:line"), "" where it has none."""

        def __init__(self, lane: Lane, place: str) -> None:
            super().__init__()
            self.lane, self.place = lane, place

    class Moved(Message):
        """The cursor stands on another lane."""

        def __init__(self, lane: Lane) -> None:
            super().__init__()
            self.lane = lane

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.timeline: Timeline | None = None
        self.shown: tuple[Lane, ...] = ()

    def show(self, timeline: Timeline | None, lanes: tuple[Lane, ...] | None = None) -> None:
        """lanes: those that pass a filter; None: all."""
        fresh = timeline is not self.timeline
        self.timeline = timeline
        self.shown = lanes if lanes is not None else (timeline.lanes if timeline else ())
        blamed = next((row for row, lane in enumerate(self.shown) if lane.role in ("initiating", "missing")), 0)
        self.cursor = blamed if fresh else min(self.cursor, max(0, len(self.shown) - 1))
        if timeline and fresh:
            self.start, self.zoom = timeline.start, 1.0
            self.call_after_refresh(self.action_move, 0)
        self.virtual_size = Size(self.size.width, len(self.shown) + 2)
        self.watch_cursor()

    def action_move(self, by: int) -> None:
        """Another lane."""
        self.cursor = max(0, min(len(self.shown) - 1, self.cursor + by))
        self.scroll_to(y=max(0, self.cursor - self.size.height // 2), animate=False, force=True)

    def action_zoom_by(self, by: float) -> None:
        """Half or twice the time, around the middle."""
        if self.timeline is None:
            return
        middle = self.start + self._span / 2
        self.zoom = max(1.0, min(65536.0, self.zoom * by))
        self._place(middle - self._span / 2)

    def action_pan(self, by: int) -> None:
        """A quarter of the window."""
        if self.timeline is not None:
            self._place(self.start + by * self._span / 4)

    def action_open(self) -> None:
        """Shows the lane's first mark in the log."""
        if self.shown:
            lane = self.shown[self.cursor]
            self.post_message(self.Picked(lane, lane.marks[0].place if lane.marks else ""))

    def on_click(self, event: events.Click) -> None:
        """The mouse picks a lane."""
        row = self.scroll_offset.y + event.y - 2
        if 0 <= row < len(self.shown):
            self.cursor = row

    @property
    def _span(self) -> float:
        return ((self.timeline.end - self.timeline.start) or 1.0) / self.zoom if self.timeline else 1.0

    def _place(self, start: float) -> None:
        assert self.timeline is not None
        self.start = max(self.timeline.start, min(start, self.timeline.end - self._span))

    def watch_cursor(self) -> None:
        """Tells the app which lane."""
        self.refresh()
        if self.is_mounted and self.shown:
            self.post_message(self.Moved(self.shown[min(self.cursor, len(self.shown) - 1)]))

    def render_line(self, y: int) -> Strip:
        """Row 0 and 1: the axis, always in sight; then the lanes."""
        width = self.scrollable_content_region.width
        if self.timeline is None:
            text = "No times in this log: the ranks stand in the verdict." if y == 0 else ""
            return Strip([Segment(text, self.rich_style)]).extend_cell_length(width).crop(0, width)
        if y < 2:
            return self._axis(y, width)
        row = self.scroll_offset.y + y - 2
        if row >= len(self.shown):
            return Strip.blank(width, self.rich_style)
        return self._lane(self.shown[row], row == self.cursor, width)

    def _axis(self, y: int, width: int) -> Strip:
        style = self.rich_style + self.get_component_rich_style("lanes--axis")
        room = max(10, width - HEAD)
        if y == 1:
            return Strip([Segment(" " * HEAD + "┬" + "─" * (room - 2) + "┬", style)]).crop(0, width)
        first, last = self._tick(self.start), self._tick(self.start + self._span)
        zoom = f"×{self.zoom:g}" if self.zoom > 1 else ""
        return Strip([Segment(f"{zoom:<{HEAD}}{first}{last:>{max(1, room - len(first))}}", style)]).crop(0, width)

    def _tick(self, at: float) -> str:
        from forensics.report.text import clock_time

        assert self.timeline is not None
        return clock_time(at, self.timeline.clock)

    def _lane(self, lane: Lane, here: bool, width: int) -> Strip:
        room = max(10, width - HEAD)
        cells = [" "] * room
        if lane.first is not None and lane.last is not None:
            for place in range(max(0, self._column(lane.first, room)), min(room - 1, self._column(lane.last, room)) + 1):
                cells[place] = "─"
        for mark in lane.marks:
            if 0 <= (place := self._column(mark.at, room)) < room:
                cells[place] = ROLES.get(mark.role, ("~", ""))[0]
        base = self.rich_style + (self.get_component_rich_style("lanes--cursor") if here else Style())
        style = base + Style.parse(ROLE_STYLE.get(lane.role, "") or "none")
        head = f"{'▶' if here else ' '} {lane.mark} {lane.label}"
        return Strip([Segment(f"{head[: HEAD - 1]:<{HEAD}}", style), Segment("".join(cells), style)]).crop(0, width)

    def _column(self, at: float, room: int) -> int:
        return int((at - self.start) / self._span * (room - 1))
