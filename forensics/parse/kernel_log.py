# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""The kernel's log: NVIDIA Xid and SXid, GPUs off the bus, driver start-up, NVSwitch, PCIe AER, machine checks, EDAC, amdgpu. In: an
intake; out: HARDWARE events with a `HardwareFault`. Samples:

    NVRM: Xid (PCI:0000:9b:00): 119, pid=2790483, name=nvidia-smi, Timeout after 6s of waiting for RPC response from GPU4 GSP!
    -> HARDWARE type "Xid 119", message "Timeout after 6s …", fields {"fault": HardwareFault("xid", 119, "0000:9b:00", pid=2790483, process="nvidia-smi", …)}
    NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 …)        -> subcode "NETIR_LINK_EVT"
    NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.                                         -> Xid 79 without the word
    nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 12028, Non-fatal, Link 32 egress …               -> type "SXid 12028", subcode "Non-fatal"
    pcieport 0000:3a:00.0: AER: Uncorrected (Fatal) error received: 0000:3b:00.0                -> kind "aer"
    mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 7: be00000000800400           -> kind "mce"
    amdgpu 0000:03:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=12, emitted seq=14        -> kind "amdgpu"

Formats: NVIDIA open kernel modules (nvErrorLog), leptonai/gpud's catalogue of lines. SXids are another number space than Xids.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind, HardwareFault
from forensics.model.record import replace
from forensics.model.source import LogLine
from forensics.parse.calltrace import call_trace
from forensics.parse.reading import Lazy, counted, following, hits, make, preceding, stack_of

_XID = "Xid ("
_OFF = "allen off the bus"

#: literal, kind, pattern (groups device, name, message, code, subcode), type
_OTHERS: tuple[tuple[str, str, str, str | None], ...] = (
    (
        "RmInitAdapter failed",
        "driver",
        r"(?:GPU (?P<device>[0-9a-fA-F:.]+): )?(?P<message>RmInitAdapter failed!? ?(?:\((?P<subcode>[^)]{1,60})\))?.*)$",
        None,
    ),
    ("The GPU likely needs to be reset", "driver", r"(?P<message>Rate limiting .*)$", None),
    (
        "GPU recovery action changed",
        "driver",
        r"(?:PCI:(?P<device>[0-9a-fA-F:.]+))?.{0,80}(?P<message>GPU recovery action changed.*)$",
        None,
    ),
    ("GPU reset required", "driver", r"(?P<message>.{0,200}GPU reset required.*)$", None),
    ("rejecting I/O to dead device", "driver", r"(?P<message>.*)$", None),
    ("failed to copy vbios", "driver", r"(?P<message>.*)$", None),
    (
        "API mismatch: the client has the version",
        "driver_mismatch",
        r"(?P<message>API mismatch: the client has the version.*)$",
        None,
    ),
    ("NVRM: This can occur when a kernel module", "driver_mismatch", r"NVRM: (?P<message>.*)$", None),
    (
        "nvidia-nvswitch",
        "nvswitch",
        r"nvidia-nvswitch(?P<device>\d+): (?P<message>.*(?:[Ff]atal|error|failed|contain).*)$",
        None,
    ),
    ("nvidia-uvm: ", "driver", r"nvidia-uvm: (?P<message>.*(?:fatal|failed|error).*)$", None),
    ("NVRM: nvAssert", "driver", r"NVRM: (?P<message>nvAssert\w{0,40}: .*)$", None),
    (": AER: ", "aer", r"(?P<device>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d)?:? ?AER: (?P<message>.*)$", None),
    (
        "PCIe Bus Error: severity=",
        "aer",
        r"(?P<device>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d)?:? ?(?P<message>PCIe Bus Error: severity=(?P<subcode>[^,]{1,60}).*)$",
        None,
    ),
    (
        "Machine Check Exception",
        "mce",
        r"(?P<message>(?:\[Hardware Error\]: )?(?:CPU \d+: )?Machine Check Exception.*)$",
        None,
    ),
    ("Machine check events logged", "mce", r"(?P<message>Machine check events logged)", None),
    (
        "[Hardware Error]: ",
        "mce",
        r"\[Hardware Error\]: (?P<message>(?:event severity: (?P<subcode>\w+)|section_type: .*|Uncorrected.*|Corrected error.*|Fatal.*))$",
        None,
    ),
    ("EDAC MC", "ecc", r"(?P<message>EDAC MC(?P<code>\d+): .*(?P<subcode>[CU]E) .*)$", None),
    # nvidia-smi -q counts retired pages under these words, whatever their number
    ("Double Bit ECC", "ecc", r"(?P<message>.{0,200}Double Bit ECC(?!\s{0,60}: (?:N/A|None|\d{1,9})\s*$).*)$", None),
    ("ncorrectable ECC", "ecc", r"(?P<message>.{0,200}ncorrectable ECC.*)$", None),
    (
        "amdgpu: ring ",
        "amdgpu",
        r"amdgpu (?P<device>[0-9a-f:.]+): amdgpu: (?P<message>ring (?P<subcode>\S+) timeout.*)$",
        None,
    ),
    ("] *ERROR* ring ", "amdgpu", r"(?P<message>\*ERROR\* ring (?P<subcode>\S+) timeout.*)$", None),
    ("amdgpu: GPU reset", "amdgpu", r"amdgpu (?P<device>[0-9a-f:.]+): amdgpu: (?P<message>GPU reset.*)$", None),
    (
        "page fault (src_id",
        "amdgpu",
        r"amdgpu (?P<device>[0-9a-f:.]+): amdgpu: (?P<message>\[\w+\] (?:no-retry |retry )?page fault .*)$",
        None,
    ),
    (
        "VM_L2_PROTECTION_FAULT_STATUS:",
        "amdgpu",
        r"amdgpu (?P<device>[0-9a-f:.]+): amdgpu: *(?P<message>VM_L2_PROTECTION_FAULT_STATUS:\S{1,20})",
        None,
    ),
    ("amdgpu: Uncorrectable", "amdgpu", r"amdgpu (?P<device>[0-9a-f:.]+): amdgpu: (?P<message>Uncorrectable.*)$", None),
    (
        "uncorrectable hardware errors detected",
        "amdgpu",
        r"amdgpu (?P<device>[0-9a-f:.]+): amdgpu: (?P<message>.*)$",
        None,
    ),
    (
        "sq_intr: error",
        "amdgpu",
        r"(?:amdgpu (?P<device>[0-9a-f:.]+): )?(?P<message>(?:amdgpu: )?sq_intr: error, detail.*)$",
        None,
    ),
    ("amdgpu: qcm fence wait loop timeout", "amdgpu", r"(?P<message>qcm fence wait loop timeout.*)$", None),
    ("I/O error, dev ", "storage", r"(?P<message>I/O error, dev (?P<device>\S{1,40}), sector.*)$", None),
    ("nfs: server ", "storage", r"(?P<message>nfs: server (?P<device>\S{1,120}) (?:not responding|OK).*)$", None),
    ("LustreError: ", "storage", r"(?P<message>LustreError: .*)$", None),
    ("Link Down", "link", r"(?P<device>mlx\d_core [0-9a-f:.]+|\w{2,12}): ?(?P<message>.*Link Down.*)$", None),
    (
        "mlx5_core ",
        "link",
        r"mlx5_core (?P<device>[0-9a-f:.]+).{0,40}?: (?P<message>.*(?:[Ll]ink down|health compromised|error|Fatal).*)$",
        None,
    ),
)

