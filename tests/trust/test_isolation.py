"""An error of our own costs its part of the report, is said there, and is never a traceback unless asked for."""

from __future__ import annotations

import time
from typing import Any

import pytest

from forensics import analyze
from forensics.parse import PARSERS

from . import logs

CRASH = logs.crash("CUDA error: an illegal memory access was encountered").encode()
KIND = "illegal_memory_access"


def _broken(*_: Any, **__: Any) -> Any:
    raise RuntimeError("we are wrong")


def _said(incident: Any) -> str:
    return " ".join([note.text for note in incident.coverage.notes] + [one.why for one in incident.coverage.skipped])


@pytest.mark.parametrize(
    "stage",
    ["forensics.ingest.read", "forensics.parse.parse", "forensics.knowledge.collect", "forensics.match.match", "forensics.match.contradictions", "forensics.match.load_signatures", "forensics.parse.anchors"],
)
def test_every_stage_may_fail(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, _broken)
    assert "we are wrong" in _said(analyze([CRASH]))
    monkeypatch.setenv("FORENSICS_DEBUG", "1")
    with pytest.raises(RuntimeError, match="we are wrong"):
        analyze([CRASH])


def test_the_verdict_may_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what it stumbled over an incident is left that says so."""
    from forensics.verdict import judge

    def picky(intake: Any, events: Any, *rest: Any, **more: Any) -> Any:
        return _broken() if events else judge(intake, events, *rest, **more)

    monkeypatch.setattr("forensics.verdict.judge", picky)
    incident = analyze([CRASH])
    assert "we are wrong" in _said(incident)
    assert incident.status.value == "unknown" or incident.verdict.category.value != KIND


@pytest.mark.parametrize("number", [0, 1])
def test_one_source_may_fail_the_others_are_read(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from forensics.ingest import files

    take = files.take_one
    monkeypatch.setattr(files, "take_one", lambda opened, *rest: _broken() if opened.name == f"input {number + 1}" else take(opened, *rest))
    incident = analyze([CRASH, CRASH])
    assert incident.verdict.category.value == KIND
    assert [one.name for one in incident.coverage.skipped] == [f"input {number + 1}"]
    assert "we are wrong" in _said(incident)


@pytest.mark.parametrize("name", PARSERS)
def test_every_parser_may_fail(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import import_module

    from forensics.ingest import from_text
    from forensics.parse import parse

    monkeypatch.setattr(import_module(f"forensics.parse.{name}"), "parse", _broken)
    intake = from_text(CRASH.decode())
    events = parse(intake)
    assert [note.text for note in intake.notes if f"the {name} parser" in note.text and "we are wrong" in note.text]
    assert events or name == "python"


def test_a_stage_that_never_ends_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: Any) -> Any:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            pass

    monkeypatch.setattr("forensics.pipeline.STAGE_SECONDS", 0.2)
    monkeypatch.setattr("forensics.match.match", busy)
    started = time.process_time()
    incident = analyze([CRASH])
    assert time.process_time() - started < 30
    assert "took more than 0.2 s" in _said(incident)
    assert incident.verdict.category.value == KIND


def test_a_parser_that_never_ends_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A catastrophic pattern inside of one parser."""
    import re

    monkeypatch.setattr("forensics.pipeline.STAGE_SECONDS", 0.2)
    monkeypatch.setattr("forensics.parse.device_error.parse", lambda _: re.match(r"(a|a)*b", "a" * 60))
    incident = analyze([CRASH])
    assert "the device_error parser gave up: OutOfTime" in _said(incident)
    assert incident.verdict.category.value == KIND
