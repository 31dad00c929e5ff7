"""A lane -> blocks: the lines of one traceback with all that is chained to it. In: a `Lane`; out: `Block`s. Sample:

    [2026-11-29 20:15:20 TP1] Scheduler hit an exception: Traceback (most recent call last):
      File "/srv/engine/runner.py", line 151, in capture
        self.forward(batch)
    RuntimeError: CUDA error: operation not permitted when stream is capturing
    CUDA kernel errors might be asynchronously reported …
    -> Block(5 lines, heading="Scheduler hit an exception", complete=True)

Finding the block comes first, reading its lines second (body.py).
"""

from __future__ import annotations

import re

from forensics.ingest.compiled import pattern_of
from forensics.ingest.pattern import Pattern
from forensics.model.record import draft, field
from forensics.parse.python.body import QUOTE_LINES, carries, last_said, quotes_next, remote_frames, scripted, user_code
from forensics.parse.python.lanes import Item, Lane
from forensics.parse.python.shapes import (
    EXCEPTION_NAME,
    HEADER,
    Kind,
    indented_raise,
    is_native_frame,
    is_whole,
    looks_raised,
    opens_box,
    raised,
    raised_name,
    shifted_raise,
)

#: lines a message may have, and lines of others that a stack without its exception line may be interrupted by
MESSAGE_LINES, NOISE_LINES = 400, 40
#: lines that other writers may put between two lines of one message
MESSAGE_GAP = 200
#: seconds between two lines of one message where each was a record of its own: printed at once, they are milliseconds apart
_AT_ONCE = 0.01
#: so many lines that are missing are a hole, not a line that a terminal had broken into some
HOLE = 30


@draft
class Block:
    """items: the lines, heading line not among them; heading: what stands before "Traceback" or above it; headed: the header
    line is there; raised: the exception line is there; ambiguous: lines of the window it was woven in that could not be placed
    (all of its own where alike > 0: that many woven tracebacks say the same words)."""

    items: list[Item] = field(default_factory=list)
    heading: str = ""
    heading_item: Item | None = None
    headed: bool = True
    raised: bool = False
    ambiguous: int = 0
    alike: int = 0


#: what starts something new at the margin of a lane that names no writer
_STARTS = pattern_of(
    r"(?:ERROR|WARNING|WARN|INFO|DEBUG|CRITICAL|FATAL)\b ?[:\[|(-]|\[(?:WARNING|WARN|INFO|DEBUG)\]"
    r"|\d{4}-\d\d-\d\d[ T]|\[\d{4}-\d\d-\d\d|\[rank\d|\[default\d"
    r"|[IWEF]\d{4} \d\d:|\[[IWE] |srun: |slurmstepd: |Killed\b|Process [\w:.-]{1,80}:$|Exception ignored|Exception in thread"
    r"|terminate called|Fatal Python error|(?:Current )?[Tt]hread 0x|--- Logging error|Extension modules:|\*\*\* |Aborted"
    r"|Segmentation fault|Bus error|[\w./~-]{1,300}\.py:\d+: \w{0,40}Warning\b|/[\w./-]{1,300}: line \d+: |\(\w{1,40} pid="
    r"|(?:cat|cp|mv|rm|ls|ln|cd|mkdir|rmdir|touch|chmod|chown|tee|tar|scp|rsync|source|sh): .{0,300}"
    r": (?:No such file or directory|Permission denied|File exists|(?:Is|Not) a directory|command not found)\s*$"
    r"|root@|\$ |\w[\w-]{0,40}@[\w.-]{1,60}:|nvcc (?!fatal)|\{\"|wandb: |bash: |Call stack:$|Original exception was:$"
    r"|\d{1,3} {2,12}0x[0-9a-f]{6,16} \S|[.sxu]{0,200}[EF][.EFsxu]{0,200}\s*$"
    r"|\[[IWEF]\d{3,4} \d\d:|##\[|\s{0,4}\d{1,3}%\||\[[\w.-]{1,40}\] ?\[?\d{4}-\d\d-\d\d[ T]"
)

