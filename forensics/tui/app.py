"""Interactive triage. In: logs; out: a screen to walk through while the analysis still runs. Sample:

    forensics tui server.log      ->  ✗ CRASHED  arch_mismatch  established │ Verdict Ranks Failures Path Log …

The report's `View` says everything; this file only lays it out, and the log is shown where it lies.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Footer, Static, TabbedContent, TabPane

from forensics.errors import ForensicsError
from forensics.model.verdict import Incident
from forensics.report.blocks import Lane, ReproOffer, Timeline, View
from forensics.report.console import STATUS_STYLE
from forensics.tui import pages
from forensics.tui.commands import Commands
from forensics.tui.filters import Filter
from forensics.tui.lanes import Lanes
from forensics.tui.log_view import LogView
from forensics.tui.logs import Logs, Spool
from forensics.tui.pages import Page, Rows
from forensics.tui.repro_page import ReproPage
from forensics.tui.worker import Analysis, Done, Failed, Progress

TABS = (
    ("verdict", "Verdict"), ("ranks", "Ranks"), ("failures", "Failures"), ("path", "Path"), ("log", "Log"),
    ("findings", "Findings"), ("setup", "Setup"), ("hang", "Hang"), ("gpu", "GPU"), ("repro", "Repro"), ("notes", "Notes"),
)  # fmt: skip


class TriageApp(Commands, App[int]):
    """inputs: as `analyze` takes them; options: for `analyze`; spool: standard input on its way to a file."""

    TITLE = "forensics"
    CSS = """
    #top { height: 1; background: $surface; }
    #where { height: 1; background: $surface; color: $text-muted; }
    TabbedContent { height: 1fr; }
    Tab { padding: 0 1; }
    TabPane { padding: 0; }
    Page, Rows { height: 1fr; padding: 0 1; }
    #finding { height: 40%; border-top: solid $primary; }
    #lane { height: 6; border-top: solid $primary; padding: 0 1; }
    #log2 { display: none; border-left: solid $primary; }
    #log2.open { display: block; }
    """
    BINDINGS: list[BindingType] = [
        Binding("question_mark", "keys", "Keys"),
        Binding("slash", "search", "Search"),
        Binding("f", "filter", "Filter"),
        Binding("right_square_bracket,e", "evidence(1)", "Evidence"),
        Binding("left_square_bracket,E", "evidence(-1)", "Back", show=False),
        Binding("n", "hit(1)", "Next hit", show=False),
        Binding("N", "hit(-1)", "Previous hit", show=False),
        Binding("m", "mark", "Mark", show=False),
        Binding("a", "annotate", "Note"),
        Binding("s", "next_log", "Next log", show=False),
        Binding("vertical_line", "side_by_side", "Side by side", show=False),
        Binding("o", "fold", "Fold frames", show=False),
        Binding("c", "compare", "Compare", show=False),
        Binding("y", "copy", "Copy", show=False),
        Binding("x", "export", "Export"),
        Binding("t", "light_or_dark", "Theme", show=False),
        *(Binding(str((i + 1) % 10), f"tab('{name}')", title, show=False) for i, (name, title) in enumerate(TABS[:10])),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(self, inputs: Sequence[str], options: dict[str, Any] | None = None, spool: Spool | None = None) -> None:
        super().__init__()
        self.inputs, self.options, self.spool = list(inputs), options or {}, spool
        self.logs = Logs()
        self.incident: Incident | None = None
        self.view: View | None = None
        self.offer: ReproOffer | None = None
        self.only = Filter()
        self.folded = True
        self._analysed_bytes = -1
        self._seen = (0, 0.0)
        self._job: Analysis | None = None

    def compose(self) -> ComposeResult:
        """The verdict's line, the tabs, the keys."""
        yield Static(Text("… reading"), id="top")
        with TabbedContent(id="tabs"):
            for name, title in TABS:
                with TabPane(title, id=name):
                    yield from self._pane(name)
        yield Static("", id="where")
        yield Footer(show_command_palette=False)

    def _pane(self, name: str) -> ComposeResult:
        if name == "log":
            with Horizontal():
                yield LogView(id="log1")
                yield LogView(id="log2")
        elif name == "ranks":
            with Vertical():
                yield Lanes(id="lanes")
                yield Static("", id="lane")
        elif name == "failures":
            yield Rows(id="failures-rows")
        elif name == "findings":
            with Vertical():
                yield Rows(id="findings-rows")
                yield Page(id="finding")
        elif name == "repro":
            yield ReproPage(id="repro-page")
        else:
            yield Page(id=f"{name}-page")

    def on_mount(self) -> None:
        """The logs are on the screen before the analysis has read them."""
        waiting = "The analysis runs in a process of its own; the Log tab shows the raw log already."
        self.query_one("#verdict-page", Page).show(Text(waiting))
        if self.spool is not None:
            self.logs.add("-", self.spool.path)
            self.logs.keep_temporary(self.spool.path)
        for name in self.inputs[:20]:
            if name != "-":
                self.logs.add(name)
        if self.logs.names:
            self._show_log(self.query_one("#log1", LogView), self.logs.names[0])
        self._index()  # of a small log that is all: its lines are there for the first key
        self.set_interval(0.05, self._index)
        if self.spool is None:
            self.analyse()
        else:
            self.set_interval(0.25, self._analyse_spool)

    # --- the analysis -------------------------------------------------------------------------------------------------

    def _index(self) -> None:
        """Moves the line index of the logs on, a few milliseconds at a time."""
        until = time.monotonic() + 0.02
        for name in self.logs.names:
            log, moved = self.logs.get(name), False
            while log is not None and log.indexed_bytes < log.size and log.advance(1 << 20):
                moved = True
                if time.monotonic() > until:
                    break
            if moved or (log is not None and not log.complete and not log.advance()):
                for view in self.query(LogView):
                    if view.log_file is log:
                        view.grown()

    def _analyse_spool(self) -> None:
        """Standard input is analysed when it ends, and whenever it pauses for a second."""
        assert self.spool is not None
        now, size = time.monotonic(), self.spool.bytes
        if size != self._seen[0]:
            self._seen = (size, now)
            self._say(f"… reading standard input, {size:,} bytes")
        elif size != self._analysed_bytes and (self.spool.done or now - self._seen[1] > 1.0) and self._job is None:
            self._analysed_bytes = size
            self.analyse()

    @work(thread=True, exclusive=True, group="analysis")
    def analyse(self) -> None:
        """Runs the analysis in its own process and shows what it says."""
        inputs = [self.spool.path] if self.spool is not None else self.inputs
        with Analysis(inputs, **self.options) as self._job:
            for message in self._job.messages():
                self.call_from_thread(self._told, message)
        self._job = None

    def _told(self, message: Progress | Done | Failed) -> None:
        match message:
            case Progress(done, total):
                share = f" {done / total:.0%}" if total else f" {done:,} bytes"
                self._say(f"… analysing{share}")
            case Failed(text):
                self._say("! the analysis failed")
                self.query_one("#verdict-page", Page).show(Text(text, "bold red"))
            case Done(incident):
                self.show_incident(self._renamed(incident))

    def _renamed(self, incident: Incident) -> Incident:
        """Standard input under its own name, not its spool's."""
        if self.spool is None:
            return incident
        from dataclasses import replace

        path = self.spool.path
        sources = tuple(replace(one, name="-") if one.name == path else one for one in incident.sources)
        kept = tuple(replace(one, name="-") if one.name == path else one for one in incident.coverage.sources)
        return replace(incident, sources=sources, coverage=replace(incident.coverage, sources=kept))

    def show_incident(self, incident: Incident) -> None:
        """Fills every view."""
        from forensics.report.view import view
        from forensics.repro import plan

        self.incident = incident
        try:
            planned = plan(incident)
        except ForensicsError as error:
            planned = None
            self.notify(str(error), severity="warning")
        self.offer = ReproOffer(**planned.contract) if planned else None
        self.view = view(incident, self.offer)
        self.logs.learn(incident)
        self.query_one(ReproPage).show(planned)
        first = self.query_one("#log1", LogView)
        name = first.log_file.name if first.log_file else (self.logs.names[0] if self.logs.names else "")
        if name:
            self._show_log(first, name, keep=True)
        self.fill()

    def fill(self) -> None:
        """Lays the view out again, with the filter."""
        it = self.view
        if it is None:
            return
        top = Text()
        top.append(f" {it.mark} {it.status.upper()} ", STATUS_STYLE.get(it.status, "bold"))
        if it.category not in ("none", it.status):
            top.append(f" {it.category}", "bold")
        top.append(f" {it.confidence} ", "italic")
        if self.only:
            top.append(f" filter: {self.only.typed} ", "reverse")
        top.append(f" {it.title}")
        top.truncate(max(20, self.size.width), overflow="ellipsis")
        self.query_one("#top", Static).update(top)
        self.query_one("#verdict-page", Page).show(self.verdict_text())
        for name, wanted in pages.PAGES.items():
            shown = pages.page(it, wanted, pages.EMPTY[name])
            if name == "path":
                from rich.console import Group

                shown = Group(shown, pages.frames(it, self.folded))
            self.query_one(f"#{name}-page", Page).show(shown)
        self.query_one("#failures-rows", Rows).show(*pages.failures(it, self.only))
        rows = pages.findings(it, self.only)
        self.query_one("#findings-rows", Rows).show(("role", "how sure", "where in the log", "finding", "id"), rows)
        section = it.section("timeline")
        timeline = section.blocks[0] if section and isinstance(section.blocks[0], Timeline) else None
        lanes = self._lanes(timeline) if timeline else None
        self.query_one(Lanes).show(timeline, lanes)

    def _lanes(self, timeline: Timeline) -> tuple[Lane, ...]:
        if not self.only:
            return timeline.lanes
        told = ((lane, " ".join(mark.label for mark in lane.marks)) for lane in timeline.lanes)
        return tuple(lane for lane, text in told if self.only.passes(text, ranks=(lane.label,), role=lane.role))

    def verdict_text(self) -> Any:
        """The console report."""
        from rich.console import Group

        from forensics.report.console import APART
        from forensics.tui.laid import Laid

        assert self.view is not None
        parts: list[Any] = [Text(self.view.title, "bold"), Text("")]
        for section in self.view.sections:
            if not section.detail:
                parts += ([Text("")] if section.id in APART else []) + [Laid(section, margin=True)]
        return Group(*parts)

    def _say(self, text: str) -> None:
        self.query_one("#top", Static).update(Text(text))

    # --- moving about -------------------------------------------------------------------------------------------------

    def _show_log(self, view: LogView, name: str, keep: bool = False) -> None:
        log = self.logs.get(name)
        if log is None:
            self.notify(self.logs.refused.get(name, "this log cannot be shown"), severity="warning")
            return
        try:
            notes = self.logs.notes(log.name)
        except ForensicsError as error:
            notes = None
            self.notify(str(error), severity="error", timeout=10)
        if keep and view.log_file is log:
            view.evidence, view.triage = self.logs.marks(log.name), notes
            view.grown()
        else:
            view.show_log(log, self.logs.marks(log.name), notes)

    def goto_place(self, place: str) -> None:
        """ "server.log:812-846" in the log view."""
        match = pages.PLACE.match(place)
        if match is None:
            self.notify("this row has no place in the log")
            return
        name = "-" if match["name"] == "stdin" else match["name"]
        view = self.active_log
        if view.log_file is None or self.logs.get(name) is not view.log_file:
            self._show_log(view, name)
        self.action_tab("log")
        view.goto(int(match["first"]))

    def on_rows_picked(self, event: Rows.Picked) -> None:
        """Enter on a failure or a finding."""
        self.goto_place(event.place)

    def on_lanes_picked(self, event: Lanes.Picked) -> None:
        """Enter on a rank's lane."""
        self.goto_place(event.place)

    def on_lanes_moved(self, event: Lanes.Moved) -> None:
        """Tells what happened to the rank under the cursor."""
        text = Text(f"{event.lane.mark} {event.lane.label}  {event.lane.role}", "bold")
        for mark in event.lane.marks[:4]:
            text.append(f"\n{mark.role}: {mark.label}  {mark.place}", "not bold")
        self.query_one("#lane", Static).update(text)

    def on_data_table_row_highlighted(self, event: Rows.RowHighlighted) -> None:
        """The finding under the cursor, whole."""
        if event.data_table.id == "findings-rows" and self.view is not None and event.cursor_row >= 0:
            rows = pages.findings(self.view, self.only)
            if event.cursor_row < len(rows):
                self.query_one("#finding", Page).show(pages.finding_details(self.view, rows[event.cursor_row][4]))

    def on_log_view_moved(self, event: LogView.Moved) -> None:
        """Says where the cursor is and what is quoted there."""
        view = event.view
        if view.log_file is None:
            return
        quoted = view.evidence_at(view.cursor)
        note = view.triage.notes.get(view.cursor) if view.triage else None
        told = [f"{view.log_file.name}:{view.cursor} of {view.log_file.lines:,}"]
        told += [f"┃ {quoted.shows or 'quoted by the report'}"] if quoted else []
        told += [f"✎ {note.text or 'marked'}"] if note else []
        self.query_one("#where", Static).update(Text("  ".join(told)))

    @property
    def active_log(self) -> LogView:
        """The log view that has the focus, else the left one."""
        return self.focused if isinstance(self.focused, LogView) else self.query_one("#log1", LogView)

    def action_tab(self, name: str) -> None:
        """Another view, with its main widget in focus."""
        tabs = self.query_one("#tabs", TabbedContent)
        tabs.active = name
        target = next((one for one in self.query_one(f"#{name}", TabPane).query("*") if one.can_focus), None)
        if target is not None and not (name == "log" and isinstance(self.focused, LogView)):
            target.focus()

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Every view and action in the command palette."""
        yield from super().get_system_commands(screen)
        for name, title in TABS:
            yield SystemCommand(f"Show {title}", "Another view", lambda name=name: self.action_tab(name))
        yield from self.palette()

    def on_unmount(self) -> None:
        """Ends the child and deletes what was spooled."""
        if self._job is not None:
            self._job.close()
        self.logs.close()
