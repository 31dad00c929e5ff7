"""Notes beside a log: kept, found again, never damaged."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from forensics.errors import ForensicsError
from forensics.report import triage


def test_notes_come_back(tmp_path: Path) -> None:
    log = str(tmp_path / "a.log")
    it = triage.load(log)
    assert it.toggle(3, "line three")
    it.write(7, " look here ", "line seven")
    it.save()
    again = triage.load(log)
    assert [(n.line, n.text, n.quote) for n in again.notes.values()] == [
        (3, "", "line three"),
        (7, "look here", "line seven"),
    ]
    assert not again.toggle(3, "line three")
    again.write(7, "", "")
    again.save()
    assert triage.load(log).notes == {}


def test_a_save_that_fails_leaves_the_old_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = str(tmp_path / "a.log")
    it = triage.load(log)
    it.write(1, "first", "")
    it.save()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    it.write(2, "second", "")
    with pytest.raises(ForensicsError, match="No space left"):
        it.save()
    assert list(triage.load(log).notes) == [1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.log.triage.json"]


@pytest.mark.parametrize(
    "content", ["", "[]", '{"schema": "x"}', '{"schema": "forensics-triage/1", "notes": [{}]}', "[" * 100_000]
)
def test_a_file_that_is_not_ours_is_said_and_kept(tmp_path: Path, content: str) -> None:
    log = str(tmp_path / "a.log")
    Path(triage.triage_path(log)).write_text(content)
    with pytest.raises(ForensicsError):
        triage.load(log)
    section = triage.section((log,))
    assert section is not None and "cannot be read" in section.blocks[0].items[0].text  # type: ignore[union-attr]
    assert Path(triage.triage_path(log)).read_text() == content


def test_reports_show_the_notes(tmp_path: Path) -> None:
    log = str(tmp_path / "a.log")
    assert triage.section((log,)) is None
    Path(triage.triage_path(log)).write_text(
        json.dumps({"schema": triage.SCHEMA, "notes": [{"line": 9, "text": "why \x1b[31m?", "quote": "q"}]})
    )
    section = triage.section((log,))
    assert section is not None
    item = section.blocks[0].items[0]  # type: ignore[union-attr]
    assert (item.text, item.place) == ("why ␛[31m?", "a.log:9")
