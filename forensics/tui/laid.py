"""A section of the report as something that rich and Textual draw. In: a `Section`; out: a renderable. Sample:

Laid(view.section("hang"), margin=True) -> the same lines as on the console, as wide as the widget
"""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.style import Style

from forensics.report.blocks import Section
from forensics.report.console import margin_lines, section_lines
from forensics.report.layout import Line, cells


class Laid:
    """margin: with its name to the left, shortened as on the console; else whole and without a name."""

    def __init__(self, section: Section, *, margin: bool = False) -> None:
        self._section, self._margin = section, margin

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self._lines(options.max_width):
            yield from (Segment(text, Style.parse(style)) for text, style in line)
            yield Segment.line()

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        widest = max((sum(cells(text) for text, _ in line) for line in self._lines(options.max_width)), default=1)
        return Measurement(min(20, widest), widest)

    def _lines(self, width: int) -> list[Line]:
        lay_out = margin_lines if self._margin else section_lines
        return lay_out(self._section, width, whole=not self._margin)
