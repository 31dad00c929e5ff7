"""Versions that are known to be broken, fixed or different. In: versions, GPU, families in use; out: `VersionNote`s. Sample:

    version_notes({"flashinfer": "0.6.9"}, "sm_120", ["fi.trtllm_fp4_block_scale_moe"])[0].fixed_in -> "0.6.16"

The rows are signatures/facts/version_notes.toml.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from forensics.data import table
from forensics.knowledge.architectures import parse_target
from forensics.knowledge.releases import between
from forensics.model.record import record


@record
class VersionNote:
    """A row that holds. have: the version in the log; kind: broken, changed or needs; fixed_in: the first version without it;
    fix: what to do where that is more than an upgrade."""

    id: str
    package: str
    have: str
    kind: str
    text: str
    fixed_in: str | None = None
    fix: str = ""
    source: str = ""
    confidence: str = "source"


@cache
def _rows() -> tuple[Mapping[str, object], ...]:
    return tuple(table("facts/version_notes")["note"])


def notes_about(families: Iterable[str], sm: str) -> list[VersionNote]:
    """Rows about these families on a GPU, whatever the version; `have` is the range they hold for."""
    target, wanted = parse_target(sm), set(families)
    found = []
    for row in _rows():
        sms, named = row.get("sms"), row.get("families")
        fits = not isinstance(sms, list) or (target is not None and target.sm in sms)
        if fits and isinstance(named, list) and wanted & set(named):
            first, last = _text(row, "first"), _text(row, "last")
            held = (
                f"{first} to {last}"
                if first and last
                else f"from {first} on"
                if first
                else f"up to {last}"
                if last
                else "any"
            )
            found.append(_note(row, held))
    return found


def version_notes(versions: Mapping[str, str], sm: str | None, families: Iterable[str] = ()) -> list[VersionNote]:
    """Rows that hold for these versions. A row about GPUs needs the GPU, a row about families one of them in use."""
    target = parse_target(sm) if sm else None
    used = set(families)
    found = []
    for row in _rows():
        have = versions.get(str(row["package"]))
        if have is None or not between(have, _text(row, "first"), _text(row, "last")):
            continue
        sms, wanted = row.get("sms"), row.get("families")
        if isinstance(sms, list) and (target is None or target.sm not in sms):
            continue
        if isinstance(wanted, list) and not used & set(wanted):
            continue
        found.append(_note(row, have))
    return found


def _note(row: Mapping[str, object], have: str) -> VersionNote:
    return VersionNote(
        id=str(row["id"]),
        package=str(row["package"]),
        have=have,
        kind=str(row["kind"]),
        text=str(row["text"]),
        fixed_in=_text(row, "fixed_in"),
        fix=_text(row, "fix") or "",
        source=str(row["source"]),
        confidence=str(row["confidence"]),
    )


def _text(row: Mapping[str, object], key: str) -> str | None:
    value = row.get(key)
    return str(value) if value is not None else None
