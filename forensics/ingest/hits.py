"""What stands around a hit in its line. In: the block, the hits of the scan; out: whether it is quoted, what follows it. Sample:

    b"… asks: Traceback (most recent call last): what is that?"             is_quoted(…) -> True: deep in a line that goes on
    b"step 41 of 90 …it/s] Traceback (most recent call last):"              is_quoted(…) -> False: glued behind a progress bar
    b"… Receive: obj=GenerateReqInput(text='ValueError: x is what?', …)"    is_quoted(…) -> True: a user's words

A hit is the end of a head (`heads.py`); the literals that go on behind it are compared here.
"""

from __future__ import annotations

from forensics.ingest.asked import is_asked
from forensics.ingest.wants import Heads

#: a hit so deep in so long a line is a quotation; what is a block's head ends its line, or the line holds it all
LONG, _DEEP = 300, 160
#: a hit less deep, or in a shorter line, is never quoted: a logged request begins with its prefix and its name, and ends in its parameters
SHALLOW, SHORT = 48, 200
#: of the hits of one line so many are looked at, the last ones
_LOOKED_AT = 8
#: bytes that may follow a literal which ends its line
_SLACK = 2
#: bytes behind a literal that tell one copy of a line from another: a device, an error code
_FOLLOWING = 24


def is_quoted(
    sought: Heads, buf: bytearray, base: int, start: int, stop: int, hits: list[tuple[int, int]], index: int
) -> bool:
    """Whether the first hit of the line buf[start:stop] stands amid a text that the line only passes on. Asked only of hits deeper than
    SHALLOW in lines longer than SHORT.

    hits: (end offset counted from base, head), ascending; index: the line's first one.
    """
    depth = base + hits[index][0] - start
    if is_asked(buf, start, start + depth):
        return True
    return depth > _DEEP and stop - start > LONG and not ends_line(sought, buf, base, stop, hits, index)


def ends_line(sought: Heads, buf: bytearray, base: int, stop: int, hits: list[tuple[int, int]], index: int) -> bool:
    """Whether a literal of the line that ends at offset `stop` stands at its end; hits, index as for `is_quoted`."""
    last = index
    while last + 1 < len(hits) and base + hits[last + 1][0] <= stop:
        last += 1
    if last == index and stop - base - hits[index][0] > sought.longest_rest() + _SLACK:
        return False  # the commonest case by far: somebody's text that goes on and on
    # heads lie in the order of their ends, the literals they begin need not: a few are looked at
    for end, which in hits[max(index, last - _LOOKED_AT + 1) : last + 1]:
        gap = stop - base - end
        if gap <= _SLACK or any(0 <= gap - len(rest) <= _SLACK and buf.startswith(rest, base + end) for rest in sought.rests[which]):
            return True
    return False


def following(sought: Heads, buf: bytearray, position: int, which: int) -> bytes:
    """The first bytes behind a literal of which the head ends at `position`; behind the head where no literal goes on there."""
    end = position
    for rest in sought.rests[which]:
        if buf.startswith(rest, position):
            end += len(rest)
            break
    return bytes(buf[end : end + _FOLLOWING])
