"""Local ranks beside global ones, where no line names both."""

from __future__ import annotations

import pytest

from .conftest import Told

API = "torch/distributed/elastic/multiprocessing/api.py"


def agent(pid: int, local: int | None = None) -> str:
    """The lines of one of torchrun's agents: its first, and its last."""
    if local is None:
        return f"W0611 09:30:01.000000 {pid} torch/distributed/run.py:774] Setting OMP_NUM_THREADS environment variable for each process to be 1 in default\n"
    return f"E0611 09:31:01.000000 {pid} {API}:869] failed (exitcode: -11) local_rank: {local} (pid: 702) of binary: /usr/bin/python3\n"


def speak(*ranks: int) -> str:
    return "".join(f"[rank{rank}]: step {n} loss 2.{n}\n" for n in range(1, 6) for rank in ranks)


CASES = {
    "rank 0 speaks: the first node": (agent(611) + speak(0, 5) + agent(611, 3), 3),
    "the ranks are smaller than the local one: the first node": (agent(611) + speak(1, 2) + agent(611, 3), 3),
    "ranks 9 and 12, 8 to a node: the second node": (
        "+ torchrun --nnodes 2 --nproc_per_node 8 --rdzv_endpoint=a:29400 train.py\n" + agent(611) + speak(9, 12) + agent(611, 3),
        11,
    ),
    "ranks 9 and 12, and nobody says how many to a node": (agent(611) + speak(9, 12) + agent(611, 3), None),
    "ranks of two nodes, 8 to a node": (
        "+ torchrun --nnodes 2 --nproc_per_node 8 --rdzv_endpoint=a:29400 train.py\n" + agent(611) + speak(5, 12) + agent(611, 3),
        None,
    ),
    "two agents": (agent(611) + agent(944) + speak(0, 2) + agent(944, 3), None),
}


@pytest.mark.parametrize("case", CASES)
def test_the_local_rank_of_an_agent_whose_node_is_known(told: Told, case: str) -> None:
    text, number = CASES[case]
    incident = told(text)
    assert incident.verdict.rank is not None and incident.verdict.rank.number == number
    labels = [row.rank.label for row in incident.ranks]
    assert ("local rank 3" in labels) is (number is None)


_FAILED = (
    "{0}: [default{1}]:[rank{2}]: Traceback (most recent call last):\n"
    '{0}: [default{1}]:[rank{2}]:   File "/job/go.py", line 9, in <module>\n{0}: [default{1}]:[rank{2}]:     main()\n'
    "{0}: [default{1}]:[rank{2}]: AssertionError: warmup must be shorter\n"
)
_HELLO = "{0}: [default{1}]:loading the tokenizer\n"
_ENDED = "srun: error: n{0}: task {0}: Exited with exit code 1\n"


def _two_nodes(size: int, hello: bool = True) -> str:
    places = [(task, local, size * task + local) for task in range(2) for local in range(size)]
    return "".join(
        [*(_HELLO.format(*place) for place in places if hello), *(_FAILED.format(*place) for place in places), *map(_ENDED.format, range(2))]
    )


def test_a_process_is_one_rank_under_the_labels_of_srun_and_torchrun(told: Told) -> None:
    incident = told("torchrun --nnodes 2\n" + _two_nodes(4))
    assert [row.rank.label for row in incident.ranks] == [f"rank {n}" for n in range(8)]
    assert {row.outcome for row in incident.ranks} == {"initiating", "same"}


def test_a_task_of_which_only_its_end_is_told_stays(told: Told) -> None:
    incident = told("torchrun --nnodes 3\n" + _two_nodes(4) + _ENDED.format(2))
    assert [row.rank.label for row in incident.ranks][-1] == "task 2"


def test_the_only_task_of_a_job_started_its_ranks(told: Told) -> None:
    alone = "".join(line.replace("[default0]:", "") for line in _FAILED.format(0, 0, 0).splitlines(keepends=True))
    incident = told("torchrun --nproc-per-node 2\n" + alone + alone.replace("rank0", "rank1") + _ENDED.format(0))
    assert [row.rank.label for row in incident.ranks] == ["rank 0", "rank 1"]
    only = told("torchrun --nproc-per-node 2\n0: loading\n" + _ENDED.format(0))
    assert [row.rank.label for row in only.ranks] == ["task 0"]
