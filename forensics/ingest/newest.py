"""Logs whose newest lines come first, as web interfaces of log stores export them. In: the lines of a source that was kept whole; out: the
same in the order of time, numbered so; and the way back. Sample:

    3 lines: 20:15:23 RuntimeError: …, 20:15:22   File "train.py", 20:15:21 Traceback …       newest first
    -> Traceback (1), File (2), RuntimeError (3), and turn = 4: line n of these is line 4 - n of the file

All that reads lines reads them in the order of time. What the user sees has the file's own numbers: `in_file_order` puts them back.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from itertools import pairwise
from typing import Any

from forensics.model.record import replace
from forensics.model.source import LogLine, LogSource, Span
from forensics.model.stack import Frame

#: times that must fall, and how many of them for each that rises
_LEAST, _SHARE = 3, 3


def is_newest_first(lines: Sequence[LogLine]) -> bool:
    """True where the times of a source fall from line to line, but for few."""
    times = [line.time for line in lines if line.time is not None]
    if len(times) <= _LEAST or times[-1] >= times[0]:
        return False
    falls = sum(later < earlier for earlier, later in pairwise(times))
    rises = sum(later > earlier for earlier, later in pairwise(times))
    return falls >= _LEAST and falls > _SHARE * rises


def turned(lines: Sequence[LogLine]) -> tuple[list[LogLine], int]:
    """(the lines in the order of time, what a line's old and new number add up to). Lines of one number keep their order."""
    turn = lines[0].number + lines[-1].number
    return [line._replace(number=turn - line.number) for line in sorted(lines, key=lambda line: -line.number)], turn


def in_file_order(value: Any, sources: Sequence[LogSource]) -> Any:
    """A record with all that is in it: spans and frames of turned sources have the numbers of the file again."""
    turns = {index: source.turn for index, source in enumerate(sources) if source.turn}
    return _Back(turns).value(value, None) if turns else value


class _Back:
    """Walks records, tuples, lists and dictionaries. source: of the nearest span around a frame."""

    def __init__(self, turns: dict[int, int]) -> None:
        self._turns = turns

    def value(self, value: Any, source: int | None) -> Any:
        if isinstance(value, Span):
            turn = self._turns.get(value.source)
            return Span(value.source, turn - value.last_line, turn - value.first_line) if turn else value
        if isinstance(value, Frame):
            turn = self._turns.get(source) if source is not None else None
            return replace(value, log_line=turn - value.log_line) if turn and value.log_line else value
        if isinstance(value, Enum) or value is None or isinstance(value, (str, bytes, int, float)):
            return value
        if isinstance(value, dict):
            return {key: self.value(one, source) for key, one in value.items()}
        if isinstance(value, (list, set, frozenset)) or type(value) is tuple:
            return type(value)(self.value(one, source) for one in value)
        if isinstance(value, tuple):  # a named one
            return type(value)(*(self.value(one, source) for one in value))
        names = getattr(value, "__match_args__", None)
        if not names:
            return value
        around = _source_of(value)
        around = source if around is None else around
        found = {name: self.value(getattr(value, name), around) for name in names}
        if all(found[name] is getattr(value, name) for name in names):
            return value
        return replace(value, **found)


def _source_of(value: Any) -> int | None:
    """The source that a record speaks of: by its span, or by its first piece of evidence."""
    span = getattr(value, "span", None)
    if isinstance(span, Span):
        return span.source
    proof = getattr(value, "evidence", None)
    first = getattr(proof[0], "span", None) if isinstance(proof, tuple) and proof else None
    return first.source if isinstance(first, Span) else None
