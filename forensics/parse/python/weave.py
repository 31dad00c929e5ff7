"""Tracebacks whose lines are woven and carry no prefix -> strands. In: the lines of a lane; out: `Strand`s. Sample:

    Traceback (most recent call last):
    Traceback (most recent call last):
      File "/srv/a/train.py", line 7, in main
      File "/srv/b/load.py", line 3, in main
        load_shard(path)
        step(batch)
      File "/srv/b/load.py", line 9, in load_shard
    …

All ways to share the lines out among the tracebacks are weighed at once: after each line, a state is the multiset of the open
tracebacks' last lines ("tops"), so ways that differ only in the past fall together. A line is placed where every way that is about
as good as the best one agrees on what it follows; everything else is cut off and counted as ambiguous. So a frame is never
guessed into a stack.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from forensics.parse.python.reach import raises, reach
from forensics.parse.python.shapes import FRAME, Kind, raised

#: ways with more cost than the best one plus this are not believed
SLACK = 1
#: an open traceback that never got its exception line
UNFINISHED = 2
#: states kept after a line; more, and nothing is said
MOST_STATES = 1500
MOST_LINES = 3000

#: a top: (kind, text) of an open traceback's last line; code lines may remember the color of their frame
Top = tuple[str, str, str]
State = tuple[Top, ...]
_START: Top = ("H", "", "")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the window. at: the caller's index."""

    at: int
    kind: Kind
    text: str


@dataclass(slots=True)
class Strand:
    """lines: indices (Line.at) of one traceback's lines that certainly belong together, in order; headed, raised: whether its
    header and its exception line are among them; sure_header: False where another header may be the one."""

    lines: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    headed: bool = False
    raised: bool = False
    sure_header: bool = True

    def content(self) -> tuple[str, ...]:
        """What it says, without the header line."""
        return tuple(self.texts)


@dataclass(slots=True)
class Woven:
    """strands: at least a header or a frame each; ambiguous: lines that no strand has; alike: how many strands say the same
    words where all do (0 otherwise), so that none can be told from the others."""

    strands: list[Strand] = field(default_factory=list)
    ambiguous: int = 0
    alike: int = 0


def untangle(lines: Sequence[Line], known: Mapping[str, str] | None = None) -> Woven:
    """Shares the lines of a window out. known: code lines by frame line, learnt from tracebacks that were not woven."""
    carets = [line for line in lines if line.kind is Kind.CARET]
    lines = [line for line in lines if line.kind in _USED][:MOST_LINES]
    same = _alike(lines)
    if same is not None:
        _place_carets(same, carets)
        return same
    steps = _plain(lines, dict(known or {}))
    if steps is None or any(len(step) > 1 for step in steps):
        steps = max((steps, *_colored(lines, dict(known or {}))), key=_certain)
    if steps is None:
        return Woven([], len(lines) + len(carets), 0)
    woven = _build(lines, steps)
    _place_carets(woven, carets)
    return woven


#: lines that are shared out; carets follow when the code lines have their places
_USED = (Kind.HEAD, Kind.FRAME, Kind.CODE, Kind.RAISED)


def _certain(steps: Sequence[Mapping[Top, Top]] | None) -> int:
    return sum(len(step) == 1 for step in steps or ())


def _plain(lines: Sequence[Line], codes: dict[str, str]) -> list[dict[Top, Top]] | None:
    """The steps without colors; a frame line shows the same source line wherever it stands, which is learnt on the way."""
    steps = _weigh(lines, codes, {})
    for _ in range(4):
        learnt = _learn(lines, steps, codes)
        if not learnt:
            break
        codes.update(learnt)
        steps = _weigh(lines, codes, {}) or steps
    return steps


def _colored(lines: Sequence[Line], codes: dict[str, str]) -> list[list[dict[Top, Top]]]:
    """The steps under each coloring that explains everything."""
    found = []
    for colors in _colorings(lines):
        steps = _weigh(lines, codes, colors)
        if steps is not None and _fits(lines, steps):
            found.append(steps)
    return found


