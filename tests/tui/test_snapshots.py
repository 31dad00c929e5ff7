"""What the screen looks like: small and large terminals, one rank, eight, 256."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from forensics.tui.app import TriageApp

from .incidents import incident_of, log_of


class Made(TriageApp):
    """Shows an incident that was made by hand."""

    def __init__(self, count: int) -> None:
        log_of(count, Path("server.log"))
        super().__init__(["server.log"])
        self._count = count

    def analyse(self) -> None:
        """Nothing to read."""
        self.show_incident(incident_of(self._count, "server.log"))


@pytest.mark.parametrize("size", [(80, 24), (200, 50)], ids=["80x24", "200x50"])
@pytest.mark.parametrize("count", [1, 8, 256])
@pytest.mark.parametrize("view", ["verdict", "ranks", "failures", "path", "log", "findings"])
def test_a_view(
    view: str, count: int, size: tuple[int, int], snap_compare: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    async def show(pilot: Pilot[Any]) -> None:
        await pilot.pause()
        if view == "log":
            await pilot.press("right_square_bracket")
        else:
            pilot.app.action_tab(view)  # type: ignore[attr-defined]
        await pilot.pause()

    assert snap_compare(Made(count), terminal_size=size, run_before=show)
