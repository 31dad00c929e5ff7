"""One writer's traceback -> its exceptions. In: the texts of a block; out: `Raised` records, innermost first. Sample:

Traceback (most recent call last):
  File "/srv/a.py", line 3, in load
    return table[key]
           ~~~~~^^^^^
KeyError: 'w13_weight'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/srv/b.py", line 9, in main
    load()
RuntimeError: cannot load layer 3
-> [KeyError (frames of a.py), RuntimeError (frames of b.py, link="cause")]
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from forensics.ingest.pattern import Pattern
from forensics.model.record import draft, field, replace
from forensics.model.stack import Frame
from forensics.parse.python.shapes import (
    ARROW,
    BOX_CODE,
    BOX_FILE,
    BOX_FRAME,
    BOX_REST,
    FRAME,
    HEADER,
    LOOK,
    PLACE,
    TORN_FRAME,
    Kind,
    in_box,
    indented_raise,
    kind_of,
    link_of,
    looks_raised,
    raised,
    raised_name,
    repeats,
    shifted_raise,
)

#: characters of a message that are kept
MESSAGE_LIMIT = 20_000

#: the function of a frame that prints none: the place of a SyntaxError
NO_FUNCTION = "<source>"


@draft
class Raised:
    """One exception as printed. first, last: 0-based indices into the block's lines; frames carry such an index as log_line."""

    type: str = ""
    message: list[str] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    link: str | None = None
    first: int = 0
    last: int = 0

    def unwrap(self) -> None:
        """What two libraries wrap others' exceptions in: JAX's stand-in for one whose frames it hides, and what TorchScript's interpreter
        prints its own tracebacks in (torch/csrc/jit/runtime/interpreter.cpp handleError): what was raised stands in their messages."""
        if self.type.endswith("UnfilteredStackTrace"):
            found = raised(self.message[0])
            if found:
                self.type, self.message[0] = found
        if scripted(self.message):
            here = max((at for at, line in enumerate(self.message) if line.rstrip().endswith("<--- HERE")), default=1)
            below = ((at, raised(line)) for at, line in enumerate(self.message) if at > here and line[:1].strip())
            at, found = next(((at, said) for at, said in below if said is not None), (0, None))
            if found:
                self.type, self.message = found[0], [found[1], *self.message[at + 1 :]]

    @property
    def text(self) -> str:
        """The message, lines joined, without blank ends."""
        lines = [line for line in self.message if not _NATIVE_FRAME.match(line[:LOOK])]
        while lines and not lines[-1].strip():
            lines.pop()
        while lines and not lines[0].strip():
            lines.pop(0)
        return "\n".join(lines)[:MESSAGE_LIMIT]


#: C++ frames below an exception's message: other parsers read them
_NATIVE_FRAME = Pattern(
    r"^\s*(?:frame #\d{1,4}: |Exception raised from .{1,600} \(most recent call first\):"
    r"|C\+\+ CapturedTraceback:|#\d{1,4} .{1,600} from )"
)

#: a line of a message after which a traceback belongs to the message (the exception quotes what happened elsewhere)
_QUOTES = Pattern(
    r'^\s*(?:""" ?|\'\'\'|-- Process \d+ terminated.{0,80}|'
    r".{0,200}(?:[Tt]raceback|error|exception|[Oo]riginal \w+|stack|follow\w+).{0,80}:"
    r"|.{20,400}[a-z]{3}:)\s*$"  # a sentence that what follows completes
)
_CARRIES = Pattern(r"\bError raised in (?:a |the )?(?:subprocess|child process|worker process)\b.{0,80}:\s*$")
#: the header that torch's interpreter of scripts prints in the message of the exception that it throws; the cause stands below
_SCRIPTED = Pattern(r"^\s*Traceback of TorchScript(?:, \w+ code)? \(most recent call last\):\s*$")
#: how multiprocessing and concurrent.futures set off what a worker said
QUOTE_LINES = ('"""', "'''")
_WRAPPER = Pattern(r"(?:^|\.)_?(?:RemoteTraceback|ProcessRaisedException)$")
_RAY_TASK = Pattern(r"^(?:[\w.]*\.)?(?:RayTaskError|ActorDiedError|RayActorError)")
_RAY_REMOTE = Pattern(r"^\s*(?:.{0,120}: )?(?:\[[\d;]{1,8}m)?ray::")
_REMOTE_HEADER = Pattern(r"^\s*Traceback [a-z][a-z ]{3,80} \(most recent call last\):\s*$")
_CARETS = frozenset("^~ \t")


