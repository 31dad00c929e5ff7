"""Reads what an engine says it chose. In: retained lines; out: `Setting` rows, how "resolved" or "observed". Samples:

    [2026-01-05 10:00:03 TP0] Use flashinfer_trtllm_routed as MoE runner backend for DeepseekV4ForCausalLM hybrid FP8+NVFP4 checkpoint.
    (EngineCore pid=9) INFO 01-05 10:00:03 [nvfp4.py:120] Using 'MARLIN' NvFp4 MoE backend out of potential backends: [...]

The rows are signatures/facts/resolved_lines.toml. Where a row leaves the component open, lines behind a mark of the draft (its
loading or capture) and before the next mark of the target are the draft's.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from forensics.knowledge.linerules import LineRule, Sightings, rules
from forensics.model import Setting

_DRAFT = (
    "Capture draft cuda graph begin", "Capture draft extend cuda graph begin", "Capture draft decode CUDA graph begin",
    "Capture draft extend CUDA graph begin", "Loading drafter model", "Load draft model", "Init draft", "draft model weights",
)  # fmt: skip
_TARGET = (
    "Capture cuda graph begin", "Capture target", "Load weight begin", "Starting to load model", "Capture draft cuda graph end",
    "Capture draft extend cuda graph end",
)  # fmt: skip
_MARKS = LineRule((*_DRAFT, *_TARGET), "|".join(re.escape(t) for t in (*_DRAFT, *_TARGET)))


def resolved_rules() -> tuple[LineRule, ...]:
    """What this module looks for."""
    return (*rules("resolved_lines"), _MARKS)


def resolved(seen: Sightings) -> Iterator[Setting]:
    """Choices and observations in the log's order, a rank's repetition of another's left out."""
    marks = _draft_marks(seen)
    once: set[tuple[object, ...]] = set()
    found = sorted(seen.matches(rules("resolved_lines")), key=lambda m: m.at)
    for match in found:
        fields = match.rule.fields
        groups = match.found.groupdict()
        value = fields.get("fixed") or groups.get("value")
        if value is None:
            continue
        component = fields.get("component")
        if component == "auto":
            component = "draft_model" if _in_draft(marks, match.line.source, match.line.number) else "target_model"
        key = (fields["setting"], value, component, fields["how"])
        if key not in once:
            once.add(key)
            yield Setting(fields["setting"], value, fields["how"], match.span, component, match.found[0][:200])


def _draft_marks(seen: Sightings) -> dict[int, list[tuple[int, bool]]]:
    """By source: line numbers where the draft's turn starts (True) or ends."""
    marks: dict[int, list[tuple[int, bool]]] = {}
    for match in seen.matches([_MARKS]):
        marks.setdefault(match.line.source, []).append((match.line.number, match.found[0] in _DRAFT))
    for turns in marks.values():
        turns.sort()
    return marks


def _in_draft(marks: dict[int, list[tuple[int, bool]]], source: int, number: int) -> bool:
    turns = marks.get(source, [])
    at = bisect_right(turns, (number, True))
    return bool(at) and turns[at - 1][1]
