"""The console face: fits, says all without colour, and no log text is ever interpreted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.cells import cell_len

from forensics.model import Incident
from forensics.pipeline import analyze
from forensics.report import render
from forensics.report.blocks import Cell, Lane, Section, Strip, Timeline
from forensics.report.console import section_lines
from forensics.report.layout import plain

ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("width", [60, 80, 100, 110])
@pytest.mark.parametrize("explain", [False, True])
def test_it_fits(incident: Incident, width: int, explain: bool) -> None:
    text = render(incident, "console", width=width, explain=explain)
    assert max(cell_len(line) for line in text.split("\n")) <= width


def test_the_answer_comes_first(made: dict[str, Incident]) -> None:
    lines = render(made["crash"], "console", width=80).split("\n")
    assert "CRASHED" in lines[0]
    assert "arch_mismatch" in lines[0]
    assert "established" in lines[0]
    assert lines[1] == "A trtllm-gen MoE kernel for 10.x GPUs was chosen on a 12.x GPU"


def test_one_screen(made: dict[str, Incident]) -> None:
    """All of the answer of a busy crash on one tall terminal, 256 ranks too."""
    assert render(made["crash"], "console", width=100).count("\n") <= 60
    assert render(made["256 ranks"], "console", width=80).count("\n") <= 80


def test_everything_that_matters_is_there(made: dict[str, Incident]) -> None:
    text = " ".join(render(made["crash"], "console", width=100).split())
    for said in (
        "Capture cuda graph failed",
        "RuntimeError: Error occurred when running GEMM!",
        "TP1 first; TP0, TP2, TP3 alike (all 4 ranks)",
        "draft model",
        "during graph capture",
        "deepseek_v4.py:1546 mlp",
        "server.log:88-100",
        "engine: nextn → mlp ▸ kernel library: routed MoE",
        "after mlp: launches are asynchronous",
        "= TP0 ✗ TP1 = TP2 = TP3",
        "4 × NVIDIA RTX PRO 6000 Blackwell (sm_120)",
        "asked for moe_runner_backend = triton for the draft model; flashinfer_trtllm_routed ran",
        "1. drop --speculative-algorithm (draft model) [supported]",
        "$ run --tp 4",
        "established: the log proves it",
        "config_error: an override is skipped",
        "an earlier retry",
        "core.123: a core dump is no log",
    ):
        assert said in text, said


def test_a_hang_says_who_waited_and_who_was_missing(made: dict[str, Incident]) -> None:
    text = " ".join(render(made["hang"], "console", width=100).split())
    for said in (
        "HUNG",
        "TP1 is to blame",
        "ALLREDUCE, number 6",
        "Waiting TP0, TP2",
        "Missing TP1",
        "ALLGATHER",
        "XID 79",
    ):
        assert said in text, said


def test_no_colour_only_meaning(incident: Incident) -> None:
    """The colours can be taken away without losing a word."""
    plain = render(incident, "console", width=100)
    coloured = render(incident, "console", width=100, color=True)
    assert "\x1b" not in plain
    assert "\x1b[" in coloured
    assert [line.rstrip() for line in ANSI.sub("", coloured).split("\n")] == plain.split("\n")


def test_log_text_is_never_interpreted(made: dict[str, Incident]) -> None:
    for color in (False, True):
        text = render(made["hostile"], "console", width=110, explain=True, color=color)
        rest = ANSI.sub("", text)
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202e\ud800-\udfff]", rest)
        flat = "".join(rest.split())
        assert "[boldred]markup[/]" in flat
        assert "␛]52;c;" in flat
        assert "<U+202E>gnp.exe" in flat


def test_brief_is_one_line(incident: Incident) -> None:
    text = render(incident, "console", brief=True, width=60)
    assert text.count("\n") == 1
    assert incident.status.value in text
    assert incident.verdict.category.value in text


def test_explain_adds_the_rest(made: dict[str, Incident]) -> None:
    short = render(made["crash"], "console", width=110)
    whole = " ".join(render(made["crash"], "console", width=110, explain=True).split())
    assert "--explain adds: timeline, failures, stacks, settings, software, coverage" in short
    for said in (
        "the parent reacts to its children",
        "run_scheduler_process",
        "Note, parse a torn line",
        "quantization None asked",
    ):
        assert said in whole, said


def test_brief_says_nothing_found_where_the_report_does(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("a line\nanother line\n")
    assert render(analyze([path]), "console", brief=True) == "nothing found (hypothesis): No failure was found\n"
    path.write_text("".join(f"step {n}/100 loss={5 - n / 50:.3f} lr=1e-4 tokens/s=5000\n" for n in range(1, 60)))
    assert render(analyze([path]), "console", brief=True).startswith("healthy none (")


@pytest.mark.parametrize("culprit", [3, 901])
def test_of_very_many_ranks_the_one_that_failed_first_is_shown(culprit: int) -> None:
    ranks = tuple(
        Cell(f"rank {n}", "initiating", "✗", n) if n == culprit else Cell(f"rank {n}", *(("ok", "✓") if n % 2 else ("cascade", "↳")), n)
        for n in range(1000)
    )
    strip = Strip(ranks, (("✗", "failed first", f"rank {culprit}"), ("↳", "followed", "…"), ("✓", "did not fail", "…")))
    text = plain(section_lines(Section("ranks", "Ranks", (strip,)), 100, whole=False))
    row = next(line for line in text.splitlines() if line.split()[0] == str(culprit // 32 * 32))
    assert row.replace(" ", "")[len(str(culprit // 32 * 32)) + culprit % 32] == "✗"
    assert "more ranks" in text
    assert len(text.splitlines()) < 24


def test_of_very_many_lanes_the_blamed_rank_keeps_its_own() -> None:
    lanes = tuple(Lane(f"rank {n}", "initiating" if n == 901 else "ok", "✗" if n == 901 else "✓", 0.0, 9.0, ()) for n in range(1000))
    text = plain(section_lines(Section("timeline", "Timeline", (Timeline(lanes, 0.0, 9.0, ((0.0, "0"), (9.0, "9"))),)), 100, whole=False))
    assert "rank 901" in text and "rank 62 " in text and "rank 63 " not in text
    assert "936 more lanes" in text
