"""Sizes and shapes that no log should have: each ends soon, in bounded memory, and what was cut is said."""

from __future__ import annotations

import resource
from collections.abc import Callable

import pytest

from forensics import analyze
from forensics.ingest import ReadOptions

from . import logs

CRASH = logs.crash("CUDA error: an illegal memory access was encountered").encode()

BOMBS: dict[str, Callable[[], bytes]] = {
    "frames": lambda: (b"Traceback (most recent call last):\n" + b'  File "' + b"a" * 50_000 + b'", line 1, in ' + b"(" * 50_000 + b"\n") * 5,
    "words": lambda: b"CUDA error: " + b"a b " * 50_000,
    "ranks": lambda: b"[rank" * 50_000,
    "brackets": lambda: b"(" * 100_000 + b"\n" + b"<" * 100_000 + b"\n" + b"std::vector<" * 20_000,
    "kernel": lambda: b"bmm_" + b"x_" * 50_000 + b"sm100f",
    "mangled": lambda: b"_ZN" + b"1a" * 50_000 + b"E\n_Z" + b"PK" * 50_000,
    "arguments": lambda: b"ServerArgs(" + b"a='" * 30_000 + b"\n" + b"--a-b=" * 50_000,
    "blanks": lambda: b"RuntimeError:" + b" " * 200_000 + b"x\n" + b"\t" * 200_000,
    "returns": lambda: b"\r" * 200_000 + b"x\r" * 50_000,
    "escapes": lambda: b"\x1b[" * 100_000 + b"\x1b]" * 50_000,
    "colons": lambda: b"::" * 100_000 + b"\n" + b"1:" * 100_000,
    "chains": lambda: b"\n\nDuring handling of the above exception, another exception occurred:\n\n".join(
        [b'Traceback (most recent call last):\n  File "a.py", line 1, in f\nRuntimeError: x'] * 2_000
    ),
    "groups": lambda: b"".join(b" " * (2 * n) + b"+ Exception Group Traceback (most recent call last):\n" for n in range(300)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_text_made_to_slow_a_pattern_down(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes well below a second; a stage is stopped after ten of processor time, and the report would say so."""
    monkeypatch.setattr("forensics.pipeline.STAGE_SECONDS", 10.0)
    incident = analyze([BOMBS[name]() + b"\n" + CRASH])
    assert not [note for note in incident.coverage.notes if "took more than" in note.text or "gave up" in note.text]
    assert incident.failures


def test_a_line_of_many_megabytes() -> None:
    """What stands behind it is read: the crash is found, the cut is said."""
    long = b"x" * 6_000_000 + b" CUDA error " + b"y" * 6_000_000
    incident = analyze([b"first\n" + long + b"\n" + CRASH])
    assert incident.verdict.category.value == "illegal_memory_access"
    assert incident.coverage.lines == 8
    assert any("cut" in note.text for note in incident.coverage.notes)


@pytest.mark.parametrize("line", [b"", b"a"])
def test_millions_of_tiny_lines(line: bytes) -> None:
    incident = analyze([(line + b"\n") * 2_000_000 + CRASH])
    assert incident.verdict.category.value == "illegal_memory_access"
    assert incident.coverage.lines == 2_000_006


def test_very_many_ranks() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    text = b"".join(b"[rank%d]: RuntimeError: CUDA error: an illegal memory access was encountered\n" % n for n in range(100_000))
    incident = analyze([text])
    assert incident.verdict.category.value == "illegal_memory_access"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600_000
    assert any("counted, not kept" in note.text for note in incident.coverage.notes)


def test_the_budget_of_regions_is_said() -> None:
    """More marked lines than the budget holds: the report says that the middle is missing."""
    text = b"".join(
        b"%s%d %s\n" % (bytes([97 + n % 26]) * (n % 40), n, b"RuntimeError: CUDA error: " + bytes([97 + n % 23]) * (n % 31)) * 3
        for n in range(3_000)
    )
    incident = analyze([text], read_options=ReadOptions(whole_below=0, budget=16 * 1024))
    assert any("budget" in note.text or "counted, not kept" in note.text for note in incident.coverage.notes)


@pytest.mark.parametrize(
    "data",
    [
        b"\0" * 3_000_000 + b"\n" + CRASH,
        CRASH.replace(b" ", b"\0"),
        CRASH + b"\xed\xa0\x80\xed\xbf\xbf\n" + CRASH,
        CRASH + "é€😀".encode()[:-2],
        CRASH + CRASH.decode().encode("utf-16") + "é".encode("latin-1") * 30 + b"\n" + CRASH,
        b"\xff\xfe" + CRASH.decode().encode("utf-16-le")[:-1],
        b"\xff\xfe" + CRASH.decode().encode("utf-16-le")[:301] + CRASH.decode().encode("utf-16-le")[310:],
        CRASH.decode().encode("utf-32")[:-3],
        b"\xef\xbb\xbf" + CRASH,
    ],
    ids=["nuls", "nuls-for-blanks", "surrogates", "cut-letter", "mixed", "utf16-cut", "utf16-torn", "utf32-cut", "bom"],
)
def test_encodings_torn_and_mixed(data: bytes) -> None:
    incident = analyze([data])
    assert not [note for note in incident.coverage.notes if "of its own" in note.text or "gave up" in note.text]
    assert incident.failures or data.count(b"\0") in range(40, 80)
