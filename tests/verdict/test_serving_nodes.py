"""Nodes of a service that see their own processes end, and what they say afterwards."""

from __future__ import annotations

from forensics.model.verdict import Category, Status

from .conftest import Told, number, primary

NO_DEVICE = "/build/nvshmem/src/host/transport/transport.cpp:402: non-zero status: 7 No devices selected.\n"
SETUP = "/build/nvshmem/src/host/init/init.cu:1002: non-zero status: 7 nvshmem setup connections failed\n"
CALLED = "/build/nvshmem/src/host/team/team.cu:nvshmem_team_split_strided:63: NVSHMEM API called before NVSHMEM initialization has completed\n"
ENDED = "[2026-03-02 10:00:41] Scheduler or DataParallelController {} terminated with {}\n"
WEB_APP = """\
[2026-03-02 10:00:43] ERROR:    Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/starlette/routing.py", line 694, in lifespan
    async with self.lifespan_context(app) as maybe_state:
  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/entrypoints/http_server.py", line 281, in lifespan
    app.state.completion = OpenAIServingCompletion(manager)
  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/entrypoints/openai/serving_base.py", line 38, in __init__
    if isinstance(self.tokenizer_manager.server_args, ServerArgs)
AttributeError: 'NoneType' object has no attribute 'server_args'

[2026-03-02 10:00:43] ERROR:    Application startup failed. Exiting.
"""


def test_a_node_without_network_devices_for_nvshmem(told: Told) -> None:
    incident = told(NO_DEVICE + SETUP + CALLED + ENDED.format(711, 255) + ENDED.format(712, 255) + WEB_APP)
    assert incident.verdict.signature == "nccl.nvshmem-no-devices"
    assert "No devices selected" in primary(incident).message


def test_the_schedulers_of_a_node_that_ended_are_nearer_than_its_web_app(told: Told) -> None:
    incident = told(ENDED.format(711, -9) + ENDED.format(712, 0) + WEB_APP)
    assert incident.verdict.category is Category.KILLED_EXTERNALLY
    assert "711" in primary(incident).message


def test_an_attribute_that_is_missing_elsewhere_is_a_failure(told: Told) -> None:
    own = WEB_APP.replace("in lifespan", "in start")
    assert "server_args" in primary(told(ENDED.format(711, 255) + own)).message


def test_a_time_without_its_year_in_brackets(told: Told) -> None:
    incident = told("[03-02 10:00:40] Rank 3 scheduler is dead. Please check if there are relevant logs.\n[03-02 10:00:42] Exit code: -9\n")
    assert (incident.status, incident.verdict.category) == (Status.KILLED, Category.KILLED_EXTERNALLY)
    assert number(incident) == 3 and primary(incident).message == "Exit code: -9"


LOOKED_UP = """\
Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/models/some.py", line 88, in load_weights
    weight = {}[name]
KeyError: 'model.layers.2.mlp.gate.weight'
"""


def test_where_a_tensor_was_looked_up_tells_who_lacks_it(told: Told) -> None:
    assert told(LOOKED_UP.format("model_state_dict")).verdict.signature == "loader.tensor-not-in-state-dict"
    assert told(LOOKED_UP.format("params_dict")).verdict.signature == "loader.unknown-parameter"


SIGNALLED = "[a1b2c3:{}] *** Process received signal ***\n[a1b2c3:{}] Signal: Segmentation fault (11)\n[a1b2c3:{}] *** End of error message ***\n"
CAUGHT = "[a1b2c3:812  :0:840] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x10)\n"


def test_a_pid_that_open_mpi_pads_is_the_same_process(told: Told) -> None:
    assert [row.rank.label for row in told(CAUGHT + SIGNALLED.replace("{}", "00812")).ranks] == ["a1b2c3:812"]
    assert len(told(CAUGHT + SIGNALLED.replace("{}", "08120")).ranks) == 2


def test_an_exception_of_nixl_that_is_logged_as_its_repr(told: Told) -> None:
    log = "ERROR 03-02 10:00:41 engine.py:244] {}('NIXL_ERR_BACKEND')\n"
    assert primary(told(log.format("nixlBackendError"))).type == "nixlBackendError"
    assert primary(told(log.format("logError"))).type is None  # a call


def test_a_processor_without_an_instruction(told: Told) -> None:
    incident = told("2026-03-02T10:00:41.000000Z ERROR text_generation_launcher: Shard process was signaled to shutdown with signal 4 rank=0\n")
    assert incident.verdict.category is Category.SEGFAULT and "lscpu" in incident.verdict.next_steps[0]
    other = told("2026-03-02T10:00:41.000000Z ERROR text_generation_launcher: Shard process was signaled to shutdown with signal 11 rank=0\n")
    assert "lscpu" not in other.verdict.next_steps[0]