def carries(message: Sequence[str]) -> bool:
    """True where a message is what another process printed, its traceback among it: "Error raised in subprocess:" and the rest."""
    return bool(message) and _CARRIES.search(message[0][:LOOK]) is not None


def quotes_next(message_line: str) -> bool:
    """True where a traceback right after this line of a message belongs to the message."""
    return bool(_QUOTES.match(message_line[:LOOK]))


def last_said(message: Sequence[str]) -> str:
    """The last line of a message that says something: carets, which Ray's workers leave behind, and blank lines do not."""
    return next((line for line in reversed(message) if not _CARETS.issuperset(line[:LOOK])), "")


def remote_frames(message_line: str) -> bool:
    """True where frames without Python's own header follow: Ray's `ray::Worker.run() (pid=7, ip=10.0.0.1)`, or a header in a
    library's words, as Monarch's "Traceback of where the remote call failed (most recent call last):"."""
    text = message_line[:LOOK]
    return ("ray::" in text and bool(_RAY_REMOTE.match(text))) or ("(most recent" in text and bool(_REMOTE_HEADER.match(text)))


def user_code(message: Sequence[str]) -> bool:
    """True where frames stand in the message itself: torch.compile's "from user code:" and what follows it up to a blank line."""
    for line in reversed(message[-200:]):
        if line.strip().lower() in ("from user code:", "from user code (most recent call last):"):
            return True
        if not line.strip():
            return False
    return False


def scripted(message: Sequence[str]) -> bool:
    """True where the frames of a script stand in the message itself, with their source lines: below TorchScript's header."""
    return len(message) > 1 and _SCRIPTED.search(message[1][:LOOK]) is not None


class _Reader:
    """Collects exceptions line by line. `done` are finished, innermost first; `open` is the one being read."""

    def __init__(self) -> None:
        self.done: list[Raised] = []
        self.open = Raised()
        self.outer: list[Raised] = []  # exceptions whose message quotes the traceback being read
        self.marks: list[int] = []  # how many were done when each of them began to quote
        self.link: str | None = None
        self.awaiting_code = False
        self.column = 4  # where the code line above starts, for the carets

    @property
    def in_message(self) -> bool:
        return bool(self.open.type)

    def close(self) -> None:
        """The open exception ends here."""
        if self.open.type or self.open.frames:
            self.open.unwrap()
            self.done.append(self.open)
        self.open = Raised()

    def close_all(self) -> None:
        """The open exception and those whose messages quoted it end here, innermost first."""
        self.close()
        while self.outer:
            holder, mark = self.outer.pop(), self.marks.pop()
            if carries(holder.message):
                # what the other process printed is why the call of it failed, too
                self.done = [*self.done[mark:], *self.done[:mark]]
            if _WRAPPER.search(holder.type) and not holder.text.strip("\"' \n"):
                # a transport of what was quoted: its frames tell who waited, the quoted exception what failed
                if holder.frames and self.done:
                    holder.link = "cause"
                    holder.type, holder.message = self.done[-1].type, list(self.done[-1].message)
                    self.done.append(holder)
                continue
            holder.link = "cause" if self.done else holder.link
            self.done.append(holder)

    def nest(self, at: int) -> None:
        """What follows is quoted by the open exception's message."""
        self.outer.append(self.open)
        self.marks.append(len(self.done))
        self.open = Raised(first=at)

    def start(self, at: int) -> None:
        """A header that opens the block, or follows a link: then what a message quotes is a chain itself."""
        if self.outer and self.link:
            self.close()
        else:
            self.close_all()
        self.open = Raised(link=self.link if self.done else None, first=at)
        self.link = None


