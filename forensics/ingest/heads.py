"""What is searched instead of a literal: as much of it as ends where prose seldom does. In: literals; out: heads. Sample:

    searched_for([b"CUDA error: ", b"CUDA error: out of memory", b"Xid ("])
    -> {b"CUDA error: ": [b"CUDA error: ", b"CUDA error: out of memory"], b"Xid (P": [b"Xid ("], b"Xid (0": [b"Xid ("]}

hyperscan looks for the last eight bytes of a literal and compares the rest where they are found (Vectorscan 5.4.12, src/hwlm:
HWLM_LITERAL_MAX_LEN), so one that ends in " process" or " failed" is looked at again and again in a log that shows what users wrote.
`signatures/search/heads.toml` tells of each shipped literal which part of it, together with those of all others, is met least
(`benchmarks/heads.py` makes it); one of a user's own is cut by the rareness of its letters. What else a line must hold is compared
later, on the few lines that are kept (`marks.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from forensics import data

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


def searched_for(literals: Iterable[bytes], alone: Collection[bytes] = ()) -> dict[bytes, list[bytes]]:
    """What is searched -> the literals it stands for; each of them holds it, or is held by it where it is too short for a search.
    alone: literals, a user's, that matter wherever they stand."""
    forms, chosen = forms_of(), chosen_heads()
    found: dict[bytes, list[bytes]] = {}
    for literal in literals:
        for head in (literal not in alone and forms.get(literal)) or (chosen.get(literal) or head_of(literal),):
            found.setdefault(head, []).append(literal)
    return found


def forms_of() -> dict[bytes, list[bytes]]:
    """Of a literal that is too short the longer ones, of which one stands wherever it matters."""
    found = {}
    for row in data.table("search/forms")["form"]:
        literal = row["literal"]
        around = [f"{byte}{literal}" for byte in row.get("before", "")] + [f"{literal}{byte}" for byte in row.get("after", "")]
        found[literal.encode()] = [one.encode() for one in (*around, *row.get("instead", ()))]
    return found


def chosen_heads() -> dict[bytes, bytes]:
    """Of the shipped literals as many of their first bytes, or a part that another one has, too."""
    found = {}
    for literal, part in data.table("search/heads")["heads"].items():
        whole = literal.encode()
        found[whole] = whole[:part] if isinstance(part, int) else part.encode()
    return found
