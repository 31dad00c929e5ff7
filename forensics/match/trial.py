"""Tries one signature on a text outside any log, as examples and `forensics signatures check` do. In: a signature, a text, what is
assumed of the machine; out: hits. Sample:

    try_text(signature, "RuntimeError: …", {"gpu": "sm_120", "engine": "sglang"}) -> [Hit(…)]
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from forensics.ingest.intake import Intake
from forensics.match.conditions import Context
from forensics.match.engine import Hit, Matcher
from forensics.match.load import whole_word
from forensics.match.signature import Signature
from forensics.match.subject import Subjects
from forensics.model.knowledge import Facts, Gpu, Setting, SoftwareVersion
from forensics.model.source import LogLine, LogSource, Span

_HERE = Span(0, 1, 1)


def from_entry(entry: Mapping[str, Any], path: str = "", *, trusted: bool = True) -> Signature:
    """A signature straight from its TOML entry, uncompiled (its shape must have been checked)."""
    match = entry["match"]
    literals, several = tuple(match.get("literals", ())), tuple(match.get("any_literals", ()))
    rest = {key: value for key, value in match.items() if key not in ("literals", "any_literals")}
    return Signature(
        entry["id"], entry["role"], entry.get("category"), entry.get("domain") or entry["id"].partition(".")[0],
        entry.get("confidence", "supported"), entry.get("specificity", 50), entry.get("status", "stable"),
        literals, several, whole_word(literals, several), rest, trusted, path, "", lambda _: {entry["id"]: entry},
    )  # fmt: skip


def facts_from(given: Mapping[str, Any]) -> Facts:
    """Facts as an example states them: gpu ("sm_120", a name), engine, versions, settings."""
    gpu = None
    if name := given.get("gpu"):
        gpu = Gpu(sm=name) if name.startswith(("sm_", "gfx")) else _gpu_named(name)
    return Facts(
        gpu=gpu,
        engine=given.get("engine"),
        versions=tuple(SoftwareVersion(name, value, _HERE) for name, value in given.get("versions", {}).items()),
        settings=tuple(Setting(name, value, "asked", _HERE) for name, value in given.get("settings", {}).items()),
    )


def matcher_for(text: str, given: Mapping[str, Any]) -> Matcher:
    """A matcher over a text read like a log: its events parsed, its lines kept whole."""
    return Matcher(_subjects(text), facts_from(given), Context(given.get("component"), given.get("phase")))


def try_text(one: Signature, text: str, given: Mapping[str, Any]) -> list[Hit]:
    """The hits of one signature on a text."""
    return matcher_for(text, given).hits(one)


def intake_of(text: str) -> Intake:
    """A text as one source, every line kept."""
    lines = [LogLine(0, number, line, line) for number, line in enumerate(text.strip("\n").split("\n"), 1)]
    return Intake(sources=(LogSource("example", len(text), len(lines)),), lines=lines)


@lru_cache(maxsize=512)
def _subjects(text: str) -> Subjects:
    """A text's subjects; a lint tries many variants of a signature on the same few texts."""
    from forensics.parse import parse

    intake = intake_of(text)
    return Subjects(intake, parse(intake))


def _gpu_named(name: str) -> Gpu:
    from forensics.knowledge.gpus import gpu_named

    return gpu_named(name) or Gpu(name)
