"""The repro of a failure: its script, a save, a run with its output as it comes. In: a plan; out: an outcome. Sample:

    recipe triton-shared-memory   r runs it here · w saves the script
"""

from __future__ import annotations

from typing import Any

from rich.syntax import Syntax
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import RichLog, Static

from forensics.drafts import write_whole
from forensics.errors import ForensicsError
from forensics.report.text import visible
from forensics.tui.dialogs import Ask


class ReproPage(Vertical):
    """Shows what can be rebuilt, and rebuilds it."""

    DEFAULT_CSS = """
    ReproPage > #repro-head { height: auto; max-height: 5; padding: 0 1; }
    ReproPage > RichLog { height: 1fr; border-top: solid $primary; padding: 0 1; }
    """
    BINDINGS: list[BindingType] = [
        Binding("r", "run", "Run the repro"),
        Binding("w", "save", "Save the script"),
        Binding("p", "show_script", "Script", show=False),
    ]

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.plan: Any = None
        self.outcome: Any = None
        self.running = False

    def compose(self) -> ComposeResult:
        """What it is; below it the script or the output."""
        yield Static(Text("Not analysed yet."), id="repro-head")
        yield RichLog(id="repro-out", wrap=False, highlight=False, markup=False, max_lines=20_000)

    def show(self, plan: Any) -> None:
        """plan: of the repro floor, None where no recipe fits."""
        self.plan = plan
        if plan is None:
            self._head(Text("No recipe rebuilds this failure from its log."))
            return
        text = Text(f"recipe {plan.recipe.id}", "bold")
        text.append("  r runs it here · w saves the script · p shows the script", "not bold dim")
        text.append(f"\n{visible(plan.contract['reason'] or plan.why)}", "not bold")
        self._head(text)
        self.action_show_script()

    def action_show_script(self) -> None:
        """The whole script, as it would run."""
        if self.plan is None:
            return
        from forensics.repro import script

        out = self.query_one(RichLog)
        out.clear()
        out.write(Syntax(script(self.plan), "python", line_numbers=False, word_wrap=False, background_color="default"))

    def action_save(self) -> None:
        """Asks where to."""
        if self.plan is not None:
            self.app.push_screen(Ask("Save the script as", value="repro.py"), self._save)

    def _save(self, path: str | None) -> None:
        from forensics.repro import script

        if not path:
            return
        try:
            write_whole(path, script(self.plan).encode(), over=False)
        except OSError as error:
            self.app.notify(f"not written: {error.strerror}", severity="error", markup=False)
        else:
            self.app.notify(f"written: {path}", markup=False)

    def action_run(self) -> None:
        """Runs it in a child, with its output as it comes."""
        if self.plan is None or self.running:
            return
        self.running = True
        self.query_one(RichLog).clear()
        self._head(Text(f"recipe {self.plan.recipe.id}: running", "bold"))
        self._run()

    @work(thread=True, exclusive=True, group="repro")
    def _run(self) -> None:
        from forensics.repro import run

        def told(block: bytes) -> None:
            self.app.call_from_thread(self._line, block.decode("utf-8", "replace"))

        try:
            outcome = run(self.plan, on_output=told)
        except ForensicsError as error:
            self.app.call_from_thread(self._ended, None, str(error))
        else:
            self.app.call_from_thread(self._ended, outcome, "")

    def _line(self, text: str) -> None:
        self.query_one(RichLog).write(Text(visible(text.rstrip("\n"))))

    def _ended(self, outcome: Any, error: str) -> None:
        self.running, self.outcome = False, outcome
        if outcome is None:
            self._head(Text(error, "bold red"))
            return
        text = Text(f"{outcome.outcome.replace('_', ' ')} after {outcome.seconds:.1f} s", "bold")
        text.append(f"\n{visible(outcome.why)}", "not bold")
        self._head(text)

    def _head(self, text: Text) -> None:
        self.query_one("#repro-head", Static).update(text)
