"""ggml and llama.cpp: asserts, aborts, CUDA/ROCm errors and their backtrace. In: an intake; out: NATIVE events (type: the
assertion macro, or SIGABRT where ggml aborts on a runtime error) and MESSAGE events for model loading errors. Samples:

    GGML_ASSERT: ggml-cuda.cu:727: tensor->view_src == nullptr                      older
    /src/ggml/src/ggml.c:1763: GGML_ASSERT(ggml_can_mul_mat(a, b)) failed           newer
    -> NATIVE type "GGML_ASSERT", message as printed, fields {"file": …, "line": …, "expression": …}

    /src/ggml/src/ggml-cuda.cu:70: CUDA error
    CUDA error: out of memory
      current device: 0, in function alloc at /src/ggml/src/ggml-cuda/common.cuh:663
      cudaMalloc(&ptr, size)
    #1  0x7f00 in ggml_abort () from libggml.so        or   libggml-base.so(ggml_abort+0x11f) [0x7f00]
    -> NATIVE type "SIGABRT", message "CUDA error: out of memory" and the two lines below it, frame alloc of common.cuh, line 663, fields
       {"device": 0, "function": "alloc", "call": "cudaMalloc(…)"}

ggml calls abort() after either; the lines of one failure may come in another order, standard output and error being two pipes.
"""

from __future__ import annotations

import re
from typing import Any

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.model.record import replace
from forensics.model.source import LogLine
from forensics.model.stack import Frame
from forensics.parse.frames import gdb_frame, glibc_frame
from forensics.parse.reading import Lazy, following, hits, located, make, preceding, stack_of
from forensics.parse.rows import Row, Table

_ASSERT = "GGML_ASSERT"
_DEVICE = "current device: "
_ABORTED = "(ggml_abort+"
#: the frame above it, all that is left of a backtrace that was cut
_PRINTED = "(ggml_print_backtrace+"

#: what a shell says of a program that aborted; nothing more stands there where no debugger is at hand and symbols are stripped
_SHELL = "Aborted"
_BARE_REACH = 14
#: where ggml's and llama.cpp's sources lie: such a place at the head of a line is an abort's, whoever tells of the end, or nobody
_SOURCES = ("/ggml/src/", "/src/llama-")
_OWN_FILE = Lazy(r"(?:ggml|llama|whisper|clip|mtmd)[^/]{0,60}$|/ggml[\w.-]{0,20}/")

_COMPILER = Lazy(r"(?:(?:fatal )?error|warning|note): |(?:In|At) \w|undefined reference|\d{1,5}:")

#: lines in a row that another thread may write into a backtrace
_MOST_STRAYS = 1

#: functions by which ggml ends after a failed call
_WAY = ("ggml_abort", "ggml_cuda_error", "ggml_print_backtrace")

_MESSAGES = Table(
    "ggml",
    (
        Row(
            "cudaMalloc failed: ",
            EventKind.MESSAGE,
            r"(?P<message>\S{0,80}: ?allocating (?P<mib>[\d.]+) MiB on device (?P<device>\d+): cudaMalloc failed: .*)",
            level="ERROR",
        ),
        Row(
            "error loading model",
            EventKind.MESSAGE,
            r"(?P<message>(?:\w{1,60}: )?error loading model.*)",
            level="ERROR",
        ),
        Row(
            "failed to load model",
            EventKind.MESSAGE,
            r"(?P<message>(?:[\w :|-]{1,60}: )?failed to load model.*)",
            level="ERROR",
            unless=("Traceback",),
        ),
        Row(
            "error: unable to load model",
            EventKind.MESSAGE,
            r"(?P<message>error: unable to load model.*)",
            level="ERROR",
        ),
        Row(
            "failed to allocate buffer",
            EventKind.MESSAGE,
            r"(?P<message>[\w:| ]{1,120}failed to allocate buffer.*)",
            level="ERROR",
        ),
        Row("failed to initialize CUDA: ", EventKind.MESSAGE, r"(?P<message>ggml_cuda_init: failed to initialize CUDA: .*)"),
        Row("failed to initialize ROCm: ", EventKind.MESSAGE, r"(?P<message>ggml_cuda_init: failed to initialize ROCm: .*)"),
        Row(
            "can't malloc ",
            EventKind.MESSAGE,
            r"(?P<message>ggml_backend_sycl_buffer_type_alloc_buffer: can't malloc \d+ Bytes memory on device)",
            level="ERROR",
        ),
        Row(
            "Unknown argument: ",  # llama-box, which takes llama.cpp's options
            EventKind.MESSAGE,
            r"^(?P<message>Unknown argument: -{1,2}[A-Za-z][\w-]{0,80})\s*$",
            level="ERROR",
        ),
        Row(
            "): found nan for ",  # a fork's check of an operation's result, by which it ends
            EventKind.MESSAGE,
            r"^(?P<message>\w{2,20}\(ggml_compute_forward_\w{1,60}, (?P<tensor>[^\s)]{1,120})\): found nan for .*)$",
            level="ERROR",
        ),
        Row("failed to create context with model", EventKind.MESSAGE, level="ERROR"),
        Row("ggml_vulkan: Device memory allocation of size", EventKind.MESSAGE, level="ERROR"),
    ),
)

