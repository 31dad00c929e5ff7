"""Processes that something else ends: the kubelet by its probes, JAX's coordination service by the heartbeats of a task."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, CausalRole, Status

from .conftest import Told

SERVING = "".join(
    f"INFO 11-29 20:15:{second:02d} [loggers.py:123] Engine 000: Avg prompt throughput: 33.0 tokens/s, Running: 2 reqs\n"
    for second in range(30)
)
FAILED = "  Warning  Unhealthy  70s (x3 over 3m)  kubelet  {} probe failed: Get \"http://10.2.0.7:9000/ready\": context deadline exceeded\n"
KILLING = "  Normal   Killing    70s               kubelet  Container engine failed {} probe, will be restarted\n"


@pytest.mark.parametrize("probe", ["liveness", "startup"])
def test_a_container_that_failed_its_probe_was_ended_by_the_kubelet(told: Told, probe: str) -> None:
    incident = told(SERVING + "Events:\n" + FAILED.format(probe.capitalize()) + KILLING.format(probe))
    assert (incident.status, incident.verdict.category) == (Status.KILLED, Category.KILLED_EXTERNALLY)
    assert incident.verdict.title == f"The kubelet restarts the container engine: its {probe} probe failed"
    assert "will be restarted" in incident.verdict.evidence[0].quote
    assert len(incident.failures) == 1
    assert "failureThreshold" in incident.verdict.next_steps[0]
    assert not any("sacct" in one for one in incident.verdict.settled_by)


def test_a_failed_probe_that_ended_nothing_is_no_kill(told: Told) -> None:
    assert told(SERVING + "Events:\n" + FAILED.format("Liveness")).status is not Status.KILLED


def test_a_server_that_crashed_before_its_probe_failed_crashed(told: Told) -> None:
    crash = 'Traceback (most recent call last):\n  File "/srv/app/serve.py", line 7, in <module>\n    load()\nKeyError: \'lm_head\'\n'
    incident = told(SERVING + crash + "Events:\n" + FAILED.format("Liveness") + KILLING.format("liveness"))
    assert incident.primary is not None and incident.primary.type == "KeyError"


STEPS = "".join(f"I1129 20:15:{second:02d}.100000  70 loop.py:31] step={second} loss=1.5\n" for second in range(30))
POLLED = "E1129 20:19:01.100000  71 coordination_service_agent.cc:332] Polled an error from coordination service (this can be an error from this or another task).\n"
ENDED = (
    "F1129 20:19:01.200000  71 client.h:80] Terminating process because the JAX distributed service detected fatal errors. "
    "absl::Status: UNAVAILABLE: The following tasks are unhealthy (stopped sending heartbeats):\n"
)


def test_the_task_whose_heartbeats_stopped_is_named(told: Told) -> None:
    incident = told(STEPS + POLLED + ENDED + "/job:jax_worker/replica:0/task:12\nThe tasks have crashed.\n")
    assert incident.verdict.signature == "jax.task-stopped-heartbeats"
    assert incident.verdict.rank is not None and (incident.verdict.rank.label, incident.verdict.rank.number) == ("task 12", 12)
    assert "task 12" in incident.verdict.title.lower()
    assert "outside this log" not in incident.verdict.explanation
    words = " ".join((*incident.verdict.next_steps, *incident.verdict.settled_by))
    assert "NCCL" not in words and "/dev/shm" not in words
    polled = next(f for f in incident.failures if f.message.startswith("Polled"))
    assert polled.role is CausalRole.CASCADE


def test_of_several_tasks_none_is_blamed(told: Told) -> None:
    incident = told(STEPS + POLLED + ENDED + "/job:jax_worker/replica:0/task:12\n/job:jax_worker/replica:0/task:13\n")
    assert incident.verdict.rank is None
    assert incident.primary is not None and "task:13" in incident.primary.message


def test_without_a_task_the_cause_stays_outside(told: Told) -> None:
    incident = told(STEPS + POLLED)
    assert incident.verdict.rank is None and "outside this log" in incident.verdict.explanation
    assert "NCCL" not in " ".join(incident.verdict.next_steps)


def test_a_process_that_raised_by_itself_is_no_victim_of_the_heartbeats(told: Told) -> None:
    crash = 'Traceback (most recent call last):\n  File "/srv/job/loop.py", line 7, in <module>\n    main()\nKeyError: \'rng\'\n'
    incident = told(STEPS + crash + POLLED + ENDED + "/job:jax_worker/replica:0/task:12\n")
    assert incident.primary is not None and incident.primary.type == "KeyError"


PRINTED = (
    'Traceback (most recent call last):\n  File "/srv/plots/client.py", line 71, in _send\n    post(url)\n'
    "requests.exceptions.ConnectionError: Pool(host='localhost', port=8097): [Errno 111] Connection refused\n"
)


@pytest.mark.parametrize(
    ("trace", "end", "category"),
    [
        (PRINTED, "*** JOB 6820 ON node7 CANCELLED AT 2026-03-02T10:00:46 ***", Category.KILLED_EXTERNALLY),
        (PRINTED.replace("in _send", "in <module>"), "*** JOB 6820 ON node7 CANCELLED AT 2026-03-02T10:00:46 ***", Category.USER_CODE),
        (PRINTED, "*** STEP 6820.0 ON node7 CANCELLED AT 2026-03-02T10:00:46 ***", Category.USER_CODE),
    ],
)
def test_what_a_program_caught_is_no_reason_for_which_its_whole_job_is_cancelled(told: Told, trace: str, end: str, category: Category) -> None:
    assert told(f"{trace}slurmstepd: error: {end}\n").verdict.category is category


@pytest.mark.parametrize(
    ("signal", "category"),
    [("Terminated", Category.KILLED_EXTERNALLY), ("Hangup", Category.KILLED_EXTERNALLY), ("Illegal instruction", Category.SEGFAULT)],
)
def test_a_loader_whose_workers_were_sent_a_signal(told: Told, signal: str, category: Category) -> None:
    raised = (
        'Traceback (most recent call last):\n  File "/j/train.py", line 48, in <module>\n    fit()\n'
        '  File "/opt/torch/utils/data/_utils/signal_handling.py", line 66, in handler\n    _error_if_any_worker_fails()\n'
        f"RuntimeError: DataLoader worker (pid 4711) is killed by signal: {signal}. \n"
    )
    assert told(STEPS + raised).verdict.category is category
