"""What a batch script's own commands say before its ranks are started."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, Status

from .conftest import Told

SIDE = """\
Traceback (most recent call last):
  File "/home/u/.local/bin/tracker", line 5, in <module>
    from tracker.cli import cli
  File "/home/u/.local/lib/python3.6/site-packages/tracker/config.py", line 7, in <module>
    from contextvars import ContextVar
ModuleNotFoundError: No module named 'contextvars'
/var/spool/slurmd/job71/slurm_script: line 12: module: command not found
"""
RANKS = "".join(f"{rank:2d}: loaded plugin {name} in 71 ms.\n" for name in ("alpha", "beta", "gamma") for rank in range(8))
LIMIT = "slurmstepd: error: *** JOB 71 ON nid01 CANCELLED AT 2026-11-29T20:15:20 DUE TO TIME LIMIT ***\n"
CRASH = """\
 5: Traceback (most recent call last):
 5:   File "/srv/app/train.py", line 71, in <module>
 5:     main()
 5:   File "/srv/app/data.py", line 12, in load
 5:     raise ValueError("shard 7 is empty")
 5: ValueError: shard 7 is empty
"""


def test_they_do_not_end_a_job_that_ran_to_its_limit(told: Told) -> None:
    incident = told(SIDE + RANKS + LIMIT)
    assert (incident.status, incident.verdict.category) == (Status.KILLED, Category.KILLED_EXTERNALLY)
    assert "time limit" in incident.verdict.title


def test_they_do_not_come_before_a_ranks_own_failure(told: Told) -> None:
    incident = told(SIDE + RANKS + CRASH)
    assert incident.verdict.rank is not None and incident.verdict.rank.number == 5
    assert incident.primary is not None and incident.primary.message == "shard 7 is empty"


@pytest.mark.parametrize("below", [RANKS.replace(": ", " - "), RANKS[:200], ""])
def test_where_no_launcher_labels_the_ranks_nobody_knows_whose_it_is(told: Told, below: str) -> None:
    incident = told(SIDE + below + LIMIT)
    assert incident.primary is not None and "contextvars" in incident.primary.message


WEB = """\
INFO:     10.0.0.5:57030 - "POST /v1/chat/completions HTTP/1.1" 500 Internal Server Error
ERROR:    Exception in ASGI application
Traceback (most recent call last):
  File "/opt/venv/lib/python3.11/site-packages/uvicorn/protocols/http/h11_impl.py", line 403, in run_asgi
    result = await app(self.scope, self.receive, self.send)
  File "/srv/proxy/tokens.py", line 12, in count
    raise OSError("no tokenizer at /models/m")
OSError: no tokenizer at /models/m
"""
SERVED = 'INFO:     127.0.0.1:37514 - "GET /search HTTP/1.1" 200 OK\n'
STOPPED = "[2026-11-29T20:15:20.675] error: *** JOB 71 ON gpu-1 CANCELLED AT 2026-11-29T20:15:20 DUE to SIGNAL Terminated ***\n"


def test_requests_that_a_web_server_broke_off_do_not_end_a_job_that_is_cancelled(told: Told) -> None:
    incident = told(SERVED + WEB + SERVED + WEB + SERVED + STOPPED)
    assert (incident.status, incident.verdict.category) == (Status.KILLED, Category.KILLED_EXTERNALLY)


def test_what_a_request_found_broken_for_good_still_counts(told: Told) -> None:
    gone = WEB.replace("OSError: no tokenizer at /models/m", "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue")
    illegal = WEB.replace("OSError: no tokenizer at /models/m", "torch.AcceleratorError: CUDA error: an illegal memory access was encountered")
    assert told(SERVED + illegal + STOPPED).status is Status.CRASHED
    assert "SIGNAL" not in told(SERVED + gone + STOPPED).verdict.title


def test_a_shells_word_and_warnings_of_ranks_that_run_are_no_failure(told: Told) -> None:
    warned = '[rank3]:W1129 20:15:12.485000 156 torch/_inductor/codecache.py:1052] [3/0] '
    stack = "".join(
        f" 3: {warned}{text}\n"
        for text in (
            "fx graph cache unable to load compiled graph",
            "Traceback (most recent call last):",
            '  File "/opt/venv/lib/python3.12/site-packages/torch/_inductor/codecache.py", line 1002, in iterate_over_candidates',
            "    with open(path) as f:",
            "FileNotFoundError: [Errno 2] No such file or directory: '/scratch/tmp/.71.tmp'",
        )
    )
    shell = SIDE.splitlines()[-1] + "\n"
    assert told(shell + RANKS + stack + RANKS).status is Status.HEALTHY
