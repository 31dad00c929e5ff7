"""What is said of a log of which only some lines were asked for."""

from __future__ import annotations

from forensics.model.verdict import Status
from tests.verdict.conftest import Told

CALM = "[rank0]: step 1 loss 2.0\n[rank1]: step 1 loss 2.0\n"
RAISED = '[rank3]: Traceback (most recent call last):\n[rank3]:   File "/app/train.py", line 40, in <module>\n[rank3]:     x = t[k]\n[rank3]: KeyError: \'b17\'\n'
FOLLOWED = "[rank0]: E0503 10:14:22.8  2177 agent.cc:332] Polled an error from coordination service (this can be an error from this or another task).\n"


def test_a_consequence_whose_cause_was_left_out_is_not_called_outside_the_log(told: Told) -> None:
    verdict = told(CALM + RAISED + FOLLOWED, rank=0).verdict
    assert "--rank left out" in verdict.explanation and "failed first" not in verdict.explanation
    whole = told(CALM + FOLLOWED).verdict  # nothing was left out
    assert "the cause is outside this log" in whole.explanation and "--rank" not in whole.explanation


def test_of_ranks_that_were_left_out_nothing_is_said(told: Told) -> None:
    incident = told(CALM + RAISED, rank=1)
    assert incident.status is Status.HEALTHY and "--rank asked for" in incident.verdict.explanation
    assert [row.rank.number for row in incident.ranks] == [1]
    raised = told(CALM + RAISED, rank=3)
    assert raised.status is Status.CRASHED and "--rank asked for" in raised.verdict.explanation
