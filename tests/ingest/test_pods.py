"""Lines of `kubectl logs --prefix` that name no rank."""

from __future__ import annotations

from forensics.ingest import from_text
from tests.verdict.conftest import Told, number, told

__all__ = ["told"]

HEAD = "[pod/train-0/pytorch] [rank0]: step 1 loss 2.2\n[pod/train-1/pytorch] starting on node n2\n"
RAISED = "".join(
    f"[pod/train-1/pytorch] {line}\n"
    for line in ("Traceback (most recent call last):", '  File "/app/train.py", line 40, in <module>', "    x = t[k]", "KeyError: 'b17'")
)
LAST = "[pod/train-1/pytorch] [rank{}]:[W503 10:00:01.1 ProcessGroupNCCL.cpp:1250] Warning: destroy_process_group() was not called\n"


def _ranks(text: str) -> list[int | None]:
    return [line.rank.number if line.rank is not None else None for line in from_text(text).lines]


def test_a_pods_lines_are_those_of_the_only_rank_that_it_speaks_of(told: Told) -> None:
    assert _ranks(HEAD + RAISED + LAST.format(1)) == [0, 1, 1, 1, 1, 1, 1]
    assert number(told(HEAD + RAISED + LAST.format(1))) == 1


def test_a_pod_of_several_ranks_has_lines_of_nobody(told: Told) -> None:
    two = HEAD + RAISED + LAST.format(1) + LAST.format(2)
    assert _ranks(two) == [0, None, None, None, None, None, 1, 2]
    assert number(told(two)) is None


def test_a_pod_without_ranks_is_not_another_pods_only_rank(told: Told) -> None:
    assert _ranks(HEAD + RAISED) == [0, None, None, None, None, None]
    assert number(told(HEAD + RAISED)) is None


def test_a_sidecar_is_a_container_of_its_own() -> None:
    assert _ranks(HEAD + "[pod/train-0/proxy] ready\n" + LAST.format(1)) == [0, 1, None, 1]


def test_of_many_ranks_in_a_pod_only_the_one_that_failed_may_name_itself(told: Told) -> None:
    """One pod alone does not tell how many ranks it has; nor do pods whose ranks are more than there are pods."""
    alone = RAISED.replace("train-1", "train-0") + LAST.format(3).replace("train-1", "train-0")
    assert _ranks(alone) == [None, None, None, None, 3]
    assert number(told(alone)) is None
    eight_each = HEAD + RAISED + LAST.format(11)
    assert _ranks(eight_each) == [0, None, None, None, None, None, 11]
