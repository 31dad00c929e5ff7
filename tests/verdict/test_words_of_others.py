"""Words of others in the log of a job that ended well: of whoever asked Kubernetes about it, of logs that it read."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, Status

from .conftest import Told, primary

TESTS = "test_one (tests.T) ... ok\ntest_two (tests.T) ... ok\n\n----------\nRan 2 tests in 3.100s\n\n{}\n"
ASKED = 'error: unable to upgrade connection: container not found ("app")\nError from server (NotFound): pods "train-0" not found\n'


def test_who_asks_for_a_pod_that_has_left_is_no_failure_of_its_job(told: Told) -> None:
    for end in ("OK", "OK (skipped=1)"):
        assert told(TESTS.format(end) + ASKED).status is Status.HEALTHY


@pytest.mark.parametrize(
    "text",
    [TESTS.format("FAILED (failures=1)") + ASKED, ASKED, TESTS.format("OK") + ASKED + "ValueError: no such shard\n"],
    ids=["the tests failed", "nothing ended well", "another error"],
)
def test_but_it_hides_none(told: Told, text: str) -> None:
    incident = told(text)
    assert incident.status is not Status.HEALTHY
    if "ValueError" in text:
        assert primary(incident).type == "ValueError"


READ = (
    "[agent] step 1: reading the log of the job\n"
    "{0}2026-11-29 20:15:00 ERROR trainer: RuntimeError: CUDA error: an illegal memory access was encountered\n"
    "{0}2026-11-29 20:15:00 ERROR trainer: giving up\n"
    "[agent] step 2: the log holds an illegal access; the next run blocks at each launch\n"
)
WELL = "Task completed successfully.\n"


def test_what_a_program_sets_off_as_read_elsewhere_is_not_its_own(told: Told) -> None:
    assert told(READ.format("> ") + WELL).status is Status.HEALTHY


ALL = "".join(f"> {line}\n" for line in (READ.format("") + WELL).splitlines())


@pytest.mark.parametrize("text", [READ.format("> "), READ.format("") + WELL, ALL], ids=["no good end", "not set off", "all of the log is"])
def test_otherwise_it_is_what_the_log_tells(told: Told, text: str) -> None:
    assert told(text).verdict.category is Category.ILLEGAL_MEMORY_ACCESS
