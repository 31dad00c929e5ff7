"""How grave a program calls what it tells: a caught exception that is only shown to those who debug, words behind an error line."""

from __future__ import annotations

import json

import pytest

from forensics.model.verdict import Category, CausalRole, Status

from .conftest import Told, primary

INNER = '  File "/srv/job/probe.py", line 31, in topology\n    return read(path)\n{}\n'
REAL = (
    'Traceback (most recent call last):\n  File "/srv/job/main.py", line 88, in <module>\n    build()\n'
    '  File "/srv/job/model.py", line 12, in build\n    w = torch.empty(n, device=name)\nRuntimeError: CUDA error: invalid device ordinal\n'
)
PROBED = "LookupError: no table of that name"


def shown(first: str, each: str = "") -> str:
    return "".join(f"{each}{line}\n" for line in (first + INNER.format(PROBED)).splitlines())


@pytest.mark.parametrize(
    "said",
    [
        "2026-11-29 20:15:00,100 - job.probe - DEBUG - the table cannot be read\n" + shown("Traceback (most recent call last):\n"),
        shown("Traceback (most recent call last):\n", "[2026-11-29 20:15:00] VERBOSE probe: "),
        shown("Traceback (most recent call last):\n", "DEBUG 11-29 20:15:00 [probe.py:77] "),
        "debug: the table cannot be read\n" + shown("Traceback (most recent call last):\n"),
    ],
    ids=["heading", "own word", "own level", "plain"],
)
def test_what_is_only_shown_to_those_who_debug_is_no_failure_beside_a_real_one(told: Told, said: str) -> None:
    incident = told(said + "loading\n" + REAL)
    assert primary(incident).message == "CUDA error: invalid device ordinal"
    probe = next(f for f in incident.failures if f.type == "LookupError")
    assert probe.role is CausalRole.TEARDOWN


def test_an_error_that_is_printed_later_counts_more(told: Told) -> None:
    said = shown("Traceback (most recent call last):\n", "DEBUG 11-29 20:15:00 [probe.py:77] ")
    incident = told(said + "ERROR 11-29 20:15:40 [main.py:9] the port 8000 is taken\n")
    assert "port 8000" in primary(incident).message


@pytest.mark.parametrize("level", ["ERROR", "INFO"])
def test_at_another_level_the_first_one_stays(told: Told, level: str) -> None:
    said = shown("Traceback (most recent call last):\n", f"{level} 11-29 20:15:00 [probe.py:77] ")
    assert primary(told(said + REAL)).type == "LookupError"


def test_a_program_that_ends_prints_below_whatever_was_said_last(told: Told) -> None:
    last = "2026-11-29 20:15:00,100 - job.main - DEBUG - reading the table\n"
    ended = 'Traceback (most recent call last):\n  File "/srv/job/main.py", line 9, in <module>\n    go()\n' + PROBED + "\n"
    assert primary(told(last + ended + REAL)).type == "LookupError"


def test_alone_it_is_still_what_the_log_has_to_say(told: Told) -> None:
    assert primary(told(shown("Traceback (most recent call last):\n", "DEBUG 11-29 20:15:00 [probe.py:77] "))).type == "LookupError"


def test_an_error_line_does_not_swallow_what_is_printed_behind_it(told: Told) -> None:
    incident = told("ERROR: the cache cannot be read\nreading the shards\nthe first epoch begins\n")
    assert primary(incident).message == "ERROR: the cache cannot be read"


@pytest.mark.parametrize(
    "text",
    ["ERROR: these shards are missing:\nshard-3\n", "ERROR: the cache cannot be read\n  it was written by another version\n"],
    ids=["announced", "indented"],
)
def test_but_it_keeps_what_belongs_to_it(told: Told, text: str) -> None:
    assert primary(told(text + "reading\n")).message.count("\n") == 1


FULL = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.00 GiB is free."


