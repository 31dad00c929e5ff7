"""Records of collectors: the field that holds the message is no sign that a user wrote it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from forensics.model.verdict import Category, Status

from .conftest import Told

FULL = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
RAISED = f'Traceback (most recent call last):\n  File "/opt/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_worker.py", line 3, in run\n    x()\n{FULL}'


def _log(field: str, level: str, last: Any, **more: Any) -> str:
    def record(second: int, words: Any, grave: str) -> str:
        return json.dumps({"time": f"2026-11-29T20:15:{second:02d}Z", level: grave, field: words}) + "\n"

    steps = "".join(record(second, f"step {second}", "info") for second in range(10))
    return steps + (json.dumps({"time": "2026-11-29T20:15:20Z", level: "info", field: last, **more}) + "\n" if more else record(20, last, "error"))


@pytest.mark.parametrize("said", [FULL, RAISED], ids=["a line", "a traceback"])
@pytest.mark.parametrize(("field", "level"), [("body", "severity_text"), ("text", "level"), ("message", "severity")])
def test_the_message_of_a_record_is_the_writers_own(told: Told, field: str, level: str, said: str) -> None:
    assert told(_log(field, level, said)).verdict.category is Category.OOM_GPU


def test_opentelemetry_and_loguru_name_them_in_records_of_their_own(told: Told) -> None:
    otlp = [json.dumps({"severityText": "ERROR" if said is RAISED else "INFO", "body": {"stringValue": said}}) for said in ("ready", "step 1", RAISED)]
    loguru = [json.dumps({"text": said, "record": {"level": {"name": "ERROR" if said is RAISED else "INFO"}}}) for said in ("ready", "step 1", RAISED)]
    for lines in (otlp, loguru):
        assert told("\n".join(lines) + "\n").verdict.category is Category.OOM_GPU


@pytest.mark.parametrize(
    "log",
    [
        _log("message", "level", "new request", body=f"why {FULL}"),
        _log("message", "level", "new request", prompt=f"why {FULL}"),
        _log("body", "level", json.dumps({"prompt": f"why {FULL}"}), path="/v1/completions"),
        _log("body", "severity", f"Received request cmpl-1: prompt: 'why {FULL}', n: 1"),
        "".join(json.dumps({"text": said}) + "\n" for said in ("one", "two", "three", FULL)),
    ],
    ids=["a request's body", "a prompt", "a prompt inside of a body", "a logged request", "a data set"],
)
def test_what_a_user_wrote_stays_a_quotation(told: Told, log: str) -> None:
    assert told(log).status is Status.HEALTHY


@pytest.mark.parametrize(
    ("line", "category"),
    [
        ("ERROR 11-29 20:15:20 [x.py:3] build failed: output='ptxas fatal   : Value sm_120a is not defined for option gpu-name'", Category.JIT_COMPILE),
        ('time=2026-11-29T20:15:20Z level=error logger=w body="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."', Category.OOM_GPU),
    ],
    ids=["output", "body"],
)
def test_what_a_complaint_quotes_is_what_it_complains_of(told: Told, line: str, category: Category) -> None:
    assert told(line + "\n").verdict.category is category
    calm = line.replace("ERROR", "INFO").replace("level=error", "level=info").replace("build failed", "answered")
    assert told(calm + "\n").verdict.category is Category.NONE
