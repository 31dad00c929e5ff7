"""Does a log's opening stand in it again? In: lines and the first failure; out: where its first lines come back. Sample:

=== nanotrain 0.4 === · config: lr=3e-4 · loading tokenizer · FileNotFoundError … · === nanotrain 0.4 === · config: lr=1e-4 · loading
tokenizer -> the second "=== nanotrain" begins another run of the same program

Programs without a known first line are told apart this way. Where several processes print the opening, it says nothing; a program that
is started, stopped and started again prints it several times, too, but long after the last time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from forensics.ingest.compiled import pattern_of
from forensics.model.source import LogLine

#: lines of the opening that are compared, and how many of them in a row must come back
_MOST = 24
_LEAST = 3
#: how far into the log the opening may begin, and how far into the opening what comes back may
_FIRST = 200
_OFFSET = 3
#: a shorter line is a word
_SHORT = 8
#: seconds after which the same opening is no other process's of the same start
_APART = 20.0
_NUMBERS = str.maketrans("0123456789", "0000000000")
#: a program that speaks of ranks is started several times at once
_SEVERAL = pattern_of(
    r"\b(?:rank|world|worker|local_rank|node_rank|device_mesh|nproc)\b|\[\d{1,5}\]|\b\d{1,5} ?/ ?\d{1,5}\b", re.IGNORECASE
)


class Opening:
    """The first lines of a log. alone: True where nothing in them speaks of several processes."""

    def __init__(self, lines: Sequence[LogLine], first_failure: int) -> None:
        self._lines = lines
        before = []
        for line in lines[:_FIRST]:
            if line.number >= first_failure:
                break
            if _tells(line):
                before.append(line)
        keys = [_key(line) for line in before]
        self._keys = keys[:_MOST]
        self.alone = not any(line.stream or line.rank or _SEVERAL.search(line.text[:400]) for line in before[:_MOST])
        once = len(set(keys)) == len(keys) or not set(keys[:_OFFSET]) & set(keys[_OFFSET:]) or (self.alone and _apart(before, keys))
        torn = bool(before) and before[0].text[:1].isspace()  # a log that begins amid something has lost its opening
        self._firsts = frozenset(self._keys[:_OFFSET]) if once and not torn and len(self._keys) >= _LEAST else frozenset()

    def stands_at(self, place: int) -> bool:
        """True where the line with this index, and those below it, are the opening's once more."""
        if not self._firsts or _key(self._lines[place]) not in self._firsts:
            return False
        start = self._keys.index(_key(self._lines[place]))
        wanted = self._keys[start : start + _LEAST]
        found = []
        for line in self._lines[place : place + 3 * _LEAST]:
            if _tells(line):
                found.append(_key(line))
            if len(found) == len(wanted):
                break
        return len(wanted) == _LEAST and found == wanted


def _apart(lines: Sequence[LogLine], keys: Sequence[str]) -> bool:
    """True where the first lines come back whole and in their order, each time long after the last."""
    firsts = keys[:_OFFSET]
    if len(set(firsts)) < _OFFSET:
        return False
    begins = [place for place, key in enumerate(keys) if key == firsts[0]]
    whole = all(list(keys[place : place + _OFFSET]) == firsts for place in begins)
    if not whole or sum(key in firsts for key in keys) != _OFFSET * len(begins):
        return False
    times = [lines[place].time for place in begins]
    return all(a is not None and b is not None and b - a >= _APART for a, b in pairwise(times))


def _tells(line: LogLine) -> bool:
    """True for a line that is more than a word or a rule across the page, which stands in many places."""
    text = line.text.strip()
    return len(text) >= _SHORT and any(char.isalnum() for char in text[:120])


def _key(line: LogLine) -> str:
    return line.text.strip()[:120].translate(_NUMBERS)
