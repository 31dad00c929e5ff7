"""The JSON face keeps its contract."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import msgspec

from forensics.model import Category, Confidence, Incident, Status
from forensics.model.record import replace
from forensics.report import render
from forensics.report.contract import Report, schema

#: the contract's keys, written down a second time: whoever renames one has to change its number too
KEYS = {
    "": "schema status verdict primary failures call_path contradictions collective hardware engine device software config "
    "ranks world_size incidents findings repro coverage",
    "verdict": "category title explanation confidence signature rank same_failure_ranks culprit_note fixes next_steps "
    "must_not_prove settled_by evidence alternatives",
    "primary": "kind type message root_type root_message chain frames kernel rank time phase component fingerprint evidence",
    "collective": "process_group op sequence numel_in numel_out dtype timeout_ms started_time waiting missing desync suspects "
    "known_from",
    "coverage": "bytes lines claimed_lines sources skipped notes",
    "device": "name sm count source",
    "engine": "name version",
    "repro": "recipe runnable reason",
    "software": "torch cuda flashinfer nccl driver",
}
ROWS = {
    "failures": KEYS["primary"] + " role count ranks",
    "call_path": "label owner frame",
    "contradictions": "setting requested observed explanation evidence",
    "hardware": "code kind name device rank meaning action evidence",
    "ranks": "label number first_time last_time last_step outcome",
    "incidents": "status category title rank time evidence",
}


def test_it_is_valid(incident: Incident) -> None:
    report = json.loads(render(incident, "json"))
    jsonschema.Draft202012Validator(schema()).validate(report)
    msgspec.convert(report, Report, strict=True)


def test_every_key_is_always_there(incident: Incident) -> None:
    report = json.loads(render(incident, "json"))
    for name, keys in KEYS.items():
        part = report[name] if name else report
        if part is not None:
            assert set(keys.split()) <= set(part), name
    for name, keys in ROWS.items():
        for row in report[name]:
            assert set(keys.split()) <= set(row), name


def test_the_contracts_words() -> None:
    """The enumerations are the contract's, not one more and not one less."""
    words = schema()["$defs"]
    assert set(words["Status"]["enum"]) == {"crashed", "hung", "killed", "degraded", "healthy", "unknown"}
    assert set(words["Confidence"]["enum"]) == {"established", "supported", "hypothesis", "unknown"}
    assert set(words["Category"]["enum"]) == {one.value for one in Category}
    assert len(Category) == 24
    assert len(Status) == 6
    assert len(Confidence) == 4


def test_the_shipped_schema_is_the_codes() -> None:
    """Renewed by docs/refresh.py; a changed contract shows in a review as a changed file."""
    from forensics.report import contract

    shipped = Path(contract.__file__).with_name("forensics-report.schema.json")
    assert json.loads(shipped.read_text(encoding="utf-8")) == schema()


def test_values(made: dict[str, Incident]) -> None:
    report = json.loads(render(made["crash"], "json"))
    assert report["schema"] == "forensics-report/1"
    assert report["verdict"]["rank"] == {"label": "TP1", "number": 1, "axes": {"tp": 1}, "node": None, "pid": None}
    assert [rank["number"] for rank in report["verdict"]["same_failure_ranks"]] == [0, 2, 3]
    assert report["primary"]["chain"][0]["link"] is None
    assert report["primary"]["chain"][1]["link"] == "context"
    assert report["primary"]["frames"][2] == {
        "file": "/opt/engine/deepseek_v4.py",
        "line": 1546,
        "function": "mlp",
        "owner": "engine",
        "code": "hidden = self.experts(hidden)",
        "module": None,
        "repeated": 1,
        "log_line": 94,
    }
    assert report["primary"]["kernel"]["tile"] == [128, 8, 256]
    assert report["call_path"][1]["gap_after"] == "launches are asynchronous"
    assert report["config"] == {"moe_runner_backend": "triton", "quantization": None}
    assert report["software"]["torch"] == "2.11.0+cu130"
    assert report["software"]["nccl"] is None
    assert report["primary"]["evidence"][0]["source"] == "run/server.log"
    assert report["coverage"]["notes"] == [
        {"stage": "parse", "text": "a torn line", "source": "run/server.log", "line": 7}
    ]


def test_broken_text_is_still_json(made: dict[str, Incident], hostile_text: str) -> None:
    text = render(made["hostile"], "json")
    assert json.loads(text)["primary"]["message"] == hostile_text.replace("\udc80", "?")


def test_a_report_of_very_many_rows_has_a_line_for_each_key(made: dict[str, Incident]) -> None:
    found = made["crash"]
    many = replace(found, ranks=tuple(found.ranks) * 400)
    text = render(many, "json")
    assert len(text.splitlines()) == len(json.loads(text)) + 2
    whole = json.loads(render(found, "json"))
    assert {**json.loads(text), "ranks": whole["ranks"]} == whole