ANCHORS: tuple[Anchor, ...] = (
    Anchor(_ASSERT.encode(), 6, 90, "ggml"),
    Anchor(_DEVICE.encode(), 5, 90, "ggml"),
    Anchor(b"in function ggml_", 5, 90, "ggml"),
    Anchor(_ABORTED.encode(), 12, 60, "ggml"),
    Anchor(_PRINTED.encode(), 12, 60, "ggml"),
    Anchor(b" in ggml_abort", 60, 60, "ggml"),
    Anchor(b"ggml_abort (file=", 14, 90, "ggml"),
    Anchor(_SHELL.encode(), 14, 0, "ggml"),
    *(Anchor(text.encode(), 0, 90, "ggml") for text in _SOURCES),
    *_MESSAGES.anchors(),
)

_OLD = Lazy(r"GGML_ASSERT: (?P<file>(?:[A-Za-z]:\\)?[^:\n]{1,400}):(?P<line>\d+): (?P<expression>.+)$")
_NEW = Lazy(
    r"(?<![^\s:])(?P<file>(?:[A-Za-z]:\\[^:\n]{1,400}|[^:\s]{1,400})):(?P<line>\d{1,7}): GGML_ASSERT\((?P<expression>.{1,600}?)\) failed"
)
#: without its place, also in the middle of half a word that another process was writing
_BARE = Lazy(r"(?:^\s*(?:Error: )?|(?<=[A-Za-z0-9_=%,|\]])(?<!\\[nrt]))GGML_ASSERT\((?P<expression>.{1,600}?)\) failed")
_AT = Lazy(
    r"current device: (?P<device>-?\d+), in function (?P<function>\S{1,200}) at (?P<file>[^\s]{1,400}?)(?::(?P<line>\d+)|\s*$)"
)
_LACKS = Lazy(r"ggml_\w{3,60}: (?:error: )?op not supported \S{1,120} \(\w{2,40}\)")
_IN = Lazy(r"^\s*in function (?P<function>\S{1,200}) at (?P<file>[^\s]{1,400}):(?P<line>\d+)")
_NATIVE_API = Lazy(r"^\s*(?:Native API failed\. )?Native API returns: -?\d{1,6} ")
_STATUS = Lazy(
    r"^\s*(?:[\d.]{6,20} [A-Z] )?(?:Error: (?:[a-z ]{1,100} )?)?(?:\S{1,300}:\d+: )?((?:CUDA|ROCm|MUSA|HIP|SYCL|CANN) error(?:: .+)?)\s*$"
)
_OPERATION = Lazy(r"ggml_\w{1,20}_compute_forward: (\w{1,60}) failed")
#: gdb's frame of the abort: "#2  ggml_abort (file=0x55 "/src/ggml.c", line=251, fmt=0x55 "GGML_ASSERT(%s) failed") at …"
_CALLED = "ggml_abort (file="
_CALL = Lazy(
    r'^#\d{1,3} +(?:0x[0-9a-f]+ in )?ggml_abort \(file=(?:0x[0-9a-f]+ )?"(?P<file>[^"]{1,400})", line=(?P<line>\d{1,7}), '
    r'fmt=(?:0x[0-9a-f]+ )?"(?P<format>[^"]{1,400})"'
)
_ABORT = Lazy(r"^\s*(?P<file>[^:\s]{1,400}\.(?:c|cc|cpp|cu|cuh|m|h|hpp)):(?P<line>\d+): (?P<message>.+)$")


