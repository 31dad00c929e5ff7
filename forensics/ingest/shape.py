"""What a text is like whatever its numbers are: of many alike one is looked at. In: a text; out: it with zeros for its digits. Sample:

    zeroed("rank_17.log") -> "rank_00.log"

What is found in a text stands, with zeros for its digits, in the other one, too; not the other way round.
"""

from __future__ import annotations

_ZEROS = bytes.maketrans(b"123456789", b"000000000")


def zeroed(text: str) -> str:
    """The text with zeros for its ASCII digits; of the same length."""
    # bytes are translated ten times as fast as text, and in UTF-8 digits are nothing but digits
    return text.encode("utf-8", "surrogatepass").translate(_ZEROS).decode("utf-8", "surrogatepass")