@lru_cache(maxsize=512)
def read_body(texts: tuple[str, ...]) -> tuple[Raised, ...]:
    """The exceptions of a block, innermost first; frames without an exception line give a record with type "".

    Nested tracebacks (quoted in a message: multiprocessing, DataLoader workers, Ray) come before the exception that quotes them.
    """
    reader = _Reader()
    kinds = [kind_of(t) for t in texts]
    flat = _is_flat(texts, kinds)
    for at, text in enumerate(texts):
        kind = kinds[at]
        if reader.in_message and _message_line(reader, kind, text, at):
            continue
        if kind is Kind.HEAD:
            if not _quoting_raise(reader, text, at):
                reader.start(at)
        elif kind is Kind.FRAME:
            _frame(reader, text, at)
        elif kind is Kind.BOX:
            _box(reader, text, at)
        elif kind is Kind.PLACE:
            _place(reader, text, at)
        elif kind is Kind.ARROW:
            _arrow(reader, text)
        elif kind is Kind.BLANK:
            continue
        elif kind is Kind.LINK:
            reader.link = link_of(text)
        elif kind is Kind.REPEATED and reader.open.frames:
            last = reader.open.frames[-1]
            reader.open.frames[-1] = replace(last, repeated=1 + repeats(text))
        elif kind is Kind.CARET and reader.open.frames:
            _carets(reader, text)
        elif (
            kind is Kind.CODE
            and reader.open.frames
            and reader.open.frames[-1].code
            and (indented_raise(reader.open.frames[-1].code, text) or shifted_raise(reader.column, text))
        ):
            _raise_line(reader, text.strip(), at)
        elif reader.awaiting_code and (kind is Kind.CODE or (flat and not looks_raised(text))) and reader.open.frames:
            _code(reader, text)
            if flat:
                reader.awaiting_code = False
        elif kind is not Kind.CODE or not reader.open.frames:
            _raise_line(reader, text.strip() if flat else text, at)
        reader.open.last = at
    reader.close_all()
    return tuple(r for r in reader.done if r.frames or r.type)


def _is_flat(texts: Sequence[str], kinds: Sequence[Kind]) -> bool:
    """True where the writer's indentation was lost: frame lines stand at the margin."""
    frames = [t for t, k in zip(texts, kinds, strict=True) if k is Kind.FRAME]
    return bool(frames) and sum(t[:1] == "F" for t in frames) * 2 > len(frames)


def _frame(reader: _Reader, text: str, at: int) -> None:
    found = FRAME.match(text) or TORN_FRAME.match(text)
    if not found:
        return
    line = int(found["line"]) if found["line"] else None
    reader.open.frames.append(Frame(function=found["function"] or NO_FUNCTION, file=found["file"], line=line, log_line=at))
    reader.awaiting_code = True


def _box(reader: _Reader, text: str, at: int) -> None:
    """A line of rich's box: a place, the marked source line, or neither (other source lines, locals)."""
    content = in_box(text)
    frames = reader.open.frames
    found = BOX_FRAME.match(content)
    if found:
        frames.append(Frame(found["function"] or "", found["file"], int(found["line"]), log_line=at))
        return
    broken = BOX_FILE.match(content)
    if broken:
        frames.append(Frame("", broken["file"], None, log_line=at))
        return
    if not frames:
        return
    rest = BOX_REST.match(content) if frames[-1].line is None and not frames[-1].function else None
    if rest:
        frames[-1] = replace(frames[-1], line=int(rest["line"]), function=rest["function"] or "")
        return
    if not frames[-1].function:
        frames[-1] = replace(frames[-1], function=content.split("(")[0][:200] or "?")
        return
    code = BOX_CODE.match(content)
    if code and frames[-1].code is None:
        frames[-1] = replace(frames[-1], code=code["code"].strip()[:LOOK])


