"""A user's own root signature makes the verdict, whatever its line looks like; what passed through the job does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.model.verdict import Category, Incident, Status

from .conftest import Told

SIGNATURE = """
id = "house.tenant-quota"
title = "The tenant's quota ran out"
role = "{role}"
category = "config_error"
confidence = "established"
specificity = 70
why = "The portal takes the workers away then."
next_steps = ["Ask for more quota."]
[match]
literals = ["tenant quota exhausted"]
[[examples]]
text = "tenant quota exhausted, leaving"
[[counterexamples]]
text = "tenant quota fine"
because = "there is some left"
"""
WORK = "[2026-11-29 20:15:{:02d} TP0] Decode batch. #running-req: 3, #token: 9001, token usage: 0.11, gen throughput (token/s): 310.00, #queue-req: 0,\n"
BUSY = "".join(WORK.format(second) for second in range(10, 22))


def taught(told: Told, tmp_path: Path, text: str, role: str = "root") -> Incident:
    folder = tmp_path / "signatures" / "house"
    folder.mkdir(parents=True)
    (folder / "tenant-quota.toml").write_text(SIGNATURE.format(role=role), encoding="utf-8")
    return told(text, signatures=[tmp_path / "signatures"])


@pytest.mark.parametrize("word", ["", "ERROR ", "WARNING ", "INFO: "])
def test_a_taught_line_is_the_failure_at_whatever_level_it_was_printed(told: Told, tmp_path: Path, word: str) -> None:
    incident = taught(told, tmp_path, BUSY + f"[2026-11-29 20:15:30 TP0] {word}tenant quota exhausted, leaving\n")
    assert incident.status is Status.CRASHED
    assert (incident.verdict.category, incident.verdict.signature) == (Category.CONFIG_ERROR, "house.tenant-quota")
    assert incident.verdict.rank is not None and incident.verdict.rank.label == "TP0"
    assert incident.verdict.evidence[0].quote.endswith("tenant quota exhausted, leaving")


def test_a_taught_line_that_a_server_survives_is_told_all_the_same(told: Told, tmp_path: Path) -> None:
    incident = taught(told, tmp_path, BUSY + "[2026-11-29 20:15:30 TP0] tenant quota exhausted, leaving\n" + BUSY.replace("20:15:", "20:16:"))
    assert incident.status is Status.DEGRADED
    assert incident.verdict.signature == "house.tenant-quota"


@pytest.mark.parametrize(
    "line",
    [
        '[2026-11-29 20:15:30] Receive: obj=GenerateReqInput(rid="r1", text="what means: tenant quota exhausted?")\n',
        '{"messages": [{"role": "user", "content": "what means: tenant quota exhausted?"}]}\n',
        "[2026-11-29 20:15:30] Received request cmpl-1: <|im_start|>user what means: tenant quota exhausted?\n",
    ],
)
def test_a_taught_text_in_a_prompt_is_nobodys_failure(told: Told, tmp_path: Path, line: str) -> None:
    assert taught(told, tmp_path, BUSY + line).status is Status.HEALTHY


@pytest.mark.parametrize("role", ["advice", "confirmation"])
def test_taught_advice_is_no_failure(told: Told, tmp_path: Path, role: str) -> None:
    incident = taught(told, tmp_path, BUSY + "[2026-11-29 20:15:30 TP0] tenant quota exhausted, leaving\n", role)
    assert incident.status is Status.HEALTHY


def test_a_crash_before_a_taught_line_stays_the_first_failure(told: Told, tmp_path: Path) -> None:
    crash = 'Traceback (most recent call last):\n  File "/srv/job/train.py", line 7, in <module>\n    rows["a"]\nKeyError: \'a\'\n'
    incident = taught(told, tmp_path, BUSY + crash + "tenant quota exhausted, leaving\n")
    assert incident.primary is not None and incident.primary.type == "KeyError"


LOADED = "node7:4021:4021 [0] NCCL INFO NET/Plugin: Plugin load returned 2 : libnccl-net.so: cannot open shared object file: No such file or directory\n"


@pytest.mark.parametrize(
    "line",
    [
        LOADED,
        "/opt/py/graph/typing.py:63: UserWarning: An issue occurred while importing 'scatter'. Disabling its usage. Stacktrace: "
        "/opt/py/scatter.so: undefined symbol: _ZN3c105ErrorC2Ev\n",
        "cannot use libfancy.so.3: cannot open shared object file: falling back to the slow path\n",
    ],
)
def test_what_a_shipped_signature_knows_is_no_failure_on_a_calm_line(told: Told, line: str) -> None:
    assert told(line + "step 120 loss 2.31\n").status is Status.HEALTHY


def test_what_a_shipped_signature_proves_is_one_on_a_line_of_its_own(told: Told) -> None:
    incident = told(
        "./train: error while loading shared libraries: libfancy.so.3: cannot open shared object file: No such file or directory\n"
    )
    assert incident.verdict.category is Category.MISSING_LIBRARY


# --- shipped signatures that prove their claim with a line which nothing else takes for a failure

PROOF = "EI0006: [PID: 71] Getting socket times out. Reason: Remote Rank did not send the data in time.\n"


#: the same in words that more than one cause prints: nothing is healthy behind them, and they are no verdict
HINT = "layer 3 said: The size of tensor a (5120) must match the size of tensor b (2560) at non-singleton dimension 1\n"


@pytest.mark.parametrize("start", ["", BUSY])
def test_where_a_signature_proves_a_failure_nothing_is_called_healthy(told: Told, start: str) -> None:
    incident = told(start + HINT)
    assert (incident.status, incident.verdict.category) == (Status.UNKNOWN, Category.UNKNOWN)
    assert [proof.quote for proof in incident.verdict.evidence] == [HINT.strip()]
    assert [other.category for other in incident.verdict.alternatives] == [Category.SHAPE_OR_DTYPE_ASSERT]
    assert told(start + PROOF).verdict.category is Category.HANG_OR_WATCHDOG


@pytest.mark.parametrize(
    "log",
    [
        BUSY + HINT + BUSY.replace("20:15:", "20:16:"),
        BUSY + HINT + "Training completed\n",
        BUSY + PROOF + BUSY.replace("20:15:", "20:16:"),  # the job worked on
        BUSY + "WARNING: " + PROOF,  # its own logger takes it for none
        BUSY + "INFO: the last start ended with " + PROOF,
        BUSY + PROOF.strip() + " Falling back to the next link.\n",
        BUSY + '{"messages": [{"role": "user", "content": "' + PROOF.strip() + '"}]}\n',
        BUSY + PROOF + "Training completed\n",  # it had worked, and came to its end
        BUSY + "[2026-11-29 20:15:30] SIGTERM received. Gracefully shutting down\nINFO:     Shutting down\n" + PROOF + "Bye!\n",
    ],
    ids=["a hint at work", "a hint and an end", "at work", "a warning", "told", "dealt with", "a user's words", "an end", "asked to stop"],
)
def test_what_shows_that_it_was_none_is_heard(told: Told, log: str) -> None:
    assert told(log).status is Status.HEALTHY


def test_what_an_npu_reports_outside_of_any_exception(told: Told) -> None:
    late = "EE1002: 2026-11-29-20:15:45.041.231 Stream synchronize timeout. rtStreamSynchronize execute failed, reason=[{0}]\n"
    assert told(late.format("stream sync timeout")).verdict.category is Category.HANG_OR_WATCHDOG
    assert told(late.format("the model stream execute failed")).verdict.category is not Category.HANG_OR_WATCHDOG
    assert told("EI0006: [PID: 71] Getting socket times out. Reason: Remote Rank did not send the data in time.\n").status is Status.HUNG
    assert told(late.format("stream sync timeout") + "step 120 loss 2.31\nstep 121 loss 2.30\n").status is not Status.HUNG
