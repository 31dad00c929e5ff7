"""What numbers mean: Xids, SXids, exit codes, signals. In: a number; out: a row of the tables. Sample:

xid(79).name -> "GPU has fallen off the bus"        exit_meaning(-9).signal -> "SIGKILL"        exit_meaning(137).signal -> "SIGKILL"
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from forensics.data import table
from forensics.model.record import record


@record
class FaultCode:
    """A row of the Xid or SXid table. severity: fatal, warning, info (Xid); always fatal, potentially fatal, non-fatal (SXid);
    application: a bug in the user's kernel is the usual reason; advice: NVIDIA's own word (RESTART_APP, RESET_GPU, IGNORE…)."""

    code: int
    name: str
    meaning: str = ""
    cause: str = ""
    action: str = ""
    severity: str = ""
    application: bool = False
    advice: str = ""
    confidence: str = "source"


@record
class ExitMeaning:
    """What an exit status says. signal: "SIGKILL" where it stands for one; category: the report's word if nothing says more."""

    code: int
    signal: str | None
    meaning: str
    category: str | None = None
    caution: str = ""


_ADVICE = {
    "RESTART_APP": "restart the application",
    "RESET_GPU": "reset the GPU (nvidia-smi -r, or reboot the node)",
    "RESTART_BM": "reboot the node",
    "RESTART_VM": "restart the virtual machine",
    "CONTACT_SUPPORT": "contact the vendor's support",
    "CHECK_MECHANICALS": "check power and seating of the board",
    "UPDATE_SWFW": "update driver and firmware",
    "IGNORE": "nothing by itself: look at what came with it",
}


@cache
def _codes(name: str, key: str) -> Mapping[int, FaultCode]:
    return {row["code"]: _row(row) for row in table(f"facts/{name}")[key]}


def _row(row: Mapping[str, Any]) -> FaultCode:
    advice = row.get("nvidia_immediate", "")
    return FaultCode(
        code=row["code"],
        name=row["name"],
        meaning=row.get("meaning", ""),
        cause=row.get("cause", ""),
        action=row.get("action") or _ADVICE.get(advice, ""),
        severity=row.get("severity", ""),
        application=row.get("application", False),
        advice=advice,
        confidence=row.get("confidence", "source"),
    )


def xid(code: int) -> FaultCode | None:
    """The row of an NVIDIA Xid, None where the catalogue has none."""
    return _codes("xids", "xid").get(code)


def sxid(code: int) -> FaultCode | None:
    """The row of an NVSwitch SXid, None where the table has none."""
    return _codes("sxids", "sxid").get(code)


@cache
def _signals() -> Mapping[int, Mapping[str, Any]]:
    return {row["number"]: row for row in table("facts/exit_codes")["signal"]}


def signal_name(number: int) -> str | None:
    """ "SIGSEGV" of 11."""
    row = _signals().get(number)
    return row["name"] if row else None


def exit_meaning(code: int) -> ExitMeaning | None:
    """What an exit status means: -9 and 137 are SIGKILL; None for 0 and for codes without a meaning of their own."""
    number = -code if code < 0 else code - 128 if code > 128 else 0
    if row := _signals().get(number):
        return ExitMeaning(code, row["name"], row["usual"], row.get("category"), row.get("caution", ""))
    found = next((row for row in table("facts/exit_codes")["exit"] if row["code"] == code), None)
    return ExitMeaning(code, None, f"{found['by']}: {found['meaning']}") if found else None
