"""Stacks and exceptions. In: nothing; out: frozen records. Sample:

    File "/srv/engine/deepseek_v4.py", line 1546, in mlp
    -> Frame(file="/srv/engine/deepseek_v4.py", line=1546, function="mlp", code="x = self.experts(x)")
"""

from __future__ import annotations

from forensics.model.record import record
from forensics.model.source import Rank, Span


@record
class Frame:
    """One call. line: 1-based or None; code: the source line shown below it; module: shared library of a native frame;
    address: "0x7f…" as printed; log_line: 1-based line number in the log."""

    function: str
    file: str | None = None
    line: int | None = None
    code: str | None = None
    module: str | None = None
    address: str | None = None
    log_line: int | None = None
    repeated: int = 1
    #: the text under the carets of Python >= 3.11, where the log has them
    marked: str | None = None

    @property
    def path(self) -> str:
        """The file with forward slashes, as rules and tables name files on every system; "" where it is not known."""
        return (self.file or "").replace("\\", "/")


@record
class StackTrace:
    """Frames outermost first (the innermost call is the last). thread: name or id as printed; language: python, native, mixed;
    complete: False where the beginning or the end is missing."""

    frames: tuple[Frame, ...]
    span: Span
    thread: str | None = None
    language: str = "python"
    complete: bool = True


@record
class RaisedException:
    """One link of a chain. type: as printed (dotted or not); message: without the type, lines joined by "\\n";
    link: how it came to the previous (inner) one: cause, context, group, or None for the first."""

    type: str
    message: str
    frames: tuple[Frame, ...] = ()
    link: str | None = None
    span: Span | None = None
    notes: tuple[str, ...] = ()


@record
class ExceptionChain:
    """A traceback with everything chained to it, innermost first (`[0]` is the root cause, `[-1]` what was raised last).

    heading: the text before "Traceback" in its line or the line before ("Scheduler hit an exception"); handled: True where the
    text says the exception went no further ("Exception ignored in"); ambiguous: lines that could belong to another rank."""

    exceptions: tuple[RaisedException, ...]
    span: Span
    rank: Rank | None = None
    time: float | None = None
    heading: str = ""
    handled: bool = False
    ambiguous: int = 0
    stream: str = ""

    @property
    def root(self) -> RaisedException:
        """The innermost exception."""
        return self.exceptions[0]

    @property
    def last(self) -> RaisedException:
        """What was raised last: what the user sees."""
        return self.exceptions[-1]
