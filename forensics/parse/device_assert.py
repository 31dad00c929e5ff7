# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""Assertions inside kernels, printed once a thread. In: an intake; out: one DEVICE_ASSERT event an assertion and process, with
how many lines said it and how many blocks they name. Samples:

    /pytorch/aten/src/ATen/native/cuda/Indexing.cu:1515: indexSelectSmallIndex: block: [0,0,0], thread: [5,0,0] Assertion `srcIndex < srcSelectDimSize` failed.
    /opt/DeepEP/csrc/kernels/internode.cu:483, condition: num_rc_per_pe >= num_channels       after "Assertion failed: "
    -> DEVICE_ASSERT type "device-side assert", message "Assertion `srcIndex < srcSelectDimSize` failed.",
       fields {"assertion": "srcIndex < srcSelectDimSize", "file": "/pytorch/…/Indexing.cu", "line": 1515, "kernel": "indexSelectSmallIndex",
               "blocks": 1, "first_block": "0,0,0", "first_thread": "5,0,0"}, count 8

Kernel printf's that mean the binary was built for another architecture are events too (type None, fields["what"] "arch_guard").
"""

from __future__ import annotations

from typing import Any

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.model.record import replace
from forensics.model.source import LogLine
from forensics.parse.cxxnames import demangle
from forensics.parse.reading import Lazy, clipped, hits, make, span_of

_BLOCK = "block: ["
_FAILED = "Assertion failed: "
_DEVICE = "Device-side assertion `"
_PADDLE = "Error: /"
_GUARDS = (
    "Arch conditional MMA instruction used without targeting",
    "without CUTE_ARCH_",
    "Attempting to use SM",
    "CUTE_ARCH_TMA_SM",
    *(f"This kernel only supports sm{digit}" for digit in "_7891"),
)
#: a warning of builds that work all the same: the descriptor is then written another way
_HARMLESS = "Using TMA Descriptor modification without"

ANCHORS: tuple[Anchor, ...] = (
    Anchor(b"thread: [", 0, 1, "device_assert"),
    Anchor(_BLOCK.encode(), 0, 1, "device_assert"),
    Anchor(_FAILED.encode(), 0, 1, "device_assert"),
    Anchor(_DEVICE.encode(), 0, 1, "device_assert"),
    *(Anchor(text.encode(), 0, 1, "device_assert") for text in _GUARDS),
)

_TORCH = Lazy(
    r"(?P<file>[^\s:]{1,400}):(?P<line>\d+): (?P<kernel>.{1,2000}?): block: \[(?P<block>[\d, ]{1,40})\], thread: \[(?P<thread>[\d, ]{1,40})\] Assertion [`'](?P<assertion>.{0,1000}?)[`'] failed"
)
_DEEPEP = Lazy(r"Assertion failed: (?P<file>[^\s:,]{1,400}):(?P<line>\d+), condition: (?P<assertion>[^`\n]{1,600})")
#: lines of several processes in one another: what is left of the place and the condition
_WOVEN = Lazy(
    r"(?P<file>/[^\s:,\]\[]{1,400}?\.cuh?)(?![\w.])[^`]{0,2000}Assertion `(?P<assertion>[^`'\"]{1,600}?)(?: && )?[`'\"]"
)
_HIP = Lazy(
    r"(?P<file>[^\s:]{1,400}):(?P<line>\d+): (?P<kernel>.{0,2000}?):? ?Device-side assertion `(?P<assertion>.{1,1000}?)' failed"
)
_BLOCK_OF = Lazy(r"block: \[([\d, ]{1,40})\]")

#: lines of one assertion further apart than this belong to another incident
_WITHIN = 5_000


def parse(intake: Intake) -> list[Event]:
    """One event an assertion (file, line, condition) and writer."""
    groups: dict[tuple[Any, ...], dict[str, Any]] = {}
    order: list[dict[str, Any]] = []
    for index in hits(intake, _BLOCK, _FAILED, _DEVICE, *_GUARDS):
        line = intake.lines[index]
        fields = _read(line)
        if fields is None:
            continue
        key = (
            line.source,
            line.stream,
            fields.get("file"),
            fields.get("line"),
            fields.get("assertion"),
            fields.get("text"),
        )
        group = groups.get(key)
        if group is None or line.number - group["latest"].number > _WITHIN:
            group = {"first": line, "fields": fields, "count": 0, "blocks": set(), "latest": line, "end": line}
            groups[key] = group
            order.append(group)
        group["count"] += 1
        group["latest"] = line
        if fields.get("block"):
            group["blocks"].add(fields["block"])
        if line.number - group["end"].number <= 2:
            group["end"] = line
    return [_event(group) for group in order]


def _read(line: LogLine) -> dict[str, Any] | None:
    text = clipped(line.text, _BLOCK)
    if _BLOCK in text:
        found = _TORCH.search(text)
        if found is None and text.count(_BLOCK) > 1:
            woven = _WOVEN.search(text)
            return {**woven.groupdict(), "what": "woven"} if woven else None
    elif _DEVICE in text:
        found = _HIP.search(text)
    elif _FAILED in text:
        found = _DEEPEP.search(text)
    elif _HARMLESS in text:
        return None
    else:
        return {"text": text.strip()[:500]}
    if not found:
        return None
    fields: dict[str, Any] = found.groupdict()
    fields["line"] = int(fields["line"])
    fields["assertion"] = fields["assertion"].strip()
    # a progress bar or another process's text may be glued to the path
    fields["file"] = fields["file"][max(fields["file"].rfind("]/") + 1, 0) :]
    if fields.get("kernel"):
        fields["kernel"] = demangle(fields["kernel"].strip())
    return fields


def _event(group: dict[str, Any]) -> Event:
    event, latest = _told(group), group["latest"]
    return replace(event, last=span_of(latest, latest)) if latest.number > event.span.last_line else event


def _told(group: dict[str, Any]) -> Event:
    fields: dict[str, Any] = dict(group["fields"])
    if "text" in fields:
        return make(
            EventKind.DEVICE_ASSERT,
            group["first"],
            group["end"],
            parser="device_assert",
            message=fields["text"],
            fields={"what": "arch_guard"},
            count=group["count"],
        )
    block, thread = fields.pop("block", None), fields.pop("thread", None)
    if block:
        fields.update(blocks=len(group["blocks"]), first_block=block, first_thread=thread)
    if block or fields.get("what") == "woven":
        message = f"Assertion `{fields['assertion']}` failed."
    elif fields.get("kernel"):
        message = f"Device-side assertion `{fields['assertion']}' failed."
    else:
        message = f"Assertion failed: {fields['file']}:{fields['line']}, condition: {fields['assertion']}"
    return make(
        EventKind.DEVICE_ASSERT,
        group["first"],
        group["end"],
        parser="device_assert",
        type="device-side assert",
        message=message,
        fields={k: v for k, v in fields.items() if v is not None},
        count=group["count"],
    )
