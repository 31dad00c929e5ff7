"""Jobs that their launcher started again."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, Incident, Status

from .conftest import Told

AGENT = "I0611 09:30:02.000000 611 torch/distributed/elastic/agent/server/api.py:900] [default] "
FAILED = "E0611 09:30:01.000000 611 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 1 (pid: 702) of binary: /usr/bin/python3\n"
AGAIN = FAILED + AGENT + "Worker group FAILED. 1/2 attempts left; will restart worker group\n" + AGENT + "Stopping worker group\n"
FINISHED = AGENT + "worker group successfully finished. Waiting 300 seconds for other agents to finish.\n"


def steps(first: int, last: int) -> str:
    return "".join(f"[rank0]: step {n} loss {4 - n / 100:.4f}\n" for n in range(first, last))


def raised(what: str, where: str = "/home/u/job/feed.py", function: str = "fetch") -> str:
    return (
        "[rank1]: Traceback (most recent call last):\n"
        '[rank1]:   File "/home/u/job/run.py", line 40, in <module>\n[rank1]:     loop()\n'
        f'[rank1]:   File "{where}", line 17, in {function}\n[rank1]:     take(sock)\n[rank1]: {what}\n'
    )


RESET = "ConnectionResetError: [Errno 104] Connection reset by peer"


def outcomes(incident: Incident) -> dict[str, str]:
    return {row.rank.label: row.outcome for row in incident.ranks}


@pytest.mark.parametrize("end", [FINISHED, ""], ids=["finished", "at work"])
@pytest.mark.parametrize("what", ["IndexError: list index out of range", RESET])
def test_a_failure_before_the_last_restart_was_got_over(told: Told, what: str, end: str) -> None:
    incident = told(steps(1, 9) + raised(what) + AGAIN + steps(5, 30) + end)
    assert incident.status is Status.DEGRADED
    assert incident.verdict.category is Category.USER_CODE
    assert incident.primary is not None and incident.primary.message in what
    assert incident.verdict.rank is not None and incident.verdict.rank.number == 1
    assert "The job recovered" in incident.verdict.explanation and "attempt 1 of 2" in incident.verdict.explanation
    assert outcomes(incident)["rank 0"] == "ok"


@pytest.mark.parametrize(
    "tail",
    [
        "",  # nothing shows that the second attempt ever ran
        steps(5, 30) + raised("IndexError: list index out of range") + FAILED,
        steps(5, 30) + FAILED,
        steps(5, 30) + raised("KeyError: 'b'"),
    ],
    ids=["no work", "again", "an exit", "another one"],
)
def test_a_failure_that_ends_the_last_attempt_was_not(told: Told, tail: str) -> None:
    incident = told(steps(1, 9) + raised("IndexError: list index out of range") + AGAIN + tail)
    assert incident.status is Status.CRASHED
    assert "recovered" not in incident.verdict.explanation


BAD_ROW = "[rank1]: ValueError: row {} is bad\n"  # no traceback: alike lines are one event, at the first of them


def test_an_error_that_is_told_once_more_at_the_end_was_not_got_over(told: Told) -> None:
    log = steps(1, 9) + BAD_ROW.format(3) + AGAIN + steps(5, 30)
    assert told(log).status is Status.DEGRADED
    assert told(log + BAD_ROW.format(9)).status is Status.CRASHED
    assert told(log + BAD_ROW.format(9) + steps(30, 40)).status is Status.DEGRADED  # nor did it stop the job


def test_a_run_that_begins_anew_and_fails_alike_has_not_recovered(told: Told) -> None:
    begin = "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default\n"
    one = begin + steps(1, 9) + raised("IndexError: list index out of range")
    assert told(one + AGAIN + one + FAILED).status is Status.CRASHED
    assert told(one + AGAIN + begin + steps(5, 30) + FINISHED).status is Status.DEGRADED


def test_a_connection_that_the_users_own_code_loses_is_its_own(told: Told) -> None:
    incident = told(steps(1, 9) + raised(RESET) + FAILED)
    assert incident.verdict.category is Category.USER_CODE and incident.status is Status.CRASHED
    assert "NCCL" not in " ".join(incident.verdict.next_steps) and "outside this log" not in incident.verdict.explanation


def test_one_between_the_jobs_processes_is_not(told: Told) -> None:
    pipe = raised(RESET, "/usr/lib/python3.12/multiprocessing/connection.py", "_recv")
    assert told(steps(1, 9) + pipe + FAILED).verdict.category is not Category.USER_CODE
    store = raised(RESET, "/usr/lib/python3/dist-packages/torch/distributed/rendezvous.py", "_create_store")
    assert told(steps(1, 9) + store + FAILED).verdict.category is Category.NCCL


READ_ERROR = (
    "[1]<stderr>:[2026-11-29 20:15:20.100000: E /b/horovod/common/operations.cc:546] Horovod background loop uncaught exception: "
    "[/b/gloo/transport/tcp/pair.cc:566] Read error [10.0.0.9]:21925: Connection reset by peer\n"
)
IMAGES = "".join(f"[{n}]<stdout>:Iter #{step}: 121.1 img/sec per GPU\n" for step in (4, 5) for n in (0, 1))


def test_horovods_elastic_driver_goes_on_without_a_host(told: Told) -> None:
    went_on = told("step 3\n" + READ_ERROR + "WARNING:root:blacklist failing host: node-b\n" + IMAGES)
    assert went_on.status is Status.DEGRADED
    assert told("step 3\n" + READ_ERROR + "WARNING:root:blacklist failing host: node-b\n").status is Status.CRASHED
