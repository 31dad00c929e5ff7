"""Who waited, who was missing, who ran another collective: from text, from dumps, from both."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.model.verdict import Category, Confidence, Incident, Status
from forensics.pipeline import analyze

from .conftest import Told

DUMPS = Path(__file__).parent.parent / "fixtures" / "flight_recorder"


def timed_out(rank: int, sequence: int = 6, op: str = "ALLREDUCE", numel: int = 4096, group: str = "") -> str:
    return (
        f"[rank{rank}]:[E1129 20:15:45.{300 + rank}075406 ProcessGroupNCCL.cpp:689] {group}[Rank {rank}] Watchdog caught collective operation "
        f"timeout: WorkNCCL(SeqNum={sequence}, OpType={op}, NumelIn={numel}, NumelOut={numel}, Timeout(ms)=15000) ran for 15017 milliseconds before timing out.\n"
    )


def state(rank: int, enqueued: int, completed: int) -> str:
    return (
        f"[rank{rank}]:[E1129 20:15:49.{400 + rank}316579 ProcessGroupNCCL.cpp:1914] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Received a dump signal due to "
        f"a collective timeout from  rank 2 and we will try our best to dump the debug info. Last enqueued NCCL work: {enqueued}, last completed NCCL work: {completed}.\n"
    )


def culprit(incident: Incident) -> int | None:
    assert incident.status is Status.HUNG
    assert incident.verdict.category is Category.HANG_OR_WATCHDOG
    return incident.verdict.rank.number if incident.verdict.rank is not None else None


@pytest.mark.parametrize(
    ("fault", "rank"),
    [
        ("skipped", 1),
        ("other_collective", 1),
        ("other_size", 1),
        ("other_dtype", 1),
        ("dead_rank", 2),
        ("stuck_outside", 3),
        ("two_groups", 3),
    ],
)
def test_dumps_alone_name_the_culprit_and_nobody_else(fault: str, rank: int) -> None:
    incident = analyze([DUMPS / fault])
    assert culprit(incident) == rank
    assert incident.collective is not None
    assert rank not in [waiting.number for waiting in incident.collective.waiting]
    assert [suspect.rank.number for suspect in incident.collective.suspects] == [rank]
    assert incident.collective.known_from == ("flight_recorder",)


def test_the_recorded_hang_from_text_from_dumps_and_from_both(samples: Path) -> None:
    folder = samples / "hang_skip"
    for inputs in ([folder / "hang_skip.log"], [folder / "flight_recorder"], [folder]):
        incident = analyze(inputs)
        assert culprit(incident) == 1, inputs
        assert incident.collective is not None
        assert [rank.number for rank in incident.collective.missing] == [1]
        assert sorted(rank.number or 0 for rank in incident.collective.waiting) == [0, 2, 3]


def test_the_waiting_began_before_the_time_out(told: Told) -> None:
    incident = told(timed_out(0) + timed_out(2) + state(1, 5, 5))
    assert incident.collective is not None
    assert incident.primary is not None
    assert incident.primary.time is not None
    assert incident.collective.started_time == pytest.approx(incident.primary.time - 15.017)


def test_counters_show_who_never_came(told: Told) -> None:
    incident = told(timed_out(2) + timed_out(3) + timed_out(0) + state(1, 5, 5) + state(0, 6, 5))
    assert culprit(incident) == 1
    assert "never entered" in (incident.verdict.culprit_note or "")


def test_the_culprit_is_named_no_surer_than_it_is_known(told: Told) -> None:
    """That a collective timed out is proven; that the only silent rank is to blame is not."""
    incident = told("".join(timed_out(rank) for rank in (0, 1, 3)))
    assert incident.collective is not None
    assert [one.confidence for one in incident.collective.suspects] == [Confidence.SUPPORTED]
    assert incident.verdict.title == "The ranks waited in ALLREDUCE, most likely for rank 2"
    assert "does not prove it" in incident.verdict.explanation
    counted = told("".join(timed_out(rank) for rank in (0, 2, 3)) + "".join(state(rank, 5 if rank == 1 else 8, 5) for rank in range(4)))
    assert counted.verdict.title == "rank 1 kept the others waiting in ALLREDUCE" and "prove" not in counted.verdict.explanation


def test_a_desync_report_is_believed(told: Told) -> None:
    report = (
        " - [0] Timeout at collective: ALLREDUCE, #3\n"
        " - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:\n"
        "     [1] finished collective #6, but didn't join collective #7 (count from 1)\n"
    )
    incident = told(timed_out(0, 3) + report)
    assert culprit(incident) == 1
    assert incident.primary is not None
    assert "didn't join collective #7" in incident.primary.root_message


def test_the_one_that_ran_something_else(told: Told) -> None:
    incident = told(timed_out(0) + timed_out(1) + timed_out(2, op="BROADCAST") + timed_out(3))
    assert culprit(incident) == 2


def test_nobody_is_named_without_evidence(told: Told) -> None:
    incident = told(timed_out(0) + timed_out(1) + timed_out(2) + timed_out(3))
    assert culprit(incident) is None
    assert incident.verdict.culprit_note
    assert incident.collective is not None
    assert len(incident.collective.waiting) == 4


def test_two_against_two_names_nobody(told: Told) -> None:
    halves = timed_out(0) + timed_out(1) + timed_out(2, numel=8192) + timed_out(3, numel=8192)
    assert culprit(told(halves)) is None


def test_a_failure_before_the_time_out_is_the_cause(told: Told) -> None:
    crash = (
        "[rank1]: Traceback (most recent call last):\n"
        '[rank1]:   File "/work/train.py", line 9, in <module>\n'
        "[rank1]:     batch = loader[i]\n"
        "[rank1]: KeyError: 'tokens'\n"
    )
    incident = told(crash + timed_out(0) + timed_out(2))
    assert incident.primary is not None
    assert incident.primary.type == "KeyError"
    assert incident.status is Status.CRASHED
    assert incident.collective is None


def test_a_ctrl_c_that_ends_a_hang_is_part_of_the_hang(told: Told) -> None:
    interrupt = 'Traceback (most recent call last):\n  File "/work/train.py", line 9, in <module>\n    main()\nKeyboardInterrupt\n'
    assert culprit(told(timed_out(0) + timed_out(2) + state(1, 5, 5) + interrupt)) == 1


def test_ranks_that_waited_at_different_numbers_are_shown_and_nobody_is_named(told: Told) -> None:
    incident = told(timed_out(0, 9, op="ALLGATHER") + timed_out(1, 6))
    assert culprit(incident) is None and incident.collective is not None
    assert {(row["rank"], row["sequence"]) for row in incident.collective.desync} == {(0, 9), (1, 6)}
    together = told(timed_out(0) + timed_out(1))
    assert together.collective is not None and not together.collective.desync


def test_fingerprints_that_differ_keep_their_numbers(told: Told) -> None:
    print_ = "CollectiveFingerPrint(SequenceNumber={}, OpType={}, TensorShape=[{}], TensorDtypes=Float, TensorDeviceTypes=x)"
    incident = told(
        "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: "
        + print_.format(485, "ALLREDUCE", 25)
        + ", but Rank 0 is running collective: "
        + print_.format(485, "BROADCAST", 1)
        + ".\n"
    )
    assert incident.collective is not None and [row["sequence"] for row in incident.collective.desync] == [485, 485]
