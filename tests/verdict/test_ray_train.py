"""Ray Train's controller and workers: whose process is whose rank, and a worker that was gone."""

from __future__ import annotations

from pathlib import Path

from forensics.model.verdict import Category, Status
from forensics.pipeline import analyze
from tests.verdict.conftest import Told

CONTROLLER, FIRST, SECOND = "(TrainController pid=70) ", "(RayTrainWorker pid=71) ", "(RayTrainWorker pid=72) "
STARTED = (
    f"{CONTROLLER}Started training worker group of size 2: \n"
    f"{CONTROLLER}- (ip=10.0.0.2, pid=71) world_rank=0, local_rank=0, node_rank=0\n"
    f"{CONTROLLER}- (ip=10.0.0.2, pid=72) world_rank=1, local_rank=1, node_rank=0\n"
    f"{FIRST}Moving model to device: cuda:0\n"
)


def raised(prefix: str, error: str) -> str:
    lines = ("Error in training function:", "Traceback (most recent call last):", '  File "/job/fit.py", line 59, in loop', "    step(batch)", error)
    return "".join(f"{prefix}{line}\n" for line in lines)


BROKEN = raised(FIRST, "RuntimeError: [/src/gloo/gloo/transport/tcp/pair.cc:537] Read error [10.0.0.2]:12521: Connection reset by peer")
GONE = "".join(
    f"{CONTROLLER}{line}\n"
    for line in (
        "Error: Training failed due to worker errors:",
        "[Rank 1 Error Snippet]:",
        "A worker health check failed.",
        "Worker info: Worker(",
        "  actor=Actor(RayTrainWorker, d66b77c5a3b1a520e4a23e5201000000),",
        "  distributed_context=DistributedContext(world_rank=1, world_size=2, local_rank=1, local_world_size=2, node_rank=0),",
        ")",
        "The actor died unexpectedly before finishing this task.",
        "\tclass_name: RayTrainWorker",
        "\tpid: 72",
        "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits "
        "with a connection error code 2. End of file.",
    )
)


def test_the_controller_says_which_process_is_which_rank(told: Told) -> None:
    incident = told(STARTED + raised(SECOND, "KeyError: 'labels'"))
    assert incident.verdict.category is Category.USER_CODE
    assert incident.verdict.rank is not None and incident.verdict.rank.number == 1


def test_processes_of_one_number_on_two_hosts_are_nobody(told: Told) -> None:
    other = STARTED.replace("(ip=10.0.0.2, pid=71)", "(ip=10.0.0.3, pid=72)")
    incident = told(other + raised(SECOND, "KeyError: 'labels'"))
    assert incident.verdict.category is Category.USER_CODE
    assert incident.verdict.rank is None


def test_a_process_is_known_by_its_host_where_its_lines_name_it(told: Told) -> None:
    started = STARTED.replace("(ip=10.0.0.2, pid=71)", "(node_id=5e0c, ip=10.0.0.3, pid=72)").replace("(ip=10.0.0.2,", "(node_id=77ab, ip=10.0.0.2,")
    for host, number in (("10.0.0.3", 0), ("10.0.0.2", 1), ("10.0.0.4", None)):
        incident = told(started + raised(f"(RayTrainWorker pid=72, ip={host}) ", "KeyError: 'labels'"))
        assert (incident.verdict.rank and incident.verdict.rank.number) == number


def test_a_group_that_was_started_again_is_another_run(told: Told) -> None:
    again = STARTED.replace("pid=71", "pid=81").replace("pid=72", "pid=82")
    failed = STARTED + raised(SECOND, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
    incident = told(failed + again + raised("(RayTrainWorker pid=81) ", "KeyError: 'labels'"))
    assert (incident.verdict.category, incident.verdict.rank and incident.verdict.rank.number) == (Category.USER_CODE, 0)
    assert [other.category for other in incident.others] == [Category.OOM_GPU]
    went_on = told(failed + again + "".join(f"(RayTrainWorker pid=81) step {n} loss 2.{n}\n" for n in range(4)))
    assert (went_on.status, went_on.verdict.category) == (Status.DEGRADED, Category.OOM_GPU)


def test_a_worker_that_was_gone_comes_before_those_that_lost_their_connection_to_it(told: Told) -> None:
    incident = told(STARTED + BROKEN + GONE)
    assert (incident.status, incident.verdict.category) == (Status.UNKNOWN, Category.UNKNOWN)
    assert incident.verdict.rank is not None and incident.verdict.rank.number == 1
    assert "without a word of its own" in incident.verdict.explanation


def test_a_worker_that_raised_comes_before_one_that_was_gone_later(told: Told) -> None:
    incident = told(STARTED + raised(FIRST, "KeyError: 'labels'") + GONE)
    assert incident.verdict.category is Category.USER_CODE
    assert incident.verdict.rank is not None and incident.verdict.rank.number == 0


def test_what_another_file_says_in_the_same_line_is_about_another_worker(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(STARTED + BROKEN + GONE)
    (tmp_path / "b.log").write_text((STARTED + BROKEN + GONE).replace("world_rank=1,", "world_rank=5,").replace("The actor died", "It is said that it died"))
    rank = analyze([tmp_path / "a.log", tmp_path / "b.log"]).verdict.rank
    assert rank is not None and rank.number == 1
