"""What of a literal is searched: as much of it as ends where prose seldom does. In: a literal; out: a head of it. Sample:

    head_of(b"no kernel image is available for execution") -> b"no kernel image is av"
    head_of(b"Watchdog caught collective operation timeout") -> b"Watchdog caught collectiv"
    head_of(b"CUDA error: ") -> b"CUDA error: "

hyperscan looks for the last eight bytes of a literal and compares the rest where they are found (Vectorscan 5.4.12, src/hwlm:
HWLM_LITERAL_MAX_LEN), so one that ends in " process" or " failed" is looked at again and again in a log that shows what users wrote.
What else a line with the head must hold is compared later, on the few lines that are kept (`marks.py`).
"""

from __future__ import annotations

#: less of a literal may stand in prose itself
SHORTEST = 12
#: more is never searched: of users' own literals hyperscan takes some 16,000 bytes and no more
LONGEST = 256
#: four last bytes decide; so rare is rare enough
_ENOUGH = 7


def _weights() -> bytes:
    """Of each byte how rare it is in English prose."""
    found = bytearray([4]) * 256
    for weight, letters in enumerate((b" etaoinsrl", b"dcumhfpg", b"ybvkwxjqz")):
        for letter in letters:
            found[letter] = weight
    return bytes(found)


_WEIGHTS = _weights()


def head_of(literal: bytes) -> bytes:
    """The longest of the heads that end most rarely, SHORTEST to LONGEST bytes; all of a shorter literal."""
    literal = literal[:LONGEST]
    weights, best, size = literal.translate(_WEIGHTS), -1, len(literal)
    for end in range(len(literal), SHORTEST - 1, -1):
        rarity = weights[end - 1] + weights[end - 2] + weights[end - 3] + weights[end - 4]
        if rarity >= _ENOUGH:
            return literal[:end]
        if rarity > best:
            best, size = rarity, end
    return literal[:size]
