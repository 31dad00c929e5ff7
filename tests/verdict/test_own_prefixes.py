"""Ranks that a program's own logger prints, and ends that only an error record or a script's trace tells."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, Status

from .conftest import Told

FORMS = (
    "{time} [rank{rank}] {level} {text}\n",
    "{time},250 - [Rank {rank}] - {level} - {text}\n",
    "{time} {level} [rank{rank}] {text}\n",
    "[rank{rank}/4] {time},250 {level} {text}\n",
    "{time} | rank={rank} | {level} | {text}\n",
)
LOST = (
    "Traceback (most recent call last):\n"
    '  File "/opt/venv/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py", line 2806, in all_reduce\n'
    "    work.wait()\n"
    "torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error\n"
)
RAISED = 'Traceback (most recent call last):\n  File "/job/rows.py", line 12, in pick\n    return self.rows[k]\nKeyError: \'row_7\'\n'


def line(form: str, second: int, rank: int, level: str, text: str) -> str:
    return form.format(time=f"2026-11-29 20:15:{second:02d}", rank=rank, level=level, text=text)


@pytest.mark.parametrize("form", FORMS)
def test_a_record_of_a_ranks_own_logger_is_its_traceback_too(told: Told, form: str) -> None:
    work = "".join(line(form, n, rank, "INFO", f"step {n} loss 2.0") for n in range(8) for rank in range(4))
    failed = line(form, 9, 2, "ERROR", "training failed") + RAISED + line(form, 10, 0, "ERROR", "training failed") + LOST
    incident = told(work + failed)
    assert (incident.verdict.category, incident.verdict.rank and incident.verdict.rank.number) == (Category.USER_CODE, 2)
    assert told(work).status is Status.HEALTHY
    # below a calm record of another one it is nobody's
    incident = told(work + line(form, 9, 2, "INFO", "evaluating") + RAISED)
    assert incident.verdict.category is Category.USER_CODE and incident.verdict.rank is None


def test_a_rank_before_the_message_of_a_stamped_record_is_its_tracebacks_too(told: Told) -> None:
    """The engine stamps every line of the record, the library it tells of puts the rank before the first."""
    stamp = "ERROR 11-29 20:15:23 engine.py:387] "
    torn = "".join(f"{stamp}{row}\n" for row in RAISED.splitlines()[:3])
    incident = told(f"{stamp}[Rank:2] FATAL ERROR :: MODULE:PT_LAZY rows are empty\n{torn}")
    assert incident.verdict.rank is not None and incident.verdict.rank.number == 2
    assert incident.primary is not None and [frame.function for frame in incident.primary.frames] == ["pick"]
    other = told(f"ERROR 11-29 20:15:23 cache.py:12] [Rank:2] FATAL ERROR :: rows are empty\n{torn}")
    assert other.primary is not None and not other.primary.frames


def test_a_launchers_mark_stands_before_every_line_so_that_a_bare_traceback_is_another_ones(told: Told) -> None:
    incident = told("[rank1]: 2026-11-29 20:15:08 ERROR no more rows\n" + RAISED)
    assert incident.primary is not None and incident.primary.type == "KeyError" and incident.verdict.rank is None


WORK = "".join(f"2026-11-29 20:15:{n:02d} step {n} loss 2.0\n" for n in range(8))


def test_tests_of_which_one_failed_did_not_end_well(told: Told) -> None:
    session = (
        "============ test session starts ============\n"
        "=========== FAILURES ===========\n____ test_load ____\n"
        "    def test_load():\n>       load()\n"
        "E       RuntimeError: CUDA error: an illegal memory access was encountered\n\ntests/test_load.py:10: RuntimeError\n"
        "====== {} in 3.21s ======\n"
    )
    assert told(session.format("1 failed, 12 passed")).verdict.category is Category.ILLEGAL_MEMORY_ACCESS
    passed = session.partition("=========== FAIL")[0] + "tests/test_load.py .\n====== 12 passed in 3.21s ======\n"
    assert told(passed).status is Status.HEALTHY


def test_a_script_that_prints_what_it_does_prints_its_exit(told: Told) -> None:
    incident = told(WORK + "+ exit 137\n")
    assert incident.primary is not None and incident.primary.type == "SIGKILL"
    # what a command substitution ends with is a value
    assert told("++ grep -q b7 hosts\n++ exit 1\n+ torchrun train.py\n" + WORK).primary is None
    assert told(WORK + "+ exit 0\n").primary is None and told(WORK + "note: + exit 137 means a kill\n").primary is None
