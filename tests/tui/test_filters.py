"""What a typed filter lets through."""

from __future__ import annotations

import pytest

from forensics.errors import UsageError
from forensics.tui.filters import parse


def test_words_and_regex_must_all_hold() -> None:
    it = parse(r"cuda /out of mem\w+/")
    assert it.passes("CUDA out of memory")
    assert not it.passes("CUDA error")
    assert not it.passes("out of memory on the host")


def test_a_rank_is_a_whole_word() -> None:
    it = parse("rank:TP1")
    assert it.passes("[2026-11-29 20:15:20 TP1] x")
    assert not it.passes("[2026-11-29 20:15:20 TP12] x")
    assert it.passes("anything", ranks=("TP1", "TP2"))
    assert not it.passes("TP1 in the text only", ranks=("TP3",))


def test_ranks_with_a_space_are_found_both_ways() -> None:
    assert parse('"rank:rank 3"').passes("[rank3]: x")
    assert parse("rank:rank3").passes("x", ranks=("rank 3",))


def test_roles_and_levels() -> None:
    assert parse("role:cascade").passes("x", role="cascade")
    assert not parse("role:cascade").passes("x", role="initiating")
    assert parse("severity:error").passes("ERROR 11-29 x")
    assert not parse("level:error").passes("INFO 11-29 x")


@pytest.mark.parametrize("typed", ["/(/", "role:nobody", "level:loud"])
def test_what_cannot_be_read_is_said(typed: str) -> None:
    with pytest.raises(UsageError):
        parse(typed)


def test_an_empty_filter_is_none() -> None:
    assert not parse("  ")
    assert parse("x")
