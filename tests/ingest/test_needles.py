"""A pattern is never kept from a text that it matches."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.data import table
from forensics.ingest.needles import needles_of
from forensics.ingest.pattern import Pattern


@pytest.mark.parametrize(
    ("pattern", "needles"),
    [
        (r"(?:CUDA|HIP) out of memory\. Tried", [" out of memory. tried"]),
        (r"no space left|disk (?:full|quota)", ["disk ", "no space left"]),
        (r"\d+", None),
        (r"a?bc(?:def)+", ["def"]),
        (r"(?:abc)?", None),
        (r"(?:abc|x)", None),
        (r"^(?:MemoryError)$", ["memoryerror"]),
        (r"(?=abcdef)x", None),
        (r"abc[de]fghi", ["fghi"]),
    ],
)
def test_needles(pattern: str, needles: list[str] | None) -> None:
    assert needles_of(pattern) == needles


WORDS = st.lists(st.sampled_from(["abc", "ABC", "defg", "x", " ", "(?:", "|", ")", "?", "+", "*", "[ab]", ".", "hij"]), max_size=8)


@given(WORDS, st.text(alphabet="abcdefghijx ABC", max_size=30))
def test_what_a_pattern_matches_holds_a_needle(parts: list[str], text: str) -> None:
    pattern = "".join(parts)
    try:
        found = re.search(pattern, text, re.IGNORECASE)
        needles = needles_of(pattern, re.IGNORECASE)
    except re.error:
        return
    if found is not None and needles is not None:
        assert any(needle in text.lower() for needle in needles)
    gated = Pattern(pattern, re.IGNORECASE, needles)
    assert (gated.search(text) is None) == (found is None)


@pytest.mark.parametrize("name", ["categories", "consequences"])
def test_most_rows_can_be_gated(name: str) -> None:
    rows = next(iter(table(f"verdict/{name}").values()))
    messages = [row["message"] for row in rows if row.get("message")]
    assert sum(needles_of(one) is not None for one in messages) > len(messages) / 2
