"""Encodings, escapes, carriage returns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.ingest import Anchor, ReadOptions, read
from forensics.ingest.decode import guess_encoding, plain, text_of, visible


@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        ("\x1b[1;31mERROR\x1b[0m boom\r", ["ERROR boom"]),
        ("\x1b]0;a title\x07boom", ["boom"]),
        ("\x1b_bk;t=1795983320250\x07boom", ["boom"]),
        ("^[[36m(TaskRunner pid=1)^[[0m boom", ["(TaskRunner pid=1) boom"]),
        ("#033[1;36m(TaskRunner pid=1)#033[0;0m boom", ["(TaskRunner pid=1) boom"]),
        ("color #033 is dark blue, #033[x] too", ["color #033 is dark blue, #033[x] too"]),
        ("[36m(TaskRunner pid=1)[0m boom", ["(TaskRunner pid=1) boom"]),
        ("rate(x[1m]) and [0m] stay", ["rate(x[1m]) and [0m] stay"]),
        ("a\0b", ["ab"]),
        ("ValueError: x^M", ["ValueError: x"]),
        ("    ^^^^^M", ["    ^^^^"]),
        ("x = a ^M + b", ["x = a ^M + b"]),
        ("one\rtwo\rthree", ["one", "two", "three"]),
        (" 10%|#  | 1/9\r 20%|#  | 2/9\r 30%|#  | 3/9", [" 30%|#  | 3/9"]),
        (" 10%|#  | 1/9\rboom\r 30%|#  | 3/9", [" 10%|#  | 1/9", "boom", " 30%|#  | 3/9"]),
        ("50%|##| 3/6 [00:01<00:01, 1.2it/s]Traceback (most recent call last):",
         ["50%|##| 3/6 [00:01<00:01, 1.2it/s]", "Traceback (most recent call last):"]),
        ("50%|##| 3/6 [00:01<00:01, 1.2it/s] [rank2]: boom", ["50%|##| 3/6 [00:01<00:01, 1.2it/s]", " [rank2]: boom"]),
        ("50%|##| 3/6 [00:01<00:01, 1.2it/s] loss 3", ["50%|##| 3/6 [00:01<00:01, 1.2it/s] loss 3"]),
        ("", [""]),
    ],
)  # fmt: skip
def test_visible(raw: str, lines: list[str]) -> None:
    assert visible(raw) == lines


@pytest.mark.parametrize(
    ("encoding", "name"),
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8-sig"),
        ("utf-16", "utf-16-le"),
        ("utf-16-le", "utf-16-le"),
        ("utf-16-be", "utf-16-be"),
    ],
)
def test_encodings(encoding: str, name: str) -> None:
    text = "[rank3]: CUDA error: größer als erlaubt\nzweite Zeile\n" * 2000
    intake = read([text.encode(encoding)], [Anchor(b"CUDA error", 0, 0)], ReadOptions(whole_below=0, edge_lines=0))
    assert intake.sources[0].encoding == name and intake.sources[0].lines == 4000
    assert intake.lines[0].raw == "[rank3]: CUDA error: größer als erlaubt"
    assert intake.lines[0].rank is not None and intake.lines[0].rank.number == 3


def test_latin1_and_damage() -> None:
    assert text_of("größer".encode("latin-1")) == "größer"
    assert text_of("größer".encode() + b"\xff!") == "größer\ufffd!"
    assert text_of(b"\xe2\x96") == "\ufffd"


def test_lines_end_at_line_feeds_only() -> None:
    intake = read(["a\x0bb\x0cc\x85d\u2028e\r\nf".encode()], [])
    assert [line.number for line in intake.lines] == [1, 2]


@given(st.binary(max_size=3000))
def test_any_bytes_are_read(data: bytes) -> None:
    guess_encoding(data)
    intake = read([b"plain first line\n" + data], [Anchor(b"CUDA error", 1, 1)], ReadOptions(whole_below=0))
    assert (
        intake.sources[0].lines
        == (b"plain first line\n" + data).count(b"\n") + (not data.endswith(b"\n") and bool(data))
        or intake.skipped
    )


@given(st.text(max_size=2000))
def test_plain_text_never_grows(text: str) -> None:
    assert len(plain(text)) <= len(text)


def test_a_wall_of_escapes_is_linear() -> None:
    assert visible("\x1b[31m" * 200_000 + "x") == ["x"]
    assert len(visible("\r".join(["x"] * 100_000))) <= 40
    assert visible("\x1b]" * 50_000)
