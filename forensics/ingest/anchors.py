"""Which literals make a line worth keeping, and how much around it. In: nothing; out: `Anchor` records. Sample:

Anchor(b"Traceback (most recent call last):", before=2, after=60, owner="python")
"""

from __future__ import annotations

from typing import NamedTuple


class Anchor(NamedTuple):
    """literal: bytes that must stand in a line (>= 8 where it can be); before, after: lines kept around it; owner: which
    parser, rule or collector wants it (several anchors may share a literal); alone: whoever wants it wants it wherever it stands,
    whatever is known of what stands around it where others do (`heads.py`)."""

    literal: bytes
    before: int = 0
    after: int = 0
    owner: str = ""
    alone: bool = False
