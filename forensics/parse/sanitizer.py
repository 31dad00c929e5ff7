# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""compute-sanitizer (and cuda-memcheck), AddressSanitizer and its family, valgrind. In: an intake; out: DEVICE_ERROR and NATIVE
events. Samples:

    ========= Invalid __global__ read of size 4 bytes
    =========     at gather_kernel(const float *, int)+0x70 in /src/gather.cu:12
    =========     by thread (32,0,0) in block (7,0,0)
    =========     Address 0x7f0000001000 is out of bounds
    -> DEVICE_ERROR type "Invalid __global__ read", message "Invalid __global__ read of size 4 bytes", fields {"tool": "compute-sanitizer",
       "kernel": "gather_kernel(const float *, int)", "file": "/src/gather.cu", "line": 12, "thread": "32,0,0", "block": "7,0,0", "address": "0x7f0000001000"}

    ==4711==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x6020 at pc 0x55 bp 0x7f sp 0x7e
    -> NATIVE type "AddressSanitizer", message "heap-buffer-overflow on address 0x6020 …"
"""

from __future__ import annotations

from typing import Any

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.parse.reading import Lazy, fold, following, hits, make

_CUDA = (
    "========= Invalid ",
    "========= Misaligned",
    "========= Program hit ",
    "========= Uninitialized",
    "========= Race reported",
    "========= Error: ",
    "========= Warp ",
    "========= Barrier error",
    "========= Out-of-range",
)

ANCHORS: tuple[Anchor, ...] = (
    *(Anchor(text.encode(), 0, 14, "sanitizer") for text in _CUDA),
    Anchor(b"ERROR: AddressSanitizer: ", 0, 30, "sanitizer"),
    Anchor(b"WARNING: ThreadSanitizer: ", 0, 20, "sanitizer"),
    Anchor(b"UndefinedBehaviorSanitizer", 0, 10, "sanitizer"),
    Anchor(b"========= ERROR SUMMARY: ", 0, 0, "sanitizer"),
)

_AT = Lazy(
    r"^=+\s+at (?:0x[0-9a-f]+ in )?(?P<kernel>.{1,800}?)(?:\+0x[0-9a-f]+)?(?: in (?P<file>[^\s]{1,400}):(?P<line>\d+)(?::\S{1,800})?)?\s*$"
)
_BY = Lazy(r"^=+\s+by thread \((?P<thread>[\d,]+)\) in block \((?P<block>[\d,]+)\)")
_ADDRESS = Lazy(r"^=+\s+(?:Access (?:at|to) |Address )(?P<address>0x[0-9a-f]+)")
_HIT = Lazy(r"Program hit (?P<status>\w{1,80}) \(error (?P<code>\d+)\)")
_TYPE = Lazy(
    r"^=+ (?P<type>(?:Invalid|Misaligned|Uninitialized) [\w_]{1,40}(?: \w{1,20})??(?= of size| read| write|$)(?: (?:read|write|atomic\w*))?|Race reported|Barrier error|Warp [\w ]{1,40}|Out-of-range [\w ]{1,40}|Error)"
)
_FOUND = Lazy(r"(?:ERROR|WARNING): (?P<type>\w{2,30}Sanitizer): (?P<message>.*)$")


def parse(intake: Intake) -> list[Event]:
    """Reports of memory and race checkers."""
    lines = intake.lines
    events: list[Event] = []
    for index in hits(intake, *_CUDA):
        line = lines[index]
        text = line.text.lstrip("= ").strip()
        hit = _HIT.search(text)
        kind = _TYPE.match(line.text)
        fields: dict[str, Any] = {"tool": "compute-sanitizer"}
        last = line
        for _, after in following(intake, index, 12):
            if not after.text.startswith("=====") or after.text.strip("= ") == "":
                break
            for pattern in (_AT, _BY, _ADDRESS):
                found = pattern.match(after.text)
                if found:
                    fields.update(
                        {k: int(v) if k == "line" else v for k, v in found.groupdict().items() if v and k not in fields}
                    )
                    last = after
        events.append(
            make(
                EventKind.DEVICE_ERROR,
                line,
                last,
                parser="sanitizer",
                type=hit["status"] if hit else kind["type"] if kind else None,
                message=text,
                fields=fields,
            )
        )
    for index in hits(intake, "ERROR: AddressSanitizer: ", "WARNING: ThreadSanitizer: "):
        found = _FOUND.search(lines[index].text)
        if found:
            events.append(
                make(
                    EventKind.NATIVE,
                    lines[index],
                    parser="sanitizer",
                    type=found["type"],
                    message=found["message"],
                    fields={"tool": found["type"]},
                )
            )
    return fold(events)