def _alike(lines: Sequence[Line]) -> Woven | None:
    """The strands where every traceback says the same words, each once: all of them are the order of the first sightings."""
    count = sum(line.kind is Kind.HEAD for line in lines)
    places: dict[str, list[int]] = {}
    for line in lines:
        if line.kind is not Kind.HEAD:
            places.setdefault(line.text, []).append(line.at)
    if count < 2 or any(len(found) != count for found in places.values()):
        return None
    kinds = [line.kind for line in lines if line.kind is not Kind.HEAD and places[line.text][0] == line.at]
    if Kind.RAISED in kinds[:-1] or kinds[-1:] != [Kind.RAISED] or kinds[:1] != [Kind.FRAME]:
        return None
    heads = [line.at for line in lines if line.kind is Kind.HEAD]
    strands = [
        Strand([heads[n], *(found[n] for found in places.values())], list(places), headed=True, raised=True) for n in range(count)
    ]
    if any(strand.lines != sorted(strand.lines) for strand in strands):
        return None
    return Woven(strands, 0, count)


# --- weighing -------------------------------------------------------------------------------------------------------------


def _weigh(lines: Sequence[Line], codes: Mapping[str, str], colors: Mapping[str, str]) -> list[dict[Top, Top]] | None:
    """For each line the tops it may follow (and what the top becomes); None where no way exists or there are too many."""
    layers: list[dict[State, int]] = [{(): 0}]
    moves: list[list[tuple[State, Top, Top, State, int]]] = []
    sourceless = _sourceless(lines)
    for line in lines:
        nxt: dict[State, int] = {}
        steps: list[tuple[State, Top, Top, State, int]] = []
        for state, cost in layers[-1].items():
            for top, new, price in _ways(line, state, codes, colors, sourceless):
                after = list(state)
                if top is not _START or line.kind is not Kind.HEAD:
                    after.remove(top)
                after.append(new)
                key = tuple(sorted(after))
                steps.append((state, top, new, key, price))
                total = cost + price
                if total < nxt.get(key, 1 << 30):
                    nxt[key] = total
        if not nxt or len(nxt) > MOST_STATES:
            return None
        layers.append(nxt)
        moves.append(steps)
    return _believed(layers, moves)


def _believed(
    layers: Sequence[Mapping[State, int]], moves: Sequence[Sequence[tuple[State, Top, Top, State, int]]]
) -> list[dict[Top, Top]]:
    """Per line the steps that lie on a way not worse than the best one plus SLACK."""
    back: dict[State, int] = {s: UNFINISHED * sum(top[0] != "E" for top in s) for s in layers[-1]}
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
                believed[top] = new
        back = earlier
        result.append(believed)
    result.reverse()
    return result


def _ways(
    line: Line, state: State, codes: Mapping[str, str], colors: Mapping[str, str], sourceless: bool
) -> list[tuple[Top, Top, int]]:
    """(top, new top, cost) of every open traceback that the line may go on with."""
    text, kind = line.text, line.kind
    if kind is Kind.HEAD:
        return [(_START, _START, 0)]
    ways: list[tuple[Top, Top, int]] = []
    color = colors.get(text, "") if colors else ""
    for top in set(state):
        letter, said, tint = top
        price: int | None = None
        new: Top = ("F", text, color)
        if kind is Kind.FRAME:
            price = _to_frame(letter, said, text, sourceless)
            if tint and color and tint != color:
                price = None
        elif kind is Kind.CODE:
            fits = letter == "F" and not _without_code(said) and codes.get(said, text) == text
            price, new = (0 if fits and not (tint and color and tint != color) else None), ("C", text, tint)
        elif letter == "C":
            price, new = raises(said, _type(text)), ("E", "", "")
        elif letter == "F" and (sourceless or _without_code(said)):
            price, new = 1, ("E", "", "")
        if price is not None:
            ways.append((top, new, price))
    return ways


def _to_frame(letter: str, said: str, text: str, sourceless: bool) -> int | None:
    if letter == "H":
        return 0
    if letter == "C":
        return reach(said, _function(text))
    if letter == "F" and (sourceless or _without_code(said)):
        return 1
    return None


@lru_cache(maxsize=4096)
def _function(text: str) -> str:
    found = FRAME.match(text)
    return (found["function"] or "") if found else ""