ANCHORS: tuple[Anchor, ...] = (
    Anchor(b"Xid (", 1, 45, "kernel_log"),
    Anchor(_OFF.encode(), 3, 2, "kernel_log"),
    *(Anchor(literal.encode(), 1, 2, "kernel_log") for literal, *_ in _OTHERS),
)

_LINE = Lazy(r"(?P<family>S?Xid) \((?:PCI:)?(?P<device>[0-9a-fA-F:.]+)[^)]{0,200}\): (?P<code>\d+),? ?(?P<rest>.*)$")
_PID = Lazy(
    r"^pid=(?:'?<?(?P<pid>\d+|unknown)>?'?)(?:, name=(?P<name>(?:<unknown>|'[^']{0,80}'|[^,]{0,80})))?(?:, )?(?P<rest>.*)$"
)
_NAMED = Lazy(r"^(?P<name>[A-Z][A-Z0-9]{2,30}_[A-Z0-9_]{2,40})\b")
_TASK = Lazy(r"\b(?:information: p|P|for p)rocess (?P<name>\S(?:.{0,60}?\S)?) pid (?P<pid>\d{1,10}) thread ")
_LOST = Lazy(r"(?P<message>(?:GPU )?(?:(?:has|is) )?[Ff]allen off the bus.*)$")
_GPU_AT = Lazy(r"GPU (?:at )?(?:PCI:)?([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.\d)?)")
_PATTERNS = tuple(Lazy(pattern) for _, _, pattern, _ in _OTHERS)


#: corrected by the hardware, or only said: no failure by themselves
_MINOR = ("Corrected", "Correctable", " correctable", "Machine check events logged", "nvAssert", " OK", "likely needs to be reset")


