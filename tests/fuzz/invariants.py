"""What must hold for the report on any input. In: the input and its incident; out: nothing, or AssertionError.

check([b"…"], analyze([b"…"]))
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import msgspec

from forensics.ingest.decode import guess_encoding
from forensics.model.verdict import Incident
from forensics.report import contract, render

_WORD = re.compile(r"[A-Za-z0-9_]{4,}")
_BROKEN = "error of its own"


def check(inputs: Sequence[bytes], incident: Incident, faces: Sequence[str] = ("console", "markdown")) -> None:
    """Every invariant at once. faces: what is rendered and searched for control characters."""
    broken = [note.text for note in incident.coverage.notes if _BROKEN in note.text]
    assert not broken, broken
    text = render(incident, "json")
    report = msgspec.json.decode(text.encode(), type=contract.Report)
    assert report["verdict"] is not None
    rows = json.loads(text)
    for evidence in _evidence(rows):
        first, last = evidence["first_line"], evidence["last_line"]
        assert 1 <= first <= last, evidence
    _quotes(inputs, incident)
    _ranks(inputs, rows)
    for face in faces:
        shown = render(incident, face)
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", shown), face


def _evidence(node: Any) -> Iterator[dict[str, Any]]:
    """Every evidence row anywhere in the report."""
    if isinstance(node, dict):
        if {"first_line", "last_line", "quote"} <= node.keys():
            yield node
        for value in node.values():
            yield from _evidence(value)
    elif isinstance(node, list):
        for value in node:
            yield from _evidence(value)


def _quotes(inputs: Sequence[bytes], incident: Incident) -> None:
    """What is quoted stands in the lines that are named (words are compared: control codes are not quoted)."""
    if len(inputs) != 1 or len(incident.sources) != 1 or incident.sources[0].compression:
        return
    data = inputs[0]
    lines = data.decode(guess_encoding(data), "replace").split("\n")
    found = [*incident.verdict.evidence, *(one for failure in incident.failures for one in failure.evidence)]
    found += [one for finding in incident.findings for one in finding.evidence]
    for one in found:
        assert one.span.last_line <= len(lines), (one, len(lines))
        stands = "\n".join(lines[one.span.first_line - 1 : one.span.last_line])
        missing = [word for word in _WORD.findall(one.quote) if word not in _plain(stands)]
        assert not missing, (missing[:5], one)


@cache
def _plain(text: str) -> str:
    # ECMA-48: an escape and one letter is a control function, too, which no terminal shows
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07?|\x1b[ -/]?[0-~]|[\x00-\x08\x0b-\x1f\x7f]", "", text)


def _ranks(inputs: Sequence[bytes], rows: dict[str, Any]) -> None:
    """No rank that is not in the log."""
    everything = b"".join(inputs)
    if everything[:2] in (b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b"):
        return
    blamed = [rows["verdict"]["rank"], *rows["verdict"]["same_failure_ranks"]]
    for rank in blamed:
        if rank and rank["number"] is not None and not rank["axes"]:
            assert str(rank["number"]).encode() in everything, rank