@lru_cache(maxsize=4096)
def _file(text: str) -> str:
    found = FRAME.match(text)
    return found["file"] if found else ""


def _type(text: str) -> str:
    found = raised(text)
    return found[0] if found else ""


def _without_code(frame: str) -> bool:
    """Frames that Python shows no source line for."""
    file = _file(frame)
    return file.startswith("<") or file.endswith((".pyx", ".so"))


def _sourceless(lines: Sequence[Line]) -> bool:
    """True where the log shows frames without their source lines."""
    frames = sum(line.kind is Kind.FRAME for line in lines)
    return sum(line.kind is Kind.CODE for line in lines) * 5 < frames


@lru_cache(maxsize=4096)
def _underlines(code: str, carets: str) -> bool:
    """True where the carets mark whole words of that source line."""
    start = len(carets) - len(carets.lstrip())
    end = start + len(carets.strip())
    if end > len(code.rstrip()) or start < len(code) - len(code.lstrip()):
        return False
    inside, before, after = code[start:end], code[start - 1 : start], code[end : end + 1]
    cut = lambda a, b: bool(re.match(r"\w", a) and re.match(r"\w", b))  # noqa: E731
    return not cut(before, inside[:1]) and not cut(inside[-1:], after) and not inside[:1].isspace() and not inside[-1:].isspace()


def _learn(lines: Sequence[Line], steps: Sequence[Mapping[Top, Top]] | None, codes: Mapping[str, str]) -> dict[str, str]:
    """Code lines by frame, from lines whose place is certain: a frame line shows the same source line wherever it stands."""
    learnt: dict[str, str] = {}
    for line, step in zip(lines, steps or (), strict=False):
        if line.kind is Kind.CODE and len(step) == 1:
            frame = next(iter(step))[1]
            if frame not in codes:
                learnt[frame] = line.text
    return learnt


# --- colors ---------------------------------------------------------------------------------------------------------------


def _colorings(lines: Sequence[Line]) -> list[dict[str, str]]:
    """Ways to tell the tracebacks apart by a word that all frames of one share and no other has: a folder, the file, a part
    of the function's name. One word a traceback, and as many words as tracebacks."""
    count = sum(line.kind is Kind.HEAD for line in lines)
    frames = [line.text for line in lines if line.kind is Kind.FRAME]
    found = []
    for view in _VIEWS:
        words = {text: view(text) for text in frames}
        distinct = set(words.values())
        if len(distinct) == count and "" not in distinct:
            found.append(words | _code_colors(lines, words))
    return found


def _code_colors(lines: Sequence[Line], colors: Mapping[str, str]) -> dict[str, str]:
    """The colors of source lines: that of the frames they name, where those have one color."""
    by_function: dict[str, set[str]] = {}
    for text, color in colors.items():
        by_function.setdefault(_function(text), set()).add(color)
    result = {}
    for line in lines:
        if line.kind is Kind.CODE and line.text not in result:
            named = [c for name, found in by_function.items() if reach(line.text, name) == 0 for c in found]
            if len(set(named)) == 1:
                result[line.text] = named[0]
    return result


def _folder(depth: int, text: str) -> str:
    parts = _file(text).split("/")
    return "/".join(parts[: depth + 1]) if len(parts) > depth + 1 else ""


def _part(place: int, text: str) -> str:
    parts = [p for p in re.split(r"_|(?<=[a-z])(?=[A-Z])", _function(text)) if p]
    return parts[place] if len(parts) > place else ""


def _digits(place: int, text: str) -> str:
    parts = re.findall(r"\d+", _file(text) + " " + _function(text))
    return parts[place] if len(parts) > place else ""


_VIEWS = (
    *(lambda text, d=d: _folder(d, text) for d in range(1, 9)),
    lambda text: _file(text),
    *(lambda text, p=p: _part(p, text) for p in range(4)),
    *(lambda text, p=p: _digits(p, text) for p in range(4)),
)


