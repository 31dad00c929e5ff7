"""What differs between two runs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from forensics.model import Incident, Setting, Span
from forensics.report.diff import as_json, changes, sections, view

Run = Callable[..., subprocess.CompletedProcess[bytes]]


def test_the_same_run_has_no_difference(incident: Incident) -> None:
    assert changes(incident, incident) == []
    assert sections(incident, incident) == []
    assert view(incident, incident).title == "No difference found"


def test_settings_versions_and_outcome(made: dict[str, Incident]) -> None:
    bad, good = made["crash"], made["healthy"]
    settings = (
        Setting("moe_runner_backend", "cutlass", "asked", Span(0, 2, 2)),
        Setting("seed", "7", "asked", Span(0, 2, 2)),
    )
    good = replace(good, facts=replace(good.facts, settings=settings, versions=good.facts.versions[:1]))
    found = {(one.kind, one.name): (one.good, one.bad, one.place) for one in changes(good, bad)}
    assert found["outcome", "status"] == ("healthy", "crashed", "")
    assert found["setting", "moe_runner_backend"] == ("cutlass", "triton", "server.log:2")
    assert found["setting", "quantization"] == (None, "None", "server.log:2")
    assert found["version", "torch"] == (None, "2.11.0+cu130", "server.log:1")
    assert found["progress", "failed during"] == (None, "graph capture", "")
    assert ("setting", "seed") not in found
    assert ("version", "sglang") not in found
    assert found["contradiction", "moe_runner_backend"][1] == "triton asked, flashinfer_trtllm_routed ran"


def test_json(made: dict[str, Incident]) -> None:
    told = json.loads(as_json(made["healthy"], made["crash"]))
    assert told["schema"] == "forensics-diff/1"
    assert told["bad"]["category"] == "arch_mismatch"
    assert {"kind", "name", "good", "bad", "place"} == set(told["changes"][0])


def test_the_command(forensics: Run, samples: Path) -> None:
    good, bad = samples / "backend_asked_for/backend_asked_for.log", samples / "founding_case/founding_case.log"
    same = forensics("diff", str(good), str(good))
    assert same.returncode == 0
    assert b"No difference found" in same.stdout
    other = forensics("diff", str(good), str(bad))
    assert other.returncode == 1
    assert b"speculative_algorithm" in other.stdout
    told = json.loads(forensics("diff", str(good), str(bad), "--format", "json").stdout)
    assert next(one for one in told["changes"] if one["name"] == "speculative_algorithm")["bad"] == "EAGLE"
    assert forensics("diff", str(good), "no.log").returncode == 4
    assert b"| speculative" in forensics("diff", str(good), str(bad), "--format", "markdown").stdout
