"""C++ exceptions that nobody caught. In: an intake; out: NATIVE events (type: the C++ type; message: what(); stack where c10
prints one) and STACK events for c10 stacks that belong to no `terminate` (message: the line before). Sample:

    terminate called after throwing an instance of 'c10::Error'
      what():  CUDA error: an illegal memory access was encountered
    Exception raised from c10_cuda_check_implementation at /pytorch/c10/cuda/CUDAException.cpp:43 (most recent call first):
    frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96 (0x7f00 in /usr/lib/libc10.so)
    -> NATIVE type "c10::Error", message "CUDA error: an illegal memory access was encountered", one frame,
       fields {"raised_from": "c10_cuda_check_implementation", "file": "/pytorch/c10/cuda/CUDAException.cpp", "line": 43}

libc++ says `libc++abi: terminating due to uncaught exception of type X: what`. Woven stacks are told apart by frame numbers.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

from forensics.ingest.anchors import Anchor
from forensics.ingest.compiled import pattern_of
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.model.source import LogLine
from forensics.model.stack import Frame
from forensics.parse.cxxnames import demangle
from forensics.parse.frames import c10_frame
from forensics.parse.groups import rank_in
from forensics.parse.reading import (
    Lazy,
    following,
    hits,
    make,
    numbered_stacks,
    of_nobody,
    preceding,
    same_writer,
    stack_of,
)

#: without its first word: several processes that die at once write into each other's lines
_CALLED = " called after throwing an instance of"
_BARE = "terminate called without an active exception"
_RECURSIVE = "terminate called recursively"
_LIBCXX = (
    "libc++abi: terminating",
    "libc++abi.dylib: terminating",
    "Uncaught exception of type",
    "Unhandled exception: ",
)
_RAISED = "Exception raised from "
#: what() of an exception whose first line is missing: the log begins in the middle of the block
_SAID = "  what():  "
_RECENT = "(most recent call first):"

ANCHORS: tuple[Anchor, ...] = (
    Anchor(_CALLED.encode(), 2, 140, "terminate"),
    Anchor(_BARE.encode(), 4, 4, "terminate"),
    Anchor(_RECURSIVE.encode(), 4, 4, "terminate"),
    Anchor(_RAISED.encode(), 6, 130, "terminate"),
    Anchor(_SAID.encode(), 16, 140, "terminate"),
    *(Anchor(text.encode(), 2, 40, "terminate") for text in _LIBCXX),
)

_TYPE = Lazy(r"instance of '(?=([^']{1,400})')|^\s*([A-Za-z_][\w:]{2,200}?)(?=terminate called after)")
#: in the middle of a line that another process was writing
_TORN = Lazy(r"[A-Za-z0-9_=%,|\]](?<!\\[nrt])terminate called ")
#: two processes that wrote their beginnings into one line
_WOVEN = r"terminate called after throwing an instance of ?'?"
_WHATS = r"^(?:\s{0,8}what\(\):)+\s*"
_ORIGIN = Lazy(r"Exception raised from (.{1,600}?) at (\S{1,400}):(\d+) \(most recent call first\)")
_UNCAUGHT = Lazy(
    r"(?:uncaught exception of type|Uncaught exception of type|Unhandled exception:) ([\w:<>, *&]{1,300}?)(?:(?:: |\. what\(\): ?)(.*))?$"
)
#: a line that ends a what() text
_NEXT = (
    "Exception raised from ",
    "frame #",
    "terminate called",
    "Fatal Python error",
    "*** Process received signal",
    "Aborted",
    "[New LWP",
    "==== backtrace",
    "Traceback (most recent call last)",
)
_WHAT_LINES = 80
#: lines between the first line of a block and its what(), with other processes' blocks woven in
_HEADS = 40
#: words of a line that a stack below it can belong to
_TELLING = ("Error", "error", "xception", "failed", "terminated", "timeout")


def parse(intake: Intake) -> list[Event]:
    """Events of uncaught C++ exceptions and of c10 stacks."""
    lines = intake.lines
    headers = [i for i in hits(intake, _RAISED) if _RECENT in lines[i].text]
    stacks = numbered_stacks(intake, headers, c10_frame, 140)
    called = hits(intake, _CALLED)
    blocks = sorted([*called, *_headless(intake, called)])
    owned = _owners(intake, blocks, headers)
    events = [
        _terminated(intake, block, [stacks[h] for h in owned[block] if stacks[h]], owned[block]) for block in blocks
    ]
    for index in hits(intake, *_LIBCXX):
        found = _UNCAUGHT.search(lines[index].text)
        if found:
            events.append(
                make(EventKind.NATIVE, lines[index], parser="terminate", type=_plain(found[1].strip()), message=found[2] or "")
            )
    for index in hits(intake, _BARE, _RECURSIVE):
        # a second thread that dies of the same: only worth an event where the first one's text is missing
        if any(abs(block - index) <= 200 and same_writer(lines[block], lines[index]) for block in _near(blocks, index)):
            continue
        text = lines[index].text
        line = of_nobody(lines[index]) if _TORN.search(text) else lines[index]
        said = text[max(0, text.find("terminate called")) :]
        events.append(make(EventKind.NATIVE, line, parser="terminate", type="std::terminate", message=said))
    claimed = {header for mine in owned.values() for header in mine}
    events += [_alone(intake, header, stacks[header]) for header in headers if header not in claimed and stacks[header]]
    return events


def _headless(intake: Intake, called: list[int]) -> list[int]:
    """what() lines whose `terminate called` the log does not hold: no line above them, near enough, begins a block."""
    lines = intake.lines
    found = []
    for index in hits(intake, _SAID):
        begun = any(0 <= index - block <= _HEADS for block in _near(called, index))
        if lines[index].text.startswith(_SAID) and not begun:
            found.append(index)
    return found


def _plain(name: str) -> str:
    """A type's name as people write it: Ray's handler prints the mangled one (St13runtime_error)."""
    if not pattern_of(r"(?:St|N?\d)\w+\Z").match(name):
        return name
    shown = demangle(f"_ZTI{name}")
    return shown.removeprefix("typeinfo for ") if shown.startswith("typeinfo for ") else name


def _near(blocks: list[int], index: int) -> list[int]:
    at = bisect_left(blocks, index)
    return blocks[max(0, at - 4) : at + 4]


def _owners(intake: Intake, blocks: list[int], headers: list[int]) -> dict[int, list[int]]:
    """Which c10 headers belong to which terminate block: the oldest block still without one, else the nearest above."""
    owned: dict[int, list[int]] = {block: [] for block in blocks}
    near: list[int] = []
    queue = iter(blocks)
    nxt = next(queue, None)
    for header in headers:
        while nxt is not None and nxt < header:
            near.append(nxt)
            nxt = next(queue, None)
        near = [b for b in near[-32:] if header - (owned[b][-1] if owned[b] else b) <= 150]
        mine = [
            b
            for b in near
            if intake.lines[b].source == intake.lines[header].source
            and same_writer(intake.lines[b], intake.lines[header])
        ]
        if mine:
            owned[next((b for b in mine if not owned[b]), mine[-1])].append(header)
    return owned


def _terminated(intake: Intake, index: int, stacks: list[list[tuple[int, Frame]]], headers: list[int]) -> Event:
    """One terminate block: type, what() with its continuation, the c10 stacks given to it."""
    line = intake.lines[index]
    types = [name for pair in _TYPE.findall(line.text) for text in pair if (name := _name(text))]
    what, last = _what(intake, index)
    if stacks:
        last = max((intake.lines[frames[-1][0]] for frames in stacks), key=lambda x: x.number)
    if _TORN.search(line.text):
        line = of_nobody(line)
    return make(
        EventKind.NATIVE,
        line,
        last,
        parser="terminate",
        type=types[-1] if types else None,
        message=what,
        rank=rank_in(what, line),
        stacks=tuple(s for frames in stacks for s in stack_of(intake, frames)),
        fields=_origin(intake.lines[headers[0]]) if headers else {},
    )


def _name(text: str) -> str:
    """The type's name without what another process wrote into it ("c10::Errorterminate called …", "c10::Errorc10::Error")."""
    name = pattern_of(_WOVEN).split(text)[0].strip() or pattern_of(_WOVEN).sub("", text).strip()
    half = len(name) // 2
    return name[:half] if half > 2 and name[:half] == name[half:] else name