@pytest.mark.parametrize(
    "record",
    [
        '{{"timestamp":"2026-11-29T20:15:03Z","severity":"INFO","body":"{0}"}}\n',
        '{{"Timestamp":"1796000001000000000","SeverityText":"INFO","Body":"{0}","Resource":{{"service.name":"m"}}}}\n',
    ],
)
def test_a_collectors_level_says_nothing_of_a_full_gpu(told: Told, record: str) -> None:
    incident = told(record.format("loading the model") + record.format(FULL) + record.format("left"))
    assert incident.status is Status.CRASHED and incident.verdict.category is Category.OOM_GPU
    assert primary(incident).message.endswith("is free.")


def test_an_error_that_a_program_tells_at_info_is_still_its_own_business(told: Told) -> None:
    record = '{{"timestamp":"2026-11-29T20:15:03Z","severity":"INFO","body":"{0}"}}\n'
    assert told(record.format("loading") + record.format("ValueError: one sample was too long") + record.format("left")).primary is None


def test_a_level_in_brackets_is_one(told: Told) -> None:
    steps = "".join(f"step {n}/90 | loss 2.{n} | 1.2 s/it\n" for n in range(1, 9))
    assert "operator" in primary(told(steps + "[ERROR] the operator went wrong\n")).message
    for calm in ("[ERRORS] are listed below\n", "[ERROR] 0 of 9 tests\n", "the word [ERROR] in a line\n"):
        assert told(steps + calm).status is Status.HEALTHY


LOST = "[rank5]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 6.10 GiB. GPU 5 has a total capacity of 44.40 GiB of which 802.00 MiB is free."
FELL = "NVRM: Xid (PCI:0000:9a:00): 79, pid=7001, name=python3, GPU has fallen off the bus."
ABORT = "[rank1]: torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:94, unhandled cuda error, NCCL version 2.27.5"


def records(last: list[str], fields: str, each: str = "2026-11-29 20:15:{:02} INFO step {} loss 2.{}") -> str:
    said = [*(each.format(n, n, n) for n in range(10, 22)), *last]
    return "".join(f'{{"time": "2026-11-29T20:15:{n}Z", {fields}, "message": {json.dumps(text)}}}\n' for n, text in enumerate(said, 10))


@pytest.mark.parametrize("fields", ['"severity": "DEFAULT"', '"level": "info"', '"level": "notice"', '"severity": "WARNING"', '"PRIORITY": "6"'])
@pytest.mark.parametrize(
    ("line", "category"), [(LOST, Category.OOM_GPU), (FELL, Category.DRIVER_OR_HARDWARE), (ABORT, Category.NCCL)], ids=["memory", "xid", "nccl"]
)
def test_the_level_that_a_collector_gave_a_line_does_not_silence_it(told: Told, fields: str, line: str, category: Category) -> None:
    incident = told(records([line], fields))
    assert (incident.status, incident.verdict.category) == (Status.CRASHED, category)


def test_the_level_of_a_program_that_logs_records_itself_is_believed(told: Told) -> None:
    said = "CUDA out of memory. Tried to allocate 6.10 GiB; the batch is halved"
    calm = records([said], '"level": "info", "logger": "train"', "step {} of {}, loss 2.{}")
    assert told(calm).status is Status.HEALTHY


@pytest.mark.parametrize("escape", ["\x1b", "\\u001b", "\\\\u001b"])
def test_colours_that_a_record_spells_out_hide_nothing(told: Told, escape: str) -> None:
    shown = "@[1;91mRuntimeError: @[0mThe size of tensor a @[1m(@[0m@[1;36m96@[0m@[1m)@[0m must match the size of tensor b (48) at non-singleton dimension 2"
    record = '{"log": "@\\n", "stream": "stderr"}\n'
    incident = told(record.replace("@", "step 1 loss 2.5") * 5 + record.replace("@", shown.replace("@", escape)))
    assert incident.verdict.category is Category.SHAPE_OR_DTYPE_ASSERT
    assert primary(incident).message.startswith("The size of tensor a (96) must match")
