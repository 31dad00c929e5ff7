"""Text that cannot hurt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.report.text import block, clock_time, counted, duration, listed, one_line, places, size, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[31mred", "␛[31mred"),
        ("a\tb", "a   b"),
        ("a\r\nb", "a\nb"),
        ("\u202ex", "<U+202E>x"),
        ("\u200b", "<U+200B>"),
        ("\ufeffx", "<U+FEFF>x"),
        ("\udc80", "<U+DC80>"),
        ("\x7f\x9b", "␡<U+009B>"),
        ("\u3164", "<U+3164>"),
        ("\U000e0041", "<U+E0041>"),
        ("a\u00a0b", "a b"),
        ("Größe → 中文 😀", "Größe → 中文 😀"),
    ],
)
def test_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_nothing_invisible_is_left(text: str) -> None:
    assert visible(text).replace("\n", "").isprintable()


def test_one_line() -> None:
    assert one_line("a\n  b\tc") == "a b c"
    assert one_line("x" * 50, 10) == "x" * 9 + "…"
    assert one_line("ChildFailedError:\n==========\ntrain.py FAILED\n----------") == "ChildFailedError: train.py FAILED"


def test_block_says_what_was_cut() -> None:
    rows = block("\n".join(str(n) for n in range(100)), lines=10)
    assert len(rows) == 10
    assert rows[0] == "0"
    assert rows[-1] == "99"
    assert "… 91 lines …" in rows


def test_small_words() -> None:
    assert places(["a.log:1", "a.log:7-9", "b.log:2", "a.log:1"]) == "a.log:1, 7-9, b.log:2"
    assert places(["a:1", "a:2", "a:3"], 2) == "a:1, 2 and 1 more"
    assert listed(["a", "b", "c"], 2) == "a, b and 1 more"
    assert counted(1, "rank") == "1 rank"
    assert counted(1024, "rank") == "1,024 ranks"
    assert size(1536) == "1.5 KiB"
    assert size(3) == "3 B"
    assert duration(0.25) == "0.25 s"
    assert duration(754) == "12 min 34 s"
    assert duration(7300) == "2 h 1 min"


def test_times_as_the_log_writes_them() -> None:
    assert clock_time(1_795_983_320.25) == "2026-11-29 20:15:20.250"
    assert clock_time(72_920.0, "time_of_day") == "20:15:20"
    assert clock_time(12.5, "monotonic") == "12.500 s"
