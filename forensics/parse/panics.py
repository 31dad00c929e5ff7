# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""Crashes of Rust, Go and Java programs. In: an intake; out: NATIVE and
FATAL_SIGNAL events with their stacks. Samples:

    thread 'tokio-runtime-worker' panicked at src/router.rs:42:9:
    called `Option::unwrap()` on a `None` value
       0: rust_begin_unwind
                 at /rustc/90b35a6/library/std/src/panicking.rs:665:5
    -> NATIVE type "panic", message "called `Option::unwrap()` on a `None` value", fields {"language": "rust", "thread": …, "file": "src/router.rs", "line": 42}

    panic: runtime error: index out of range [5] with length 3          fatal error: all goroutines are asleep - deadlock!
    goroutine 1 [running]:
    main.main()
            /src/main.go:12 +0x1d
    -> NATIVE type "panic", fields {"language": "go"}

    Error: Could not create backend · (blank) · Caused by: ·     0: Could not start · 1: no device
    -> NATIVE "Could not create backend: Could not start: no device", fields {"language": "rust", "cause": "no device"}

    # A fatal error has been detected by the Java Runtime Environment:       #  SIGSEGV (0xb) at pc=0x7f, pid=12, tid=13
    Exception in thread "main" java.lang.OutOfMemoryError: Java heap space   then "\\tat org.apache.spark.Foo.bar(Foo.java:12)"
