"""A front end that misses its engine and names what it knows; a rank's traceback that is cut off; a watchdog's own abort."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, CausalRole, Status

from .conftest import Told, number, primary

FRONT = (
    "INFO 11-29 20:15:42 metrics.py:449] Avg prompt throughput: 20.1 tokens/s, Avg generation throughput: 3.5 tokens/s, Running: 3 reqs\n"
    "ERROR:    Exception in ASGI application\nTraceback (most recent call last):\n"
    '  File "/opt/env/dist-packages/vllm/entrypoints/openai/api_server.py", line 333, in chat\n    generator = await handler.chat(request)\n'
    "vllm.engine.multiprocessing.MQEngineDeadError: Engine loop is not running. Inspect the stacktrace to find the original error: {}.\n"
)


def test_a_front_end_that_names_the_engines_error_tells_it(told: Told) -> None:
    failure = primary(told(FRONT.format("NotImplementedError('no such cache')")))
    assert (failure.root_type, failure.root_message) == ("NotImplementedError", "no such cache")
    gone = primary(told(FRONT.format("RuntimeError('Engine process (pid 300) died.')")))
    assert gone.root_type is not None and gone.root_type.endswith("MQEngineDeadError")


def test_another_failure_in_the_log_is_nearer(told: Told) -> None:
    actor = (
        "ERROR 11-29 20:16:40 [core.py:700] Traceback (most recent call last):\n"
        'ERROR 11-29 20:16:40 [core.py:700]   File "/opt/env/site-packages/vllm/v1/engine/core.py", line 690, in run\n'
        "ERROR 11-29 20:16:40 [core.py:700]     engine.loop()\n"
        "ERROR 11-29 20:16:40 [core.py:700] ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
    )
    dead = (
        "(APIServer pid=1) Traceback (most recent call last):\n"
        '(APIServer pid=1)   File "/opt/env/site-packages/vllm/v1/engine/async_llm.py", line 500, in output\n'
        "(APIServer pid=1)     outputs = await core.get()\n"
        "(APIServer pid=1) vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.\n"
    )
    assert primary(told(actor + dead)).type == "ray.exceptions.ActorDiedError"
    raised = actor.replace("ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.", "KeyError: 'layer.7'")
    assert primary(told(FRONT.format("TimeoutError('no heartbeat')") + raised)).type == "KeyError"


STACK = (
    'Traceback (most recent call last):\n  File "/srv/job/train.py", line 91, in <module>\n    main()\n'
    '  File "/srv/job/train.py", line 71, in main\n    out = model(x)\n  File "/srv/job/model.py", line 40, in forward\n    x = self.layers(x)\n'
)
REST = '  File "/srv/job/layers.py", line 12, in forward\n    return join(x)\nKeyError: \'cache\'\n'


def of(rank: int, text: str) -> str:
    return "".join(f"[rank{rank}]: {line}\n" for line in text.splitlines())


def test_a_rank_whose_traceback_is_cut_off_failed_like_the_whole_ones(told: Told) -> None:
    incident = told(of(1, STACK) + of(0, STACK + REST) + of(2, STACK + REST))
    assert number(incident) == 1 and [r.number for r in incident.verdict.same_failure_ranks] == [0, 2]
    assert primary(incident).type == "KeyError" and len(incident.failures) == 1
    assert any("cut off" in proof.shows and proof.span.first_line == 1 for proof in primary(incident).evidence)


@pytest.mark.parametrize(
    "text",
    [
        of(1, STACK.replace("line 40", "line 44")) + of(0, STACK + REST),
        of(1, STACK) + of(0, STACK + REST) + of(2, STACK + REST.replace("KeyError: 'cache'", "ValueError: bad")),
        of(1, "".join(STACK.splitlines(keepends=True)[:3])) + of(0, STACK + REST),
    ],
    ids=["another line", "two ways to go on", "only how programs begin"],
)
def test_where_that_is_not_shown_it_stays_apart(told: Told, text: str) -> None:
    incident = told(text)
    assert number(incident) == 0
    assert 1 not in [r.number for r in incident.verdict.same_failure_ranks]


BARK = "[2026-11-29 20:20:20 TP0] Watchdog timeout (self.watchdog_timeout=300)\n"
DUMP = '[2026-11-29 20:20:20] the stacks:\nThread 300 (idle): "MainThread"\n    recv (connection.py:250)\n    event_loop (sglang/srt/managers/scheduler.py:800)\n    main (run.py:1)\n'
ABORT = 'Fatal Python error: Aborted\n\nThread 0x00007f00 (most recent call first):\n  File "/usr/lib/python3.12/threading.py", line 359 in wait\n'
WORK = "".join(
    f"[2026-11-29 20:15:{n:02} TP{n % 2}] Decode batch. #running-req: 4, #token: {n}, token usage: 0.1, gen throughput (token/s): 8.1, #queue-req: 0\n"
    for n in range(8)
)


def test_the_abort_behind_a_watchdog_is_its_act(told: Told) -> None:
    incident = told(WORK + BARK + ABORT)
    assert incident.status is Status.HUNG and incident.verdict.category is Category.HANG_OR_WATCHDOG
    assert next(f.role for f in incident.failures if f.type == "SIGABRT") is CausalRole.TEARDOWN
    assert primary(told(WORK + ABORT)).type == "SIGABRT"
    assert primary(told(WORK + ABORT + BARK)).type == "SIGABRT"  # it had aborted before


def test_a_dump_without_a_name_is_that_of_the_only_process(told: Told) -> None:
    only = "".join(line for line in WORK.splitlines(keepends=True) if " TP0]" in line)
    assert [f.function for f in primary(told(only + BARK + DUMP)).frames][-1:] == ["recv"]
    assert primary(told(WORK + BARK + DUMP)).frames == ()


def test_a_torn_word_of_a_broken_connection_is_a_consequence_beside_a_failure(told: Told) -> None:
    broken = 'Traceback (most recent call last):\n  File "/j/train.py", line 9, in main\n    dist.barrier()\nRuntimeError: [/src/gloo/gloo/transport/tcp/pair.cc:534] Connection {}'
    raised = 'Traceback (most recent call last):\n  File "/j/train.py", line 7, in main\n    row = rows[key]\nKeyError: 7'

    def by(number: int, text: str) -> str:
        return "".join(f"[rank{number}]: {line}\n" for line in text.splitlines())

    for said, first in (("cl", 1), ("could not be bound to the port", 2)):
        incident = told(by(2, broken.format(said)) + by(1, raised))
        assert incident.verdict.rank is not None and incident.verdict.rank.number == first
