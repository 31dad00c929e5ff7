"""What a report is made of: plain records that a face only lays out. In: nothing; out: records. Sample:

    Section("ranks", "Ranks", (Strip((Cell("TP0", "same", "="), Cell("TP1", "initiating", "✗")), …),))

Every string is safe to print (see `text.visible`): control, bidi and zero-width characters are spelled out. It is still text:
a face escapes what its own medium would interpret (HTML, Markdown, terminal markup).
"""

from __future__ import annotations

from typing import TypeAlias

from forensics.model.record import record


@record
class Paragraph:
    """One paragraph. tone: plain, good, bad, warn, dim."""

    text: str
    tone: str = "plain"


@record
class Pairs:
    """Label and value, one row each."""

    rows: tuple[tuple[str, str], ...]


@record
class Item:
    """One row of a list. tag: a word of status or confidence; detail: why; command: to be typed as it stands;
    place: "file:line" it rests on."""

    text: str
    tag: str = ""
    detail: str = ""
    command: str | None = None
    place: str = ""


@record
class Items:
    """A list; ordered: the order is the advice."""

    items: tuple[Item, ...]
    ordered: bool = False


@record
class Step:
    """One step of a call path. owner: engine, framework…; place: "deepseek_v4.py:1546"; gap: why what follows is not where
    it failed, "" where calls are plain; frame: 0-based index into the frames of the failure."""

    label: str
    owner: str
    place: str = ""
    gap: str = ""
    frame: int | None = None


@record
class Path:
    """A call path, outermost first."""

    steps: tuple[Step, ...]


@record
class Cell:
    """One rank. role: a causal role or "ok", "waiting", "missing", "silent"; mark: one character that says the same."""

    label: str
    role: str
    mark: str
    number: int | None = None


@record
class Strip:
    """All ranks in order; legend: (mark, role in words, ranks with it), most blamed first."""

    cells: tuple[Cell, ...]
    legend: tuple[tuple[str, str, str], ...]


@record
class Quote:
    """Lines of the log. place: "server.log:812-846"; shows: what to see in it; source, first_line, last_line: where (source is
    the input's name); before, after: surrounding lines where a face asked for them; focus: the words to look at in a long
    line; also: places that say the same."""

    place: str
    lines: tuple[str, ...]
    shows: str
    source: str
    first_line: int
    last_line: int
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    focus: str = ""
    also: tuple[str, ...] = ()


@record
class Quotes:
    """Evidence."""

    quotes: tuple[Quote, ...]


@record
class FrameRow:
    """One call of a stack. place: "file:line"; log_line: where it stands in the log; on_path: a step of the call path."""

    place: str
    function: str
    owner: str
    code: str = ""
    log_line: int | None = None
    on_path: bool = False
    repeated: int = 1


@record
class Stack:
    """Frames outermost first. title: "RuntimeError: …"; link: how it came to the one before: cause, context, group."""

    title: str
    frames: tuple[FrameRow, ...]
    link: str = ""


@record
class Table:
    """Rows of text. ranks: the labels of the ranks each row is about, where it is about some."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    ranks: tuple[tuple[str, ...], ...] = ()


@record
class Mark:
    """Something on a lane. at: seconds on the log's clock; role: causal role or event kind; label: in words."""

    at: float
    role: str
    label: str
    place: str = ""


@record
class Lane:
    """One rank over time; first, last: seconds on the log's clock, None where not seen."""

    label: str
    role: str
    mark: str
    first: float | None
    last: float | None
    marks: tuple[Mark, ...] = ()


@record
class Timeline:
    """Ranks over time; start, end: seconds on the log's clock; ticks: (seconds, as the log would write it); clock: `Clock.kind`,
    or "line" where the log has no times: then all positions are line numbers."""

    lanes: tuple[Lane, ...]
    start: float
    end: float
    ticks: tuple[tuple[float, str], ...]
    clock: str = "wall"

    def foremost(self, most: int) -> tuple[Lane, ...]:
        """At most so many lanes, in their order: those of the blamed ranks whatever their place, then the first ones."""
        if len(self.lanes) <= most:
            return self.lanes
        blamed = sorted(range(len(self.lanes)), key=lambda n: (self.lanes[n].role not in ("initiating", "missing"), n))
        return tuple(self.lanes[place] for place in sorted(blamed[:most]))


Block: TypeAlias = Paragraph | Pairs | Items | Path | Strip | Quotes | Stack | Table | Timeline


@record
class Section:
    """Blocks under a heading. short: the heading in a narrow margin; detail: left out where only the answer is wanted."""

    id: str
    title: str
    blocks: tuple[Block, ...]
    short: str = ""
    detail: bool = False


@record
class ReproOffer:
    """What the repro floor offers, handed in by the faces. recipe: its name, None where there is none; script: its text."""

    recipe: str | None = None
    runnable: bool = False
    reason: str | None = None
    script: str | None = None


@record
class View:
    """A whole report. mark: one character for the status; status, category, confidence: the contract's words."""

    status: str
    mark: str
    category: str
    title: str
    confidence: str
    sections: tuple[Section, ...]
    sources: tuple[str, ...] = ()

    def section(self, id: str) -> Section | None:
        """The section of that id, or None where there is nothing to say."""
        return next((one for one in self.sections if one.id == id), None)
