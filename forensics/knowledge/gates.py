"""FlashInfer's own gates by release. In: op, version, backend; out: the SMs it admits. Sample:

    admitted("bmm_fp8", "0.6.10", "cutlass") -> ("sm_100", "sm_103", "sm_110", "sm_120", "sm_121")

A gate says what is let through, not that a kernel exists behind it. The rows are signatures/facts/flashinfer_gates.toml.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from forensics.data import table
from forensics.knowledge.releases import at_least
from forensics.model.record import record


@record
class Gate:
    """One list of a release. since: the first release read that has it; backend: "" where the op has one list for all."""

    op: str
    file: str
    since: str
    backend: str
    sms: tuple[str, ...]


@cache
def _rows() -> Mapping[str, Mapping[str, Any]]:
    return {row["op"]: row for row in table("facts/flashinfer_gates")["gate"]}


def gated_ops() -> tuple[str, ...]:
    """Names of all ops with a gate."""
    return tuple(_rows())


def gates(op: str, version: str | None = None) -> list[Gate]:
    """The lists of an op in a release, one a backend; with version None the newest read. Empty for an op without a gate, or a
    release older than the first read."""
    row = _rows().get(op)
    if row is None:
        return []
    newest: dict[str, Gate] = {}
    last = ""
    for entry in row["history"]:
        if version is not None and not at_least(version, entry["since"]):
            break
        if entry["since"] != last:
            newest, last = {}, entry["since"]
        backend = entry.get("backend", "")
        newest[backend] = Gate(op, row["file"], entry["since"], backend, tuple(entry["sms"]))
    return list(newest.values())


def admitted(op: str, version: str | None = None, backend: str | None = None) -> tuple[str, ...] | None:
    """SMs that an op (and one backend of it) lets through in a release; None where nothing is known of it."""
    found = [gate for gate in gates(op, version) if backend in (None, gate.backend)]
    return tuple(dict.fromkeys(sm for gate in found for sm in gate.sms)) if found else None
