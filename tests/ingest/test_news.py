"""Marked lines of an input that is still open."""

from __future__ import annotations

import os
import threading

import pytest

from forensics.ingest import Anchor, ReadOptions
from forensics.ingest.news import News
from forensics.ingest.wants import Wants
from forensics.model.source import LogLine

WANTS = Wants([Anchor(b"BOOM", 1, 1)])


def _told(blocks: list[bytes]) -> list[LogLine]:
    told: list[LogLine] = []
    news = News(WANTS, told.extend)
    line = 1
    for block in blocks:
        news.saw(bytearray(block), 0, len(block), line, WANTS.engine.scan(block))
        line += block.count(b"\n")
    return told


def test_marked_lines_are_told_with_their_numbers_and_ranks() -> None:
    told = _told([b"calm\n[rank3]: BOOM one\ncalm\n", b"calm\n[rank1]: BOOM two\n"])
    assert [(line.number, line.text, line.rank.label if line.rank else "") for line in told] == [
        (2, "BOOM one", "rank 3"),
        (5, "BOOM two", "rank 1"),
    ]


def test_what_differs_in_numbers_only_is_told_once() -> None:
    told = _told([b"".join(b"step %d: BOOM\n" % n for n in range(500)) + b"step 7: BOOM again\n"])
    assert [line.text for line in told] == ["step 0: BOOM", "step 7: BOOM again"]


def test_each_rank_is_told() -> None:
    told = _told([b"".join(b"[rank%d]: BOOM at %d\n" % (n % 8, n) for n in range(80))])
    assert [line.rank.number for line in told if line.rank] == list(range(8))


def test_a_flood_of_different_lines_is_bounded() -> None:
    names = ["".join("abcdefghij"[int(digit)] for digit in str(n)) for n in range(10_000)]
    assert len(_told([f"{name} BOOM\n".encode() for name in names])) == 4_000
    assert len(_told(["".join(f"{name} BOOM\n" for name in names).encode()])) == 64


def test_a_beginning_is_looked_at_once_and_never_beyond_its_last_line_feed() -> None:
    told: list[LogLine] = []
    news = News(WANTS, told.extend)
    buf = bytearray(b"xx\nBOOM a\nBOOM b without an end")
    news.looks(buf, 3, len(buf))
    news.looks(buf, 3, len(buf))
    assert [(line.number, line.text) for line in told] == [(1, "BOOM a")]
    buf += b"\n"
    news.looks(buf, 3, len(buf))
    assert [(line.number, line.text) for line in told] == [(1, "BOOM a"), (2, "BOOM b without an end")]


@pytest.mark.parametrize("calm", [60, 1])
def test_standard_input_is_told_of_before_it_ends(calm: int) -> None:
    """The writer waits for the news before it closes the pipe: news that came at the end only would never come."""
    from forensics.ingest.files import take_one
    from forensics.ingest.inputs import Opened
    from forensics.ingest.shares import Shares
    from forensics.ingest.streams import Plain

    reader, writer = os.pipe()
    heard = threading.Event()
    told: list[LogLine] = []

    def hear(lines: list[LogLine]) -> None:
        told.extend(lines)
        heard.set()

    def write() -> None:
        os.write(writer, b"calm line\n" * calm)
        os.write(writer, b"[rank2]: BOOM\n")
        heard.wait(20)
        os.close(writer)

    thread = threading.Thread(target=write)
    thread.start()
    options = ReadOptions(on_news=hear)
    with os.fdopen(reader, "rb", buffering=0) as raw:
        taken = take_one(Opened("-", Plain(raw, 1 << 30)), WANTS, options, Shares(options, 1))
    thread.join()
    assert [(line.number, line.text) for line in told] == [(calm + 1, "BOOM")]
    assert taken.lines == calm + 1 and taken.kept[-1] == (calm + 1, b"[rank2]: BOOM")