def parse(intake: Intake) -> list[Event]:
    """Events of ggml programs."""
    events = _runtime_errors(intake) + _asserts(intake)
    spans = [e.span for e in events]
    events += [e for e in _aborts(intake) if not any(e.span.overlaps(s) for s in spans)]
    return (events or _debugged(intake)) + _MESSAGES.read(intake)


def _runtime_errors(intake: Intake) -> list[Event]:
    """`current device: …` and what stands around it."""
    events = []
    for index in hits(intake, _DEVICE):
        line = intake.lines[index]
        found = _AT.search(line.text)
        if not found:
            continue
        first, status, named, far = line, "", None, False
        for _, before in preceding(intake, index, 5):
            text = _STATUS.match(before.text)
            operation = _OPERATION.search(before.text)
            if text:
                status = max(status, text[1], key=len)
            if operation:
                named = operation[1]
            if text or operation:
                first = before
        if not status:
            # CANN's report of what its compiler and runtime said stands between
            told = ((b, _STATUS.match(b.text)) for _, b in preceding(intake, index, 40) if "CANN error" in b.text)
            first, status = next(((b, words[1]) for b, words in told if words), (first, ""))
            far = bool(status)
        below = next((at for at, a in following(intake, index, 1) if a.text.startswith(" ")), None)
        call = intake.lines[below].text.strip() if below is not None else ""
        number = int(found["line"]) if found["line"] else None  # the log may end within the path
        fields: dict[str, Any] = {**found.groupdict(), "device": int(found["device"]), "line": number, "call": call}
        if named:
            fields["operation"] = named
        place = Frame(found["function"], found["file"], number, call or None, log_line=line.number)
        said = [status or "CUDA error", *([] if far else [found[0], call])]
        end = index if below is None else below
        events.append(_native(intake, end, first, "SIGABRT", "\n".join(said).rstrip(), fields, place))
    return events


def _asserts(intake: Intake) -> list[Event]:
    events = []
    for index in hits(intake, _ASSERT):
        text = intake.lines[index].text
        found = _OLD.search(text) or _NEW.search(text) or _BARE.search(text)
        if not found:
            continue
        # !"CUDA error" is how older versions abort after the report above
        if 'error"' in found["expression"]:
            events += _sycl_error(intake, index)
            continue
        fields = found.groupdict()
        if "line" in fields:
            fields["line"] = int(found["line"])
        # the operation that the backend lacks stands right above the `ok` that did not hold
        lacks = next((b for _, b in preceding(intake, index, 3) if _LACKS.search(b.text)), None)
        said = [found[0].strip()] if lacks is None else [lacks.text.strip(), found[0].strip()]
        events.append(_native(intake, index, lacks or intake.lines[index], _ASSERT, "\n".join(said), fields))
    return events


def _sycl_error(intake: Intake, index: int) -> list[Event]:
    """What SYCL says above such an abort; it names no device, so no `current device: ` leads to it."""
    native = status = place = None
    for _, before in preceding(intake, index, 6):
        if _DEVICE in before.text:
            return []
        status = before if _STATUS.match(before.text) else status
        native = before if _NATIVE_API.search(before.text) else native
        place = _IN.search(before.text) or place
    if status is None:
        return []
    frame = Frame(place["function"], place["file"], int(place["line"]), log_line=status.number) if place else None
    said = [line.text.strip() for line in (native, status) if line is not None]
    return [_native(intake, index, native or status, "SIGABRT", "\n".join(said), {"call": status.text.strip()}, frame)]


def _aborts(intake: Intake) -> list[Event]:
    """GGML_ABORT with a message: known by the backtrace below it, or by a place in ggml's sources above the shell's word."""
    events = []
    begun: set[int] = set()
    for index in hits(intake, _ABORTED, _PRINTED, " in ggml_abort", _SHELL):
        bare = _SHELL in intake.lines[index].text
        for at, line in preceding(intake, index, _BARE_REACH if bare else 60):
            found = _ABORT.match(line.text)
            if found and bare and (not _OWN_FILE.search(found["file"]) or _COMPILER.match(found["message"])):
                continue
            if found and not line.text.startswith("#") and "sysdeps" not in line.text and not line.text[0].isdigit():
                if at in begun:
                    break
                begun.add(at)
                events.append(_abort(intake, at, line, found))
                break
    return events or _untold(intake)


