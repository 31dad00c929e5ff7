"""What is asked for: a line of text, a key list. In: a question; out: the answer or None. Sample:

    app.push_screen(Ask("Search", "text or /regex/"), callback)
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Label, Static


class Ask(ModalScreen[str | None]):
    """One line of text. Enter gives it back, Escape gives None; `told` stands below the line."""

    DEFAULT_CSS = """
    Ask { align: center bottom; background: $background 30%; }
    Ask > Vertical { height: auto; width: 100%; background: $surface; border-top: tall $primary; padding: 0 1; }
    Ask Label { color: $text-muted; }
    """
    BINDINGS: list[BindingType] = [Binding("escape", "give_up", "Cancel")]

    def __init__(self, title: str, told: str = "", value: str = "") -> None:
        super().__init__()
        self._title, self._told, self._value = title, told, value

    def compose(self) -> ComposeResult:
        """The line, its title, what it takes."""
        with Vertical():
            yield Label(Text(self._title, "bold"))
            yield Input(value=self._value, id="answer")
            if self._told:
                yield Label(Text(self._told))

    def on_mount(self) -> None:
        """Ready to type."""
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter."""
        self.dismiss(event.value)

    def action_give_up(self) -> None:
        """Escape."""
        self.dismiss(None)


class Keys(ModalScreen[None]):
    """Every key and what it does."""

    DEFAULT_CSS = """
    Keys { align: center middle; background: $background 60%; }
    Keys > VerticalScroll {
        width: 76; max-width: 96%; height: auto; max-height: 90%; background: $surface; border: round $primary; padding: 0 1;
    }
    """
    BINDINGS: list[BindingType] = [
        Binding("escape,q,question_mark", "dismiss", "Close"),
        Binding("j", "scroll('down')", show=False),
        Binding("k", "scroll('up')", show=False),
        Binding("space", "scroll('page_down')", show=False),
        Binding("g", "scroll('home')", show=False),
        Binding("G", "scroll('end')", show=False),
    ]

    def __init__(self, groups: Sequence[tuple[str, Sequence[tuple[str, str]]]]) -> None:
        super().__init__()
        self._groups = groups

    def compose(self) -> ComposeResult:
        """Keys by group."""
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(no_wrap=True, style="bold", min_width=14)
        grid.add_column(overflow="fold")
        for title, rows in self._groups:
            grid.add_row(Text(title, "bold underline"), "")
            for key, does in rows:
                grid.add_row(Text("  " + key), Text(does))
        with VerticalScroll() as box:
            box.border_subtitle = "j k scroll · esc closes"
            yield Static(grid)

    def action_scroll(self, where: str) -> None:
        """The keys that move elsewhere move here too: a small terminal shows half of the list."""
        getattr(self.query_one(VerticalScroll), f"scroll_{where}")(animate=False)
