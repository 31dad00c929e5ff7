"""What the keys do. In: keys and typed words; out: changes to what is shown, files written. Sample:

    f  rank:TP1 role:cascade      -> only rows and lines of TP1's consequences
    x  report.html                -> the report in that format
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual import work
from textual.app import SystemCommand

from forensics.drafts import write_whole
from forensics.errors import ForensicsError
from forensics.tui.dialogs import Ask, Keys
from forensics.tui.filters import HELP, Filter, parse
from forensics.tui.log_view import LogView
from forensics.tui.pages import Page
from forensics.tui.worker import Analysis, Done, Failed

if TYPE_CHECKING:
    from forensics.tui.app import TriageApp

#: a filter that more lines pass shows the first of them
MOST_LINES = 500_000
FORMATS = {".json": "json", ".md": "markdown", ".html": "html", ".sarif": "sarif", ".xml": "junit", ".txt": "console"}

KEYS = (
    ("Views", (("1 … 9, 0, tab", "Verdict, Ranks, Failures, Path, Log, Findings, Setup, Hang, GPU, Repro; tab: Notes"), ("q", "quit"))),
    (
        "Moving",
        (
            ("j k, arrows", "down, up"),
            ("g G", "first, last"),
            ("space, ctrl+u", "a page on, a page back"),
            ("h l", "left, right; in Ranks earlier, later"),
            ("+ -", "in Ranks: zoom"),
            ("enter", "the row's place in the log"),
        ),
    ),
    (
        "The log",
        (
            ("/", "search; n N next and previous hit"),
            ("] [ or e E", "next and previous evidence"),
            ("m", "mark this line"),
            ("a", "write a note; kept beside the log, shown in every report"),
            ("s", "next log"),
            ("|", "two logs side by side"),
        ),
    ),
    (
        "Report",
        (
            ("f", "filter: " + HELP),
            ("o", "open or fold the frames that are plumbing"),
            ("c", "compare with another run"),
            ("y", "copy the report as Markdown"),
            ("x", "export: the file's ending says the format"),
            ("t", "light or dark"),
            ("ctrl+p", "every command by name"),
        ),
    ),
)


class Commands:
    """The app's actions; mixed into `TriageApp`."""

    def _app(self: Any) -> TriageApp:
        return self  # type: ignore[no-any-return]

    def action_keys(self) -> None:
        """Every key."""
        self._app().push_screen(Keys(KEYS))

    # --- searching and filtering --------------------------------------------------------------------------------------

    def action_search(self) -> None:
        """Asks what to look for in the log."""
        app = self._app()
        app.push_screen(Ask("Search the log", "text, upper and lower case alike", app.active_log.needle), self._search)

    def _search(self, typed: str | None) -> None:
        if typed is None:
            return
        view = self._app().active_log
        view.needle = typed
        view.refresh()
        if typed:
            self._app().action_tab("log")
            self._hit(view, 1, from_here=True)

    def action_hit(self, by: int) -> None:
        """Next or previous hit of the search; of the evidence where nothing was searched."""
        view = self._app().active_log
        if view.needle:
            self._hit(view, by)
        else:
            self.action_evidence(by)

    @work(thread=True, exclusive=True, group="search")
    def _hit(self: Any, view: LogView, by: int, from_here: bool = False) -> None:
        log = view.log_file
        if log is None:
            return
        needle = view.needle.encode()
        if by > 0:
            start = view.cursor if from_here else view.cursor + 1
            found = next(log.find(needle, start), None) or next(log.find(needle, 1), None)
        else:
            found, last = None, None
            for number in log.find(needle, 1, limit=MOST_LINES):
                if number < view.cursor:
                    found = number
                last = number
            found = found or last
        self.call_from_thread(self._found, view, found)

    def _found(self, view: LogView, line: int | None) -> None:
        if line is None:
            self._app().notify(f"not in this log: {view.needle}", markup=False)
        else:
            view.goto(line)

    def action_filter(self) -> None:
        """Asks what to show."""
        app = self._app()
        app.push_screen(Ask("Show only", HELP + "; empty shows all", app.only.typed), self._filter)

    def _filter(self, typed: str | None) -> None:
        if typed is None:
            return
        app = self._app()
        try:
            app.only = parse(typed)
        except ForensicsError as error:
            app.notify(str(error), severity="error", markup=False)
            return
        app.fill()
        for view in app.query(LogView):
            if not app.only:
                view.only = None
                view.grown()
            elif view.log_file is not None:
                self._sift(view, app.only)

    @work(thread=True, group="filter")
    def _sift(self: Any, view: LogView, only: Filter) -> None:
        kept = []
        log = view.log_file
        for number, line in log.scan() if log else ():
            if only.passes(line.decode("utf-8", "replace")):
                kept.append(number)
                if len(kept) >= MOST_LINES:
                    break
        self.call_from_thread(self._sifted, view, only, kept)

    def _sifted(self, view: LogView, only: Filter, kept: list[int]) -> None:
        app = self._app()
        if app.only is not only:
            return
        view.only = kept
        view.grown()
        view.goto(kept[0] if kept else 1)
        more = " (the first of them)" if len(kept) >= MOST_LINES else ""
        app.notify(f"{len(kept):,} lines pass{more}")

    # --- evidence and notes -------------------------------------------------------------------------------------------

    def action_evidence(self, by: int) -> None:
        """The next or previous place the report quotes."""
        app = self._app()
        view = app.active_log
        marks = view.evidence
        if not marks:
            app.notify("the report quotes nothing of this log")
            return
        app.action_tab("log")
        starts = sorted({mark.first for mark in marks})
        if by > 0:
            target = next((line for line in starts if line > view.cursor), starts[0])
        else:
            target = next((line for line in reversed(starts) if line < view.cursor), starts[-1])
        view.goto(target)

    def action_mark(self) -> None:
        """Marks the line under the cursor."""
        view = self._app().active_log
        if view.triage is not None and view.log_file is not None:
            view.triage.toggle(view.cursor, view.current_text())
            self._save(view)

    def action_annotate(self) -> None:
        """Asks for a note on the line under the cursor."""
        app = self._app()
        view = app.active_log
        if view.triage is None or view.log_file is None:
            app.notify("no log, or its notes cannot be read", severity="warning")
            return
        line, old = view.cursor, view.triage.notes.get(view.cursor)
        app.push_screen(
            Ask(f"Note on line {line}", view.current_text()[:120], old.text if old else ""),
            lambda typed: self._annotate(view, line, typed),
        )

    def _annotate(self, view: LogView, line: int, typed: str | None) -> None:
        if typed is not None and view.triage is not None and view.log_file is not None:
            view.triage.write(line, typed, next(iter(view.log_file.read(line, 1)), ""))
            self._save(view)

    def _save(self, view: LogView) -> None:
        app = self._app()
        assert view.triage is not None
        try:
            view.triage.save()
        except ForensicsError as error:
            app.notify(str(error), severity="error", timeout=10, markup=False)
        view.refresh()
        app.on_log_view_moved(LogView.Moved(view))
        if app.incident is not None:
            from forensics.report.view import view as rebuilt

            app.view = rebuilt(app.incident, app.offer)
            app.fill()

    # --- logs ---------------------------------------------------------------------------------------------------------

    def action_next_log(self) -> None:
        """The next log in the view that has the focus."""
        app = self._app()
        view, names = app.active_log, app.logs.names
        if len(names) < 2:
            app.notify("there is only one log")
            return
        now = names.index(view.log_file.name) if view.log_file else -1
        app._show_log(view, names[(now + 1) % len(names)])
        app.notify(names[(now + 1) % len(names)], markup=False)

    def action_side_by_side(self) -> None:
        """A second log view, with the next log; pressed again, one view."""
        app = self._app()
        second = app.query_one("#log2", LogView)
        second.toggle_class("open")
        app.action_tab("log")
        if second.has_class("open") and app.logs.names:
            names = app.logs.names
            app._show_log(second, names[1 % len(names)])
            second.focus()
        else:
            app.query_one("#log1", LogView).focus()

    # --- the report ---------------------------------------------------------------------------------------------------

    def action_fold(self) -> None:
        """Opens or folds the frames that are plumbing."""
        app = self._app()
        app.folded = not app.folded
        app.fill()

    def action_compare(self) -> None:
        """Asks for another run, reads it, and shows what differs."""
        self._app().push_screen(Ask("Compare with", "a log of a run that went well"), self._compare)

    def _compare(self, path: str | None) -> None:
        app = self._app()
        if not path:
            return
        if app.incident is None:
            app.notify("this run is not analysed yet")
        elif not os.path.exists(os.path.expanduser(path)):
            app.notify(f"there is no {path}", severity="error", markup=False)
        else:
            self._read_other(os.path.expanduser(path))

    @work(thread=True, exclusive=True, group="compare")
    def _read_other(self: Any, path: str) -> None:
        with Analysis([path]) as job:
            for message in job.messages():
                if isinstance(message, Done | Failed):
                    self.call_from_thread(self._compared, path, message)

    def _compared(self, path: str, message: Done | Failed) -> None:
        from rich.console import Group

        from forensics.report.diff import sections
        from forensics.tui.laid import Laid

        app = self._app()
        if isinstance(message, Failed):
            app.notify(message.text, severity="error", markup=False)
            return
        assert app.incident is not None
        app.logs.add(path)
        parts: list[Any] = [Text(f"Compared with {path}", "bold"), Text("")]
        for one in sections(message.incident, app.incident):
            parts += [Text(one.title, "bold underline"), Laid(one), Text("")]
        app.query_one("#verdict-page", Page).show(Group(*parts))
        app.action_tab("verdict")

    def action_copy(self) -> None:
        """The report as Markdown, into the clipboard (over SSH too, where the terminal takes OSC 52)."""
        from forensics.report import render

        app = self._app()
        if app.incident is None:
            app.notify("not analysed yet")
            return
        app.copy_to_clipboard(render(app.incident, "markdown"))
        app.notify("the report is in the clipboard, as Markdown")

    def action_export(self) -> None:
        """Asks for a file name; its ending says the format."""
        self._app().push_screen(Ask("Export to", "report.html, .md, .json, .sarif, .xml (JUnit) or .txt"), self._export)

    def _export(self, path: str | None) -> None:
        from forensics.report import render

        app = self._app()
        if not path or app.incident is None:
            return
        path = os.path.expanduser(path)
        format = FORMATS.get(os.path.splitext(path)[1].lower())
        if format is None:
            app.notify("this ending names no format: .html, .md, .json, .sarif, .xml or .txt", severity="error")
            return
        try:
            write_whole(path, render(app.incident, format).encode("utf-8", "replace"), over=False)
        except FileExistsError:
            app.notify(f"{path} exists already; choose another name", severity="error", markup=False)
        except OSError as error:
            app.notify(f"not written: {error.strerror}", severity="error", markup=False)
        else:
            app.notify(f"written: {path}", markup=False)

    def action_light_or_dark(self) -> None:
        """The other theme."""
        app = self._app()
        app.theme = "textual-light" if app.theme != "textual-light" else "textual-dark"

    def palette(self) -> Iterator[SystemCommand]:
        """The actions by name."""
        yield SystemCommand("Search the log", "/", self.action_search)
        yield SystemCommand("Filter", "f", self.action_filter)
        yield SystemCommand("Compare with another run", "c", self.action_compare)
        yield SystemCommand("Export the report", "x", self.action_export)
        yield SystemCommand("Copy the report as Markdown", "y", self.action_copy)
        yield SystemCommand("Logs side by side", "|", self.action_side_by_side)
        yield SystemCommand("Fold or open frames", "o", self.action_fold)
        yield SystemCommand("Light or dark", "t", self.action_light_or_dark)
