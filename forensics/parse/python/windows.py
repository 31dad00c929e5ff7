"""Where in a lane tracebacks are woven, and the blocks they become. In: a `Lane`'s lines; out: index ranges, `Block`s. Sample:

    Traceback (most recent call last):            <- a header before the first one has its exception line, and then
    Traceback (most recent call last):               lines that cannot follow one another: a woven window
      File "/srv/a/train.py", line 7, in main
        load_shard(path)

A traceback that was merely cut off before the next one begins is no window: what follows it reads well without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from forensics.ingest.compiled import pattern_of
from forensics.parse.python.blocks import Block, heading_of, starts_anew
from forensics.parse.python.lanes import Item
from forensics.parse.python.shapes import Kind, is_native_frame, looks_raised

if TYPE_CHECKING:
    from forensics.parse.python.weave import Strand, Woven

#: lines a window may have, and as many more for each header in it
LONGEST, EACH = 1500, 100
#: how often a lane's lines are read in search of windows, at most
RESCANS = 8
#: windows of one lane that are taken apart; what is woven in further ones is only counted
MOST = 25

_GOES_ON = pattern_of(r"^\s*(?:\.\.\.<\d|[)\]}])")


def windows(items: Sequence[Item]) -> Iterator[tuple[int, int]]:
    """Index ranges [first, end) of woven tracebacks."""
    if sum(item.kind is Kind.HEAD for item in items) < 2:
        return
    at = scanned = 0
    while at < len(items) and scanned < RESCANS * len(items) + LONGEST:
        if items[at].kind is not Kind.HEAD:
            at += 1
            continue
        end, woven, odd = _scan(items, at)
        scanned += end - at
        if woven:
            yield at, end
        # where nothing was odd, starting at a later header finds nothing odd either
        at = at + 1 if odd and not woven else end


def _scan(items: Sequence[Item], first: int) -> tuple[int, bool, bool]:
    """Reads on from a header until every header has its exception line. (end, whether they are woven, whether any line
    stood where it cannot)"""
    heads = ends = odd = 0
    before = ""
    at = first
    for at in range(first, len(items)):
        if at - first >= LONGEST + EACH * heads:
            return at, heads > 1 and ends > 0 and odd > 0, odd > 0
        item = items[at]
        kind, text = item.kind, item.line.text
        if kind is Kind.HEAD:
            heads += 1
            before = "H"
        elif kind is Kind.FRAME:
            odd += before == "E"
            before = "F"
        elif kind is Kind.CODE and before == "H" and is_native_frame(text):
            continue
        elif kind is Kind.CODE and before != "E":
            odd += before == "H" or (before == "C" and not _GOES_ON.match(text))
            before = "C"
        elif kind is Kind.CARET and before != "E":
            odd += before in ("H", "F")
            before = "^" if before == "C" else before
        elif kind is Kind.RAISED and looks_raised(text):
            if before == "E" and items[at - 1].line.text.rstrip().endswith(":"):
                continue  # what a backend raised, told as the message of the exception above
            odd += before in ("H", "E")
            ends += 1
            before = "E"
            if ends >= heads:
                break
    return at + 1, heads > 1 and ends > 0 and odd > 0, odd > 0


def one_by_one(items: Sequence[Item]) -> bool:
    """True where tracebacks stand one behind the other after all, of which one was cut off and had a stray line behind it: below no
    header does a frame follow where none can, and at least one has its exception line."""
    broken, ended, before = False, 0, ""
    for item in items:
        if item.kind is Kind.HEAD:
            broken, before = False, "H"
        elif item.kind is Kind.FRAME:
            if broken or before == "E":
                return False
            before = "F"
        elif item.kind is Kind.CODE and before != "E":
            broken = broken or (before in ("H", "C") and not _GOES_ON.match(item.line.text))
            before = "C"
        elif item.kind is Kind.RAISED and looks_raised(item.line.text):
            if broken or before not in ("F", "C"):
                return False
            ended, before = ended + 1, "E"
    return ended > 0


def woven_blocks(items: Sequence[Item], first: int, end: int) -> list[Block]:
    """The blocks of one window; each knows how many of its lines could not be told apart."""
    from forensics.parse.python.colors import Line
    from forensics.parse.python.weave import untangle

    woven = untangle([Line(n, items[n].kind, items[n].line.text) for n in range(first, end)], _known(items, first, end))
    headers = {items[n].line.raw for n in range(first, end) if items[n].kind is Kind.HEAD}
    return [_block(items, strand, woven, len(headers) == 1) for strand in woven.strands if strand.lines]


def _block(items: Sequence[Item], strand: Strand, woven: Woven, same_headers: bool) -> Block:
    lines = list(strand.lines)
    headed = strand.headed and (strand.sure_header or same_headers or bool(woven.alike))
    if strand.headed and not headed:
        lines = lines[1:]
    block = Block([items[n] for n in lines], headed=headed, raised=strand.raised, alike=woven.alike)
    block.ambiguous = len(lines) if woven.alike else woven.ambiguous
    if headed:
        block.heading = heading_of(items[lines[0]].line.text)
    if strand.raised:
        block.items += _message(items, lines[-1])
    return block


def _message(items: Sequence[Item], at: int) -> list[Item]:
    """Lines right below an exception line that only its message can be."""
    found: list[Item] = []
    for item in items[at + 1 : at + 40]:
        follows = item.index == items[at].index + 1 + len(found)
        if item.kind is not Kind.TEXT or not follows or starts_anew(item.line.text):
            break
        found.append(item)
    return found


def _known(items: Sequence[Item], first: int, end: int) -> dict[str, str]:
    """Source lines by frame line, from the lane's lines outside of the window."""
    known: dict[str, str] = {}
    for n in (*range(max(0, first - 2000), first), *range(end, min(end + 2000, len(items) - 1))):
        if items[n].kind is Kind.FRAME and items[n + 1].kind is Kind.CODE:
            known.setdefault(items[n].line.text, items[n + 1].line.text)
    return known
