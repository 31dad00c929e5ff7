"""Which retained line holds which literal. In: lines, literals; out: `Intake.marks`. Sample:

marks_of([LogLine(… raw="x CUDA error: y")], Wants([Anchor(b"CUDA error")])) -> {b"CUDA error": [0]}

What a logged request quotes is no mark: `Received request cmpl-7: prompt: 'what is a CUDA error'` is nobody's error (`asked.py`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from forensics.ingest.asked import asked_in
from forensics.ingest.hits import SHALLOW
from forensics.ingest.wants import Wants
from forensics.model.source import LogLine

#: lines are joined and searched in blocks of about this size
_BLOCK = 1 << 20


def marks_of(lines: Sequence[LogLine], wants: Wants) -> dict[bytes, list[int]]:
    """Literal -> ascending indices of the lines whose raw text holds it, in words of the writer's own. Literals without a line are
    left out."""
    marks: dict[bytes, list[int]] = {}
    if not wants or not lines:
        return marks
    search, meaning = wants.search_for(sum(len(line.raw) + 1 for line in lines))
    starts: list[int] = []
    parts: list[bytes] = []
    first = size = 0
    last = len(lines) - 1
    previous = None
    for index, line in enumerate(lines):
        raw = line.raw
        # a line in several parts (JSON message with line feeds) is searched once by its raw text, then by its parts
        encoded = (line.text if raw is previous else raw).encode("utf-8", "replace").replace(b"\n", b" ")
        previous = raw
        starts.append(size)
        parts.append(encoded)
        size += len(encoded) + 1
        if size >= _BLOCK or index == last:
            asked: dict[int, list[tuple[int, int]]] = {}  # line -> where in it texts of requests stand
            for end, which in search.scan(b"\n".join(parts)):
                place = bisect_right(starts, end - 1) - 1
                if end - starts[place] > SHALLOW:
                    texts = asked.get(place)
                    if texts is None:
                        texts = asked[place] = asked_in(parts[place], len(parts[place]))
                    if texts and any(begin < end - starts[place] <= behind for begin, behind in texts):
                        continue
                for literal, is_all in meaning[which]:
                    if is_all or literal in parts[place]:
                        indices = marks.setdefault(literal, [])
                        if not indices or indices[-1] != first + place:
                            indices.append(first + place)
            starts, parts, first, size = [], [], index + 1, 0
    return marks