def _untold(intake: Intake) -> list[Event]:
    """Aborts without backtrace and without anybody who tells of them, as a container's log holds them: the place stands at the head of
    a line, as only compilers print places, too."""
    events = []
    for index in hits(intake, *_SOURCES):
        line = intake.lines[index]
        found = _ABORT.match(line.text)
        if not found or found["message"][0].isspace() or not _OWN_FILE.search(found["file"]) or _COMPILER.match(found["message"]):
            continue
        if _STATUS.match(line.text) and hits(intake, _DEVICE):
            continue  # the report of the failed call stands beside it
        events.append(_abort(intake, index, line, found))
    return events


def _abort(intake: Intake, at: int, line: LogLine, found: re.Match[str]) -> Event:
    """The event of an abort's own line."""
    said = found["message"]
    # a log that ends within the word is of an assertion, too
    kind = _ASSERT if said.startswith("GGML_A") else "SIGABRT" if said.endswith(" error") else "GGML_ABORT"
    if said == "fatal error":  # which check it was, only its place tells
        said = f"{found['file'].rsplit('/', 1)[-1]}:{found['line']}: {said}"
    return _native(intake, at, line, kind, said, {"file": found["file"], "line": int(found["line"])})


#: the line of the source that gdb shows below it
_SOURCE = Lazy(r"^(?P<line>\d{1,7})\s{1,40}GGML_ASSERT\((?P<expression>.{1,600})\);")


def _debugged(intake: Intake) -> list[Event]:
    """What gdb shows of an abort in its own words, arguments and source lines: nothing that the program printed need stand there."""
    events = []
    for index in hits(intake, _CALLED):
        found = _CALL.match(intake.lines[index].text)
        start = next((at for at, line in preceding(intake, index, 12) if line.text.startswith("#0 ")), None)
        if found is None or start is None or found["format"].endswith(" error"):
            continue  # of "CUDA error" the program's own words say more
        below = (m for _, line in following(intake, index, 4) if (m := _SOURCE.match(line.text)) is not None)
        shown = next((m["expression"] for m in below if m["line"] == found["line"]), None)
        asserts = _ASSERT in found["format"]
        said = f"{_ASSERT}({shown}) failed" if shown and asserts else found["format"]
        place = {"file": found["file"], "line": int(found["line"])}
        events.append(_native(intake, start - 1, intake.lines[start], _ASSERT if asserts else "GGML_ABORT", said, place))
    return events


def _native(
    intake: Intake, index: int, first: Any, kind: str, message: str, fields: dict[str, Any], place: Frame | None = None
) -> Event:
    """place: the call that failed, where the report names it; it stands in the stack, where the backtrace has one or not."""
    frames = _stack(intake, index)
    last = intake.lines[frames[-1][0]] if frames else intake.lines[index]
    if place is not None:
        frames = _with_place(frames, index, place)
    return make(
        EventKind.NATIVE,
        first,
        last,
        parser="ggml",
        type=kind,
        message=message,
        stacks=stack_of(intake, frames),
        fields=fields,
    )


def _with_place(frames: list[tuple[int, Frame]], index: int, place: Frame) -> list[tuple[int, Frame]]:
    """The frames, innermost first, with the one that called ggml's way to abort: told in full, or put in where symbols are missing."""
    names = [frame.code if frame.code and frame.function.startswith("_Z") else frame.function for _, frame in frames]
    bare = [name.split("(", 1)[0].split("+", 1)[0] for name in names]
    if place.function in bare:
        at = bare.index(place.function)
        known = frames[at][1]
        frames[at] = (frames[at][0], replace(known, file=place.file, line=place.line, code=place.code))
        return frames
    way = next((at for at in range(len(bare) - 1, -1, -1) if bare[at] in _WAY), None)
    outside = 0 if way is None else way + 1
    return [*frames[:outside], (index, place), *frames[outside:]]


def _stack(intake: Intake, index: int) -> list[tuple[int, Frame]]:
    """The backtrace after the failure: gdb's `#N` lines (after its own chatter) or backtrace_symbols' lines."""
    frames: list[tuple[int, Frame]] = []
    expected = strays = 0
    for at, line in following(intake, index, 90):
        numbered = gdb_frame(line.text)
        plain = None if numbered else glibc_frame(line.text)
        if numbered and numbered[0] == expected:
            expected += 1
            frame = numbered[1]
        elif plain:
            frame = plain
        elif frames and not numbered and not line.text.startswith((" ", "\t")) and not line.text[:1].isdigit():
            strays += 1
            if strays > _MOST_STRAYS:
                break
            continue
        else:
            continue
        strays = 0
        frames.append((at, located(frame, line)))
    return frames
