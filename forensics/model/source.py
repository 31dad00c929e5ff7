"""Where things stand in a log: sources, lines, ranks, spans, evidence. In: nothing; out: frozen records. Sample:

    [2026-11-29 20:15:20 TP1] Scheduler hit an exception: Traceback (most recent call last):
    -> LogLine(source=0, number=812, text="Scheduler hit an exception: Traceback (most recent call last):",
               rank=Rank("TP1", 1, (("tp", 1),)), time=1795983320.0, stream="TP1", ...)
"""

from __future__ import annotations

from typing import NamedTuple

from forensics.model.record import record


@record
class Rank:
    """One process of the job. `None` fields were not observed.

    label: as people call it ("TP1", "rank 3"); number: the global rank (report-contract, "rank.number");
    axes: parallel axes in lower case, sorted by name, e.g. (("dp", 0), ("tp", 1)); node: host name; pid: process id.
    """

    label: str
    number: int | None = None
    axes: tuple[tuple[str, int], ...] = ()
    node: str | None = None
    pid: int | None = None

    def axis(self, name: str) -> int | None:
        """The index on one axis ("tp", "pp", "dp", "ep", "local", "worker"), or None."""
        return dict(self.axes).get(name)

    @property
    def key(self) -> tuple[str, str | None]:
        """What makes two sightings the same process: label and node (a pid may be missing in some lines)."""
        return (self.label, self.node)


class LogLine(NamedTuple):
    """One retained line. `text` has no prefix, no ANSI codes; `raw` is the whole line without ANSI codes (what is quoted).

    source: index into Intake.sources; number: 1-based line number; stream: who wrote it, as far as the line says (equal
    strings = same writer; "" = the line does not say); time: seconds since the epoch, or on the log's own clock (see
    `Clock`), None where the line has none; level: upper case or None; origin: "core.py:515" where the prefix names it.
    """

    source: int
    number: int
    text: str
    raw: str
    stream: str = ""
    rank: Rank | None = None
    time: float | None = None
    level: str | None = None
    origin: str | None = None
    dialect: str | None = None
    #: the writer's own indentation was lost or the line is the continuation of a hard-wrapped one
    joined: int = 0


@record
class Span:
    """Lines first..last of a source, 1-based and inclusive. source: index into Intake.sources."""

    source: int
    first_line: int
    last_line: int

    def overlaps(self, other: Span) -> bool:
        """True where both name at least one common line."""
        return (
            self.source == other.source and self.first_line <= other.last_line and other.first_line <= self.last_line
        )

    def contains(self, other: Span) -> bool:
        """True where `other` lies wholly inside."""
        return (
            self.source == other.source and self.first_line <= other.first_line and other.last_line <= self.last_line
        )


@record
class Evidence:
    """A quotation. quote: exactly what stands in the span's lines (without ANSI codes), cut at 2,000 characters;
    shows: what a reader should see in it, in a few words."""

    span: Span
    quote: str
    shows: str = ""


@record
class Clock:
    """What a source's times mean. kind: wall (with date), wall_no_year, time_of_day, monotonic, none; resolution_s: the finest
    step its stamps can show."""

    kind: str = "none"
    resolution_s: float | None = None


@record
class LogSource:
    """One input. name: as the user gave it ("-" for standard input, "a.tar!b.log" inside archives); bytes: after
    decompression; lines: counted line ends; compression: gz, zst, xz, bz2 or None; default_rank: what the file's name says."""

    name: str
    bytes: int = 0
    lines: int = 0
    encoding: str = "utf-8"
    compression: str | None = None
    default_rank: Rank | None = None
    clock: Clock = Clock()
    #: line numbers restart, or lines are missing on purpose (fence of a Markdown issue, archive member)
    line_offset: int = 0
    #: of a source whose newest lines come first: what a line's number in the order of time and its number in the file add up to, else 0
    turn: int = 0


@record
class Note:
    """Something the pipeline could not do or wants to say. stage: which one; text: a sentence; span: where, if anywhere;
    hides: True where a failure may stand in what is missing: without another one the log is then "unknown", never "healthy"."""

    stage: str
    text: str
    span: Span | None = None
    hides: bool = False


@record
class RankActivity:
    """When a rank was seen: times in seconds, lines 1-based, step as the log counts. From retained lines and samples."""

    rank: Rank
    first_time: float | None = None
    last_time: float | None = None
    first_line: int | None = None
    last_line: int | None = None
    last_step: int | None = None
    source: int = 0


@record
class Skipped:
    """An input or a part that was not read. why: in words; harmless: True for what is no log, so that no failure stands in it."""

    name: str
    why: str
    bytes: int | None = None
    harmless: bool = False