#: what announces a traceback in the line above it
_ANNOUNCES = Pattern(
    r"\w:$|\b(?:error|exception|fail(?:ed|ure)?|unhandled|uncaught|caught|crash(?:ed)?|ignored|abort(?:ed)?|died|fatal)\b|Error\b|Exception\b",
    re.IGNORECASE,
)

#: what a warning says above a stack that it only shows (torch/_dynamo/variables/functions.py, torch/_dynamo/symbolic_convert.py), and how
#: far below it a frame of that stack may stand
_SHOWS, _SHOWN_LINES = pattern_of(r"\b(?:[Tt]his call originates from|[Uu]ser code traceback):\s*$"), 60

#: the last words of a program that leaves because of its arguments, and what a scheduler, a launcher or a logger that the job feeds
#: says of its own: the traceback below is another program's
_LEAVES = pattern_of(
    r"[\w./-]{1,120}: error: (?:argument |one of the arguments |the following arguments |unrecognized arguments|ambiguous option)"
    r"|(?:srun|salloc|sbatch|mpirun|mpiexec|prterun|slurmstepd(?:-[\w.-]{1,80})?): |wandb: (?!ERROR)"
)

#: a paragraph after a blank line that still belongs to the message
_PARAGRAPH = Pattern(
    r"(?:from user code|Set TORCH|You can suppress|Explanation|Hint|Developer debug|For more|For debugging|For further"
    r"|Possible solution|Please|Compile with|If |Note|Try |See |While executing|Original traceback|Original exception"
    r'|Did you mean|Traceback of TorchScript|Last error|Consider|To |This |The |Otherwise|-- Process|-{10,}$|""")'
)


def starts_anew(text: str) -> bool:
    """True for lines that no message goes on with: other programs' and loggers' beginnings, progress bars."""
    return bool(_STARTS.match(text)) or "it/s]" in text or "s/it]" in text


def blocks_of(lane: Lane) -> list[Block]:
    """The blocks of one lane, in the order of their first lines. Lines that are no part of a traceback are left out."""
    walker = _Walker(lane)
    for at in range(len(lane.items)):
        walker.take(at)
    walker.finish()
    return walker.blocks


