"""The logs behind a session: opened where they lie, or spooled. In: inputs and sources; out: `RawLog`s, quotations. Sample:

    logs = Logs(["server.log"]); logs.open_inputs(); logs.names -> ["server.log"]
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable
from typing import BinaryIO

from forensics.model.source import Evidence
from forensics.model.verdict import Incident
from forensics.report.triage import Triage, load
from forensics.tui.log_view import Marked
from forensics.tui.rawlog import RawLog


class Logs:
    """Logs by the name the report uses; each is opened once, its notes are loaded with it."""

    def __init__(self) -> None:
        self._open: dict[str, RawLog] = {}
        self._notes: dict[str, Triage] = {}
        self._temporary: list[str] = []
        self._marks: dict[str, list[Marked]] = {}
        #: what could not be opened, and why
        self.refused: dict[str, str] = {}

    @property
    def names(self) -> list[str]:
        """Names in the order they were opened."""
        return list(self._open)

    def add(self, name: str, path: str | None = None) -> RawLog | None:
        """Opens a log. path: where its text lies, if not under its name. None where it cannot be shown."""
        if name not in self._open and name not in self.refused:
            try:
                self._open[name] = RawLog(path or self._readable(name), name)
            except (OSError, ValueError) as error:
                self.refused[name] = str(error)
        return self._open.get(name)

    def _readable(self, name: str) -> str:
        """The path to read lines from: the file itself where it is plain text, else a spooled copy of what it holds."""
        from forensics.tui.spooling import spooled

        if (copy := spooled(name)) is None:
            return name
        self._temporary.append(copy)
        return copy

    def keep_temporary(self, path: str) -> None:
        """A file to delete at the end."""
        self._temporary.append(path)

    def learn(self, incident: Incident) -> None:
        """Opens the report's sources and notes what it quotes of each."""
        found: dict[str, dict[tuple[int, int], str]] = {}
        sources = incident.sources or incident.coverage.sources
        for one in quoted(incident):
            if 0 <= one.span.source < len(sources):
                name = sources[one.span.source].name
                found.setdefault(name, {}).setdefault((one.span.first_line, one.span.last_line), one.shows)
        for source in sources[:2000]:
            if source.name in found or len(self._open) < 20:
                self.add(source.name)
        self._marks = {name: [Marked(a, b, shows) for (a, b), shows in sorted(rows.items())] for name, rows in found.items()}

    def marks(self, name: str) -> list[Marked]:
        """What the report quotes of a log, from top to bottom."""
        return self._marks.get(name, [])

    def notes(self, name: str) -> Triage:
        """The notes of a log. Raises ForensicsError where their file is not one of ours."""
        if name not in self._notes:
            self._notes[name] = load(name)
        return self._notes[name]

    def get(self, name: str) -> RawLog | None:
        """An opened log by the report's name, or by the end of its path."""
        if name in self._open:
            return self._open[name]
        return next((log for key, log in self._open.items() if os.path.basename(key) == name), None)

    def close(self) -> None:
        """Lets all files go and deletes the spooled ones."""
        for log in self._open.values():
            log.close()
        for path in self._temporary:
            if os.path.exists(path):
                os.unlink(path)


def quoted(incident: Incident) -> list[Evidence]:
    """Everything the report rests on: verdict, failures, contradictions, findings, hardware."""
    found = list(incident.verdict.evidence)
    for failure in incident.failures:
        found += failure.evidence
    for contradiction in incident.contradictions:
        found += contradiction.evidence
    for finding in incident.findings:
        found += finding.evidence
    for row in incident.hardware:
        found += row.evidence
    return found


class Spool:
    """Standard input on its way into a file, so that it can be scrolled. done: all of it is there."""

    def __init__(self, stream: BinaryIO, on_data: Callable[[], None] | None = None) -> None:
        handle, self.path = tempfile.mkstemp(prefix="forensics-", suffix=".log")
        self.bytes, self.done, self.error = 0, False, ""
        self._on_data = on_data
        self._thread = threading.Thread(target=self._copy, args=(stream, handle), daemon=True)
        self._thread.start()

    def _copy(self, stream: BinaryIO, handle: int) -> None:
        try:
            with os.fdopen(handle, "wb", buffering=0) as out:
                while block := os.read(stream.fileno(), 1 << 20):
                    out.write(block)
                    self.bytes += len(block)
        except OSError as error:
            self.error = error.strerror or str(error)
        self.done = True