def parse(intake: Intake) -> list[Event]:
    """Hardware faults, alike ones (same code, device, process) folded."""
    events: list[Event] = []
    seen: set[int] = set()
    for index in hits(intake, _XID):
        line = intake.lines[index]
        found = _LINE.search(line.raw)
        if found:
            seen.add(index)
            events.append(_xid(intake, index, found.groupdict()))
    for index in hits(intake, _OFF):
        if index not in seen:
            found = _LOST.search(intake.lines[index].raw)
            if found and ("NVRM" in intake.lines[index].raw or "GPU" in intake.lines[index].raw):
                seen.add(index)
                device = _gpu_at(intake, index)
                fault = HardwareFault(
                    "xid",
                    79,
                    device,
                    "GPU has fallen off the bus",
                    found["message"],
                    node=_node(intake.lines[index]),
                )
                events.append(
                    make(
                        EventKind.HARDWARE,
                        intake.lines[index],
                        parser="kernel_log",
                        type="Xid 79",
                        message=found["message"],
                        fields={"fault": fault, "implied": True},
                    )
                )
    for (literal, kind, _, name), pattern in zip(_OTHERS, _PATTERNS, strict=True):
        for index in hits(intake, literal):
            if index not in seen:
                event = _other(intake.lines[index], kind, name, pattern)
                if event is not None:
                    seen.add(index)
                    events.append(_with_process(intake, index, event) if kind == "amdgpu" else event)
    return _folded(events)


def _gpu_at(intake: Intake, index: int) -> str | None:
    """The PCI address in a line or in the two before it: newer drivers say "fallen off the bus" over three lines."""
    for line in (intake.lines[index], *(before for _, before in preceding(intake, index, 2))):
        found = _GPU_AT.search(line.raw)
        if found:
            return str(found[1])
    return None


def _with_process(intake: Intake, index: int, event: Event) -> Event:
    """amdgpu names the process of a page fault in its line (before Linux 6.10) or in the next one, and that of a ring that timed out
    behind "Process information:" (amdgpu_vm_print_task_info, amdgpu_job_timedout)."""
    for line in (intake.lines[index], *(after for _, after in following(intake, index, 2))):
        found = _TASK.search(line.raw)
        if found is not None and int(found["pid"]):
            fault = replace(event.fields["fault"], pid=int(found["pid"]), process=found["name"])
            return replace(event, fields={**event.fields, "fault": fault})
    return event


def _folded(events: list[Event]) -> list[Event]:
    """One event a fault and device, the first, with how many there were; more than 2,000 lines later it counts anew."""
    kept: list[Event] = []
    last: dict[tuple[object, ...], tuple[int, int]] = {}
    for event in sorted(events, key=lambda e: (e.span.source, e.span.first_line)):
        fault: HardwareFault = event.fields["fault"]
        key = (event.span.source, event.type, fault.device, fault.node, fault.message if fault.code is None else None)
        where = last.get(key)
        if where is not None and event.span.first_line - where[1] <= 2_000:
            kept[where[0]] = counted(kept[where[0]], kept[where[0]].count + 1, event.span)
            last[key] = (where[0], event.span.first_line)
        else:
            last[key] = (len(kept), event.span.first_line)
            kept.append(event)
    return kept


def _xid(intake: Intake, index: int, groups: Mapping[str, str | None]) -> Event:
    """One Xid or SXid with its process, its sub-code and the call trace below it, where it prints them."""
    line = intake.lines[index]
    frames = call_trace(intake, index, 45)
    rest = groups["rest"] or ""
    code = int(groups["code"] or 0)
    process = _PID.match(rest)
    pid: int | None = None
    name: str | None = None
    if process:
        pid = int(process["pid"]) if process["pid"].isdigit() else None
        name = (process["name"] or "").strip("'<>") or None
        name = None if name == "unknown" else name
        rest = process["rest"]
    named = _NAMED.match(rest)
    family = groups["family"] or "Xid"
    subcode = named["name"] if named else None
    if family == "SXid":
        subcode = rest.partition(",")[0].strip() or None
    fault = HardwareFault(family.lower(), code, groups["device"], None, rest, subcode, pid, name, _node(line))
    return make(
        EventKind.HARDWARE,
        line,
        intake.lines[frames[-1][0]] if frames else None,
        parser="kernel_log",
        type=f"{family} {code}",
        message=rest,
        stacks=stack_of(intake, frames),
        fields={"fault": fault},
    )


def _other(line: LogLine, kind: str, name: str | None, pattern: Lazy) -> Event | None:
    found = pattern.search(line.raw)
    if not found:
        return None
    groups: dict[str, Any] = found.groupdict()
    code = groups.get("code")
    message = groups["message"].strip()
    minor = groups.get("subcode") == "CE" or any(word in message for word in _MINOR)
    fault = HardwareFault(
        kind, int(code) if code else None, groups.get("device"), name, message, groups.get("subcode"), node=_node(line)
    )
    return make(
        EventKind.WARNING if minor else EventKind.HARDWARE,
        line,
        parser="kernel_log",
        type=name or kind.upper(),
        message=message,
        fields={"fault": fault},
    )


def _node(line: LogLine) -> str | None:
    return (
        line.rank.node
        if line.rank
        else (line.stream.partition("/")[0] or None if line.stream and "=" not in line.stream else None)
    )
