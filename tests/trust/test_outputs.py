"""What is written and printed: whole files, no link followed, no log overwritten, and nothing hostile on any command's way out."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from forensics import analyze, drafts, render
from forensics.errors import UsageError
from forensics.report import FORMATS

from . import logs

Run = Callable[..., subprocess.CompletedProcess[bytes]]
MOVES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
HOSTILE = "x\x1b]0;owned\x07\x1b[2J\u202e"


def test_a_planted_link_is_not_written_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder of many people somebody guesses a draft's name."""
    victim, out = tmp_path / "victim", tmp_path / "out.json"
    victim.write_text("precious")
    monkeypatch.setattr(os, "urandom", lambda count: b"\0" * count)
    (tmp_path / f".out.json.{'00' * 4}.part").symlink_to(victim)
    with pytest.raises(FileExistsError):
        drafts.write_whole(str(out), b"report")
    assert victim.read_text() == "precious"


def test_what_a_killed_run_left_goes_with_the_next(tmp_path: Path) -> None:
    out, stale, fresh, other = (tmp_path / name for name in ("a.md", ".a.md.00000000.part", ".a.md.11111111.part", ".b.md.22222222.part"))
    for path in (stale, fresh, other):
        path.write_text(logs.crash("boom"))
    for path in (stale, other):
        os.utime(path, (1, 1))
    drafts.write_whole(str(out), b"report")
    assert {path.name for path in tmp_path.iterdir()} == {"a.md", fresh.name, other.name}
    assert [source.name for source in analyze([tmp_path]).sources] == [str(out)]  # a draft is no log


def test_an_older_file_keeps_its_permissions_and_its_place(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(0o640)
    drafts.write_whole(str(path), b"new")
    assert path.read_bytes() == b"new" and path.stat().st_mode & 0o777 == 0o640
    with pytest.raises(FileExistsError):
        drafts.write_whole(str(path), b"newer", over=False)
    drafts.write_whole(str(tmp_path / "b"), b"first", over=False)
    assert sorted(os.listdir(tmp_path)) == ["a", "b"] and path.read_bytes() == b"new"


@pytest.mark.parametrize("words", [[], ["repro"], ["diff"]])
@pytest.mark.parametrize("name", ["a.log", "./a.log", "link.log"])
def test_a_log_is_not_written_over(words: list[str], name: str, forensics: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "a.log"
    log.write_text(logs.crash("boom"))
    (tmp_path / "link.log").symlink_to(log)
    inputs = [str(log)] * (2 if words == ["diff"] else 1)
    done = forensics(*words, *inputs, "-o", f"{tmp_path}/{name}")
    assert done.returncode == 2 and b"being read" in done.stderr
    assert log.read_text() == logs.crash("boom")


@pytest.mark.parametrize("face", FORMATS)
def test_a_file_name_is_as_harmless_as_a_line(face: str, tmp_path: Path) -> None:
    path = tmp_path / "a`b|<img src=x onerror=alert(1)>\n# h\x1b[31m\u202e![x](https:evil).log"
    path.write_text(logs.crash("boom"))
    text = render(analyze([path]), face, explain=True, width=100)
    assert not MOVES.search(text)
    if face == "html":
        assert "<img" not in text
    if face in ("markdown", "github"):
        assert not re.search(r"^# h", text, re.M)


def test_a_stranger_s_signature_is_as_harmless_as_a_log(tmp_path: Path, forensics: Run) -> None:
    quoted = json.dumps(f"{HOSTILE} <script>alert(1)</script> [red]x[/red]\n::error::owned")
    (tmp_path / "a.toml").write_text(
        f'[[signature]]\nid = "x.y"\ntitle = {quoted}\nrole = "root"\ncategory = "unknown"\nwhy = {quoted}\nnext_steps = [{quoted}]\n'
        f'[signature.match]\nliterals = ["boomerang"]\n[[signature.fixes]]\naction = {quoted}\nwhy = {quoted}\n'
    )
    incident = analyze([logs.crash("boomerang").encode()], signatures=[str(tmp_path)])
    assert "owned" in incident.verdict.title
    for face in FORMATS:
        text = render(incident, face, explain=True, width=100)
        assert not MOVES.search(text) and "<script>alert" not in (text if face == "html" else "")
        if face == "github":
            assert not re.search(r"^\s*::error::owned", text, re.M)
    for words in (["signatures", "list"], ["signatures", "show", "x.y"]):
        done = forensics(*words, "--signatures", str(tmp_path))
        assert b"owned" in done.stdout and not MOVES.search(done.stdout.decode())


@pytest.mark.parametrize("face", ["console", "markdown", "html", "junit"])
def test_no_face_on_a_runner_s_output_is_read_as_a_command(face: str, forensics: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(logs.crash("boom\n::stop-commands::x\n   ::add-mask::y\n##[error]z\n::error::owned"))
    command = re.compile(rb"^\s*(?:::|##\[)", re.M)
    assert not command.search(forensics(str(path), "--format", face, GITHUB_ACTIONS="true").stdout)
    done = forensics(str(path), "--format", "github", GITHUB_ACTIONS="true")
    assert command.findall(done.stdout) == [b"::"] and done.stdout.startswith(b"::error title=")


@pytest.mark.parametrize(
    "words", [["kernel", HOSTILE], ["gpu", HOSTILE], ["support", HOSTILE], ["binary", HOSTILE], ["signatures", "show", HOSTILE]]
)
def test_words_are_said_back_harmless(words: list[str], forensics: Run) -> None:
    done = forensics(*words)
    assert not MOVES.search(done.stdout.decode() + done.stderr.decode())


def test_a_very_long_word_is_not_said_back_whole(forensics: Run) -> None:
    assert len(forensics("gpu", "A" * 100_000).stderr) < 3_000


def test_a_bug_report_of_a_hostile_log(tmp_path: Path) -> None:
    from forensics.repro.bug_report import issue
    from forensics.repro.case import case_of_report
    from forensics.repro.planning import plan_case
    from tests.repro.conftest import report

    message = f"mat1 and mat2 shapes cannot be multiplied (4x8 and 16x8) {HOSTILE}![x](https://evil.example/x.png) @someone <b>|\n```\n# h"
    plan = plan_case(case_of_report(report("RuntimeError", message, "shape_or_dtype_assert")))
    assert plan is not None
    text = issue(plan)
    assert not MOVES.search(text)
    outside = re.sub(r"^(`{3,})[^\n]*\n.*?^\1$", "", text, flags=re.M | re.S)
    assert "evil" in outside and not re.search(r"(?<!\\)!\[x|(?<!\\)<b>|@someone|^# h", outside, re.M)


def test_json_spells_tags_and_blank_letters_out() -> None:
    """Letters that nobody sees and a program reads."""
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "obey") + "\u3164\u115f"
    text = render(analyze([logs.crash(f"boom {hidden}").encode()]), "json")
    assert not re.search("[\u3164\u115f\U000e0000-\U000e007f]", text)
    assert hidden in json.loads(text)["primary"]["message"]


def test_a_repro_of_an_endless_pipe_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    from forensics.cli import repro_input

    monkeypatch.setattr(repro_input, "_STDIN_BYTES", 1_000)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x" * 2_000)))
    with pytest.raises(UsageError, match="too large"):
        repro_input.planned(("-",), {"compile_": False, "gpu": None, "recipe": None, "given": ()})
