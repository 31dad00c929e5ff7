"""Who started it, and who only followed."""

from __future__ import annotations

from forensics.model.verdict import Category, CausalRole, Confidence, Incident, Status

from . import logs
from .conftest import Told, primary


def role(incident: Incident, word: str) -> CausalRole:
    found = [f for f in incident.failures if word in f"{f.type} {f.message}"]
    assert found, f"no failure says {word!r}"
    return found[0].role


def test_workers_fail_alike_and_parents_repeat(told: Told) -> None:
    incident = told(logs.VLLM_OOM)
    assert incident.verdict.category is Category.OOM_GPU
    assert incident.verdict.rank is not None
    assert incident.verdict.rank.number == 2
    assert [rank.number for rank in incident.verdict.same_failure_ranks] == [0]
    assert role(incident, "Worker failed with error") is CausalRole.CASCADE
    assert role(incident, "Engine core initialization failed") is CausalRole.CASCADE


def test_the_launchers_rank_is_a_claim_to_test(told: Told) -> None:
    incident = told(logs.TORCHRUN_KEY_ERROR)
    assert primary(incident).type == "KeyError"
    assert incident.verdict.rank is not None
    assert incident.verdict.rank.number == 5
    assert role(incident, "DistBackendError") is CausalRole.CASCADE
    assert role(incident, "ChildFailedError") is CausalRole.CASCADE


def test_an_oom_kill_comes_before_its_consequences(told: Told) -> None:
    incident = told(logs.SLURM_OOM_KILL)
    assert incident.status is Status.KILLED
    assert incident.verdict.category is Category.OOM_HOST
    assert incident.verdict.rank is not None
    assert incident.verdict.rank.number == 3
    assert role(incident, "Connection closed by peer") is CausalRole.CASCADE


def test_a_process_that_vanished_is_first(told: Told) -> None:
    incident = told(logs.VANISHED)
    assert incident.status is Status.KILLED
    assert primary(incident).type == "SIGKILL"
    # the launcher prints the command that it started last, whichever process ended
    assert incident.verdict.rank is None
    assert "SIGKILL" in incident.verdict.explanation


def test_deepspeeds_only_process_is_the_one_that_ended(told: Told) -> None:
    incident = told(logs.VANISHED.replace("--local_rank=1'", "--local_rank=0'"))
    assert incident.verdict.rank is not None
    assert incident.verdict.rank.number == 0


def test_only_consequences_mean_a_cause_outside(told: Told) -> None:
    incident = told(logs.ONLY_CONSEQUENCES)
    assert primary(incident).role in (CausalRole.INITIATING, CausalRole.CASCADE)
    assert "outside this log" in incident.verdict.explanation
    assert incident.verdict.confidence in (Confidence.HYPOTHESIS, Confidence.UNKNOWN)


def test_the_last_of_two_programs_is_the_verdict(told: Told) -> None:
    assert primary(told(logs.TWO_SCRIPTS)).type == "ImportError"


def test_ranks_that_fail_alike_are_one_failure(told: Told) -> None:
    text = "".join(
        logs.scheduler(rank, "10:00:01", "TypeError", "gate() takes 2 positional arguments but 3 were given")
        for rank in (3, 0, 2)
    )
    incident = told(text)
    assert primary(incident).count == 3
    assert incident.verdict.rank is not None
    assert incident.verdict.rank.number == 3
    assert [rank.number for rank in incident.verdict.same_failure_ranks] == [0, 2]
    assert {row.rank.number: row.outcome for row in incident.ranks} == {0: "same", 2: "same", 3: "initiating"}


def test_time_decides_where_there_is_one_clock(told: Told) -> None:
    late = logs.scheduler(0, "10:00:09", "RuntimeError", "second")
    early = logs.scheduler(1, "10:00:02", "KeyError", "'first'")
    assert primary(told(late, early)).type == "KeyError"


def test_a_real_cause_inside_a_wrapper_is_no_consequence(told: Told) -> None:
    text = """\
Traceback (most recent call last):
  File "/work/serve.py", line 5, in load
    weights[name]
KeyError: 'lm_head'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/work/serve.py", line 9, in <module>
    start()
RuntimeError: Engine core initialization failed. See root cause above.
"""
    incident = told(text)
    assert primary(incident).root_type == "KeyError"
    assert "outside this log" not in incident.verdict.explanation


def test_no_sentence_without_a_span(told: Told) -> None:
    for text in (logs.VLLM_OOM, logs.TORCHRUN_KEY_ERROR, logs.SLURM_OOM_KILL, logs.DEVICE_ASSERT, logs.VANISHED):
        incident = told(text)
        assert incident.verdict.evidence
        for failure in incident.failures:
            assert failure.evidence, failure.message
            assert all(proof.quote for proof in failure.evidence)


def test_of_alike_failures_the_earliest_leads_though_another_was_printed_first(told: Told) -> None:
    line = "[rank{0}]:[E302 10:31:05.{1}000000 ProcessGroupNCCL.cpp:2068] [PG ID 0 PG GUID 0(default_pg) Rank {0}] Process group watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered\n"
    incident = told("step 1 loss 2.0\n" + "".join(line.format(rank, at) for rank, at in ((0, 120), (5, 135), (6, 100), (3, 129))))
    assert incident.verdict.rank is not None and incident.verdict.rank.number == 6
    assert {rank.number for rank in incident.verdict.same_failure_ranks} == {0, 3, 5}
