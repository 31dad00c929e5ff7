"""Complaints of a job's start that it outlived, and a later death that nobody explains."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, CausalRole, Status

from .conftest import Told, primary

CAUGHT = (
    "no fast tokenizer here:\nTraceback (most recent call last):\n"
    '  File "/srv/job/tok.py", line 31, in fast\n    return lib.Fast(path)\nAttributeError: module \'lib\' has no attribute \'Fast\'\n\n'
)
IMPORTED = CAUGHT.replace("/srv/job/tok.py", "/opt/env/lib/python3.12/site-packages/lib/__init__.py").replace("in fast", "in <module>")
STEPS = "".join(f"step {n} loss 2.{n}\n" for n in range(1, 6))
SEGV = "/var/spool/job/script: line 12: 4711 Segmentation fault      (core dumped) python train.py\n"
ACTOR = (
    'Traceback (most recent call last):\n  File "/srv/job/main.py", line 31, in <module>\n    ray.get(done)\n'
    "ray.exceptions.ActorDiedError: {}\n"
)
VLLM = (
    "INFO 11-29 20:15:02 [api_server.py:1200] vLLM API server version 0.11.0\n"
    "INFO 11-29 20:15:09 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='m', tensor_parallel_size=2\n"
)
WORKER = "(EngineCore_DP0 pid=90) ERROR 11-29 20:17:12 [multiproc_executor.py:149] Worker proc VllmWorker-1 died unexpectedly, shutting down executor.\n"


@pytest.mark.parametrize("complaint", [CAUGHT, IMPORTED], ids=["caught", "at an import"])
def test_a_fault_after_work_is_no_matter_of_what_was_caught_before(told: Told, complaint: str) -> None:
    incident = told(complaint + STEPS + SEGV)
    assert incident.verdict.category is Category.SEGFAULT and primary(incident).type == "SIGSEGV"
    early = next(f for f in incident.failures if f.type == "AttributeError")
    assert early.role is CausalRole.UNKNOWN and "before the job was at work" in early.role_why


def test_nor_is_the_death_of_an_actor_or_a_worker(told: Told) -> None:
    died = primary(told(CAUGHT + STEPS + ACTOR.format("The actor died unexpectedly before finishing this task.")))
    assert died.type == "ray.exceptions.ActorDiedError"
    assert "died unexpectedly" in primary(told(CAUGHT + VLLM + STEPS + WORKER)).message


def test_what_was_said_before_the_engine_began_does_not_explain_its_workers_death(told: Told) -> None:
    said = "ERROR 11-29 20:15:01 [tune.py:52] the cached table cannot be read\n"
    assert "died unexpectedly" in primary(told(said + VLLM + WORKER)).message
    assert "cached table" in primary(told(VLLM + said + WORKER)).message  # the engine itself says so, and nothing shows that it went on


@pytest.mark.parametrize(
    "text",
    [
        CAUGHT + SEGV,
        STEPS + CAUGHT + SEGV,
        CAUGHT + STEPS + ACTOR.format("The actor died because of an AttributeError: module 'lib' has no attribute 'Fast'"),
        CAUGHT.replace("in fast", "in <module>") + STEPS + "srun: error: node7: task 3: Exited with exit code 1\n",
    ],
    ids=["nothing worked", "amid the work", "named by the end", "an end with a code"],
)
def test_otherwise_what_was_raised_is_the_failure(told: Told, text: str) -> None:
    assert primary(told(text)).root_type == "AttributeError"


def test_a_device_that_broke_is_never_outlived(told: Told) -> None:
    broken = CAUGHT.replace("AttributeError: module 'lib' has no attribute 'Fast'", "RuntimeError: CUDA error: an illegal memory access was encountered")
    assert told(broken + STEPS + SEGV).verdict.category is Category.ILLEGAL_MEMORY_ACCESS


IDLE = "INFO 11-29 20:16:{:02} [loggers.py:123] Engine 000: Avg prompt throughput: {} tokens/s, Avg generation throughput: {} tokens/s, Running: 0 reqs\n"


@pytest.mark.parametrize(("prompt", "generation", "status"), [("0.0", "0.0", Status.CRASHED), ("0.0", "31.5", Status.DEGRADED)])
def test_an_engine_that_does_nothing_is_not_at_work(told: Told, prompt: str, generation: str, status: Status) -> None:
    raised = (
        "ERROR 11-29 20:15:59 [core.py:88] the step failed\nTraceback (most recent call last):\n"
        '  File "/opt/env/site-packages/vllm/v1/core.py", line 9, in step\n    go()\nKeyError: \'layer.7\'\n'
    )
    later = "".join(IDLE.format(n, prompt, generation) for n in range(5))
    assert told(VLLM + raised + later).status is status
