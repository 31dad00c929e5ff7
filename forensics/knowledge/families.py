"""Kernel families: which op runs on which GPU. In: a symbol, an id, a GPU; out: `KernelFamily` rows and answers. Sample:

families_for_symbol("flashinfer/fused_moe/core.py in trtllm_fp4_block_scale_routed_moe")[0].id -> "fi.trtllm_fp4_block_scale_routed_moe"
supported("fi.trtllm_fp4_block_scale_moe", "sm_120").answer -> "no"
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Any

from forensics.data import table
from forensics.errors import UsageError
from forensics.ingest.compiled import pattern_of
from forensics.ingest.pattern import Pattern
from forensics.knowledge.architectures import parse_target
from forensics.knowledge.gpus import sms
from forensics.knowledge.releases import at_least
from forensics.model import KernelFamily
from forensics.model.record import record

_MAX_TEXT = 20_000


@record
class Support:
    """Whether a family runs on a GPU. answer: yes, no, unknown; reason: a sentence; source: where that was read;
    confidence: source (read there) or inferred."""

    answer: str
    reason: str
    source: str = ""
    confidence: str = "source"


@record
class FamilyFacts:
    """What the table says of a family beyond `KernelFamily`. errors: what is printed where it does not fit; gate: how it is
    tested; dtypes: in words; since: the first version that has it; sms_note: conditions of the list."""

    errors: tuple[str, ...] = ()
    gate: str = ""
    dtypes: str = ""
    since: str = ""
    sms_note: str = ""


def _expanded(entries: Iterable[str]) -> tuple[str, ...]:
    """ "sm_75+" and "sm_80-sm_90" written out with the chips of the GPU table."""
    found: list[str] = []
    for entry in entries:
        low, _, high = entry.partition("-")
        if entry.endswith("+") or high:
            first = parse_target(low.rstrip("+"))
            last = parse_target(high) if high else None
            numbers = (parse_target(sm) for sm in sms("nvidia"))
            found += [
                t.sm
                for t in numbers
                if t and first and t.number >= first.number and (last is None or t.number <= last.number)
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
        raise UsageError(
            f"no kernel family {id!r}",
            why="the tables have none of this name",
            help="did you mean " + ", ".join(near[:5]) if near else "see `forensics support`",
        )
    return _record(row)


def family_facts(id: str) -> FamilyFacts:
    """The rest of what is known of a family; empty where there is no such row."""
    row = _rows().get(id, {})
    return FamilyFacts(
        tuple(row.get("errors", ())),
        row.get("gate", ""),
        row.get("dtypes", ""),
        row.get("since", ""),
        row.get("sms_note", ""),
    )


@record
class _Symbols:
    """Symbols by how they are found: whole words, word patterns by their fixed head, and texts with separators in them."""

    words: Mapping[str, tuple[str, ...]]
    heads: tuple[str, ...]
    globs: tuple[tuple[str, re.Pattern[str] | None, str], ...]
    paths: tuple[tuple[str, re.Pattern[str], str], ...]


_WORD = Pattern(r"[A-Za-z_][A-Za-z0-9_]+")
_PLAIN = Pattern(r"[A-Za-z0-9_*]+\Z")


@cache
def _symbols() -> _Symbols:
    words: dict[str, list[str]] = {}
    globs: list[tuple[str, re.Pattern[str] | None, str]] = []
    paths: list[tuple[str, re.Pattern[str], str]] = []
    for row in _rows().values():
        for symbol in row["symbols"]:
            body = re.escape(symbol).replace(r"\*", "[A-Za-z0-9_.]{0,300}")
            if not _PLAIN.match(symbol):
                fixed = symbol.split("*")[0]
                paths.append((fixed, pattern_of(rf"(?<![A-Za-z0-9_]){body}(?![A-Za-z0-9_])"), row["id"]))
            elif "*" in symbol:
                whole = None if symbol.count("*") == 1 and symbol.endswith("*") else pattern_of(body)
                for head in {symbol, symbol[0].upper() + symbol[1:]}:
                    globs.append((head.split("*")[0], whole, row["id"]))
            else:
                words.setdefault(symbol, []).append(row["id"])
    globs.sort(key=lambda g: -len(g[0]))
    return _Symbols({w: tuple(ids) for w, ids in words.items()}, tuple(g[0] for g in globs), tuple(globs), tuple(paths))


@lru_cache(maxsize=16_384)
def _of_word(word: str) -> tuple[str, ...]:
    """The families that a word is a symbol of; most words, of none, come again and again."""
    table_ = _symbols()
    found = table_.words.get(word, ())
    if word.startswith(table_.heads):
        for head, whole, id in table_.globs:
            if word.startswith(head) and (whole is None or whole.match(word)):
                return (*found, id)
    return found


def symbols_in(text: str) -> list[tuple[str, str]]:
    """Symbols of the table that stand in a text, each with its family's id, in order of appearance."""
    table_ = _symbols()
    text = text[:_MAX_TEXT]
    found: dict[tuple[str, str], int] = {}
    if any(map(_of_word, _WORD.findall(text))):
        for match in _WORD.finditer(text):
            for id in _of_word(match[0]):
                found.setdefault((match[0], id), match.start())
    for fixed, body, id in table_.paths:
        if fixed in text and (there := body.search(text)):
            found.setdefault((there[0], id), there.start())
    return sorted(found, key=lambda pair: found[pair])


def families_for_symbol(text: str) -> list[KernelFamily]:
    """Families whose symbols stand in a text (a frame, a message, a kernel name), in order of appearance, each once."""
    return [family(id) for id in dict.fromkeys(id for _, id in symbols_in(text))]


def families_on(sm: str) -> list[KernelFamily]:
    """Families that list the GPU. Raises UsageError where `sm` is no architecture."""
    return [row for row in families() if supported(row.id, sm).answer == "yes"]


def supported(id: str, sm: str, versions: Mapping[str, str] | None = None) -> Support:
    """Whether a family runs on the GPU `sm`, given package versions ({"flashinfer": "0.6.9"}) where known.

    "no" is said only where the list is exact (any other GPU is refused or has no kernel); otherwise "unknown".
    """
    target = parse_target(sm)
    if target is None:
        raise UsageError(
            f"no GPU architecture: {sm!r}",
            why="it is neither an SM, a compute capability nor a gfx target",
            help="write sm_120, 12.0 or gfx942",
        )
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
        later = [
            e
            for e in _rows()[id].get("history", ())
            if target.sm in _expanded(e["sms"]) and e["package"] not in (versions or {})
        ]
        if later:
            reason = f"{row.title} lists {target.sm} only from {later[0]['package']} {later[0]['since']} on, and the version is not known"
            return Support("unknown", reason, row.source, row.confidence)
        return Support("no", f"{row.title} exists for {shown} only{since}", row.source, row.confidence)
    return Support(
        "unknown", f"{row.title} is known for {shown}{since}; that list is not complete", row.source, row.confidence
    )
