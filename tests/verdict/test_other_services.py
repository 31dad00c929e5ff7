"""Requests of the program's own to other services: not the communication between the job's processes."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category

from .conftest import Told

LIB = "/opt/venv/lib/python3.12/site-packages/"
CLIENTS = {
    "requests": ("requests/adapters.py", "requests.exceptions.ConnectionError: HTTPConnectionPool(host='labels.svc', port=80): Max retries exceeded with url: /b (Caused by NewConnectionError('[Errno 111] Connection refused'))"),
    "httpx": ("httpx/_transports/default.py", "httpx.ConnectError: [Errno 111] Connection refused"),
    "aiohttp": ("aiohttp/connector.py", "aiohttp.client_exceptions.ServerDisconnectedError: Connection closed by peer"),
    "redis": ("redis/connection.py", "redis.exceptions.ConnectionError: Error 104 while writing to socket. Connection reset by peer."),
}  # fmt: skip
PEER = """\
[rank1]: Traceback (most recent call last):
[rank1]:   File "/j/run.py", line 9, in main
[rank1]:     dist.all_reduce(x)
[rank1]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2020, remote process exited or there was a network error, NCCL version 2.21.5
"""


def asked(file: str, what: str, caller: str = "/j/score.py") -> str:
    lines = ("Traceback (most recent call last):", f'  File "{caller}", line 71, in score', "    client.post(url)", f'  File "{LIB}{file}", line 250, in send', "    raise error", what)
    return "".join(f"[rank0]: {line}\n" for line in lines)


@pytest.mark.parametrize("client", CLIENTS)
def test_the_users_code_asked_another_service(told: Told, client: str) -> None:
    incident = told("step 1 loss 2.0\n" + asked(*CLIENTS[client]) + PEER)
    assert incident.verdict.category is Category.USER_CODE
    assert incident.verdict.rank is not None and incident.verdict.rank.number == 0


def test_the_same_words_between_the_jobs_processes_are_communication(told: Told) -> None:
    store = "torch.distributed.DistNetworkError: The client socket has failed to connect to [n1]:29500 (errno: 111 - Connection refused)."
    assert told(asked("torch/distributed/rendezvous.py", store)).verdict.category is Category.NCCL
    engine = asked(*CLIENTS["requests"], caller=LIB + "sglang/srt/disaggregation/mini_lb.py")
    assert told(engine).verdict.category is not Category.USER_CODE


def test_a_download_of_the_model_is_its_loading(told: Told) -> None:
    what = "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded with url: /api/models/m (Caused by NameResolutionError('…'))"
    assert told(asked("requests/adapters.py", what)).verdict.category is Category.MODEL_LOAD
