"""Very many inputs: each still tells of its rank, and what all say alike is not kept around again and again."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import analyze
from forensics.ingest import Anchor, ReadOptions, read
from forensics.ingest.retain import _ALIKE
from forensics.ingest.shares import Shares
from forensics.ingest.small import Small
from forensics.ingest.wants import Wants
from forensics.model.verdict import Status

CALM = "calm {n}\n" * 400


def _folder(tmp_path: Path, files: int, text: str) -> str:
    for number in range(files):
        (tmp_path / f"rank_{number}.log").write_text(CALM + text.format(n=number) + CALM)
    return str(tmp_path)


@pytest.mark.parametrize("processes", [1, 2])
def test_every_rank_keeps_its_failure_and_the_first_their_surroundings(tmp_path: Path, processes: int) -> None:
    folder = _folder(tmp_path, 300, "BOOM at step {n}\nafter\n")
    intake = read([folder], [Anchor(b"BOOM", 2, 3)], ReadOptions(whole_below=0, processes=processes))
    booms = [line for line in intake.lines if "BOOM" in line.text]
    assert {line.rank.number for line in booms if line.rank} == set(range(300))
    around = [line for line in intake.lines if line.text == "after"]
    assert len(around) == _ALIKE * processes
    assert len(intake.sources) == 300 and all(source.lines == 802 for source in intake.sources)


def test_of_each_rank_the_first_copies_are_kept_and_the_earliest(tmp_path: Path) -> None:
    """300 files of three ranks say the same at different times; one of them, late in the folder, was first."""
    for number in range(300):
        minute = 0 if number == 297 else 1 + number % 50
        line = f"[2026-11-29 20:{minute:02d}:20 TP{number % 3}] BOOM {79 if number == 298 else 13} at step {1000 + number}\n"
        (tmp_path / f"part_{number:03d}.log").write_text(CALM + line + CALM)
    intake = read([str(tmp_path)], [Anchor(b"BOOM", 0, 2)], ReadOptions(whole_below=0, processes=1))
    booms = [line for line in intake.lines if "BOOM" in line.text]
    assert len(booms) + sum(intake.repeats.values()) == 300 and len(booms) < 150
    assert min(line.time for line in booms if line.time) == 1795982420.0
    assert {line.rank.label for line in booms if line.rank} == {"TP0", "TP1", "TP2"}
    assert sum("BOOM 79" in line.text for line in booms) == 1  # a code of its own
    assert any("inputs of the same rank" in note.text for note in intake.notes)
    assert {row.rank.label for row in intake.activity} == {"TP0", "TP1", "TP2"} and len(intake.activity) == 300


def test_copies_that_several_processes_kept_are_counted_as_one_would(tmp_path: Path) -> None:
    """What the first process keeps of a rank speaks for what another one read, and for what stood behind that; the earliest stays."""
    for number in range(600):
        minute = 0 if number == 597 else 1 + number % 50
        (tmp_path / f"part_{number:03d}.log").write_text(CALM + f"[2026-11-29 20:{minute:02d}:20 TP1] BOOM 13 at step {1000 + number}\n" + CALM)
    one, two = (read([str(tmp_path)], [Anchor(b"BOOM", 0, 0)], ReadOptions(whole_below=0, processes=count)) for count in (1, 2))
    kept, kept_too = ([line for line in intake.lines if "BOOM" in line.text] for intake in (one, two))
    assert len(kept) + sum(one.repeats.values()) == len(kept_too) + sum(two.repeats.values()) == 600
    assert any(line.source == 597 for line in kept_too)
    assert len(kept_too) - len(kept) <= _ALIKE  # the first ones of a process had no copy yet that speaks for all
    assert set(two.repeats) <= {(line.source, line.number) for line in two.lines}


def test_whose_file_tells_nothing_but_itself_is_kept(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"host{number:03d}").write_text(CALM + f"BOOM at step {1000 + number}\n" + CALM)
    intake = read([str(tmp_path)], [Anchor(b"BOOM", 0, 2)], ReadOptions(whole_below=0, processes=1))
    assert len({line.source for line in intake.lines if "BOOM" in line.text}) == 300


def test_a_failure_of_its_own_keeps_its_surroundings(tmp_path: Path) -> None:
    folder = _folder(tmp_path, 300, "BOOM at step {n}\nafter\n")
    Path(folder, "rank_299.log").write_text(CALM + "another BOOM\nafter\n" + CALM)
    intake = read([folder], [Anchor(b"BOOM", 2, 3)], ReadOptions(whole_below=0, processes=1))
    odd = next(index for index, line in enumerate(intake.lines) if line.text == "another BOOM")
    assert intake.lines[odd + 1].text == "after"


def test_stacks_are_kept_whole_in_every_file(tmp_path: Path) -> None:
    stack = "BOOM {n}\n" + "".join(f"  frame {k}\n" for k in range(20))
    folder = _folder(tmp_path, 300, stack)
    intake = read([folder], [Anchor(b"BOOM", 0, 24)], ReadOptions(whole_below=0, processes=1))
    assert sum(line.text.strip() == "frame 19" for line in intake.lines) == 300


def test_two_processes_tell_what_one_tells(tmp_path: Path) -> None:
    """Lines, ranks, clocks, counts and what could not be read arrive from another process as they were there."""
    folder = _folder(tmp_path, 300, "[2026-11-29 20:15:20 TP1] BOOM at step {n}\nafter\n" + "TP0 BOOM again\n" * 40)
    Path(folder, "rank_290.log").write_bytes(b"\x00\x01\x02\x03" * 600)
    Path(folder, "rank_291.log").write_text(CALM)
    Path(folder, "rank_292.log").write_bytes((CALM + "BOOM packed\n").encode("utf-16"))
    one, two = (read([folder], [Anchor(b"BOOM", 1, 2)], ReadOptions(whole_below=0, processes=count)) for count in (1, 2))
    assert one.sources == two.sources
    seen, seen_too = ([row for row in intake.activity if row.rank.label == "TP1"] for intake in (one, two))
    assert len(seen) == 297 and seen == seen_too  # of calm lines around a failure each process keeps its own first ones
    assert one.skipped == two.skipped and [skip.name[-12:] for skip in one.skipped] == ["rank_290.log"]
    own, own_too = ([line for line in intake.lines if "step" in line.text or "packed" in line.text] for intake in (one, two))
    assert len(own) == 298 and own == own_too
    assert all(sum("again" in line.text for line in i.lines) + sum(i.repeats.values()) == 297 * 40 for i in (one, two))
    assert len({id(line.rank) for line in two.lines if line.source == 299 and line.rank is not None}) <= 2


def test_a_calm_file_keeps_its_last_sign_of_life(tmp_path: Path) -> None:
    folder = _folder(tmp_path, 300, "")
    Path(folder, "rank_7.log").write_text(CALM + "[2026-11-29 20:15:20 TP1] step 41")
    Path(folder, "rank_8.log").write_text("[2026-11-29 20:15:21 TP1] alone\n")
    intake = read([folder], [Anchor(b"BOOM")], ReadOptions(whole_below=0, processes=1))
    assert not intake.lines and len(intake.sources) == 300
    assert [source.lines for source in intake.sources if source.name.endswith(("rank_6.log", "rank_7.log", "rank_8.log"))] == [800, 401, 1]
    seen = [row for row in intake.activity if row.rank.label == "TP1"]
    assert [(row.last_step, row.last_time, row.last_line) for row in seen] == [(41, 1795983320.0, 401), (None, 1795983321.0, 1)]


@pytest.mark.parametrize("content", [b"BZh91AY&SY", b"{\"a\": 1}\n", b"PK\x03\x04", b"caf\xc3\xa9\n", b"a\x00b\n", b"x" * 257 + b"ustar"])
def test_what_may_be_packed_is_not_taken_for_calm(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "one"
    path.write_bytes(content)
    small = Small(Wants([Anchor(b"BOOM")]), Shares(ReadOptions(whole_below=0), 300), 4096)
    assert small.taken(str(path), len(content)) is None
    path.write_bytes(b"plain " * 300)
    assert small.taken(str(path), 1_800) is not None
    assert small.taken(str(path), 1_700) is None  # it grew since it was looked at


def test_very_many_small_files_are_kept_whole(tmp_path: Path) -> None:
    """What is kept whole was not searched: nothing says that it is calm."""
    for number in range(300):
        (tmp_path / f"rank_{number}.log").write_text(f"step 1\nBOOM {number}\nafter\n" if number in (17, 254) else "step 1\nstep 2\n")
    intake = read([str(tmp_path)], [Anchor(b"BOOM", 2, 3)], ReadOptions(processes=1))
    assert len(intake.lines) == 300 * 2 + 2
    assert {line.rank.number for line in intake.lines if "BOOM" in line.text and line.rank} == {17, 254}


@pytest.mark.parametrize(("text", "is_blank"), [("calm, and nobody's\n" * 400, False), ("x" * 9_000, False), ("\r\n" * 9_000, True)])
def test_files_of_which_nothing_is_kept_are_not_empty(tmp_path: Path, text: str, is_blank: bool) -> None:
    for number in range(300):
        (tmp_path / f"{number}.txt").write_text(text, newline="")
    incident = analyze([str(tmp_path)], read_options=ReadOptions(whole_below=1000))
    assert (incident.status is Status.UNKNOWN) == is_blank and (incident.verdict.title == "The log is empty") == is_blank
