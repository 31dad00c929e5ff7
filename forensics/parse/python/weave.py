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

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from forensics.ingest.pattern import Pattern
from forensics.model.record import draft, field
from forensics.parse.python.alike import copies, one_stack
from forensics.parse.python.colors import Line, Top, colorings, explains
from forensics.parse.python.shapes import Kind
from forensics.parse.python.weigh import START, in_bursts, weigh

#: lines of a window that are looked at
MOST_LINES = 3000


@draft
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


@draft
class Woven:
    """strands: at least a header or a frame each; ambiguous: lines that no strand has; alike: how many strands say the same
    words where all do (0 otherwise), so that none can be told from the others."""

    strands: list[Strand] = field(default_factory=list)
    ambiguous: int = 0
    alike: int = 0


def untangle(lines: Sequence[Line], known: Mapping[str, str] | None = None) -> Woven:
    """Shares the lines of a window out. known: code lines by frame line, learnt from tracebacks that were not woven."""
    carets = [line for line in lines if line.kind is Kind.CARET]
    lines = [line for line in lines if line.kind in _USED]
    same = _alike(lines)
    if same is not None:
        _place_carets(same, carets)
        return same
    lines = lines[:MOST_LINES]
    codes = (_neighbours(lines) if in_bursts(lines) else {}) | dict(known or {})
    steps = _plain(lines, dict(codes))
    if steps is None or any(len(step) > 1 for step in steps):
        steps = max((steps, *_colored(lines, codes)), key=_certain)
    if steps is None:
        return Woven([], len(lines) + len(carets), copies(lines))
    woven = _build(lines, steps)
    woven.alike = woven.alike or copies(lines)
    _place_carets(woven, carets)
    return woven


#: lines that are shared out; carets follow when the code lines have their places
_USED = (Kind.HEAD, Kind.FRAME, Kind.CODE, Kind.RAISED)


def _neighbours(lines: Sequence[Line]) -> dict[str, str]:
    """Source lines by frame line, where the same source line stands right below that frame line again and again: several
    ranks ran the code, and most of their lines still stand together."""
    below: dict[str, Counter[str]] = {}
    for line, after in pairwise(lines):
        if line.kind is Kind.FRAME and after.kind is Kind.CODE:
            below.setdefault(line.text, Counter())[after.text] += 1
    found = {}
    for frame, codes in below.items():
        (code, count), *others = codes.most_common(2)
        if count > 1 and (not others or others[0][1] * 3 <= count):
            found[frame] = code
    return found


def _certain(steps: Sequence[Mapping[Top, Top]] | None) -> int:
    return sum(len(step) == 1 for step in steps or ())


def _plain(lines: Sequence[Line], codes: dict[str, str]) -> list[dict[Top, Top]] | None:
    """The steps without colors; a frame line shows the same source line wherever it stands, which is learnt on the way."""
    steps = weigh(lines, codes, None)
    for _ in range(4):
        learnt = _learn(lines, steps, codes)
        if not learnt:
            break
        codes.update(learnt)
        steps = weigh(lines, codes, None) or steps
    return steps


def _colored(lines: Sequence[Line], codes: dict[str, str]) -> list[list[dict[Top, Top]]]:
    """The steps under each coloring that explains everything."""
    found = []
    for colors in colorings(lines):
        steps = weigh(lines, codes, colors)
        if steps is not None and explains(lines, steps):
            found.append(steps)
    return found


def _alike(lines: Sequence[Line]) -> Woven | None:
    """The strands where every traceback says the same words."""
    stacks = one_stack(lines)
    if stacks is None:
        return None
    said = {line.at: line.text for line in lines}
    strands = [Strand(stack, [said[at] for at in stack[1:]], headed=True, raised=True) for stack in stacks]
    return Woven(strands, 0, len(strands))


def _learn(
    lines: Sequence[Line], steps: Sequence[Mapping[Top, Top]] | None, codes: Mapping[str, str]
) -> dict[str, str]:
    """Code lines by frame, from lines whose place is certain: a frame line shows the same source line wherever it stands."""
    learnt: dict[str, str] = {}
    for line, step in zip(lines, steps or (), strict=False):
        if line.kind is Kind.CODE and len(step) == 1:
            frame = next(iter(step))[1]
            if frame not in codes:
                learnt[frame] = line.text
    return learnt


@lru_cache(maxsize=4096)
def _underlines(code: str, carets: str) -> bool:
    """True where the carets mark whole words of that source line."""
    start = len(carets) - len(carets.lstrip())
    end = start + len(carets.strip())
    if end > len(code.rstrip()) or start < len(code) - len(code.lstrip()):
        return False
    inside, before, after = code[start:end], code[start - 1 : start], code[end : end + 1]
    inside_a_word = (before + inside[:1], inside[-1:] + after)
    return not any(len(pair) == 2 and _WORD_PAIR.match(pair) for pair in inside_a_word) and inside == inside.strip()


_WORD_PAIR = Pattern(r"\w\w")


# --- building -------------------------------------------------------------------------------------------------------------


def _build(lines: Sequence[Line], steps: Sequence[Mapping[Top, Top]]) -> Woven:
    """Strands from the steps: a line goes on with the traceback whose top it follows, where that is one, or all say the same."""
    open_: dict[Top, list[Strand]] = {}
    blurred: set[Top] = set()
    woven = Woven()
    for line, step in zip(lines, steps, strict=True):
        if line.kind is Kind.HEAD:
            strand = Strand([line.at], headed=True)
            woven.strands.append(strand)
            open_.setdefault(START, []).append(strand)
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
    if top == START and waiting:
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
    kept = [s for s in woven.strands if len(s.lines) > 1 and (s.raised or sum(at in frames for at in s.lines) > 1)]
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
        waiting += [
            (at, end, text, strand)
            for at, end, text in zip(strand.lines, ends, said, strict=True)
            if text[:4] == "    "
        ]
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
