# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""glog and absl: fatal checks and signal handlers with `@ 0x…` frames. In: an intake; out: NATIVE and FATAL_SIGNAL events.

    F1129 20:15:45.101010   811 executor.cc:160] Check failed: status.ok() INTERNAL: launch failed
    *** Check failure stack trace: ***
        @     0x71713c459978  absl::log_internal::LogMessage::Flush()
    -> NATIVE type "Check failed", message "Check failed: status.ok() INTERNAL: launch failed", fields {"file": "executor.cc", "line": 160}

    *** SIGSEGV received at time=1764447345 on cpu 3 ***        (absl; ray prints it with its own prefix)
    PC: @     0x7f00dead  (unknown)  ncclGroupEnd
    *** Aborted at 1764447345 (unix time) try "date -d @1764447345" if you are using GNU date ***       (glog)
    *** SIGSEGV (@0x18) received by PID 42 (TID 0x7f00) from PID 24; stack trace: ***
    -> FATAL_SIGNAL type "SIGSEGV"

PaddlePaddle's "FatalError: `Segmentation fault` is detected by the operating system." belongs here too.
"""

from __future__ import annotations

from typing import Any

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.model.source import LogLine
from forensics.parse.frames import glog_frame
from forensics.parse.reading import Lazy, hits, make, preceding, run_of, stack_of

_TRACE = "*** Check failure stack trace: ***"
_CHECKS = ("Check failed:", "Non-OK-status:", "Non-OK status:", "Must be non NULL")
_ABSL = " received at time="
_GLOG = "; stack trace: ***"
_PADDLE = "is detected by the operating system"

#: how absl's lines of level ERROR and FATAL go on behind their time, in programs built by Bazel
_ERRORS = (": E external/", ": F external/", ": E tensorflow/", ": F tensorflow/")

ANCHORS: tuple[Anchor, ...] = (
    Anchor(_TRACE.encode(), 6, 80, "glog"),
    *(Anchor(text.encode(), 1, 6, "glog") for text in _CHECKS),
    Anchor(_ABSL.encode(), 3, 80, "glog"),
    Anchor(_GLOG.encode(), 3, 80, "glog"),
    Anchor(_PADDLE.encode(), 30, 6, "glog"),
    *(Anchor(text.encode(), 1, 2, "glog") for text in _ERRORS),
)

_PLACE = Lazy(r"(?:^|\s)([\w./+-]{1,200}\.(?:cc|cpp|cu|h|hpp|cxx|c|cuh)):(\d+)\](?: )?(.*)$")
_FATAL = Lazy(r"(?:^|\s|\[)F(?:\d{4}|\d{8})? ")
_SIGNALS = Lazy(
    r"\*\*\* (SIG[A-Z]+) (?:\(@(0x[0-9a-f]+|\(?nil\)?)\)(?:, see \S{1,80})? )?received (?:at time=(\d+)(?: on cpu (\d+))?|by PID (\d+)(?: \(TID (0x[0-9a-f]+|\d+)\))?)"
)
_DETECTED = Lazy(r"FatalError: `([^`]{1,80})` is detected by the operating system")


def parse(intake: Intake) -> list[Event]:
    """Events of failed checks and of glog's, absl's and Paddle's signal handlers."""
    events, checked = _traces(intake)
    events += _lone_checks(intake, checked)
    lines = intake.lines
    for index in hits(intake, _ABSL, _GLOG):
        found = _SIGNALS.search(lines[index].text)
        if not found:
            continue
        frames = run_of(intake, index, glog_frame, 90, patience=2)
        fields: dict[str, Any] = {"handler": "absl" if found[3] else "glog"}
        fields.update({k: v for k, v in (("address", found[2]), ("cpu", found[4]), ("tid", found[6])) if v})
        if found[5]:
            fields["pid"] = int(found[5])
        events.append(
            make(
                EventKind.FATAL_SIGNAL,
                lines[index],
                lines[frames[-1][0]] if frames else None,
                parser="glog",
                type=found[1],
                message=found[0].strip("* "),
                stacks=stack_of(intake, frames),
                fields=fields,
            )
        )
    for index in hits(intake, _PADDLE):
        found = _DETECTED.search(lines[index].text)
        if found:
            name = {
                "Segmentation fault": "SIGSEGV",
                "Process abort signal": "SIGABRT",
                "Access to an undefined portion of a memory object": "SIGBUS",
                "Termination signal": "SIGTERM",
                "Erroneous arithmetic operation": "SIGFPE",
                "Illegal instruction": "SIGILL",
            }.get(found[1])
            events.append(
                make(
                    EventKind.FATAL_SIGNAL,
                    lines[index],
                    parser="glog",
                    type=name,
                    message=found[0],
                    fields={"handler": "paddle"},
                )
            )
    return events


def _traces(intake: Intake) -> tuple[list[Event], set[int]]:
    """Stack traces of failed checks, each joined with the check's own lines above it."""
    lines = intake.lines
    events: list[Event] = []
    checked: set[int] = set()
    for index in hits(intake, _TRACE):
        frames = run_of(intake, index, glog_frame, 90, patience=1)
        head = index
        for at, line in preceding(intake, index, 6):
            text = line.text
            if glog_frame(text):
                break
            if any(c in text for c in _CHECKS) or _FATAL.search(text[:80]) or _FATAL.search(line.raw[:80]):
                head = at
                break
        checked.add(head)
        words = " ".join(lines[at].text.strip() for at in range(head, index)) if head != index else ""
        events.append(
            _failed(lines[head], words, lines[frames[-1][0]] if frames else lines[index], stack_of(intake, frames))
        )
    return events, checked


def _lone_checks(intake: Intake, checked: set[int]) -> list[Event]:
    """Fatal checks whose stack is missing: only lines that a logger marked fatal, or that start with the check."""
    events = []
    for index in hits(intake, *_CHECKS):
        line = intake.lines[index]
        fatal = (
            line.level in ("FATAL", "CRITICAL")
            or _FATAL.search(line.raw[:80]) is not None
            or line.text.startswith(_CHECKS)
        )
        if index not in checked and fatal and line.level not in ("WARNING", "INFO", "ERROR"):
            events.append(_failed(line, line.text, line, ()))
    return events


def _failed(line: LogLine, words: str, last: LogLine, stacks: tuple[Any, ...]) -> Event:
    place = _PLACE.search(words) or _PLACE.search(line.raw)
    message = (place[3] if place and place[3] and place[3] in words else words).strip()
    if place and place[3] and words.endswith(place[3]) is False and place[3].strip() in words:
        message = words[words.find(place[3].strip()) :]
    kind = (
        "Check failed"
        if "Check failed" in message or not message
        else "Non-OK-status"
        if "Non-OK" in message
        else "LOG(FATAL)"
    )
    fields = {"file": place[1], "line": int(place[2])} if place else {}
    return make(EventKind.NATIVE, line, last, parser="glog", type=kind, message=message, stacks=stacks, fields=fields)
