"""All ways to share woven lines out among tracebacks, weighed. In: the lines of a window; out: per line what it may follow. Sample:

    tops: {F "…train.py, in main", F "…load.py, in main"}, next line `    load_shard(path)`: both may be meant; the line after
    it, `File …, in load_shard`, follows only that source line, and so on: what a way costs is known at the end of the window

After each line a state is the multiset of the open tracebacks' last lines ("tops"), so that ways which differ only in the past
fall together. See weave.py for what is made of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from forensics.model.record import draft, field
from forensics.parse.python.colors import Coloring, Line, Top
from forensics.parse.python.reach import raises, reach
from forensics.parse.python.shapes import Kind, frame_file, frame_function, raised

#: ways with more cost than the best one plus this are not believed
SLACK = 1
#: an open traceback that never got its exception line
UNFINISHED = 2
#: states kept after a line; more, and nothing is said
MOST_STATES = 800
#: states the first, narrow search keeps, and how many mixtures of equally cheap ones it tries
BEAM, MIXTURES = 60, 3
#: continuations weighed; more, and nothing is said
MOST_STEPS = 120_000

#: tops go by number in here (their place in `_Ways.tops`): states are compared and hashed very often
#: (the top that was written last where that is evidence, else NONE; all tops, sorted)
State = tuple[int, tuple[int, ...]]
START: Top = ("H", "", "")
NONE = -1


def weigh(lines: Sequence[Line], codes: Mapping[str, str], colors: Coloring | None) -> list[dict[Top, Top]] | None:
    """For each line the tops it may follow (and what the top becomes); None where no way exists or there are too many.

    A narrow search finds one good way first: what is worse than that one plus SLACK need not be followed."""
    best = 1 << 30
    for mixture in range(MIXTURES):
        rough = _ahead(lines, codes, colors, limit=None, mixture=mixture)
        if rough is None:
            continue
        if rough.complete:
            return _believed(rough)
        bound = min(cost + UNFINISHED * rough.unfinished(state) for state, cost in rough.layers[-1].items())
        if bound < best:
            best = bound
            whole = _ahead(lines, codes, colors, limit=bound + SLACK)
            if whole is not None:
                return _believed(whole)
    return None


@draft
class _Ways:
    """layers: after each line the states and their least costs; moves: per line (state, top, new top, state after, cost); complete:
    no state was left out; tops: what the numbers in states and moves stand for."""

    layers: list[dict[State, int]] = field(default_factory=lambda: [{(NONE, ()): 0}])
    moves: list[list[tuple[State, int, int, State, int]]] = field(default_factory=list)
    complete: bool = True
    tops: list[Top] = field(default_factory=lambda: [START])

    def unfinished(self, state: State) -> int:
        return sum(self.tops[top][0] != "E" for top in state[1])


def _ahead(lines: Sequence[Line], codes: Mapping[str, str], colors: Coloring | None, limit: int | None, mixture: int = 0) -> _Ways | None:
    """All ways up to a cost, or, without a limit, the BEAM cheapest after each line; None where there are none or too many. mixture:
    which of equally cheap ones stay."""
    ways = _Ways()
    tops = ways.tops
    numbers = {START: 0}
    bursts = in_bursts(lines)
    weighed = 0
    sourceless = _sourceless(lines)
    most = 1 << 30 if limit is None else limit
    for line in lines:
        nxt: dict[State, int] = {}
        moves: list[tuple[State, int, int, State, int]] = []
        is_head = line.kind is Kind.HEAD
        color = colors.words.get(line.text, "") if colors else ""
        before = ways.layers[-1]
        steps: dict[int, tuple[int, int]] = {}  # of this line: what it may follow, what that becomes, and what it costs
        for top in {0} if is_head else {top for _, open_ in before for top in open_}:
            step = _step(line, tops[top], color, codes, colors, sourceless)
            if step is not None:
                new = numbers.get(step[0])
                if new is None:
                    new = numbers[step[0]] = len(tops)
                    tops.append(step[0])
                steps[top] = new, step[1]
        open_: tuple[int, ...] = ()
        for state, cost in before.items():
            last, open_ = state
            broken_off = not is_head and last != NONE and tops[last][0] != "E"
            for top in (0,) if is_head else steps.keys() & open_:
                new, price = steps[top]
                if broken_off and top != last:
                    price += 1
                total = cost + price
                if total > most:
                    continue
                after = [*open_, new]
                if not is_head:
                    after.remove(top)
                after.sort()
                key = (new if bursts else NONE, tuple(after))
                moves.append((state, top, new, key, price))
                if total < nxt.get(key, 1 << 30):
                    nxt[key] = total
        if limit is None and len(nxt) > BEAM:
            # of equally cheap ones a mixture: those that came first differ too little from each other
            nxt = dict(sorted(nxt.items(), key=lambda pair: (pair[1], hash((mixture, pair[0]))))[:BEAM])
            ways.complete = False
        weighed += len(moves) * (1 + len(open_) // 64)  # a state of a thousand tracebacks takes as much longer to change
        if not nxt or len(nxt) > MOST_STATES or weighed > MOST_STEPS:
            return None
        ways.layers.append(nxt)
        ways.moves.append(moves)
    return ways


def in_bursts(lines: Sequence[Line]) -> bool:
    """True where nearly every frame line has a source line right below it: writers wrote many lines before another one did, so
    that a line that goes on with the one above it most likely does. Lines woven one by one are far from that."""
    below = [after.kind is Kind.CODE for line, after in pairwise(lines) if line.kind is Kind.FRAME]
    return len(below) >= 16 and sum(below) * 20 >= len(below) * 19


def _believed(ways: _Ways) -> list[dict[Top, Top]]:
    """Per line the steps that lie on a way not worse than the best one plus SLACK."""
    layers, moves, tops = ways.layers, ways.moves, ways.tops
    back: dict[State, int] = {s: UNFINISHED * ways.unfinished(s) for s in layers[-1]}
    best = min(cost + back[s] for s, cost in layers[-1].items())
    result: list[dict[Top, Top]] = []
    for number in range(len(moves) - 1, -1, -1):
        before = layers[number]
        earlier: dict[State, int] = {}
        believed: dict[Top, Top] = {}
        for state, top, new, after, price in moves[number]:
            ahead = back.get(after)
            if ahead is None:
                continue
            rest = price + ahead
            if rest < earlier.get(state, 1 << 30):
                earlier[state] = rest
            if before[state] + rest <= best + SLACK:
                believed[tops[top]] = tops[new]
        back = earlier
        result.append(believed)
    result.reverse()
    return result


def _step(
    line: Line, top: Top, color: str, codes: Mapping[str, str], colors: Coloring | None, sourceless: bool
) -> tuple[Top, int] | None:
    """(new top, cost) where the line may go on with an open traceback, else None."""
    text, kind = line.text, line.kind
    if kind is Kind.HEAD:
        return START, 0
    letter, said, tint = top
    price: int | None = None
    new: Top = ("F", text, color)
    if kind is Kind.FRAME:
        price = _to_frame(letter, said, text, sourceless)
        if tint and color and tint != color:
            price = None
    elif kind is Kind.CODE:
        fits = letter == "F" and not _without_code(said) and codes.get(said, text) == text
        if colors is not None and fits:
            fits = colors.allows(said, text)
        price, new = (0 if fits else None), ("C", text, color)
    elif tint and color and tint != color:
        price = None
    elif letter == "C":
        price, new = raises(said, _type(text)), ("E", "", "")
    elif letter == "F" and (sourceless or _without_code(said)):
        price, new = 1, ("E", "", "")
    return None if price is None else (new, price)


def _to_frame(letter: str, said: str, text: str, sourceless: bool) -> int | None:
    if letter == "H":
        return 0
    if letter == "C":
        return reach(said, frame_function(text))
    if letter == "F" and (sourceless or _without_code(said)):
        return 1
    return None


def _type(text: str) -> str:
    found = raised(text)
    return found[0] if found else ""


def _without_code(frame: str) -> bool:
    """Frames that Python shows no source line for."""
    file = frame_file(frame)
    return file.startswith("<") or file.endswith((".pyx", ".so"))


def _sourceless(lines: Sequence[Line]) -> bool:
    """True where the log shows frames without their source lines."""
    frames = sum(line.kind is Kind.FRAME for line in lines)
    return sum(line.kind is Kind.CODE for line in lines) * 5 < frames
