"""Several runs in one log."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, Status

from . import logs
from .conftest import Told, primary

START = "[2025-06-01 {} TP{}] Load weight begin. avail mem=78.00 GB\n"
OOM = "Not enough memory. Please try to increase --mem-fraction-static."


def run(clock: str, kind: str, message: str) -> str:
    return (
        START.format(f"10:0{clock}:00", 0)
        + START.format(f"10:0{clock}:00", 1)
        + logs.scheduler(1, f"10:0{clock}:30", kind, message)
    )


def test_a_restart_that_repeats_the_failure_points_at_the_first(told: Told) -> None:
    incident = told(run("0", "RuntimeError", OOM) + run("2", "RuntimeError", OOM))
    assert incident.verdict.category is Category.OOM_GPU
    assert incident.primary is not None
    assert incident.primary.evidence[0].span.first_line < 10
    assert len(incident.others) == 1


def test_a_run_that_ends_of_what_ended_the_one_before_is_no_recovery(told: Told) -> None:
    """Lines alike are one event, at the first of them; the last of them belongs to its own run."""

    def attempt(minute: int, said: str = "") -> str:
        work = "".join(f"[2025-06-01 10:0{minute}:1{n} TP0] Decode batch. #running-req: {n}, gen throughput: 91.2\n" for n in range(9))
        return "".join(START.format(f"10:0{minute}:00", rank) for rank in (0, 1)) + work + said

    error = "[rank1]: RuntimeError: CUDA error: an illegal memory access was encountered\n"
    first = attempt(0, error + "srun: error: node7: task 1: Exited with exit code 1\n")
    assert told(first + attempt(2)).status is Status.DEGRADED
    incident = told(first + attempt(2, error))
    assert incident.status is Status.CRASHED
    assert [proof.span.first_line for other in incident.others for proof in other.evidence] == [25]
    assert incident.failures[0].count == 1


def test_another_failure_ends_the_job(told: Told) -> None:
    incident = told(run("0", "RuntimeError", OOM) + run("2", "KeyError", "'lm_head'"))
    assert incident.primary is not None
    assert incident.primary.type == "KeyError"
    assert [other.category for other in incident.others] == [Category.OOM_GPU]


def test_one_of_them_can_be_asked_for(told: Told) -> None:
    incident = told(run("0", "RuntimeError", OOM) + run("2", "KeyError", "'lm_head'"), incident=1)
    assert incident.primary is not None
    assert incident.primary.type == "RuntimeError"


def test_ranks_that_start_one_after_the_other_are_one_run(told: Told) -> None:
    text = (
        START.format("10:00:00", 6)
        + logs.scheduler(6, "10:00:01", "RuntimeError", "CUDA error: invalid device ordinal")
        + START.format("10:00:02", 0)
    )
    incident = told(text)
    assert incident.status is Status.CRASHED
    assert incident.verdict.rank is not None
    assert incident.verdict.rank.number == 6
    assert not incident.others


def _script(why: str, *head: str) -> str:
    told = f'Traceback (most recent call last):\n  File "/srv/train.py", line 30, in <module>\n    main()\n{why}\n'
    return "".join(f"{line}\n" for line in head) + told


MISTAKES = ("FileNotFoundError: [Errno 2] No such file or directory: 'a.yaml'", "KeyError: 'lr'", "TypeError: load() got no 'wd'")
HEAD = ("=== nanotrain 0.4 ===", "config: lr=3e-4", "loading the tokenizer")


@pytest.mark.parametrize("head", [("nohup: ignoring input", "loading data"), HEAD])
def test_of_several_starts_that_failed_the_last_is_told(told: Told, head: tuple[str, ...]) -> None:
    incident = told("".join(_script(why, *head) for why in MISTAKES))
    assert primary(incident).type == "TypeError" and primary(incident).evidence[0].span.first_line > 10
    assert len(incident.others) == 2


def test_a_failure_between_two_alike_parts_them(told: Told) -> None:
    first, second = _script(MISTAKES[1], *HEAD), _script(MISTAKES[2], *HEAD)
    for text, line in ((first + second + first, 21), (second + first + first, 14)):
        found = primary(told(text))
        assert (found.type, found.evidence[0].span.first_line) == ("KeyError", line)


def test_failures_of_one_type_and_kind_are_not_the_same_by_that(told: Told) -> None:
    def refused(why: str, where: str) -> str:
        return "".join(f"{line}\n" for line in HEAD) + (
            'Traceback (most recent call last):\n  File "/srv/run.py", line 3, in <module>\n    check(args)\n'
            f'  File "/srv/config.py", line 8, in {where}\n    raise ValueError(\nValueError: {why}\n'
        )

    asked = ("max_model_len (99999) is greater than the derived max_model_len (8192).", "_length")
    heads = ("Total number of attention heads (40) must be divisible by tensor parallel size (3).", "_heads")
    assert "attention heads" in primary(told(refused(*asked) + refused(*heads))).message


def test_files_of_ranks_that_begin_equally_often_are_split_alike(told: Told) -> None:
    starts = [_script(why, *HEAD) for why in MISTAKES]
    incident = told("".join(starts), "".join(starts))
    assert primary(incident).type == "TypeError" and len(incident.others) == 2
    whole = told("".join(starts), starts[0])  # nobody knows which of the starts the other file is of
    assert primary(whole).type == "FileNotFoundError" and not whole.others
