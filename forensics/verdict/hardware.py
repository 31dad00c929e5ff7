"""Hardware faults with what they mean. In: HARDWARE events; out: report rows. Sample:

NVRM: Xid (PCI:0000:3b:00): 79, … -> HardwareRow(kind="xid", code=79, name="GPU has fallen off the bus", meaning=…, action=…)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from forensics.data import table
from forensics.knowledge.faults import FaultCode, sxid, xid
from forensics.model.event import Event, EventKind, HardwareFault
from forensics.model.verdict import HardwareRow
from forensics.verdict.quotes import Quotes

#: Xids that a program's own error causes: told beside it, never instead of it
_OF_THE_PROGRAM = frozenset((13, 31, 43, 45, 66, 69))


@lru_cache(maxsize=1)
def _xids() -> dict[int, dict[str, Any]]:
    try:
        rows = table("facts/xids")
    except FileNotFoundError:
        return {}
    return {int(row["code"]): row for row in next((v for v in rows.values() if isinstance(v, list)), [])}


def fault_of(event: Event) -> HardwareFault | None:
    """The fault of a HARDWARE event."""
    fault = event.fields.get("fault")
    return fault if isinstance(fault, HardwareFault) else None


def of_the_program(fault: HardwareFault) -> bool:
    """True where the fault is what a program's own error looks like from the driver."""
    return (fault.kind == "xid" and fault.code in _OF_THE_PROGRAM) or is_page_fault(fault)


def only_noted(fault: HardwareFault) -> bool:
    """True where the driver writes down what it did or saw, and no process ends of it."""
    return fault.kind == "xid" and fault.code is not None and bool(_xids().get(fault.code, {}).get("noted"))


def known_fault(type_: str | None) -> FaultCode | None:
    """The catalogue's row of a failure whose type is "Xid 79" or "SXid 20034"; None where it is another, or has none."""
    kind, _, code = (type_ or "").partition(" ")
    if not code.isdigit():
        return None
    return xid(int(code)) if kind == "Xid" else sxid(int(code)) if kind == "SXid" else None


def is_page_fault(fault: HardwareFault) -> bool:
    """True where the driver reports that a program's kernel touched memory that is not mapped."""
    if fault.kind == "xid":
        return fault.code == 31
    return fault.kind == "amdgpu" and any(words in (fault.message or "") for words in ("page fault (", "VM_L2_PROTECTION_FAULT"))


def _of_process(fault: HardwareFault) -> str:
    """Whose it was, where the driver names the process."""
    if fault.pid is None:
        return ""
    return f"; process {fault.process}, pid {fault.pid}" if fault.process else f"; pid {fault.pid}"


def rows(events: Sequence[Event], quotes: Quotes) -> tuple[HardwareRow, ...]:
    """One row for each code and device, in log order."""
    found: dict[tuple[str, int | None, str | None], HardwareRow] = {}
    for event in events:
        fault = fault_of(event) if event.kind is EventKind.HARDWARE else None
        if fault is None:
            continue
        # 0000:3b:00 and 0000:3b:00.0 are one GPU: its Xid lines leave the function out
        key = (fault.kind, fault.code, fault.device.removesuffix(".0") if fault.device else None)
        if key in found:
            continue
        known = _xids().get(fault.code, {}) if fault.kind == "xid" and fault.code is not None else {}
        name = fault.name or known.get("name")
        found[key] = HardwareRow(
            kind=fault.kind,
            code=fault.code,
            name=name,
            device=fault.device,
            rank=event.rank,
            meaning=str(known.get("meaning") or fault.message or name or "") + _of_process(fault),
            action=str(known.get("action") or ""),
            evidence=(
                quotes.of(
                    event.span,
                    f"{fault.kind} {fault.code if fault.code is not None else ''} of {fault.device or 'a device'}".replace(
                        "  ", " "
                    ),
                ),
            ),
        )
    return tuple(found.values())
