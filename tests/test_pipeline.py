"""The whole analysis: stages isolated, narrowed by rank and time, and light to import."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

import forensics
from forensics.errors import ForensicsError, UsageError
from forensics.ingest import files
from forensics.ingest.options import ReadOptions
from forensics.model.verdict import Category, Incident, Status
from forensics.pipeline import analyze


def test_public_names_load_when_asked_for() -> None:
    for name in ("analyze", "Incident", "Verdict", "Signature", "load_signatures", "ForensicsError"):
        assert getattr(forensics, name) is not None
        assert name in dir(forensics)
    with pytest.raises(AttributeError):
        _ = forensics.nothing_of_that_name  # type: ignore[attr-defined]


def test_the_import_is_light() -> None:
    heavy = "{'rich', 'textual', 'torch', 'jinja2', 'msgspec', 'yaml', 'hyperscan', 'asyncio', 'multiprocessing', 'logging'}"
    code = f"import sys, forensics; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_a_stage_that_fails_leaves_a_note_and_the_others_go_on(samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a table is damaged")

    monkeypatch.setattr("forensics.knowledge.collect", broken)
    incident = analyze([samples / "one_oom"])
    assert incident.verdict.category is Category.OOM_GPU
    assert any("a table is damaged" in note.text for note in incident.coverage.notes)


def test_debugging_lets_errors_through(samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a table is damaged")

    monkeypatch.setattr("forensics.knowledge.collect", broken)
    monkeypatch.setenv("FORENSICS_DEBUG", "1")
    with pytest.raises(RuntimeError, match="damaged"):
        analyze([samples / "one_oom"])


def test_unreadable_input_is_an_error_of_the_user(tmp_path: Path) -> None:
    with pytest.raises(ForensicsError):
        analyze([tmp_path / "nothing.log"])


LOG = """\
[2025-06-01 10:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/work/serve.py", line 5, in run
    step()
KeyError: 'first'

[2025-06-01 10:10:00 TP1] Scheduler hit an exception: Traceback (most recent call last):
  File "/work/serve.py", line 5, in run
    step()
ValueError: second
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "a.log"
    path.write_text(LOG)
    return path


def kind(incident: Incident) -> str | None:
    return incident.primary.type if incident.primary is not None else None


def test_one_rank(log: Path) -> None:
    assert kind(analyze([log])) == "KeyError"
    assert kind(analyze([log], rank="TP1")) == "ValueError"
    assert kind(analyze([log], rank=1)) == "ValueError"


def test_a_log_without_that_rank_time_or_incident_is_not_called_healthy(log: Path) -> None:
    with pytest.raises(UsageError, match=r"rank TP7[\s\S]*TP0, TP1"):
        analyze([log], rank="TP7")
    with pytest.raises(UsageError, match="no line is of that time"):
        analyze([log], since=4e9)
    with pytest.raises(UsageError, match="no incident 9"):
        analyze([log], incident=9)


def test_one_stretch_of_time(log: Path) -> None:
    first = analyze([log]).primary
    assert first is not None
    assert first.time is not None
    assert kind(analyze([log], since=first.time + 60)) == "ValueError"
    assert kind(analyze([log], until=first.time + 60)) == "KeyError"


def test_a_date_is_found_in_a_log_that_prints_no_year(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("".join(f"ERROR 11-29 20:{minute}:02 [core.py:515] {said}\n" for minute, said in ((15, "KeyError: 'a'"), (45, "ValueError: b"))))
    half_past = 1_795_984_200.0  # 2026-11-29 20:30
    assert kind(analyze([path], since=half_past)) == "ValueError"
    assert kind(analyze([path], until=half_past)) == "KeyError"
    for bounds in ({"since": half_past + 86_400}, {"until": half_past - 86_400}):
        with pytest.raises(UsageError, match="no line is of that time"):
            analyze([path], **bounds)


def test_an_empty_log_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("")
    told = forensics.render(analyze([path]), "console")
    assert "? UNKNOWN   unknown" in told
    assert "The log is empty" in told


def test_what_shows_no_job_is_not_called_healthy(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("hello\n")
    told = forensics.render(analyze([path]), "console")
    assert "HEALTHY" not in told
    assert "? NOTHING FOUND   hypothesis" in told
    assert "No failure was found" in told


def test_a_log_that_ends_in_the_middle_of_its_archive_is_not_called_healthy(tmp_path: Path) -> None:
    path = tmp_path / "a.log.gz"
    path.write_bytes(gzip.compress(("step 1 loss 2.5\n" * 4000 + LOG).encode())[:-60])
    incident = analyze([path])
    assert incident.primary is None
    assert incident.status is Status.UNKNOWN
    assert "not read to its end" in incident.verdict.explanation


def test_what_repeats_is_counted_although_it_is_not_kept() -> None:
    """Of thousands of alike lines a few are kept; the report says how many there were."""
    lines = []
    for step in range(9_000):
        lines.append(f"[2026-11-29 20:15:20 TP{step % 4}] Decode batch. #running-req: {step % 50}, #token: {step * 7}, gen throughput: 91.2")
        if step % 3 == 0:
            lines.append(f"[2026-11-29 20:15:20 TP{step % 4}] ERROR request {step} failed: CUDA error: an illegal memory access was encountered")
    text = "\n".join(lines).encode() + b"\n"
    found = analyze([text], read_options=ReadOptions(whole_below=4_096))
    assert found.findings[0].id == "cuda.illegal-memory-access"
    assert abs(found.findings[0].count - 3_000) <= 30
    assert abs(max(one.count for one in found.failures) - 3_000) <= 30


def test_what_each_of_very_many_files_repeats_is_counted_for_every_rank(tmp_path: Path) -> None:
    """Files that say alike keep few copies, and every copy counts."""
    told = "[2026-11-29 20:15:20] ERROR: CUDA error: an illegal memory access was encountered\n"
    told += "[2026-11-29 20:15:20] ERROR: NCCL WARN NET/IB : Got completion from peer\n"
    for number in range(280):
        calm = f"[2026-11-29 20:15:20] Decode batch. #running-req: {number}\n" * 20
        (tmp_path / f"rank_{number}.log").write_text((calm + told) * 24)
    found = analyze([tmp_path], read_options=ReadOptions(whole_below=4_096, processes=1))
    access = next(one for one in found.findings if one.id == "cuda.illegal-memory-access")
    native = next(one for one in found.failures if one.kind == "native")
    assert (len(access.ranks), access.count) == (len(native.ranks), native.count) == (280, 280 * 24)


@pytest.mark.parametrize("prefix", ["worker three > ", "[rank 3] ", "2026-11-29 20:15:20,000 rank 3: "])
def test_a_prefix_that_only_the_crash_shows_is_learnt_at_the_end_of_a_long_log(prefix: str) -> None:
    calm = [f"{prefix}step {n} loss 2.{n}" for n in range(1_500)]
    crash = ["Traceback (most recent call last):", '  File "/j/train.py", line 9, in main', "    fit()", '  File "/j/fit.py", line 4, in fit', "    x['a']", "KeyError: 'a'"]
    found = analyze(["\n".join([*calm, *(prefix + line for line in crash)]).encode()])
    assert found.status is Status.CRASHED
    assert found.primary is not None and found.primary.root_type == "KeyError"
    assert [frame.function for frame in found.primary.frames] == ["main", "fit"]
    assert analyze(["\n".join(calm).encode()]).status is Status.HEALTHY


def test_the_rehearsal_changes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("step 1 of 9\n" * 9_000 + "ValueError: only one\n")
    monkeypatch.setattr(files, "BIG", 0)
    rehearsed: list[Incident] = []
    told = analyze([log], read_options=ReadOptions(whole_below=0, processes=2), on_rehearsal=rehearsed.append)
    assert [one.verdict.category for one in rehearsed] != [told.verdict.category]
    assert told == analyze([log], read_options=ReadOptions(whole_below=0, processes=1), on_rehearsal=rehearsed.append)
    assert len(rehearsed) == 1

    def fails(_: Incident) -> None:
        raise ValueError("in what the caller does with it")

    assert told == analyze([log], read_options=ReadOptions(whole_below=0, processes=2), on_rehearsal=fails)