def _said(text: str) -> str:
    """What stands behind `what():`, also where several processes wrote it one after the other."""
    return pattern_of(_WHATS).sub("", text[text.find("what():") :]).strip() if "what():" in text else ""


def _what(intake: Intake, index: int) -> tuple[str, LogLine]:
    """The what() text, with the lines it goes on over, and its last line. Empty where none follows within six lines."""
    last = intake.lines[index]
    said = _said(last.text)
    if said and not last.text.startswith(_SAID):
        return said, last  # all of it folded into one line
    what: list[str] = [said] if said else []
    own = 0  # lines that nobody else has put his name to
    for _, line in following(intake, index, _WHAT_LINES):
        if not what:
            own += not line.stream or line.stream == last.stream
            if "what():" in line.text:
                what.append(_said(line.text))
                last = line
            elif own > 6:
                break
        elif not line.text.strip() or line.text.startswith(_NEXT):
            break
        else:
            what.append(line.text)
            last = line
    return "\n".join(what), last


def _alone(intake: Intake, header: int, frames: list[tuple[int, Frame]]) -> Event:
    """A c10 stack outside of a terminate block: what it belongs to stands before it."""
    line = intake.lines[header]
    before = line.text[: line.text.find(_RAISED)].strip()
    if not before:
        near = [
            p.text.strip()
            for _, p in preceding(intake, header, 12)
            if "frame #" not in p.text and _RAISED not in p.text
        ]
        before = next((text for text in near if any(word in text for word in _TELLING)), "")
    return make(
        EventKind.STACK,
        line,
        intake.lines[frames[-1][0]],
        parser="terminate",
        message=before,
        stacks=stack_of(intake, frames),
        fields=_origin(line),
    )


def _origin(line: LogLine) -> dict[str, Any]:
    found = _ORIGIN.search(line.text)
    return {"raised_from": found[1], "file": found[2], "line": int(found[3])} if found else {}