"""

from __future__ import annotations

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.model.stack import Frame
from forensics.parse.reading import Lazy, following, hits, make, preceding, stack_of

_RUST = "panicked at "
_GO = ("panic: ", "fatal error: ")
_CAUSES = "Caused by:"
_GOROUTINE = "goroutine "
_JAVA = 'Exception in thread "'
#: among the registers that Go prints last of all when a signal ended the program
_RFLAGS = "rflags 0x"
_JVM = "A fatal error has been detected by the Java Runtime Environment"

ANCHORS: tuple[Anchor, ...] = (
    Anchor(_RUST.encode(), 0, 60, "panics"),
    Anchor(b"panic: ", 1, 60, "panics"),
    Anchor(_CAUSES.encode(), 3, 12, "panics"),
    Anchor(b"goroutine 1 [", 2, 40, "panics"),
    Anchor(b"all goroutines are asleep", 1, 40, "panics"),
    Anchor(b"fatal error: unexpected signal", 1, 60, "panics"),
    Anchor(_JAVA.encode(), 0, 60, "panics"),
    Anchor(_JVM.encode(), 1, 20, "panics"),
    Anchor(b"SIGSEGV: segmentation violation", 1, 40, "panics"),
    Anchor(_RFLAGS.encode(), 16, 1, "panics"),
)

_PANIC = Lazy(
    r"thread '(?P<thread>[^']{0,120})'(?: \(\d+\))? panicked at (?:'(?P<old>.{0,2000})', )?(?P<file>[^\s:']{1,300}):(?P<line>\d+)(?::\d+)?:?\s*$"
)
_RUST_FRAME = Lazy(r"^\s*(\d{1,4}):\s+(?:0x[0-9a-f]+ - )?(\S.*)$")
_RUST_AT = Lazy(r"^\s+at (\S{1,400}?):(\d+)(?::\d+)?\s*$")
#: anyhow's and eyre's Debug form of an error, as main() prints it (anyhow src/fmt.rs); a cause has a number where there are several
_RUST_ERROR = Lazy(r"^(?:Error|error): (?P<message>\S.*)$")
_CAUSE = Lazy(r"^\s{2,}(?:\d{1,3}: )?(?P<message>\S.*)$")
_GO_PANIC = Lazy(r"^\s*(?:panic: |fatal error: )(?P<message>.*)$")
_GO_CALL = Lazy(r"^(?P<name>[\w./*()\[\]{}-]{1,300})\((?:[^)]{0,300})\)$")
_GO_AT = Lazy(r"^\s+(?P<file>\S{1,400}\.(?:go|s)):(?P<line>\d+)(?: \+0x[0-9a-f]+)?$")
_THROWN = Lazy(r"Exception in thread \"(?P<thread>[^\"]{1,120})\" (?P<type>[\w.$]{1,200})(?:: (?P<message>.*))?$")
_JAVA_AT = Lazy(r"^\s*at (?P<name>[\w.$<>/]{1,300})\((?:(?P<file>[\w.-]{1,120}):(?P<line>\d+)|[^)]{0,120})\)\s*$")
_REGISTERS = Lazy(r"^r(?:flags|ip|sp|bp|ax) +0x[0-9a-f]{1,16}\s*$")
_JAVA_SIGNAL = Lazy(r"#\s+(SIG[A-Z]+) \(0x[0-9a-f]+\) at pc=(0x[0-9a-f]+), pid=(\d+)")


def parse(intake: Intake) -> list[Event]:
    """Events of every language here."""
    return [*_rust(intake), *_rust_errors(intake), *_go(intake), *_java(intake)]


def _rust(intake: Intake) -> list[Event]:
    events = []
    for index in hits(intake, _RUST):
        line = intake.lines[index]
        found = _PANIC.search(line.text)
        if not found:
            continue
        words, last = found["old"] or "", line
        frames: list[tuple[int, Frame]] = []
        for at, after in following(intake, index, 80):
            text = after.text
            place = _RUST_AT.match(text)
            call = _RUST_FRAME.match(text)
            if place and frames:
                frames[-1] = (
                    frames[-1][0],
                    Frame(frames[-1][1].function, place[1], int(place[2]), log_line=after.number),
                )
            elif call and (frames or int(call[1]) == 0):
                frames.append((at, Frame(call[2].strip()[:400], log_line=after.number)))
            elif not found["old"] and not words and not frames:
                words = text.strip()
            elif "stack backtrace:" not in text and not text.startswith("note: "):
                break
            last = after
        fields = {"language": "rust", "thread": found["thread"], "file": found["file"], "line": int(found["line"])}
        events.append(
            make(
                EventKind.NATIVE,
                line,
                last,
                parser="panics",
                type="panic",
                message=words,
                stacks=stack_of(intake, frames, found["thread"]),
                fields=fields,
            )
        )
    return events


def _rust_errors(intake: Intake) -> list[Event]:
    """Errors with which main() ended: what it names first is the least of it, the last cause says what was wrong."""
    events = []
    for index in hits(intake, _CAUSES):
        if intake.lines[index].text.strip() != _CAUSES:
            continue
        above = next((line for _, line in preceding(intake, index, 3) if line.text.strip()), None)
        found = _RUST_ERROR.match(above.text) if above is not None else None
        if above is None or found is None:
            continue
        said, last = [found["message"].strip()], above
        for _, line in following(intake, index, 12):
            cause = _CAUSE.match(line.text)
            if cause is None:
                break
            said.append(cause["message"].strip())
            last = line
        if len(said) > 1:
            fields = {"language": "rust", "cause": said[-1]}
            events.append(make(EventKind.NATIVE, above, last, parser="panics", message=": ".join(said), fields=fields))
    return events


def _go(intake: Intake) -> list[Event]:
    events = []
    for index in hits(intake, "panic: ", "all goroutines are asleep", "fatal error: unexpected signal"):
        line = intake.lines[index]
        found = _GO_PANIC.match(line.text)
        if not found:
            continue
        frames: list[tuple[int, Frame]] = []
        pending: tuple[int, str] | None = None
        seen = False
        last = line
        for at, after in following(intake, index, 60):
            text = after.text
            place, call = _GO_AT.match(text), _GO_CALL.match(text)
            if text.startswith(_GOROUTINE):
                if seen:
                    break
                seen = True
            elif place and pending:
                frames.append((pending[0], Frame(pending[1], place["file"], int(place["line"]), log_line=after.number)))
                pending, last = None, after
            elif call and seen:
                pending = (at, call["name"])
            elif seen and text.strip() and not text.startswith(("created by", "\t", "exit status")):
                break
        if seen or "[recovered]" in line.text:
            events.append(
                make(
                    EventKind.NATIVE,
                    line,
                    last,
                    parser="panics",
                    type="panic",
                    message=found["message"],
                    stacks=stack_of(intake, frames),
                    fields={"language": "go"},
                )
            )
    return events or _go_tail(intake)


def _go_tail(intake: Intake) -> list[Event]:
    """The end of a Go program's dump whose beginning was cut off: its registers, of which nobody can say which signal it was."""
    for index in hits(intake, _RFLAGS)[-1:]:
        above = [line for _, line in preceding(intake, index, 16) if _REGISTERS.match(line.text)]
        begun = hits(intake, "goroutine 1 [", "SIGSEGV: segmentation violation", "panic: ")
        if len(above) >= 3 and _REGISTERS.match(intake.lines[index].text) and not begun:
            fields = {"language": "go", "cut": True}
            said = intake.lines[index].text.strip()
            return [make(EventKind.NATIVE, above[-1], intake.lines[index], parser="panics", message=said, fields=fields)]
    return []


def _java(intake: Intake) -> list[Event]:
    events = []
    for index in hits(intake, _JAVA):
        line = intake.lines[index]
        found = _THROWN.search(line.text)
        if not found:
            continue
        frames: list[tuple[int, Frame]] = []
        last = line
        for at, after in following(intake, index, 60):
            call = _JAVA_AT.match(after.text)
            if not call:
                break
            frames.append(
                (
                    at,
                    Frame(
                        call["name"], call["file"], int(call["line"]) if call["line"] else None, log_line=after.number
                    ),
                )
            )
            last = after
        events.append(
            make(
                EventKind.NATIVE,
                line,
                last,
                parser="panics",
                type=found["type"],
                message=found["message"] or "",
                stacks=stack_of(intake, frames, found["thread"]),
                fields={"language": "java", "thread": found["thread"]},
            )
        )
    for index in hits(intake, _JVM):
        line = intake.lines[index]
        for _, after in following(intake, index, 6):
            signal = _JAVA_SIGNAL.search(after.text)
            if signal:
                events.append(
                    make(
                        EventKind.FATAL_SIGNAL,
                        line,
                        after,
                        parser="panics",
                        type=signal[1],
                        message=signal[0].strip("# "),
                        fields={"language": "java", "pid": int(signal[3])},
                    )
                )
                break
    return events
