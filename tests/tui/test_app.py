"""Every view and key, driven as a person would."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Input, RichLog, Static, TabbedContent

from forensics.report import triage
from forensics.tui.app import TABS, TriageApp
from forensics.tui.dialogs import Ask, Keys
from forensics.tui.lanes import Lanes
from forensics.tui.log_view import LogView
from forensics.tui.pages import Rows
from forensics.tui.repro_page import ReproPage

from .conftest import SAMPLES, Ready

Make = Callable[[str], Ready]


def text_of(app: TriageApp, selector: str) -> str:
    """What a Static shows, as plain text."""
    from rich.console import Console

    console = Console(width=110, color_system=None)
    with console.capture() as captured:
        console.print(app.query_one(selector, Static).content)
    return captured.get()


async def typed(pilot: Pilot[int], text: str) -> None:
    """Types into the line that is asked for, and sends it."""
    await pilot.pause()
    assert isinstance(pilot.app.screen, Ask)
    pilot.app.screen.query_one(Input).value = text
    await pilot.press("enter")
    await pilot.pause()
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


def active(app: TriageApp) -> str:
    return app.query_one("#tabs", TabbedContent).active


def test_every_view_opens_with_its_key_and_its_focus(app: Make) -> None:
    async def go() -> None:
        it = app("all_ranks_moe")
        async with it.run_test(size=(80, 24)) as pilot:
            for index, (name, _) in enumerate(TABS[:10]):
                await pilot.press(str((index + 1) % 10))
                await pilot.pause()
                assert active(it) == name

    asyncio.run(go())


def test_the_verdict_names_category_and_ranks(app: Make) -> None:
    async def go() -> None:
        it = app("all_ranks_moe")
        async with it.run_test(size=(110, 40)) as pilot:
            await pilot.pause()
            assert "arch_mismatch" in text_of(it, "#top")
            assert "TP1" in text_of(it, "#verdict-page-text")

    asyncio.run(go())


def test_evidence_is_shown_in_its_place(app: Make) -> None:
    async def go() -> None:
        it = app("all_ranks_moe")
        async with it.run_test(size=(100, 30)) as pilot:
            await pilot.press("right_square_bracket")
            await pilot.pause()
            view = it.query_one("#log1", LogView)
            assert active(it) == "log"
            first = view.cursor
            assert view.evidence_at(first) is not None
            await pilot.press("right_square_bracket")
            assert view.cursor > first
            await pilot.press("left_square_bracket")
            assert view.cursor == first

    asyncio.run(go())


def test_a_failure_leads_to_its_lines(app: Make) -> None:
    async def go() -> None:
        it = app("all_ranks_moe")
        async with it.run_test(size=(100, 30)) as pilot:
            await pilot.press("3", "enter")
            await pilot.pause()
            assert active(it) == "log"
            view = it.query_one("#log1", LogView)
            assert view.evidence_at(view.cursor) is not None
            assert "No supported CUDA architectures" in view.current_text() or "Scheduler hit" in view.current_text()

    asyncio.run(go())


def test_search_finds_and_walks(app: Make) -> None:
    async def go() -> None:
        it = app("all_ranks_moe")
        async with it.run_test(size=(100, 30)) as pilot:
            await pilot.press("slash")
            await typed(pilot, "SCHEDULER HIT")
            view = it.query_one("#log1", LogView)
            first = view.cursor
            assert "Scheduler hit" in view.current_text()
            await pilot.press("n")
            await it.workers.wait_for_complete()
            await pilot.pause()
            assert view.cursor > first
            await pilot.press("N")
            await it.workers.wait_for_complete()
            await pilot.pause()
            assert view.cursor == first

    asyncio.run(go())


def test_a_filter_narrows_log_ranks_and_failures(app: Make) -> None:
    async def go() -> None:
        it = app("all_ranks_moe")
        async with it.run_test(size=(100, 30)) as pilot:
            lanes, view = it.query_one(Lanes), it.query_one("#log1", LogView)
            all_lanes, all_lines = len(lanes.shown), view.rows
            await pilot.press("f")
            await typed(pilot, "rank:TP1")
            assert [lane.label for lane in lanes.shown] == ["TP1"]
            assert 0 < view.rows < all_lines
            assert "TP1" in view.current_text()
            await pilot.press("f")
            await typed(pilot, "")
            assert (len(lanes.shown), view.rows) == (all_lanes, all_lines)
            await pilot.press("f")
            await typed(pilot, "role:cascade")
            rows = it.query_one("#failures-rows", Rows)
            assert all("cascade" in str(rows.get_row_at(i)[0]) for i in range(rows.row_count))
            await pilot.press("f")
            await typed(pilot, "/(/")
            assert it.only.typed == "role:cascade"

    asyncio.run(go())


def test_a_note_is_kept_beside_the_log_and_found_again(app: Make, tmp_path: Path) -> None:
    async def go() -> None:
        it = app("all_ranks_moe")
        async with it.run_test(size=(100, 30)) as pilot:
            await pilot.press("5", "j", "j", "m", "j", "a")
            await typed(pilot, "look [bold]here[/bold]")
        log = it.inputs[0]
        notes = triage.load(log).notes
        assert {line: note.text for line, note in notes.items()} == {3: "", 4: "look [bold]here[/bold]"}
        again = Ready([log])
        async with again.run_test(size=(100, 30)) as pilot:
            await pilot.pause()
            assert set(again.query_one("#log1", LogView).triage.notes) == {3, 4}  # type: ignore[union-attr]
            assert "look [bold]here[/bold]" in text_of(again, "#notes-page-text")

    asyncio.run(go())


def test_ranks_zoom_and_lead_to_the_log(app: Make) -> None:
    async def go() -> None:
        it = app("one_oom")
        async with it.run_test(size=(100, 30)) as pilot:
            await pilot.press("2")
            lanes = it.query_one(Lanes)
            assert len(lanes.shown) == 4
            await pilot.press("plus", "plus")
            assert lanes.zoom == 4
            await pilot.press("minus", "minus")
            assert lanes.zoom == 1
            blamed = next(i for i, lane in enumerate(lanes.shown) if lane.role == "initiating")
            await pilot.press("g", *["j"] * blamed, "enter")
            await pilot.pause()
            assert active(it) == "log"

    asyncio.run(go())


def test_two_logs_stand_side_by_side(app: Make, tmp_path: Path) -> None:
    async def go() -> None:
        it = app("all_ranks_moe")
        other = SAMPLES / "segv" / "segv.log"
        it.logs.add(str(other))
        async with it.run_test(size=(120, 30)) as pilot:
            await pilot.press("vertical_line")
            await pilot.pause()
            first, second = it.query_one("#log1", LogView), it.query_one("#log2", LogView)
            assert second.display and second.has_focus
            assert first.log_file is not second.log_file
            await pilot.press("s")
            assert second.log_file is not None
            await pilot.press("vertical_line")
            assert not second.has_class("open")

    asyncio.run(go())


def test_keys_are_told_and_frames_open(app: Make) -> None:
    async def go() -> None:
        it = app("all_ranks_moe")
        async with it.run_test(size=(80, 24)) as pilot:
            await pilot.press("question_mark")
            await pilot.pause()
            assert isinstance(it.screen, Keys)
            await pilot.press("G")
            await pilot.pause()
            assert it.screen.query_one("VerticalScroll").scroll_y > 0
            await pilot.press("escape")
            await pilot.press("4")
            before = text_of(it, "#path-page-text")
            assert "folded" in before
            await pilot.press("o")
            await pilot.pause()
            after = text_of(it, "#path-page-text")
            assert "_call_impl" in after and "folded" not in after

    asyncio.run(go())


def test_export_and_copy(app: Make, tmp_path: Path) -> None:
    async def go() -> None:
        it = app("all_ranks_moe")
        async with it.run_test(size=(80, 24)) as pilot:
            await pilot.press("x")
            await typed(pilot, str(tmp_path / "out.md"))
            assert "arch_mismatch" in (tmp_path / "out.md").read_text()
            await pilot.press("x")
            await typed(pilot, str(tmp_path / "out.md"))
            await pilot.press("x")
            await typed(pilot, str(tmp_path / "out.exe"))
            assert not (tmp_path / "out.exe").exists()
            await pilot.press("y")
            assert "arch_mismatch" in it.clipboard
            await pilot.press("t")
            assert it.theme == "textual-light"

    asyncio.run(go())


def test_a_repro_is_shown_saved_and_run(app: Make, tmp_path: Path, monkeypatch: object) -> None:
    async def go() -> None:
        it = app("device_assert")
        async with it.run_test(size=(100, 30)) as pilot:
            await pilot.press("0")
            page = it.query_one(ReproPage)
            assert page.plan is not None
            page.query_one(RichLog).focus()
            await pilot.press("w")
            await typed(pilot, str(tmp_path / "mine.py"))
            compile((tmp_path / "mine.py").read_text(), "mine.py", "exec")
            await pilot.press("r")
            await pilot.pause()
            await it.workers.wait_for_complete()
            await pilot.pause()
            assert page.outcome is not None
            assert page.outcome.outcome in ("reproduced", "works", "different_failure", "cannot_try")
            assert page.outcome.outcome.replace("_", " ") in text_of(it, "#repro-head")

    asyncio.run(go())


def test_the_analysis_comes_from_its_own_process() -> None:
    async def go() -> None:
        it = TriageApp([str(SAMPLES / "chained" / "chained.log")])
        async with it.run_test(size=(80, 24)) as pilot:
            await it.workers.wait_for_complete()
            await pilot.pause()
            assert it.incident is not None
            assert it.incident.primary is not None and it.incident.primary.root_type == "KeyError"

    asyncio.run(go())


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    log = tmp_path / "bad.log"
    log.write_text("[red]x[/red] \x1b]52;c;aGk=\x07 \u202e evil <script>\nTraceback (most recent call last):\n"
                   '  File "a.py", line 1, in f\n    g()\nValueError: [bold]boo[/bold] \x1b[2J\u202e\n')  # fmt: skip

    async def go() -> None:
        it = Ready([str(log)])
        async with it.run_test(size=(100, 30)) as pilot:
            await pilot.press("5")
            await pilot.pause()
            view = it.query_one("#log1", LogView)
            row = "".join(segment.text for segment in view.render_line(0))
            assert "[red]x[/red]" in row and "\x1b" not in row and "\u202e" not in row
            shown = text_of(it, "#verdict-page-text")
            assert "[bold]boo[/bold]" in shown and "\x1b" not in shown and "\u202e" not in shown

    asyncio.run(go())


def test_two_runs_are_compared(app: Make) -> None:
    async def go() -> None:
        it = app("all_ranks_moe")
        good = next(iter(sorted((SAMPLES / "healthy_sglang").glob("*.log"))))
        async with it.run_test(size=(110, 40)) as pilot:
            await pilot.press("c")
            await typed(pilot, str(good))
            shown = text_of(it, "#verdict-page-text")
            assert "Compared with" in shown and "healthy_sglang" in shown
            assert "arch_mismatch" in shown
            assert str(good) in it.logs.names

    asyncio.run(go())
