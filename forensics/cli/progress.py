"""A progress bar on standard error once the work takes longer than a second, only on a terminal. In: bytes read so far;
out: none. Sample:

    with Progress() as progress:
        read(…, on_progress=progress.callback)      # callback(done_bytes, total_bytes or None)
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

#: seconds of silence before the bar appears
PATIENCE_S = 1.0


class Progress:
    """Draws with rich, which is imported only when the bar appears."""

    def __init__(self, silent: bool = False) -> None:
        self._start = time.monotonic()
        self._bar: Any = None
        self._task: Any = None
        self._watch = not silent and _on_terminal()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    @property
    def callback(self) -> Any:
        """To be called with (bytes done, bytes in all or None); None where nobody would see it."""
        return self._moved if self._watch else None

    def aside(self, speak: Callable[[str], None]) -> Callable[[str], None]:
        """Says something beside the bar, where there is one."""

        def said(text: str) -> None:
            if self._bar is None:
                speak(text)
            else:
                self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)

        return said

    def _moved(self, done: int, total: int | None = None, *_: object) -> None:
        if self._bar is None:
            if time.monotonic() - self._start < PATIENCE_S:
                return
            self._open(total)
        self._bar.update(self._task, completed=done, total=total)

    def _open(self, total: int | None) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TransferSpeedColumn,
        )

        self._bar = Progress(
            TextColumn("reading"),
            BarColumn(bar_width=30),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeElapsedColumn(),
            console=Console(file=sys.stderr),
            transient=True,
        )
        self._task = self._bar.add_task("reading", total=total)
        self._bar.start()


def _on_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
