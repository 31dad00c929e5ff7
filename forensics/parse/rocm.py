# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""AMD: HSA queue errors, memory faults, hardware exceptions and HIP errors of the runtime. In: an intake; out: DEVICE_ERROR
events. Samples:

    :0:rocdevice.cpp            :3580: 159853139715 us:  Callback: Queue 0x7f2f aborting with error : HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted in a hardware exception. code: 0x1016
    Kernel Name: _ZL15flash_attn_tileILi128EEvPKc
    -> DEVICE_ERROR type "HSA_STATUS_ERROR_EXCEPTION", message "An HSAIL operation resulted in a hardware exception. code: 0x1016",
       fields {"code": "0x1016", "queue": "0x7f2f", "kernel": "flash_attn_tile<128>(char const*)"}

    Memory access fault by GPU node-1 (Agent handle: 0x55d0) on address 0x7f00. Reason: Page not present or supervisor privilege.
    -> type "Memory access fault", fields {"gpu_node": 1, "address": "0x7f00", "reason": "Page not present or supervisor privilege."}

    HW Exception by GPU node-1 (Agent handle: 0x55d0) reason :GPU Hang      -> type "HW Exception"
"""

from __future__ import annotations

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.parse.cxxnames import demangle
from forensics.parse.reading import Lazy, fold, following, hits, make
from forensics.parse.rows import Row, Table

_HSA = "HSA_STATUS_ERROR"
_ROWS = Table(
    "rocm",
    (
        Row(
            "Memory access fault by GPU node-",
            EventKind.DEVICE_ERROR,
            r"(?P<message>Memory access fault by GPU node-(?P<gpu_node>\d+)(?: \(Agent handle: (?P<agent>0x[0-9a-f]+)\))?(?: on address (?P<address>\S{1,40}?)\.| ?\.{2,3})(?: Reason: (?P<reason>.*))?)$",
            type="Memory access fault",
            after=20,
        ),
        Row(
            "HW Exception by GPU node-",
            EventKind.DEVICE_ERROR,
            r"(?P<message>HW Exception by GPU node-(?P<gpu_node>\d+)(?: \(Agent handle: (?P<agent>0x[0-9a-f]+)\))? reason ?: ?(?P<reason>.*))$",
            type="HW Exception",
            after=20,
        ),
        Row(
            "hipErrorNoBinaryForGpu",
            EventKind.DEVICE_ERROR,
            r"(?P<message>\"?hipErrorNoBinaryForGpu.*)",
            type="hipErrorNoBinaryForGpu",
            unless=("Error: ",),
        ),
        Row(
            "Unable to find code object for all current devices",
            EventKind.DEVICE_ERROR,
            type="hipErrorNoBinaryForGpu",
            unless=("Error: ",),
        ),
        Row(
            "Cannot find Symbol", EventKind.DEVICE_ERROR, r"(?P<message>Cannot find Symbol.*)$", type="hipErrorNotFound"
        ),
        Row("GPU core dump created", EventKind.WARNING, fields={"what": "core_dump"}),
        Row(
            "rocBLAS error:",
            EventKind.MESSAGE,
            r"(?P<message>rocBLAS error:.*)$",
            level="ERROR",
            unless=("Error: rocBLAS",),
            after=6,
        ),
        Row("MIOpen Error:", EventKind.MESSAGE, r"(?P<message>MIOpen Error:.*)$", level="ERROR", after=2),
        Row("MIOpen(HIP): Error", EventKind.MESSAGE, r"(?P<message>MIOpen\(HIP\): Error.*)$", level="ERROR"),
    ),
)

ANCHORS: tuple[Anchor, ...] = (Anchor(_HSA.encode(), 2, 30, "rocm"), *_ROWS.anchors())

_STATUS = Lazy(r"(?P<type>HSA_STATUS_ERROR\w{0,60})(?:: (?P<message>.*?(?: code: (?P<code>0x[0-9a-fA-F]+))?.*))?$")
_QUEUE = Lazy(r"Queue (0x[0-9a-f]+)")
_KERNEL = Lazy(r"Kernel Name: (\S.{0,2000})")


def parse(intake: Intake) -> list[Event]:
    """Events of the ROCm runtime."""
    events: list[Event] = []
    for index in hits(intake, _HSA):
        line = intake.lines[index]
        found = _STATUS.search(line.text)
        if not found:
            continue
        code = Lazy(r"code: (0x[0-9a-fA-F]+)").search(line.text)
        queue = _QUEUE.search(line.text)
        fields = {k: v for k, v in (("code", code and code[1]), ("queue", queue and queue[1])) if v}
        last = line
        for _, after in following(intake, index, 16):
            kernel = _KERNEL.search(after.text)
            if kernel:
                fields["kernel"] = demangle(kernel[1].strip())
                last = after
                break
        events.append(
            make(
                EventKind.DEVICE_ERROR,
                line,
                last,
                parser="rocm",
                type=found["type"],
                message=found["message"] or found["type"],
                fields=fields,
            )
        )
    return fold(events) + _ROWS.read(intake)
