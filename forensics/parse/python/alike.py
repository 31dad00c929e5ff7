"""Woven tracebacks that all say the same words. In: the lines of a window; out: that one stack, or None. Sample:

Traceback (most recent call last):          two ranks run the same code and fail alike: each line stands there twice,
Traceback (most recent call last):          nobody can say which rank wrote which, and nobody needs to: the stack is
  File "/srv/a.py", line 7, in main         the one that two copies of give these lines in this order
  File "/srv/a.py", line 7, in main
    step(batch)
…
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from heapq import heappop, heappush

from forensics.parse.python.colors import Line
from forensics.parse.python.reach import STRANGE, reach
from forensics.parse.python.shapes import Kind, frame_function

#: ways kept while the stack is searched; where more are possible nothing is said
MOST_WAYS = 400

#: a stack that runs through the same lines again must have so many different frames: few lines can be ordered in two ways
LEAST_FRAMES = 8

#: more lines take seconds
MOST_LINES = 60_000

#: (the stack as far as known, how many copies stand behind its first line, its second, …; the first number: before all of it)
_Way = tuple[tuple[str, ...], tuple[int, ...]]


def copies(lines: Sequence[Line]) -> int:
    """How many tracebacks the window holds if all of them are alike, 0 where they cannot be."""
    heads = sum(line.kind is Kind.HEAD for line in lines)
    ends = [line.text for line in lines if line.kind is Kind.RAISED]
    counts = Counter(line.text for line in lines if line.kind is not Kind.HEAD)
    alike = heads > 1 and len(ends) == heads and len(set(ends)) == 1 and not any(n % heads for n in counts.values())
    return heads if alike else 0


def one_stack(lines: Sequence[Line]) -> list[list[int]] | None:
    """The lines (Line.at) of each copy, headers first, where just one stack explains the window. Copies are told apart only by
    their order, which is arbitrary."""
    count = copies(lines)
    if not count or len(lines) > MOST_LINES:
        return None
    kinds = {line.text: line.kind for line in lines}
    different = sum(kind is Kind.FRAME for kind in kinds.values())
    counts = Counter(line.text for line in lines if line.kind is not Kind.HEAD)
    if different < LEAST_FRAMES and any(n > count for n in counts.values()):
        return None
    body = [line for line in lines if line.kind is not Kind.HEAD]
    left = {text: n // count for text, n in counts.items()}
    # a call may go through a decorator that the stack does not show: the order of the lines may leave one stack all the same
    stacks = _stacks(body, count, left, kinds, most_strange=STRANGE - 1) or _stacks(body, count, left, kinds, most_strange=STRANGE)
    return _shared_out(lines, next(iter(stacks)), count) if len(stacks) == 1 else None


def _stacks(body: Sequence[Line], count: int, left: dict[str, int], kinds: dict[str, Kind], most_strange: int) -> set[tuple[str, ...]]:
    """The stacks of which `count` copies may give these lines; none where too many ways are open. most_strange: the highest cost of a
    step from a source line to the next frame (reach.py)."""
    length = len(body) // count
    ways: set[_Way] = {((), (count,))}
    for line in body:
        ways = {after for way in ways for after in _after(way, line, left, kinds, most_strange)}
        if not ways or len(ways) > MOST_WAYS:
            return set()
    return {stack for stack, places in ways if len(stack) == length and places[-1] == count}


def _after(way: _Way, line: Line, left: dict[str, int], kinds: dict[str, Kind], most_strange: int) -> list[_Way]:
    """What the way becomes when some copy goes on with the line: one that lags behind, or one that shows what comes next."""
    stack, places = way
    found: list[_Way] = []
    for place, said in enumerate(stack):
        if said == line.text and places[place]:
            found.append((stack, (*places[:place], places[place] - 1, places[place + 1] + 1, *places[place + 2 :])))
    if places[-1] and stack.count(line.text) < left[line.text] and _follows(stack, line, kinds, most_strange):
        found.append(((*stack, line.text), (*places[:-1], places[-1] - 1, 1)))
    return found


def _follows(stack: tuple[str, ...], line: Line, kinds: dict[str, Kind], most_strange: int) -> bool:
    """True where a stack that ends like this may go on with the line."""
    last = kinds[stack[-1]] if stack else Kind.HEAD
    if line.kind is Kind.FRAME:
        return last is Kind.HEAD or (last is Kind.CODE and reach(stack[-1], frame_function(line.text)) <= most_strange)
    if line.kind is Kind.CODE:
        known = next((stack[n + 1] for n in range(len(stack) - 1) if stack[n] == stack[-1]), None)
        return last is Kind.FRAME and known in (None, line.text)
    return last is Kind.CODE


def _shared_out(lines: Sequence[Line], stack: tuple[str, ...], count: int) -> list[list[int]] | None:
    """Gives the lines to the copies: of those that could take a line the one that is furthest takes it."""
    strands = [[line.at] for line in lines if line.kind is Kind.HEAD]
    waiting: list[list[int]] = [list(range(count)), *([] for _ in stack)]  # by how much of the stack they have; heaps
    where: dict[str, list[int]] = {}
    for place, said in enumerate(stack):
        where.setdefault(said, []).append(place)
    for line in lines:
        if line.kind is Kind.HEAD:
            continue
        furthest = max((place for place in where.get(line.text, ()) if waiting[place]), default=None)
        if furthest is None:
            return None
        taker = heappop(waiting[furthest])
        strands[taker].append(line.at)
        heappush(waiting[furthest + 1], taker)
    return strands
