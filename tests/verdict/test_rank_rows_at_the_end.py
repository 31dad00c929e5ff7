"""What became of ranks that a scheduler ended with their job, and of the one that told of a stall; where to read, and what to do."""

from __future__ import annotations

from tests.verdict.conftest import Told

_WORK = "".join(f"[rank{rank}]: step {n} loss 2.{n}\n" for n in range(1, 6) for rank in range(2))
_LIMIT = "slurmstepd: error: *** JOB 71 ON n1 CANCELLED AT 2026-11-29T20:15:20 DUE TO TIME LIMIT ***\n"
_STALL = (
    "[1,{0}]<stderr>:[2026-11-29 20:15:34.181: W horovod/common/stall_inspector.cc:105] One or more tensors were submitted to be reduced, "
    "gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for more than 60 seconds.\n"
    "[1,{0}]<stderr>:Stalled ranks:\n[1,{0}]<stderr>:3: [horovod_allreduce.0, horovod_allreduce.1 ...]\n"
)


def test_who_ran_when_the_job_was_ended_did_not_fall_silent(told: Told) -> None:
    assert {row.outcome for row in told(_WORK + _LIMIT).ranks} == {"teardown"}


def test_who_said_nothing_of_a_failure_of_another_did(told: Told) -> None:
    raised = (
        '[rank1]: Traceback (most recent call last):\n[rank1]:   File "/job/go.py", line 9, in <module>\n[rank1]:     main()\n'
        "[rank1]: ValueError: no such part: 7\n"
    )
    assert {row.rank.label: row.outcome for row in told(_WORK + raised).ranks} == {"rank 0": "silent", "rank 1": "initiating"}


def test_who_tells_of_a_stall_waits(told: Told) -> None:
    incident = told(_STALL.format(0))
    assert {row.rank.label: row.outcome for row in incident.ranks} == {"rank 0": "waiting", "rank 3": "missing"}
    assert not any("Flight" in one or "TORCH_" in one for one in (*incident.verdict.settled_by, *incident.verdict.next_steps))


def test_where_a_library_raised_it_its_frame_is_named(told: Told) -> None:
    frames = [
        ("/job/go.py", 9, "<module>"), ("/opt/lib/python3.11/site-packages/megatron/training/training.py", 40, "pretrain"),
        ("/opt/lib/python3.11/site-packages/megatron/training/training.py", 71, "build"),
        ("/opt/lib/python3.11/site-packages/megatron/training/training.py", 88, "samples"),
    ]  # fmt: skip
    text = "".join(f'  File "{file}", line {line}, in {name}\n    call()\n' for file, line, name in frames)
    raised = "Traceback (most recent call last):\n{}TypeError: unsupported operand type(s) for //: 'int' and 'NoneType'\n"
    assert any("training.py:88" in step for step in told(raised.format(text)).verdict.next_steps)
    own = text.replace("/opt/lib/python3.11/site-packages/megatron/training", "/job")
    assert any("training.py:88" in step for step in told(raised.format(own)).verdict.next_steps)


def test_who_asks_after_a_job_of_lsf_is_sent_to_lsf(told: Told) -> None:
    lsf = told(_WORK + "TERM_OWNER: job killed by owner.\nExited with exit code 130.\n").verdict
    assert lsf.settled_by[0] == "bhist -l JOB"
    assert "sacct" in told(_WORK + _LIMIT).verdict.settled_by[0]