def _fits(lines: Sequence[Line], steps: Sequence[Mapping[Top, Top]]) -> bool:
    """True where a coloring explains everything: every traceback ends, every call is named, and there is enough to judge by."""
    heads = sum(line.kind is Kind.HEAD for line in lines)
    frames = sum(line.kind is Kind.FRAME for line in lines)
    ends = sum(line.kind is Kind.RAISED for line in lines)
    if heads != ends or frames < 4 * heads:
        return False
    strange = 0
    for line, step in zip(lines, steps, strict=True):
        letter, said, _ = next(iter(step))
        if line.kind is Kind.FRAME and letter == "C":
            strange += reach(said, _function(line.text)) > 1
    return strange == 0


# --- building -------------------------------------------------------------------------------------------------------------


def _build(lines: Sequence[Line], steps: Sequence[Mapping[Top, Top]]) -> Woven:
    """Strands from the steps: a line goes on with the traceback whose top it follows, where that is one or all such say the same."""
    open_: dict[Top, list[Strand]] = {}
    blurred: set[Top] = set()
    woven = Woven()
    for line, step in zip(lines, steps, strict=True):
        if line.kind is Kind.HEAD:
            strand = Strand([line.at], headed=True)
            woven.strands.append(strand)
            open_.setdefault(_START, []).append(strand)
            continue
        new = next(iter(step.values()))
        home = None
        if len(step) == 1:
            top = next(iter(step))
            home = _pick(open_, blurred, top)
        else:
            for top in step:
                open_.pop(top, None)
                blurred.add(top)
        if home is None:
            if line.kind is Kind.RAISED:
                blurred.update(step.values())
                continue
            home = Strand()
            woven.strands.append(home)
        home.lines.append(line.at)
        home.texts.append(line.text)
        if line.kind is Kind.RAISED:
            home.raised = True
        elif len(set(step.values())) == 1:
            open_.setdefault(new, []).append(home)
        else:
            blurred.update(step.values())
    return _finished(lines, woven)


def _pick(open_: dict[Top, list[Strand]], blurred: set[Top], top: Top) -> Strand | None:
    """Takes the strand with that top; None where several differ or an unknown one may have it."""
    waiting = open_.get(top, [])
    if top in blurred:
        open_.pop(top, None)
        return None
    if not waiting:
        return None
    if len({strand.content() for strand in waiting}) > 1:
        del open_[top]
        blurred.add(top)
        return None
    strand = waiting.pop(0)
    if top == _START and waiting:
        strand.sure_header = False
        for other in waiting:
            other.sure_header = False
    return strand


def _finished(lines: Sequence[Line], woven: Woven) -> Woven:
    """Drops what tells nothing, counts what was not placed."""
    complete = [s for s in woven.strands if s.headed and s.raised]
    contents = {s.content() for s in complete}
    if len(contents) == 1 and len(complete) > 1 and len(complete) == len(woven.strands):
        woven.alike = len(complete)
        return woven
    frames = {line.at for line in lines if line.kind is Kind.FRAME}
    kept = [s for s in woven.strands if sum(at in frames for at in s.lines) >= (1 if s.raised else 2)]
    placed = {at for strand in kept for at in strand.lines}
    woven.strands = kept
    woven.ambiguous = sum(line.at not in placed for line in lines)
    return woven


def _place_carets(woven: Woven, carets: Sequence[Line]) -> None:
    """Gives caret lines to the source lines they fit, as far as just one can be meant."""
    waiting: list[tuple[int, int, str, Strand]] = []
    for strand in woven.strands:
        said = ["", *strand.texts] if strand.headed else strand.texts
        ends = [*strand.lines[1:], 1 << 60]
        waiting += [(at, end, text, strand) for at, end, text in zip(strand.lines, ends, said, strict=True) if text[:4] == "    "]
    todo, before = list(carets), -1
    while len(todo) != before:
        before = len(todo)
        for line in list(todo):
            fits = [w for w in waiting if w[0] < line.at < w[1] and _underlines(w[2], line.text)]
            if fits and (len(fits) == 1 or (woven.alike and len({w[2] for w in fits}) == 1)):
                fits[0][3].lines.append(line.at)
                waiting.remove(fits[0])
                todo.remove(line)
    for strand in woven.strands:
        strand.lines.sort()
    woven.ambiguous += len(todo)
