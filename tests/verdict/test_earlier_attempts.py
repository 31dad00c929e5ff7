"""A broken device that a restarted job got over."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category

from .conftest import Told

STEPS = "".join(f"2026-11-29 20:15:{n:02d} INFO train.py:71 step {{}}{n} loss 2.1\n" for n in range(10, 20))
BROKEN = """\
[rank3]: Traceback (most recent call last):
[rank3]:   File "/srv/app/train.py", line 201, in train_step
[rank3]:     loss.backward()
[rank3]: torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered
"""
AGAIN = (
    "W1129 20:16:03.120000 3001 torch/distributed/elastic/agent/server/api.py:723] [default] Worker group FAILED. 2/3 attempts left; "
    "will restart worker group\n"
)
FULL = """\
[rank0]: Traceback (most recent call last):
[rank0]:   File "/srv/app/train.py", line 240, in save
[rank0]:     torch.save(state, path)
[rank0]: OSError: [Errno 28] No space left on device
"""


def test_what_ended_the_last_attempt_is_the_cause(told: Told) -> None:
    incident = told(STEPS.format(1, *[1] * 9) + BROKEN + AGAIN + STEPS.format(*[2] * 10) + FULL)
    assert incident.verdict.category is Category.STORAGE and incident.verdict.rank is not None and incident.verdict.rank.number == 0
    assert incident.hardware


@pytest.mark.parametrize("text", [BROKEN + FULL, BROKEN + AGAIN + FULL, BROKEN + STEPS.format(*[2] * 10) + FULL])
def test_without_a_restart_and_work_behind_it_the_device_is(told: Told, text: str) -> None:
    assert told(STEPS.format(*[1] * 10) + text).verdict.category is Category.DRIVER_OR_HARDWARE
