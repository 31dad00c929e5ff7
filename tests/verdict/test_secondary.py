"""Torn repeats, what is printed behind a dead engine, what follows a broken transport, processes that were ended."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, CausalRole, Confidence, Incident, Status

from .conftest import Told, primary

DEAD = "EngineCore encountered an issue. See stack trace (above) for the root cause."
RETRIES = (
    "[1764447345.1] [node7:4021 :0]  ib_mlx5_log.c:179  UCX  ERROR Transport retry count exceeded on mlx5_0:1/IB\n"
)
TMA = "Using TMA Descriptor modification without CUTE_ARCH_TMA_SM90_ENABLED and CUDA 12.3\n" * 2


def is_outside(incident: Incident) -> bool:
    return "outside this log" in incident.verdict.explanation and incident.verdict.confidence in (
        Confidence.HYPOTHESIS,
        Confidence.UNKNOWN,
    )


def raised(said: str, path: str = "/opt/lib/python3/site-packages/torch/nn/modules/conv.py") -> str:
    return f'Traceback (most recent call last):\n  File "{path}", line 12, in run\n    go()\n{said}\n'


def test_a_torn_repeat_of_a_line_is_that_line(told: Told) -> None:
    line = "CRITICAL 02-11 08:00:04 launcher.py:101] MQLLMEngine is already dead, terminating server process\n"
    incident = told(line + line + line[:60])
    assert primary(incident).message == "MQLLMEngine is already dead, terminating server process"
    assert is_outside(incident)


def test_a_line_behind_a_dead_engine_does_not_explain_it(told: Told) -> None:
    text = raised(f"vllm.v1.engine.exceptions.EngineDeadError: {DEAD}")
    incident = told(text + "ERROR 02-03 10:42:05 [serving.py:99] Error in chat completion stream gener")
    assert primary(incident).message == DEAD
    assert is_outside(incident)


def test_a_reported_request_is_less_than_the_dead_engine(told: Told) -> None:
    head = "(ServeReplica:app:Chat pid=77) "
    lines = (
        "    raise self._format(outputs) from None",
        f"vllm.v1.engine.exceptions.EngineDeadError: {DEAD}",
        "ERROR 2026-02-03 10:42:04,876 app_Chat ab12 77c0 -- Encountered failure while handling request 77c0",
        '  File "/opt/serve/handling.py", line 50, in handle_failure',
    )
    incident = told("".join(f"{head}{line}\n" for line in lines))
    assert primary(incident).message == DEAD
    assert is_outside(incident)


def test_a_dead_actor_has_its_cause_elsewhere(told: Told) -> None:
    incident = told(raised("ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task."))
    assert (primary(incident).type or "").endswith("ActorDiedError")
    assert is_outside(incident)


def test_an_error_line_before_the_dead_engine_explains_it(told: Told) -> None:
    cause = "ERROR 02-03 10:00:00 [core.py:390] kv block table is corrupt: page 7 is owned twice\nINFO 02-03 10:00:00 idle\n"
    incident = told(cause + raised(f"vllm.v1.engine.exceptions.EngineDeadError: {DEAD}"))
    assert "owned twice" in primary(incident).message
    assert not is_outside(incident)


@pytest.mark.parametrize("level", ["WARNING", "ERROR"])
def test_a_worker_seen_dead_is_no_health_whatever_the_level(told: Told, level: str) -> None:
    incident = told(
        f"(EngineCore_0 pid=5) {level} 04-03 16:11:42 [multiproc_executor.py:230] Worker proc VllmWorker-0 died unexpectedly, "
        'shutting down executor.\nINFO:     10.0.0.1:4000 - "GET /health HTTP/1.1" 200 OK\n'
    )
    assert incident.status is not Status.HEALTHY
    assert "died unexpectedly" in primary(incident).message


TERMINATED = "(Worker_TP0 pid=31) WARNING 04-03 16:11:42 [multiproc_executor.py:866] WorkerProc was terminated\n"


def test_a_terminated_worker_was_ended_from_outside(told: Told) -> None:
    incident = told("INFO 04-03 16:00:00 [api_server.py:1043] vLLM API server version 0.11.0\n" + TERMINATED)
    assert incident.verdict.category is Category.KILLED_EXTERNALLY
    assert primary(incident).message == "WorkerProc was terminated"


def test_a_worker_terminated_after_an_error_is_cleaned_up(told: Told) -> None:
    incident = told(raised("KeyError: 'layers.0.experts'") + TERMINATED)
    assert primary(incident).type == "KeyError"


def test_workers_that_end_because_the_server_was_stopped_are_no_failure(told: Told) -> None:
    incident = told(
        'INFO:     Application startup complete.\nINFO:     10.0.0.1:4000 - "POST /v1/completions HTTP/1.1" 200 OK\n'
        "INFO 04-03 16:05:20 [launcher.py:80] Received SIGINT, shutting down\n"
        + TERMINATED
        + "ERROR 04-03 16:05:25 [core_client.py:500] Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.\n"
        "INFO:     Application shutdown complete.\nINFO:     Finished server process [9]\n"
    )
    assert incident.status is Status.HEALTHY


def test_an_exception_of_the_transports_user_has_the_transports_error_as_root(told: Told) -> None:
    incident = told(RETRIES + raised("nixl._bindings.nixlBackendError: NIXL_ERR_BACKEND", "/srv/nixl/connector.py"))
    failure = primary(incident)
    assert failure.root_message == "Transport retry count exceeded on mlx5_0:1/IB"
    assert (failure.type or "").endswith("nixlBackendError")
    assert incident.verdict.category is Category.NCCL


def test_the_first_transport_error_is_before_what_its_users_print(told: Told) -> None:
    incident = told(
        RETRIES
        + "[1764447345.2] [node7:4021 :0]  mpool.c:246  UCX  ERROR Failed to allocate memory pool chunk: Input/output error\n"
        + "E1129 20:15:45.719633  4021 ucx_utils.cpp:537] UCX endpoint create failed: failed to create ep\n"
    )
    assert primary(incident).message == "Transport retry count exceeded on mlx5_0:1/IB"
    assert incident.verdict.category is Category.NCCL
    assert {f.role for f in incident.failures[1:]} == {CausalRole.CASCADE}


def test_an_error_that_has_nothing_to_do_with_the_transport_keeps_its_own_root(told: Told) -> None:
    incident = told(RETRIES + raised("KeyError: 'lr'", "/home/u/train.py"))
    assert primary(incident).root_message == "'lr'"


@pytest.mark.parametrize(
    ("said", "category"),
    [
        ("torch._dynamo.exc.Unsupported: Graph break: call to a skipped function", Category.JIT_COMPILE),
        (
            "RuntimeError: output tensor size must be equal to world_size times input tensor size",
            Category.SHAPE_OR_DTYPE_ASSERT,
        ),
        (
            "RuntimeError: GET was unable to find an engine to execute this computation",
            Category.UNSUPPORTED_DTYPE_OR_QUANT,
        ),
        ("RuntimeError: Expected mat_a to be Float8_e4m3 matrix got Half", Category.UNSUPPORTED_DTYPE_OR_QUANT),
    ],
)
def test_words_of_frameworks(told: Told, said: str, category: Category) -> None:
    assert told(raised(said)).verdict.category is category


def test_a_warning_about_tma_descriptors_is_no_assertion(told: Told) -> None:
    assert told(TMA).primary is None
    assert told(TMA + raised("KeyError: 'x'")).verdict.category is not Category.DEVICE_ASSERT
