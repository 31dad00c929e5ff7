"""What is handed on holds no secret, no name of a user or host; and every such face says how many were replaced."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from forensics import analyze, render
from forensics.report import PUBLIC

from . import logs

TOKEN = "hf_" + "QwErTyUiOpAsDfGhJkLzXcVbNm"
KEY = "AKIA" + "IOSFODNN7EXAMPLE"
PRIVATE = {
    "token": f"401 for token {TOKEN}",
    "key": f"aws_secret_access_key=wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY {KEY}",
    "argument": "--api-key s3cr3t-9-value --port 80",
    "user": "cannot open /home/marlene/run/train.py",
    "host": "node gpu-17.cluster.internal went away",
    "address": "tcp://10.4.7.19:29500 fe80::1ff:fe23:4567:890a 0c:42:a1:5e:00:11",
    "mail": "ask marlene.m@corp.example",
    "bucket": "s3://corp-models/secret-project/7b",
    "login": "https://bob:hunter22@proxy.corp/x",
    "prompt": "prompt: 'tell me about the merger of our two companies', params",
}
GONE = (TOKEN, KEY, "wJalrXUtnFEMI", "s3cr3t-9", "marlene", "gpu-17", "10.4.7.19", "890a", "0c:42:a1", "corp-models", "hunter22", "merger")


@pytest.mark.parametrize("what", PRIVATE)
@pytest.mark.parametrize("face", sorted(PUBLIC))
def test_public_faces_are_redacted_by_default(face: str, what: str) -> None:
    incident = analyze([logs.crash(PRIVATE[what]).encode()])
    text = render(incident, face, explain=True)
    assert not [secret for secret in GONE if secret in text]
    assert re.search(r"\d+ [a-z- ]+s? replaced|replaced", text)
    told = render(incident, face, explain=True, redact=False)
    assert [secret for secret in GONE if secret in told.replace("\u200b", "").replace("\\", "")]


def test_every_way_out_can_be_redacted() -> None:
    everything = "\n".join(PRIVATE.values())
    incident = analyze([logs.crash(everything).encode()])
    for face in ("json", "sarif", "junit", "console"):
        text = render(incident, face, explain=True, redact=True, width=4000)
        assert not [secret for secret in GONE if secret in text], face


def test_a_bug_report_is_redacted(tmp_path: Path) -> None:
    from forensics.repro.bug_report import issue
    from forensics.repro.planning import plan_case
    from tests.repro.conftest import report

    message = f"mat1 and mat2 shapes cannot be multiplied (4x8 and 16x8) {PRIVATE['token']} {PRIVATE['user']}"
    from forensics.repro.case import case_of_report

    plan = plan_case(case_of_report(report("RuntimeError", message, "shape_or_dtype_assert")))
    assert plan is not None
    text = issue(plan)
    assert TOKEN not in text and "marlene" not in text


def test_junit_names_nobody_whatever_comes_first() -> None:
    """A name that only a later text gives away is missing in the earlier ones, too."""
    incident = analyze([logs.crash("job of marlene failed: cannot open /home/marlene/run/train.py").encode()])
    assert "marlene" in render(incident, "junit")
    assert "marlene" not in render(incident, "junit", redact=True)
