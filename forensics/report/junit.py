"""The JUnit face, for CI boards: one test case a rank, failed where the rank failed. In: a `contract.Report`; out: XML. Sample:

    <testsuite name="forensics" tests="4" failures="4" …><testcase classname="server.log" name="TP0"><failure type="arch_mismatch" …

A log without ranks is one case. What XML cannot hold (control characters, lone surrogates) is spelled out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

from forensics.report.text import visible

if TYPE_CHECKING:
    from forensics.report import contract

_GOOD = frozenset({"ok", "silent", "unobserved"})


def write(report: contract.Report, redactor: Any = None) -> str:
    """The report as a JUnit file."""
    source = report["coverage"]["sources"][0]["name"] if report["coverage"]["sources"] else "log"
    told, title, labels = _story(report), report["verdict"]["title"], [row["label"] for row in report["ranks"]]
    if redactor is not None:  # in one walk: a name learnt from one of them is missing in none
        source, told, title, labels = redactor.value((source, told, title, labels))
    rows = [(label, row["outcome"]) for label, row in zip(labels, report["ranks"], strict=True)]
    failed = report["primary"] is not None or report["status"].value != "healthy"
    if not rows or (failed and all(outcome in _GOOD for _, outcome in rows)):
        rows.append(("job", "initiating" if failed else "ok"))
    failures = sum(outcome not in _GOOD for _, outcome in rows)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites><testsuite name="forensics" tests="{len(rows)}" failures="{failures}" errors="0" skipped="0">',
    ]
    for label, outcome in rows:
        head = f'<testcase classname={_attribute(source)} name={_attribute(label)} time="0"'
        if outcome in _GOOD:
            lines.append(head + "/>")
            continue
        text = told if outcome in ("initiating", "same", "missing") else f"{outcome}: {title}"
        lines.append(
            f"{head}><failure type={_attribute(report['verdict']['category'].value)} "
            f"message={_attribute(f'{outcome}: {title}')}>{escape(visible(text))}</failure></testcase>"
        )
    return "\n".join([*lines, "</testsuite></testsuites>", ""])


def _story(report: contract.Report) -> str:
    verdict, primary = report["verdict"], report["primary"]
    lines = [verdict["title"], verdict["explanation"]]
    if primary is not None:
        lines.append(f"{primary['root_type'] or primary['kind']}: {primary['root_message']}"[:4000])
    lines += [f"fix: {fix['action']}" for fix in verdict["fixes"]]
    lines += [f"{row['source']}:{row['first_line']}: {row['quote'][:500]}" for row in (primary["evidence"][:3] if primary else [])]
    return "\n".join(filter(None, lines))


def _attribute(text: str) -> str:
    return quoteattr(visible(text).replace("\n", " "))
