"""SARIF, JUnit and GitHub: valid for their readers, safe for their runners."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

from forensics.model import Incident
from forensics.report import render


def test_sarif_has_its_shape(incident: Incident) -> None:
    log = json.loads(render(incident, "sarif"))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(rules) == len(set(rules))
    for result in run["results"]:
        assert result["ruleId"] in rules
        assert result["level"] in ("error", "warning", "note")
        for place in result["locations"]:
            physical = place["physicalLocation"]
            assert not set(' "<>\\^`{|}\x00') & set(physical["artifactLocation"]["uri"])
            assert 1 <= physical["region"]["startLine"] <= physical["region"]["endLine"]


def test_sarif_tells_the_failure(made: dict[str, Incident]) -> None:
    (run,) = json.loads(render(made["crash"], "sarif"))["runs"]
    first, second = run["results"]
    assert first["ruleId"] == "flashinfer.trtllm-moe-cubin-on-sm12x"
    assert first["level"] == "error"
    assert first["partialFingerprints"] == {"failure/v1": "a1b2"}
    assert first["codeFlows"][0]["threadFlows"][0]["locations"][2]["location"]["physicalLocation"]["region"] == {
        "startLine": 1546
    }
    assert second["ruleId"] == "oom_gpu"
    assert json.loads(render(made["healthy"], "sarif"))["runs"][0]["results"] == []


def test_junit(made: dict[str, Incident]) -> None:
    suite = ElementTree.fromstring(render(made["crash"], "junit").encode())[0]
    assert suite.attrib["tests"] == suite.attrib["failures"] == "4"
    assert [case.attrib["name"] for case in suite] == ["TP0", "TP1", "TP2", "TP3"]
    assert suite[1][0].attrib["type"] == "arch_mismatch"
    healthy = ElementTree.fromstring(render(made["healthy"], "junit").encode())[0]
    assert (healthy.attrib["tests"], healthy.attrib["failures"]) == ("4", "0")


def test_junit_is_xml_whatever_the_log_holds(incident: Incident) -> None:
    root = ElementTree.fromstring(render(incident, "junit").encode())
    assert int(root[0].attrib["tests"]) == len(root[0]) > 0


def test_github_annotates_once(made: dict[str, Incident]) -> None:
    lines = render(made["crash"], "github").split("\n")
    assert lines[0].startswith(
        "::error title=crashed%3A arch_mismatch,file=run/server.log,line=2,endLine=2::A trtllm-gen"
    )
    assert not [line for line in lines[1:] if line.lstrip().startswith("::") or "##[" in line]


def test_a_log_cannot_speak_to_the_runner(made: dict[str, Incident]) -> None:
    from dataclasses import replace

    it = made["crash"]
    assert it.primary is not None
    attack = "x\n::set-output name=a::b\n  ::error::boo\n##[command]rm\n%0A::warning::x"
    quote = replace(it.verdict.evidence[0], quote=attack)
    it = replace(it, verdict=replace(it.verdict, title=attack, explanation=attack, evidence=(quote,)))
    lines = render(it, "github").split("\n")
    assert [n for n, line in enumerate(lines) if line.lstrip().startswith("::")] == [0]
    assert "##[" not in "\n".join(lines)
    assert "%250A" in lines[0]
