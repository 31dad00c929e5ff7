"""`forensics signatures …`: the tools for readers and writers of signatures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forensics.cli.main import main


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["signatures", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_list_filters_and_gives_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "list", "--category", "arch_mismatch", "--domain", "flashinfer", "--format", "json")
    rows = json.loads(out)
    assert code == 0
    assert {row["category"] for row in rows} == {"arch_mismatch"}
    assert "flashinfer.trtllm-gemm-cubin-wrong-gpu" in {row["id"] for row in rows}


def test_show_is_a_page_with_fixes_examples_and_sources(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "show", "vllm.bfloat16-needs-ampere")
    assert code == 0
    for part in ("## What to do", "`--dtype half`", "## How it is recognised", "## Near misses", "## Sources"):
        assert part in out


def test_an_unknown_id_is_a_usage_error_with_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "show", "cuda.illegal-memory-acces")
    assert code == 2
    assert "did you mean cuda.illegal-memory-access" in err


def test_check_says_every_problem_and_ends_with_2(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text('id = "a.b"\ntitle = "t"\nrole = "root"\ncategory = "nonsense"\nwhy = "w"\n\n[match]\nliterals = ["short"]\n')
    code, out, err = run(capsys, "check", str(path))
    assert code == 2
    assert f"{path}:4: category: 'nonsense' is none of" in out
    assert f"{path}:7: match: one literal" in out
    assert "2 problem(s)" in err


def test_new_gives_a_file_of_which_check_says_what_is_left_to_write(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "new.toml"
    assert run(capsys, "new", "my.failure", "--example", 'the "flux" capacitor is full', "-o", str(path))[0] == 0
    code, out, _ = run(capsys, "check", str(path))
    assert code == 2 and f"{path}:2: my.failure: title: still what" in out
    assert all(line.endswith("put there") for line in out.splitlines()), out
    path.write_text(path.read_text().replace("TODO", "a TODO in a sentence"))
    code, out, _ = run(capsys, "check", str(path))
    assert code == 0, out


def test_new_refuses_a_bad_id(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "new", "My Failure")[0] == 2


def test_explain_line_shows_where_it_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    line = "Error occurred when running GEMM! (Kernel: bmm_E2m1_E2m1E2m1_Fp32_t128x8x512_sm100f)"
    code, out, _ = run(capsys, "explain-line", "flashinfer.trtllm-gemm-cubin-wrong-gpu", line, "--gpu", "sm_120")
    assert code == 0
    assert out.rstrip().endswith("\nmatches")
    _, out, _ = run(capsys, "explain-line", "flashinfer.trtllm-gemm-cubin-wrong-gpu", line, "--gpu", "sm_100")
    assert "NO   when.cannot_run" in out
    assert out.rstrip().endswith("does not match")


def test_docs_writes_a_page_a_signature_and_an_index(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = run(capsys, "docs", "-o", str(tmp_path / "pages"))
    pages = {path.name for path in (tmp_path / "pages").iterdir()}
    assert code == 0
    assert f"{len(pages) - 1} pages" in out
    assert {"index.md", "cuda.illegal-memory-access.md"} <= pages
