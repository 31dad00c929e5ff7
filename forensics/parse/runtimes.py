"""Run times of Fortran, OpenACC, Julia and Node. In: an intake; out: NATIVE, FATAL_SIGNAL and WARNING events. Samples:

Program received signal SIGSEGV: Segmentation fault - invalid memory reference.           (gfortran)
forrtl: severe (174): SIGSEGV, segmentation fault occurred                                 (Intel)
-> FATAL_SIGNAL type "SIGSEGV", fields {"language": "fortran"}
Accelerator Fatal Error: call to cuMemAlloc returned error 2 (CUDA_ERROR_OUT_OF_MEMORY): Out of memory      (NVHPC)
 File: /src/grid.F90
 Function: grid1:1650
 Line: 1699
-> NATIVE type "Accelerator Fatal Error", fields {"file": "/src/grid.F90", "function": "grid1:1650", "line": "1699"}
This file was compiled: -ta=tesla:cc70      -> WARNING fields {"what": "compiled_for", "targets": "tesla:cc70"}
ERROR: LoadError: CUDA error: out of memory / signal (11.1): Segmentation fault           (Julia)
"""

from __future__ import annotations

from typing import Any

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.model.source import LogLine
from forensics.model.stack import Frame, StackTrace
from forensics.parse.reading import Lazy, fold, following, hits, make, span_of
from forensics.parse.signals import signal_in, signal_name

_PROFILE = "The accelerator does not match the profile for which"
_FORTRAN = (
    "Fortran runtime error:",
    "forrtl: severe",
    "forrtl: error",
    "Program received signal SIG",
    "Accelerator Fatal Error:",
    "call to cu",
    "FATAL ERROR: data in",
    "FATAL ERROR: variable in data clause",
    _PROFILE,
)
_CALL = "call to cu"
_COMPILED = "This file was compiled: -"
_CURRENT = "Current file: "
_JULIA = ("ERROR: LoadError: ", "signal (11", "signal (6", "signal (7")
_NODE = "FATAL ERROR: "

ANCHORS: tuple[Anchor, ...] = tuple(
    Anchor(text.encode(), 1, 20, "runtimes") for text in (*_FORTRAN, _COMPILED, _CURRENT, *_JULIA, _NODE)
)

_SIGNAL_RECEIVED = Lazy(r"Program received signal (SIG[A-Z]+): (.*)$")
#: PGI compilers before NVHPC put nothing before it
_RETURNED = Lazy(r"^call to cu\w{1,60} returned error \d+: ")
_TARGET = Lazy(r"This file was compiled: -(?:ta|acc|gpu)=(\S{1,200})")
_JULIA_SIGNAL = Lazy(r"^(?:\[\d+\] )?signal \((\d+)(?:\.\d+)?\): (.*)$")


def parse(intake: Intake) -> list[Event]:
    """Events of these run times."""
    return [*_fortran(intake), *_compiled_for(intake), *_others(intake)]


def _fortran(intake: Intake) -> list[Event]:
    events = []
    for index in hits(intake, *_FORTRAN):
        line = intake.lines[index]
        literal = next((t for t in _FORTRAN if t in line.text), None)
        if literal is None or not (line.text.lstrip().startswith(literal) or literal.startswith("forrtl")):
            continue
        if literal == _CALL and not _RETURNED.match(line.text.strip()):
            continue
        signal = _SIGNAL_RECEIVED.search(line.text)
        fields: dict[str, Any] = {"language": "fortran"}
        if signal:
            events.append(
                make(EventKind.FATAL_SIGNAL, line, parser="runtimes", type=signal[1], message=signal[0], fields=fields)
            )
            continue
        words, last = _with_details(intake, index, line, fields)
        kind = (
            "Accelerator Fatal Error"
            if literal == _PROFILE
            else "Accelerator Fatal Error"
            if literal == _CALL
            else literal.rstrip(":")
            if literal.startswith(("Fortran", "Accelerator", "FATAL", "The acc"))
            else "forrtl"
        )
        named = signal_in(words) if kind == "forrtl" and "SIG" in words else None
        events.append(
            make(
                EventKind.FATAL_SIGNAL if named else EventKind.NATIVE,
                line,
                last,
                parser="runtimes",
                type=named or kind,
                message=words,
                stacks=_place(fields, line, last),
                fields=fields,
            )
        )
    return events


