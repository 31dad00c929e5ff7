"""Which advice a failure gets: by the words that show the situation, by the row of an Xid."""

from __future__ import annotations

from typing import Any

import pytest

from forensics.data import table
from forensics.verdict.situations import rows

from .conftest import Told

ROWS: list[dict[str, Any]] = table("verdict/situations")["situation"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_a_situation_is_seen_in_its_examples_only(row: dict[str, Any]) -> None:
    says = next(one.says for one in rows() if one.name == row["name"])
    assert says is not None or row.get("engines") or row.get("rules") or row.get("by")
    assert (says is None) == (not row.get("examples")) == (not row.get("counterexamples"))
    for text in row.get("examples", ()):
        assert says is not None and says.search(text)
    for text in row.get("counterexamples", ()):
        assert says is not None and not says.search(text)


def test_each_situation_has_advice_in_some_category() -> None:
    named = {key for category in table("verdict/advice").values() for key, value in category.items() if isinstance(value, dict)}
    assert {row["name"] for row in ROWS} <= named


@pytest.mark.parametrize(
    ("said", "has", "lacks"),
    [
        ("RuntimeError: [/src/gloo/gloo/transport/tcp/pair.cc:534] Connection cl", "GLOO_SOCKET_IFNAME", "NCCL_DEBUG"),
        ("torch.distributed.DistNetworkError: The client socket has failed to connect to any network address of (10.0.0.9, 29500).", "MASTER_PORT", "NCCL_DEBUG"),
        ("KVTransferError: Decode instance could be dead, remote mooncake session 10.0.0.9:16001 is not alive", "other instance", "NCCL_DEBUG"),
        ("RuntimeError: synStatus=9 [Device-type mismatch] Device acquire failed.", "hl-smi", "dcgmi"),
    ],
    ids=["torn", "store", "transfer", "gaudi"],
)  # fmt: skip
def test_advice_is_of_the_library_that_failed(told: Told, said: str, has: str, lacks: str) -> None:
    incident = told(f'Traceback (most recent call last):\n  File "/srv/job/loop.py", line 7, in <module>\n    run()\n{said}\n')
    steps = " ".join((*incident.verdict.next_steps, *incident.verdict.settled_by))
    assert has in steps and lacks not in steps


@pytest.mark.parametrize(("gpu", "of_tpu"), [("sm_90", False), (None, True)])
def test_a_named_gpu_decides_whose_advice_it_is(told: Told, gpu: str | None, of_tpu: bool) -> None:
    said = "RuntimeError: the build failed: error: the flag for the TPU is ignored; ninja: build stopped: subcommand failed."
    log = f'Traceback (most recent call last):\n  File "/srv/job/loop.py", line 7, in <module>\n    run()\n{said}\n'
    assert ("libtpu" in " ".join(told(log, gpu=gpu).verdict.next_steps)) is of_tpu


@pytest.mark.parametrize(
    ("code", "why", "do"), [(119, "Xid 119 (GSP RPC Timeout): GSP firmware", "Reset GPU or reboot"), (79, "Xid 79: GPU has fallen off", "Cold reboot")]
)
def test_an_xid_brings_its_own_advice(told: Told, code: int, why: str, do: str) -> None:
    incident = told(f"[ 1234.567890] NVRM: Xid (PCI:0000:3b:00): {code}, pid=4711, name=python, something went wrong\n")
    assert why in incident.verdict.explanation and incident.verdict.next_steps[0].startswith(do)


def test_an_xid_that_the_catalogue_does_not_explain_keeps_the_categorys_advice(told: Told) -> None:
    incident = told("[ 1234.567890] NVRM: Xid (PCI:0000:3b:00): 167, pid=4711, name=python, something went wrong\n")
    assert incident.verdict.next_steps and all("None" not in step for step in incident.verdict.next_steps)


@pytest.mark.parametrize(
    ("said", "named"),
    [("TypeError: begin_forward() missing 1 required positional argument: 'page_size'", True), ("RuntimeError: CUDA error: out of memory", False)],
)
def test_packages_that_do_not_fit_are_named(told: Told, said: str, named: bool) -> None:
    log = (
        'Traceback (most recent call last):\n  File "/srv/job/serve.py", line 7, in <module>\n    run()\n'
        '  File "/usr/lib/python3/dist-packages/sglang/srt/model_executor/model_runner.py", line 115, in init_args\n    x.begin_forward()\n'
        '  File "/usr/lib/python3/dist-packages/flashinfer/prefill.py", line 15, in begin_forward\n    plan()\n'
        f"{said}\n"
    )
    steps = " ".join(told(log).verdict.next_steps)
    assert ("pip show flashinfer sglang" in steps) is named and "{" not in steps
