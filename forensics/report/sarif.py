"""The SARIF 2.1.0 face, for code-scanning boards. In: a `contract.Report`; out: JSON. Sample:

    {"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "forensics", …}}, "results": [{"ruleId": "arch_mismatch", …}]}]}

One result for the verdict, one a further failure that stands for itself, one an incident; the stack's frames as code flow. Places
are lines of the log (the artifact that was analysed) and, for frames, of the sources named there.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from forensics.report.json import repaired

if TYPE_CHECKING:
    from forensics.report import contract

_LEVEL = {"established": "error", "supported": "error", "hypothesis": "warning", "unknown": "note"}


def write(report: contract.Report, redactor: Any = None) -> str:
    """The report as SARIF."""
    log: dict[str, Any] = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "forensics",
                        "rules": _rules(report),
                    }
                },
                "results": _results(report),
                "columnKind": "unicodeCodePoints",
                "properties": {"status": report["status"], "engine": report["engine"]["name"], "device": report["device"]["sm"]},
            }
        ],
    }
    if redactor is not None:
        log = redactor.value(log)
    return json.dumps(repaired(log), ensure_ascii=False, indent=2) + "\n"


def _rules(report: contract.Report) -> list[dict[str, Any]]:
    """The verdict's rule, and the categories of the other incidents."""
    verdict = report["verdict"]
    if report["primary"] is None and not report["incidents"]:
        return []
    rules = [
        {
            "id": verdict["signature"] or verdict["category"].value,
            "shortDescription": {"text": verdict["title"]},
            "fullDescription": {"text": verdict["explanation"] or verdict["title"]},
            "help": {"text": "\n".join([*(fix["action"] for fix in verdict["fixes"]), *verdict["next_steps"]]) or "see the report"},
            "properties": {"tags": ["gpu", verdict["category"].value]},
        }
    ]
    known = {rules[0]["id"]}
    for one in report["incidents"]:
        if one["category"].value not in known:
            known.add(one["category"].value)
            rules.append({"id": one["category"].value, "shortDescription": {"text": one["category"].value.replace("_", " ")}})
    return rules


def _results(report: contract.Report) -> list[dict[str, Any]]:
    results = []
    primary, verdict = report["primary"], report["verdict"]
    if primary is not None:
        rule = verdict["signature"] or verdict["category"].value
        quoted = [*verdict["evidence"], *primary["evidence"]]
        results.append(
            {
                "ruleId": rule,
                "level": _LEVEL[verdict["confidence"].value],
                "message": {
                    "text": f"{verdict['title']}. {primary['root_type'] or primary['kind']}: {primary['root_message']}"[:4000]
                },
                "locations": [_location(one) for one in quoted[:1]],
                "relatedLocations": [{**_location(one), "message": {"text": one["shows"] or "evidence"}} for one in quoted[1:20]],
                "partialFingerprints": {"failure/v1": primary["fingerprint"]},
                "codeFlows": _flow(primary["frames"]),
                "properties": {
                    "category": verdict["category"].value,
                    "confidence": verdict["confidence"].value,
                    "rank": verdict["rank"]["label"] if verdict["rank"] else None,
                    "phase": primary["phase"],
                },
            }
        )
    for one in report["incidents"]:
        results.append(
            {
                "ruleId": one["category"].value,
                "level": "note",
                "message": {"text": f"{one['status'].value}: {one['title']}"[:4000]},
                "locations": [_location(row) for row in one["evidence"][:1]],
            }
        )
    return results


def _location(row: contract.Evidence) -> dict[str, Any]:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(row["source"])},
            "region": {"startLine": row["first_line"], "endLine": row["last_line"], "snippet": {"text": row["quote"][:2000]}},
        }
    }


def _flow(frames: list[contract.Frame]) -> list[dict[str, Any]]:
    steps = []
    for frame in frames[-100:]:
        place: dict[str, Any] = {"message": {"text": ": ".join(filter(None, (frame["function"], frame["code"])))[:1000]}}
        if frame["file"]:
            place["physicalLocation"] = {"artifactLocation": {"uri": _uri(frame["file"])}}
            if frame["line"] and frame["line"] > 0:
                place["physicalLocation"]["region"] = {"startLine": frame["line"]}
        steps.append({"location": place})
    return [{"threadFlows": [{"locations": steps}]}] if steps else []


def _uri(path: str) -> str:
    from urllib.parse import quote

    return quote("stdin" if path == "-" else path.encode("utf-8", "replace"), safe="/:.-_~!$'()*+,;=@")