def _place(fields: dict[str, Any], first: LogLine, last: LogLine) -> tuple[StackTrace, ...]:
    """The one frame that NVHPC names; none where it names no file."""
    if "file" not in fields:
        return ()
    number = str(fields.get("line", ""))
    name = str(fields.get("function", "?")).partition(":")[0]
    frame = Frame(name, str(fields["file"]), int(number) if number.isdigit() else None, log_line=last.number)
    return (StackTrace((frame,), span_of(first, last), None, "native", False),)


def _compiled_for(intake: Intake) -> list[Event]:
    """NVHPC says below an error for which GPU each file was built, and where the program was: `Current file: …`, `function: …`,
    `line: …`. The error's own text may have gone to another stream."""
    events = []
    for index in hits(intake, _COMPILED):
        line = intake.lines[index]
        found = _TARGET.search(line.text)
        if found:
            fields = {"what": "compiled_for", "targets": found[1]}
            events.append(make(EventKind.WARNING, line, parser="runtimes", message=found[0], fields=fields))
    for index in hits(intake, _CURRENT):
        line = intake.lines[index]
        place = {"file": line.text.partition(_CURRENT)[2].strip()}
        last = line
        for _, after in following(intake, index, 2):
            name, _, value = after.text.strip().partition(":")
            if name in ("function", "line") and value.strip():
                place[name] = value.strip()
                last = after
        number = place.get("line", "")
        frame = Frame(
            place.get("function", "?"), place["file"], int(number) if number.isdigit() else None, log_line=last.number
        )
        trace = StackTrace((frame,), span_of(line, last), None, "native", False)
        events.append(
            make(
                EventKind.STACK,
                line,
                last,
                parser="runtimes",
                message="where the OpenACC run time was",
                stacks=(trace,),
                fields={"of": "openacc"},
            )
        )
    return fold(events)


def _with_details(intake: Intake, index: int, line: LogLine, fields: dict[str, Any]) -> tuple[str, LogLine]:
    """NVHPC prints file, function and line below: ` File: x.F90`, ` Function: f:1`, ` Line: 12`."""
    last = line
    for _, after in following(intake, index, 4):
        name, _, value = after.text.strip().partition(":")
        if name not in ("File", "Function", "Line"):
            break
        fields[name.lower()] = value.strip()
        last = after
    return line.text.strip(), last


def _others(intake: Intake) -> list[Event]:
    """Julia and Node."""
    events = []
    for index in hits(intake, *_JULIA, _NODE):
        line = intake.lines[index]
        text = line.text.strip()
        signal = _JULIA_SIGNAL.match(text)
        if signal:
            events.append(
                make(
                    EventKind.FATAL_SIGNAL,
                    line,
                    parser="runtimes",
                    type=signal_name(int(signal[1])),
                    message=text,
                    fields={"language": "julia"},
                )
            )
        elif text.startswith("ERROR: LoadError: "):
            events.append(
                make(
                    EventKind.NATIVE,
                    line,
                    parser="runtimes",
                    type="LoadError",
                    message=text.removeprefix("ERROR: LoadError: "),
                    fields={"language": "julia"},
                )
            )
        elif text.startswith(_NODE) and ("JavaScript heap" in text or "v8::" in text):
            events.append(
                make(
                    EventKind.NATIVE,
                    line,
                    parser="runtimes",
                    type="FATAL ERROR",
                    message=text.removeprefix(_NODE),
                    fields={"language": "node"},
                )
            )
    return events
