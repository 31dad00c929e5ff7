"""What ingest hands on. In: nothing; out: `Intake`. Sample:

from_text("[rank3]: Traceback (most recent call last):\\n…") -> Intake(lines=[LogLine(…)], …)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from forensics.model.source import LogLine, LogSource, Note, RankActivity, Skipped, Span


class Intake:
    """Retained lines of all sources, ordered by (source, number): not every line of a big log is here, a jump in `number`
    shows a hole. Several lines may share a number (carriage returns, a JSON message with line feeds).

    marks: anchor literal -> indices into `lines`; activity: first and last sighting of each rank; blobs: binary side inputs
    (flight recorder dumps), name and content; repeats: (source, line number of the last copy that was kept) -> how many more of
    the same were seen and not kept; scanned: the lines were searched for anchors, so that what has no mark is not there; left_out: by
    which options lines were taken away that the input has ("--rank"), "" where none were.
    """

    __slots__ = ("activity", "blobs", "left_out", "lines", "marks", "notes", "repeats", "scanned", "skipped", "sources")

    def __init__(
        self,
        sources: tuple[LogSource, ...] = (),
        lines: list[LogLine] | None = None,
        marks: dict[bytes, list[int]] | None = None,
        activity: tuple[RankActivity, ...] = (),
        skipped: tuple[Skipped, ...] = (),
        notes: list[Note] | None = None,
        blobs: tuple[tuple[str, bytes], ...] = (),
        repeats: dict[tuple[int, int], int] | None = None,
        scanned: bool = False,
        left_out: str = "",
    ) -> None:
        self.sources, self.activity, self.skipped, self.blobs = sources, activity, skipped, blobs
        self.scanned = scanned or bool(marks)
        self.left_out = left_out
        self.lines: list[LogLine] = [] if lines is None else lines
        self.marks: dict[bytes, list[int]] = {} if marks is None else marks
        self.notes: list[Note] = [] if notes is None else notes
        self.repeats: dict[tuple[int, int], int] = {} if repeats is None else repeats

    def between(self, span: Span) -> Sequence[LogLine]:
        """The retained lines of a span."""
        low = bisect_left(self.lines, (span.source, span.first_line), key=_place)
        high = bisect_right(self.lines, (span.source, span.last_line), key=_place)
        return self.lines[low:high]


def _place(line: LogLine) -> tuple[int, int]:
    return line.source, line.number
