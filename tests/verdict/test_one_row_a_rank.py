"""The ranks strip: one process has one row, however the log calls it."""

from __future__ import annotations

from forensics.model.source import Rank, RankActivity
from forensics.model.verdict import Status
from forensics.verdict.ranks import strip
from forensics.verdict.roles import Cast

from .conftest import Told


def names(*ranks: Rank) -> list[str]:
    rows = strip([RankActivity(rank, 1.0, 2.0, 1) for rank in ranks], Cast([], None), None, Status.HEALTHY)
    return [row.rank.label for row in rows]


def test_a_parallel_index_and_the_launchers_number_are_one_process() -> None:
    engine = [Rank(f"TP{n}", n, (("tp", n),)) for n in range(4)]
    launcher = [Rank(f"rank {n}", n, node="node7", pid=70 + n) for n in range(4)]
    assert names(*engine, *launcher) == ["TP0", "TP1", "TP2", "TP3"]


def test_a_global_number_is_one_process_on_whichever_of_several_nodes() -> None:
    plain = [Rank(f"TP{n}", n, (("tp", n),)) for n in range(2)]
    assert names(*plain, Rank("rank 0", 0, node="a"), Rank("rank 1", 1, node="b")) == ["TP0", "TP1"]


def test_a_local_rank_gets_its_number_by_its_pid() -> None:
    local = Rank("local rank 1", None, (("local", 1),), pid=71)
    assert names(local, Rank("rank 9", 9, pid=71)) == ["rank 9"]


def test_one_number_on_two_hosts_is_two_processes() -> None:
    assert len(names(Rank("rank 0", 0, node="a"), Rank("rank 0", 0, node="b"))) == 2


def test_a_failure_without_a_rank_says_of_none_that_it_did_not_fail(told: Told) -> None:
    steps = "".join(f"{n % 4}: step {n} loss 2.50\n" for n in range(16))
    fault = "Memory access fault by GPU node-3 (Agent handle: 0x55aa) on address 0x7f00000. Reason: Unknown.\nAborted (core dumped)\n"
    assert {row.outcome for row in told(steps + fault).ranks} == {"unobserved"}
    assert {row.outcome for row in told(steps).ranks} == {"ok"}
    own = "1: RuntimeError: CUDA error: an illegal memory access was encountered\n"
    assert {row.outcome for row in told(steps + own).ranks if row.rank.number != 1} == {"silent"}