def _place(reader: _Reader, text: str, at: int) -> None:
    """A frame line of IPython; its line number may stand in the arrow line below."""
    found = PLACE.match(text)
    if not found:
        return
    if found["cell"]:
        number = int(found["cell_line"]) if found["cell_line"] else None
        frame = Frame(found["cell_function"] or "<module>", f"Cell In[{found['cell']}]", number, log_line=at)
    elif found["old_file"]:
        frame = Frame(found["old_function"], found["old_file"], None, log_line=at)
    else:
        frame = Frame((found["function"] or "<module>").strip(), found["file"], int(found["line"]), log_line=at)
    reader.open.frames.append(frame)


def _arrow(reader: _Reader, text: str) -> None:
    found = ARROW.match(text.lstrip())
    frames = reader.open.frames
    if found and frames and frames[-1].code is None:
        frames[-1] = replace(frames[-1], line=frames[-1].line or int(found["line"]), code=found["code"].strip()[:LOOK])


def _quoting_raise(reader: _Reader, text: str, at: int) -> bool:
    """True for `RuntimeError: worker 3 failed: Traceback (most recent call last):` below frames: exception line and header."""
    if not reader.open.frames or reader.link is not None:
        return False
    found = raised(text[: max(text.find(HEADER), 0)].strip(), None)
    if not found:
        return False
    reader.open.type, reader.open.message = found[0], [found[1].rstrip()]
    reader.open.last = at
    reader.nest(at)
    return True


def _code(reader: _Reader, text: str) -> None:
    last = reader.open.frames[-1]
    code = text.strip()[:LOOK]
    reader.open.frames[-1] = replace(last, code=code if last.code is None else f"{last.code}\n{code}")
    reader.column = len(text) - len(text.lstrip())


def _carets(reader: _Reader, text: str) -> None:
    last = reader.open.frames[-1]
    if last.code is None or last.marked is not None or "\n" in last.code:
        return
    start = len(text) - len(text.lstrip()) - reader.column
    marked = last.code[max(start, 0) : max(start, 0) + len(text.strip())]
    if marked:
        reader.open.frames[-1] = replace(last, marked=marked)


def _raise_line(reader: _Reader, text: str, at: int) -> None:
    awaited = raised_name(reader.open.frames[-1].code or "") if reader.open.frames else None
    found = raised(text, awaited)
    if found:
        reader.open.type, reader.open.message = found[0], [found[1]]
        reader.awaiting_code = False


def _message_line(reader: _Reader, kind: Kind, text: str, at: int) -> bool:
    """Takes a line after the exception line. False where the line starts something else."""
    message = reader.open.message
    if kind is Kind.LINK:
        return False
    last = last_said(message)
    if kind is Kind.CARET and remote_frames(last):
        return True  # of a source line that Ray left out
    if kind is Kind.HEAD:
        if reader.link is None and (quotes_next(last) or carries(message) or "Original Traceback" in text or text.strip() != f"{HEADER}:"):
            reader.nest(at)
            reader.open.last = at
            return True
        return False
    if kind in (Kind.FRAME, Kind.CODE) and (user_code(message) or scripted(message)):
        message.append(text)
        return True
    if kind is Kind.FRAME and (remote_frames(last) or _RAY_TASK.match(reader.open.type)):
        reader.nest(at)
        _frame(reader, text, at)
        return True
    if text.strip() in QUOTE_LINES:
        reader.open.last = at
        if reader.outer and any(m.strip() in QUOTE_LINES for m in reader.outer[-1].message):
            reader.close_all()
        elif not last:
            message.append(text)  # the quotation begins
        return True
    message.append(text)
    reader.open.last = at
    return True
