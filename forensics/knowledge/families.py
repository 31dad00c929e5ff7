"""Kernel families: which op runs on which GPU. In: a symbol, an id, a GPU; out: `KernelFamily` rows and answers. Sample:

    families_for_symbol("flashinfer/fused_moe/core.py in trtllm_fp4_block_scale_routed_moe")[0].id -> "fi.trtllm_fp4_block_scale_routed_moe"
    supported("fi.trtllm_fp4_block_scale_moe", "sm_120").answer -> "no"
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from forensics.data import table
from forensics.errors import UsageError
from forensics.knowledge.architectures import parse_target
from forensics.knowledge.gpus import sms
from forensics.knowledge.releases import at_least
from forensics.model import KernelFamily

_MAX_TEXT = 20_000


@dataclass(frozen=True, slots=True)
class Support:
    """Whether a family runs on a GPU. answer: yes, no, unknown; reason: a sentence; source: where that was read;
    confidence: source (read there) or inferred."""

    answer: str
    reason: str
    source: str = ""
    confidence: str = "source"


@dataclass(frozen=True, slots=True)
class FamilyFacts:
    """What the table says of a family beyond `KernelFamily`. errors: what is printed where it does not fit; gate: how it is
    tested; dtypes: in words; since: the first version that has it; sms_note: conditions of the list."""

    errors: tuple[str, ...] = ()
    gate: str = ""
    dtypes: str = ""
    since: str = ""
    sms_note: str = ""


def _expanded(entries: Iterable[str]) -> tuple[str, ...]:
    """"sm_75+" and "sm_80-sm_90" written out with the chips of the GPU table."""
    found: list[str] = []
    for entry in entries:
        low, _, high = entry.partition("-")
        if entry.endswith("+") or high:
            first = parse_target(low.rstrip("+"))
            last = parse_target(high) if high else None
            numbers = (parse_target(sm) for sm in sms("nvidia"))
            found += [
                t.sm for t in numbers if t and first and t.number >= first.number and (last is None or t.number <= last.number)
            ]
        else:
            found.append(entry)
    return tuple(dict.fromkeys(found))


@cache
def _rows() -> Mapping[str, dict[str, Any]]:
    return {row["id"]: row for row in table("facts/kernel_families")["family"]}


def _record(row: Mapping[str, Any]) -> KernelFamily:
    return KernelFamily(
        id=row["id"],
        title=row["title"],
        library=row["library"],
        symbols=tuple(row["symbols"]),
        backends=tuple(row.get("backends", ())),
        sms=_expanded(row["sms"]),
        exact=row["exact"],
        delivery=row.get("delivery", ""),
        source=row.get("source", ""),
        confidence=row["confidence"],
        notes=row.get("notes", ""),
    )


@cache
def families() -> tuple[KernelFamily, ...]:
    """All rows of the table, in its order."""
    return tuple(_record(row) for row in _rows().values())


def family(id: str) -> KernelFamily:
    """The row with that id. Raises UsageError where there is none."""
    row = _rows().get(id)
    if row is None:
        near = [known for known in _rows() if id.rsplit(".", 1)[-1].lower() in known]
        raise UsageError(f"no kernel family {id!r}", help="did you mean " + ", ".join(near[:5]) if near else "see `forensics support`")
    return _record(row)


def family_facts(id: str) -> FamilyFacts:
    """The rest of what is known of a family; empty where there is no such row."""
    row = _rows().get(id, {})
    return FamilyFacts(
        tuple(row.get("errors", ())), row.get("gate", ""), row.get("dtypes", ""), row.get("since", ""), row.get("sms_note", "")
    )


@cache
def _symbol_pattern() -> tuple[re.Pattern[str], tuple[str, ...]]:
    """One alternation over all symbols, longest first, and the family id of each group."""
    pairs = sorted(((symbol, row["id"]) for row in _rows().values() for symbol in row["symbols"]), key=lambda p: -len(p[0]))
    parts = []
    for symbol, _ in pairs:
        body = re.escape(symbol).replace(r"\*", r"[A-Za-z0-9_.]{0,300}?")
        head = "[Bb]" + body[1:] if symbol.startswith("bmm_") else "[Gg]" + body[1:] if symbol.startswith("gemm_") else body
        parts.append(f"({head})" + ("" if symbol.endswith("*") else r"(?![A-Za-z0-9_])"))
    return re.compile(r"(?<![A-Za-z0-9_])(?:" + "|".join(parts) + ")"), tuple(id for _, id in pairs)


def families_for_symbol(text: str) -> list[KernelFamily]:
    """Families whose symbols stand in a text (a frame, a message, a kernel name), in order of appearance, each once."""
    pattern, owners = _symbol_pattern()
    found: dict[str, None] = {}
    for match in pattern.finditer(text[:_MAX_TEXT]):
        if match.lastindex:
            found[owners[match.lastindex - 1]] = None
    return [family(id) for id in found]


def symbol_in(text: str, row: KernelFamily) -> str | None:
    """The symbol of the family that stands in the text, as written there."""
    pattern, owners = _symbol_pattern()
    for match in pattern.finditer(text[:_MAX_TEXT]):
        if match.lastindex and owners[match.lastindex - 1] == row.id:
            return match[0]
    return None


def families_on(sm: str) -> list[KernelFamily]:
    """Families that list the GPU. Raises UsageError where `sm` is no architecture."""
    return [row for row in families() if supported(row.id, sm).answer == "yes"]


def supported(id: str, sm: str, versions: Mapping[str, str] | None = None) -> Support:
    """Whether a family runs on the GPU `sm`, given package versions ({"flashinfer": "0.6.9"}) where known.

    "no" is said only where the list is exact (any other GPU is refused or has no kernel); otherwise "unknown".
    """
    target = parse_target(sm)
    if target is None:
        raise UsageError(f"no GPU architecture: {sm!r}", help="write sm_120, 12.0 or gfx942")
    row = family(id)
    listed, since = row.sms, ""
    for entry in _rows()[id].get("history", ()):
        have = (versions or {}).get(entry["package"])
        if have is not None and at_least(have, entry["since"]):
            listed, since = _expanded(entry["sms"]), f" (from {entry['package']} {entry['since']} on)"
    shown = ", ".join(listed)
    if target.sm in listed:
        return Support("yes", f"{row.title} lists {target.sm}{since}", row.source, row.confidence)
    if row.exact:
        later = [e for e in _rows()[id].get("history", ()) if target.sm in _expanded(e["sms"]) and e["package"] not in (versions or {})]
        if later:
            reason = f"{row.title} lists {target.sm} only from {later[0]['package']} {later[0]['since']} on, and the version is not known"
            return Support("unknown", reason, row.source, row.confidence)
        return Support("no", f"{row.title} exists for {shown} only{since}", row.source, row.confidence)
    return Support("unknown", f"{row.title} is known for {shown}{since}; that list is not complete", row.source, row.confidence)