class _Walker:
    """Goes down a lane. `now` is the open block, `blanks` blank lines not yet given to it."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.blocks: list[Block] = []
        self.now: Block | None = None
        self.blanks: list[Item] = []
        self.noise = 0
        self.linked = False  # a link line was read, a header must follow
        self.frame: Item | None = None  # the last frame line, while its code line may follow
        self.code = ""  # the last code line
        self.message: list[str] = []
        self.name = ""  # of the exception that the message is of
        self.grouped = False  # lines with a margin belong to the open block

    def finish(self) -> None:
        """The open block ends."""
        if self.now and (self.now.headed or any(i.kind in (Kind.FRAME, Kind.BOX) for i in self.now.items)):
            self.blocks.append(self.now)
        self.now, self.blanks, self.noise, self.linked = None, [], 0, False
        self.frame, self.code, self.message = None, "", []

    def add(self, item: Item) -> None:
        """The line belongs to the open block, and so do the blank lines before it."""
        assert self.now is not None
        self.now.items += self.blanks
        self.now.items.append(item)
        self.blanks, self.noise = [], 0

    def take(self, at: int) -> None:
        """Decides about one line."""
        item = self.lane.items[at]
        kind = item.kind
        if self.now is None:
            framed = kind is Kind.FRAME and not item.line.text.startswith(" " * 9) and not self.is_shown(at)
            if kind is Kind.HEAD or framed or (kind is Kind.BOX and opens_box(item.line.text)):
                self.begin(at, item)
            return
        if kind is Kind.GROUPED and self.grouped:
            self.add(item)
            self.now.raised = True
        elif kind is Kind.HEAD:
            if self.linked or self.is_quoted(item):
                self.chain(item)
            else:
                self.finish()
                self.begin(at, item)
        elif kind is Kind.BLANK:
            self.blanks.append(item)
        elif kind is Kind.LINK:
            self.add(item)
            self.linked, self.message = True, []
        elif self.now.raised:
            self.after_raise(at, item)
        else:
            self.in_stack(at, item)

    def is_shown(self, at: int) -> bool:
        """True for a frame that stands below the words with which a warning shows where its cause is called: nothing was raised there."""
        for above in reversed(self.lane.items[max(0, at - _SHOWN_LINES) : at]):
            if above.kind not in (Kind.FRAME, Kind.CODE, Kind.CARET, Kind.BLANK):
                return bool(_SHOWS.search(above.line.text[-200:]))
        return False

    def begin(self, at: int, item: Item) -> None:
        """A new block at its header, or at a frame whose header is missing."""
        self.now = Block(headed=item.kind is Kind.HEAD)
        self.grouped = "+ Exception Group" in item.line.text
        if item.kind is Kind.HEAD:
            self.now.heading = heading_of(item.line.text)
            if not self.now.heading:
                self.head_above(at, item)
        elif item.kind is Kind.FRAME:
            self.frame = item
        self.now.items.append(item)

    def head_above(self, at: int, item: Item) -> None:
        """Takes the line above the header as heading: of the same lane, or a log line that announces an error."""
        assert self.now is not None
        above = self.lane.items[at - 1] if at else None
        if above is None or above.index < item.index - 1:
            if item.above is None:
                return
            above = item.above
        taken = bool(self.blocks) and any(i.line is above.line for i in self.blocks[-1].items[-3:])
        text = above.line.text.strip()
        if (
            above.kind in (Kind.TEXT, Kind.RAISED)
            and not taken
            and not _LEAVES.match(text)
            and (_ANNOUNCES.search(text[-300:]) or above is item.above)
        ):
            self.now.heading, self.now.heading_item = text[:500], above

    def chain(self, item: Item) -> None:
        """A header that goes on with the open block."""
        self.add(item)
        assert self.now is not None
        self.now.raised, self.linked = False, False
        self.grouped = self.grouped or "+ Exception Group" in item.line.text
        self.frame, self.code, self.message = None, "", []

    def is_quoted(self, item: Item) -> bool:
        """True where the header stands in the open exception's message."""
        if not self.now:
            return False
        text = item.line.text
        if not self.now.raised:
            return bool(self.code and raised(_before_header(text), None))
        if "Original Traceback" in text:
            return True
        if carries(self.message):
            return True
        last = next((m for m in reversed(self.message) if m.strip()), "")
        return text.strip() == f"{HEADER}:" and len(self.blanks) <= 1 and quotes_next(last)

    def in_stack(self, at: int, item: Item) -> None:
        """Between a header and its exception line."""
        assert self.now is not None
        kind, text = item.kind, item.line.text
        if kind is Kind.FRAME:
            self.add(item)
            self.frame = item
            return
        flat = self.frame is not None and self.frame.line.text[:1] == "F"
        if flat and self.is_next(item) and kind in (Kind.TEXT, Kind.RAISED, Kind.CODE) and not looks_raised(text):
            self.add(item)
            self.frame, self.code = None, text
            return
        pasted = None
        if kind is Kind.CODE and self.frame is None:
            column = len(self.code) - len(self.code.lstrip())
            pasted = indented_raise(self.code, text) or shifted_raise(column, text)
        if pasted:
            self.add(item)
            self.now.raised, self.message, self.name = True, [pasted[1]], pasted[0]
            return
        if kind is Kind.CODE and self.frame is None and is_native_frame(text):
            self.add(item)
            return
        if kind is Kind.CODE and not self.is_source(item):
            self.noise += 1
            return
        if kind in (Kind.CODE, Kind.CARET, Kind.REPEATED, Kind.BOX, Kind.PLACE, Kind.ARROW):
            self.add(item)
            if kind is Kind.CODE:
                self.code = text if self.frame is not None else self.code
                self.frame = None
            return
        awaited = raised_name(self.code)
        found = raised(text, awaited) if kind in (Kind.RAISED, Kind.TEXT) else None
        if found and self.is_exception(at, item, found[0], awaited):
            self.add(item)
            self.now.raised, self.message, self.name = True, [found[1]], found[0]
            return
        self.noise += 1
        if self.noise > NOISE_LINES:
            self.finish()

    def is_source(self, item: Item) -> bool:
        """True where an indented line can be the source line of the frame above, or a further line of it."""
        assert self.now is not None
        text = item.line.text
        indent = len(text) - len(text.lstrip())
        if self.frame is not None:
            above = self.frame.line.text
            return indent > len(above) - len(above.lstrip(" \t`"))
        last = self.now.items[-1]
        return last.kind in (Kind.CODE, Kind.CARET, Kind.PLACE, Kind.ARROW) and indent > 2 and self.is_next(item)

    def is_next(self, item: Item) -> bool:
        """True where nobody else wrote between the open block's last line and this one."""
        assert self.now is not None
        return item.index == self.now.items[-1].index + 1 or not self.lane.bare

    def is_exception(self, at: int, item: Item, name: str, awaited: str | None) -> bool:
        """True where a line of the right shape is the exception line and not some other "Word: text"."""
        last = name.split("(")[0].rsplit(".", 1)[-1]
        if EXCEPTION_NAME.search(last) or last == awaited:
            return True
        below = self.lane.items[at + 1] if at + 1 < len(self.lane.items) else None
        if below and below.kind in (Kind.FRAME, Kind.CARET, Kind.CODE) and below.index == item.index + 1:
            return False
        return self.is_next(item) and not self.blanks

    def after_raise(self, at: int, item: Item) -> None:
        """Lines below an exception line: its message, or the end of the block."""
        assert self.now is not None
        last = last_said(self.message)
        if item.kind is Kind.FRAME and not user_code(self.message) and not scripted(self.message):
            if remote_frames(last) and self.is_next(item):
                self.add(item)
                self.now.raised, self.frame, self.message = False, item, []
                return
            self.finish()
            self.begin(at, item)
            return
        if self.continues(item, last):
            self.add(item)
            self.message.append(item.line.text)
            if len(self.message) > MESSAGE_LINES:
                self.finish()
            return
        self.finish()

    def stamped_apart(self) -> bool:
        """True where lines of the open block's traceback bear times of their own, all within a second."""
        assert self.now is not None
        times = [i.line.time for i in self.now.items if i.kind in (Kind.HEAD, Kind.FRAME) and i.line.time is not None]
        return len(times) > 1 and 0 < max(times) - min(times) < 1

    def continues(self, item: Item, last: str) -> bool:
        """True where a line below an exception line is still its message."""
        assert self.now is not None
        text = item.line.text
        before = self.now.items[-1]
        if self.linked or item.index - before.index > MESSAGE_GAP or _is_hole(before, item) or text.startswith("```"):
            return False  # the last: where a quotation ends or begins (Markdown)
        if len(self.message) == 1 and is_whole(self.name, self.message[0]) and text.strip() not in QUOTE_LINES:
            return False
        if self.lane.bare and item.index != before.index + 1 + len(self.blanks):
            return False
        if before.line.origin is None:
            if starts_anew(text):
                return False
        elif item.line.time is not None and before.line.time is not None and item.line.time != before.line.time:
            # A logger stamps all lines of a record alike, unless each line was given to it as a record of its own.
            if item.line.origin != before.line.origin or not self.stamped_apart() or item.line.time - before.line.time > _AT_ONCE:
                return False
        if not self.blanks:
            return True
        return len(self.blanks) <= 2 and (
            text[:1] in " \t" or last.rstrip().endswith(":") or bool(_PARAGRAPH.match(text))
        )


def _is_hole(before: Item, item: Item) -> bool:
    """True where lines between the two were not kept: a message is kept as a whole, what stands there is something else's."""
    return item.line.number - before.line.number - before.line.joined > item.index - before.index + HOLE


def _before_header(text: str) -> str:
    return text[: max(text.find(HEADER), 0)].rstrip(" ─━╭┏")


def heading_of(text: str) -> str:
    """What stands before "Traceback" in its line, without colon."""
    if text.rstrip().endswith(")") and "  " in text:
        return ""  # IPython: the class stands before the header
    head = _before_header(text)
    for word in ("Original", "Exception Group", "+"):
        head = head.removesuffix(word).rstrip()
    return head.rstrip(":").strip('> "')[-500:]
