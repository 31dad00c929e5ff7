"""Stacks of threads, printed by a dying process or asked for. In: a `Lane`; out: events fatal_signal and stack. Samples:

    Fatal Python error: Segmentation fault                                  faulthandler
    Current thread 0x00007f1f0230d6a0 (most recent call first):
      File "/srv/torch/cuda/graphs.py", line 173 in __enter__
    Extension modules: numpy._core._multiarray_umath, torch._C (total: 2)
    -> Event(FATAL_SIGNAL, type="SIGSEGV", stacks=(the current thread first, then as printed))

    Process 4711: python -m engine.server                                   py-spy
    Thread 4711 (active+gil): "MainThread"
        recv (multiprocessing/connection.py:250)
    -> Event(STACK, stacks=(…), fields={"pid": 4711, "tool": "py-spy"})

fields: current (index of the crashing thread in stacks, None where the dump does not say), states (one a stack), tool, pid,
reason (the line that announces the dump), extension_modules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from forensics.ingest.pattern import Pattern
from forensics.model.event import Event, EventKind
from forensics.model.record import draft, field
from forensics.model.source import LogLine, Span
from forensics.model.stack import Frame, StackTrace
from forensics.parse.python.lanes import Item, Lane

_FATAL = Pattern(r"Fatal Python error: (?P<what>[^\n]{1,400})")
_THREAD = Pattern(
    r"^\W{0,4}(?P<current>Current )?[Tt]hread (?P<id>0x[0-9a-fA-F]{4,16})"
    r"(?: \[(?P<name>[^\]\n]{0,80})\])? \(most recent call first\):"
)
_DUMPED = Pattern(
    r'^\s{0,8}File "(?P<file>[^"\n]{1,1000})", line (?P<line>\d{1,8}|\?{3}) in (?P<function><[^>\n]{1,80}>|[\w.<>]{1,300})\s*$'
)
_C_FRAME = Pattern(
    r'^\s{0,8}Binary file "(?P<module>[^"\n]{1,600})", at '
    r"(?:(?P<function>[\w.@]{1,300})?\+(?P<offset>0x[0-9a-f]+) )?\[(?P<address>0x[0-9a-f]+)\]"
)
_C_HEADER = Pattern(r"^Current thread's C stack trace \(most recent call first\):")
_MODULES = Pattern(r"^Extension modules: (?P<names>.{1,20000}?)(?: \(total: (?P<total>\d+)\))?$")
_TIMEOUT = Pattern(r"^Timeout \(\d+:\d\d:\d\d(?:\.\d+)?\)!$")

_SPY_PROCESS = Pattern(r"^Process (?P<pid>\d{1,9}): (?P<command>.{1,2000})$")
_SPY_THREAD = Pattern(
    r'^Thread (?P<id>0x[0-9a-fA-F]{1,16}|\d{1,20}) \((?P<state>[a-z+ ]{3,30})\)(?:: "(?P<name>[^"\n]{0,120})")?\s*$'
)
_SPY_FRAME = Pattern(
    r"^ {2,8}(?P<function>[^\s(][^\n(]{0,200}?) \((?P<file>[^()\n]{1,300}?)(?::(?P<line>\d{1,8}))?\)\s*$"
)

_SIGNALS = {
    "segmentation fault": "SIGSEGV",
    "aborted": "SIGABRT",
    "bus error": "SIGBUS",
    "floating point exception": "SIGFPE",
    "illegal instruction": "SIGILL",
    "floating-point exception": "SIGFPE",
    "stack overflow": "SIGSEGV",
    "access violation": "SIGSEGV",
}


@draft
class _Thread:
    """One thread as printed, innermost frame first."""

    name: str
    current: bool = False
    state: str = ""
    python: bool = True
    frames: list[Frame] = field(default_factory=list)
    first: int = 0
    last: int = 0


@draft
class _Dump:
    """One dump being read. fatal: what the process said when it died."""

    lines: list[LogLine] = field(default_factory=list)
    fatal: str | None = None
    reason: str = ""
    tool: str = "faulthandler"
    pid: int | None = None
    modules: str = ""
    threads: list[_Thread] = field(default_factory=list)


#: other lines that a dump may be interrupted by
_NOISE = 12


def dumps_of(lane: Lane) -> list[Event]:
    """The dumps of one lane."""
    reader = _Reader()
    for item in lane.items:
        reader.take(item)
    reader.finish()
    return [event for dump in reader.done if (event := _event(dump)) is not None]


class _Reader:
    def __init__(self) -> None:
        self.done: list[_Dump] = []
        self.now: _Dump | None = None
        self.noise = 0
        self.before: Item | None = None  # a line that may announce the dump
        self.process: Item | None = None  # py-spy's line about the process, until its first thread
        self.spied = False  # threads of the running dump are printed by py-spy

    def finish(self) -> None:
        """The running dump ends."""
        if self.now is not None:
            self.done.append(self.now)
        self.now, self.noise = None, 0

    def take(self, item: Item) -> None:
        """One line: opens, goes on with or ends a dump."""
        text = item.line.text
        if len(text) > 25_000:
            text = text[:25_000]
        if not text.strip():
            return
        if not (self.opens(item, text) or (self.now is not None and self.goes_on(item, text))):
            self.before = item
            if text.startswith("Process ") and _SPY_PROCESS.match(text):
                self.process = item
            if self.now is not None:
                self.noise += 1
                if self.noise > _NOISE:
                    self.finish()
        elif self.now is not None:
            self.now.lines.append(item.line)
            self.noise = 0

    def opens(self, item: Item, text: str) -> bool:
        """True where the line starts a dump or a thread."""
        if "Fatal Python error: " in text:
            fatal = _FATAL.search(text)
            if fatal:
                self.finish()
                self.now = _Dump(fatal=fatal["what"].strip())
                self.spied = False
                return True
        if "most recent call" in text:
            thread = _THREAD.match(text)
            if thread:
                self.dump(item, spied=False).threads.append(
                    _Thread(
                        thread["name"] or thread["id"],
                        bool(thread["current"]),
                        first=item.line.number,
                        last=item.line.number,
                    )
                )
                return True
            if text.startswith("Stack (most recent call first)"):  # the one thread there is, or the only one asked for
                self.dump(item, spied=False).threads.append(
                    _Thread("", True, first=item.line.number, last=item.line.number)
                )
                return True
            if _C_HEADER.match(text) and self.now:
                self.now.threads.append(_Thread("C", True, python=False, first=item.line.number, last=item.line.number))
                return True
            return False
        if text.startswith("Thread "):
            spied = _SPY_THREAD.match(text)
            if spied:
                self.dump(item, spied=True).threads.append(
                    _Thread(
                        spied["name"] or spied["id"],
                        state=spied["state"],
                        first=item.line.number,
                        last=item.line.number,
                    )
                )
                return True
        return False

    def dump(self, item: Item, spied: bool) -> _Dump:
        """The running dump of that tool, or a new one."""
        if self.now is None or (self.now.threads and self.spied != spied):
            self.finish()
            self.now = _Dump(tool="py-spy" if spied else "faulthandler")
            self.spied = spied
            above = self.process if spied else self.before
            self.process = None
            if above is not None and item.index - above.index <= _NOISE:
                process = _SPY_PROCESS.match(above.line.text) if spied else None
                if process:
                    self.now.pid = int(process["pid"])
                if process or _TIMEOUT.match(above.line.text):
                    self.now.reason = above.line.text.strip()[:500]
                    self.now.lines.append(above.line)
        return self.now

    def goes_on(self, item: Item, text: str) -> bool:
        """True where the line belongs to the running dump."""
        assert self.now is not None
        if self.spied:
            if _SPY_PROCESS.match(text):
                self.finish()
                return False
            if text.startswith("Python v"):
                return True
            return self.frame(_spy_frame(text, item), item) or text.startswith("        ")
        if text.startswith("Extension modules: "):
            modules = _MODULES.match(text)
            if modules:
                self.now.modules = modules["names"]
                return True
        if text.strip() in (
            "Garbage-collecting",
            "<no Python frame>",
            "...",
            "Python runtime state: initialized",
            "Python runtime state: core initialized",
        ):
            return True
        if text.startswith(("Python runtime state", "  <cannot get C stack", "Stack (most recent")):
            return True
        return self.frame(_dumped_frame(text, item), item)

    def frame(self, frame: Frame | None, item: Item) -> bool:
        """Gives a frame to the last thread."""
        assert self.now is not None
        if frame is None or not self.now.threads:
            return False
        self.now.threads[-1].frames.append(frame)
        self.now.threads[-1].last = item.line.number
        return True


def _dumped_frame(text: str, item: Item) -> Frame | None:
    found = _DUMPED.match(text)
    if found:
        line = int(found["line"]) if found["line"].isdigit() else None
        return Frame(found["function"], found["file"], line, log_line=item.line.number)
    native = _C_FRAME.match(text)
    if native:
        return Frame(
            native["function"] or "??", module=native["module"], address=native["address"], log_line=item.line.number
        )
    return None


def _spy_frame(text: str, item: Item) -> Frame | None:
    found = _SPY_FRAME.match(text)
    if not found:
        return None
    file, line = found["file"], found["line"]
    native = line is None or file.endswith(".so") or ".so." in file
    if native and "." not in file:
        return None
    return Frame(
        found["function"],
        None if native and line is None else file,
        int(line) if line else None,
        module=file if native and line is None else None,
        log_line=item.line.number,
    )


def _event(dump: _Dump) -> Event | None:
    if not dump.lines or (dump.fatal is None and not any(t.frames for t in dump.threads)):
        return None
    threads = _crashing_first([t for t in dump.threads if t.frames])
    source = dump.lines[0].source
    numbers = [line.number for line in dump.lines]
    span = Span(source, min(numbers), max(numbers))
    told = next((line for line in dump.lines if line.rank), dump.lines[0])
    fields: dict[str, Any] = {"tool": dump.tool, "states": tuple(t.state for t in threads)}
    fields["current"] = 0 if threads and threads[0].current else None
    if dump.reason:
        fields["reason"] = dump.reason
    if dump.pid is not None:
        fields["pid"] = dump.pid
    if dump.modules:
        fields["extension_modules"] = tuple(name.strip() for name in dump.modules.split(",")[:400])
    return Event(
        EventKind.STACK if dump.fatal is None else EventKind.FATAL_SIGNAL,
        span,
        rank=told.rank,
        time=dump.lines[0].time,
        type=None if dump.fatal is None else _signal(dump.fatal),
        message=f"Fatal Python error: {dump.fatal}" if dump.fatal else dump.reason,
        stacks=tuple(_stack(thread, source) for thread in threads),
        level=told.level,
        parser="python",
        stream=told.stream,
        fields=fields,
    )


def _signal(what: str) -> str:
    """The signal behind faulthandler's words; other fatal errors of the interpreter end in abort()."""
    return next((name for words, name in _SIGNALS.items() if words in what.lower()), "SIGABRT")


def _crashing_first(threads: Sequence[_Thread]) -> list[_Thread]:
    """The current thread first (its C stack after it); where none is marked the main thread, known by its module frame."""
    current = [t for t in threads if t.current]
    if not current:
        current = [t for t in threads if t.frames[-1].function == "<module>" or "MainThread" in t.name][:1]
    current.sort(key=lambda t: not t.python)
    chosen = {id(t) for t in current}
    return current + [t for t in threads if id(t) not in chosen]


def _stack(thread: _Thread, source: int) -> StackTrace:
    language = "python" if thread.python else "native"
    if thread.python and any(frame.module for frame in thread.frames):
        language = "mixed"
    return StackTrace(tuple(reversed(thread.frames)), Span(source, thread.first, thread.last), thread.name, language)
