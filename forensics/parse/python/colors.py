"""Words that tell woven tracebacks apart. In: the lines of a window; out: colors by line text. Sample:

      File "/srv/loader/shards.py", line 3, in load_shard      folder "/srv/loader"
      File "/srv/trainer/step.py", line 7, in train_step       folder "/srv/trainer"
    two tracebacks, two folders: each frame's folder is its color, and a source line has the color of the frame it calls

A coloring is a guess that must explain everything (`explains`) before weave.py believes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from forensics.ingest.compiled import pattern_of
from forensics.model.record import record
from forensics.parse.python.reach import NAMED, STRANGE, reach
from forensics.parse.python.shapes import Kind, frame_file, frame_function

#: (kind, text, color) of an open traceback's last line: "H" header, "F" frame, "C" source line, "E" exception line
Top = tuple[str, str, str]


@record
class Line:
    """One line of the window. at: the caller's index."""

    at: int
    kind: Kind
    text: str


@record
class Coloring:
    """words: color by line text, for frames and for source and exception lines that tell theirs; last: the frame lines that
    end their color, below which alone a source line without color (`raise ValueError(…)`) can stand."""

    words: Mapping[str, str]
    last: frozenset[str]

    def allows(self, frame: str, code: str) -> bool:
        """True where that source line may stand below that frame line."""
        color = self.words.get(code)
        return color == self.words[frame] if color else frame in self.last or not code.lstrip().startswith("raise ")


def colorings(lines: Sequence[Line]) -> list[Coloring]:
    """Ways to tell the tracebacks apart by a word that all frames of one share and no other has: a folder, the file, a part
    of the function's name. One word a traceback, and as many words as tracebacks."""
    count = sum(line.kind is Kind.HEAD for line in lines)
    frames = [line.text for line in lines if line.kind is Kind.FRAME]
    found = []
    for view in _views():
        words = {text: view(text) for text in frames}
        distinct = set(words.values())
        if len(distinct) == count and "" not in distinct:
            last = {color: text for text, color in words.items()}  # dicts keep the order of the log
            found.append(Coloring(words | _code_colors(lines, words), frozenset(last.values())))
    return found


def _code_colors(lines: Sequence[Line], colors: Mapping[str, str]) -> dict[str, str]:
    """The colors of source lines: that of the frames they name, where those have one color; of the last lines, which name no
    frame (`raise ShardError(…)`, `ShardError: …`): the one color that shares a word with them."""
    by_function: dict[str, set[str]] = {}
    for text, color in colors.items():
        by_function.setdefault(frame_function(text), set()).add(color)
    words = _own_words(set(colors.values()))
    result = {}
    for line in lines:
        if line.kind is Kind.CODE and line.text not in result:
            named = [c for name, found in by_function.items() if reach(line.text, name) == NAMED for c in found]
            if len(set(named)) == 1:
                result[line.text] = named[0]
        if line.kind is Kind.RAISED or (line.kind is Kind.CODE and line.text.lstrip().startswith("raise ")):
            said = [color for color, own in words.items() if own & _words(line.text)]
            if len(said) == 1:
                result[line.text] = said[0]
    return result


def _own_words(colors: set[str]) -> dict[str, set[str]]:
    """The words of each color that no other color has."""
    words = {color: _words(color) for color in colors}
    return {color: own - set().union(*(w for c, w in words.items() if c != color)) for color, own in words.items()}


def _words(text: str) -> set[str]:
    return {word.lower() for word in pattern_of(r"[A-Z]?[a-z]{2,}|[A-Z]{2,}").findall(text)}


def _folder(depth: int, text: str) -> str:
    parts = frame_file(text).split("/")
    return "/".join(parts[: depth + 1]) if len(parts) > depth + 1 else ""


def _part(place: int, text: str) -> str:
    parts = [p for p in pattern_of(r"_|(?<=[a-z])(?=[A-Z])").split(frame_function(text)) if p]
    return parts[place] if len(parts) > place else ""


def _digits(place: int, text: str) -> str:
    parts = pattern_of(r"\d+").findall(frame_file(text) + " " + frame_function(text))
    return parts[place] if len(parts) > place else ""


def _views() -> Iterator[Callable[[str], str]]:
    """What may tell tracebacks apart: frame line -> word."""
    yield from (partial(_folder, depth) for depth in range(1, 9))
    yield frame_file
    yield from (partial(_part, place) for place in range(4))
    yield from (partial(_digits, place) for place in range(4))


def explains(lines: Sequence[Line], steps: Sequence[Mapping[Top, Top]]) -> bool:
    """True where a coloring explains everything: every traceback ends, nearly every call is named, enough lines to judge by."""
    heads = sum(line.kind is Kind.HEAD for line in lines)
    frames = sum(line.kind is Kind.FRAME for line in lines)
    ends = sum(line.kind is Kind.RAISED for line in lines)
    if heads != ends or frames < 4 * heads:
        return False
    calls = [
        reach(said, frame_function(line.text))
        for line, step in zip(lines, steps, strict=True)
        for letter, said, _ in list(step)[:1]
        if line.kind is Kind.FRAME and letter == "C"
    ]
    return STRANGE not in calls and calls.count(NAMED) * 5 >= len(calls) * 4
