"""Whose failure it was, where the line that tells of it names nobody."""

from __future__ import annotations

from forensics.model.verdict import Category

from .conftest import Told

TIME_LIMIT = """\
[2026-05-12 02:00:01,100] [INFO] [logging.py:128:log_dist] [Rank 0] step=100, skipped=0, lr=[1e-05], mom=[(0.9, 0.95)]
[2026-05-12 02:10:01,100] [INFO] [logging.py:128:log_dist] [Rank 0] step=200, skipped=0, lr=[1e-05], mom=[(0.9, 0.95)]
slurmstepd: error: *** JOB 77 ON node3 CANCELLED AT 2026-05-12T04:00:12 DUE TO TIME LIMIT ***
"""
MEMORY_MONITOR = """\
(RayTrainWorker pid=1001, ip=10.1.2.4) step 100 loss 1.92
(RayTrainWorker pid=1002, ip=10.1.2.5) step 100 loss 1.92
(raylet, ip=10.1.2.5) [2026-05-12 12:10:11,001 E 88 88] (raylet) node_manager.cc:3253: 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: 9a, IP: 10.1.2.5) over the last time period.
(RayTrainWorker pid=1001, ip=10.1.2.4) [rank0]:[E512 12:10:13.000 ProcessGroupNCCL.cpp:1896] [Rank 0] Process group watchdog thread terminated with exception: NCCL error: remote process exited or there was a network error
"""


def test_a_job_that_the_scheduler_ends_is_no_ranks_failure(told: Told) -> None:
    verdict = told(TIME_LIMIT).verdict
    assert verdict.category is Category.KILLED_EXTERNALLY
    assert verdict.rank is None


def test_a_kill_on_one_node_is_not_blamed_on_the_only_rank_of_another(told: Told) -> None:
    verdict = told(MEMORY_MONITOR).verdict
    assert verdict.category is Category.OOM_HOST
    assert verdict.signature == "launcher.ray-memory-monitor"
    assert verdict.rank is None


FAULT = "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f81a0b12345 (most recent call first):\n  File \"/j/data.py\", line 31 in read\n"


def test_a_fault_is_that_of_the_only_task_that_the_signal_ended(told: Told) -> None:
    ends = "srun: error: n2: task 9: Exited with exit code 1\nsrun: error: n4: task 21: Segmentation fault (core dumped)\nsrun: error: n1: task 4: Exited with exit code 1\n"
    incident = told("step 1 loss 2.0\n" + FAULT + ends)
    assert incident.verdict.rank is not None and incident.verdict.rank.number == 21
    two = ends + "srun: error: n4: task 22: Segmentation fault (core dumped)\n"
    assert told("step 1 loss 2.0\n" + FAULT + two).verdict.rank is None


def _summary(*failed: int) -> str:
    rows = "".join(
        f"[{place}]:\n  time      : 2026-05-12_02:00:01\n  host      : n1\n  rank      : {rank} (local_rank: {rank})\n  exitcode  : 1 (pid: {70 + rank})\n"
        "  error_file: <N/A>\n  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html\n"
        for place, rank in enumerate(failed[1:], 1)
    )
    first = rows.replace("[1]", "[0]").replace(f"rank      : {failed[1]} (local_rank: {failed[1]})", f"rank      : {failed[0]} (local_rank: {failed[0]})")
    line = "-" * 60
    return (
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n" + "=" * 60 + f"\ntrain.py FAILED\n{line}\nFailures:\n{rows}{line}\n"
        f"Root Cause (first observed failure):\n{first}" + "=" * 60 + "\n"
    )


def _raised(words: str) -> str:
    return f'Traceback (most recent call last):\n  File "/j/train.py", line 3, in <module>\n    main()\n{words}\n'


def test_of_nameless_alike_failures_the_agents_first_one_is_named(told: Told) -> None:
    alike = told(_raised("ValueError: no such mode") * 2 + _summary(3, 7)).verdict
    assert alike.rank is not None and alike.rank.number == 3
    differing = told(_raised("ValueError: no such mode") + _raised("KeyError: 'mode'") + _summary(3, 7)).verdict
    assert differing.rank is None


def test_a_host_before_the_rank(told: Told) -> None:
    lines = _raised("KeyError: 'mode'").splitlines()
    text = "".join(f"10.0.0.7: [rank9]: {line}\n" for line in lines)
    end = "10.0.0.7: [2026-11-29 20:15:45,123] [ERROR] [launch.py:341:sigkill_handler] ['python', 'train.py', '--local_rank=7'] exits with return code = 1\n"
    verdict = told(text + end).verdict
    assert verdict.rank is not None and verdict.rank.number == 9


def _spawned(words: str) -> str:
    return (
        'Traceback (most recent call last):\n  File "/j/train.py", line 90, in <module>\n    mp.spawn(main, nprocs=4)\n'
        '  File "/opt/py/site-packages/torch/multiprocessing/spawn.py", line 189, in join\n    raise ProcessExitedException(\n'
        f"torch.multiprocessing.spawn.ProcessExitedException: process 2 terminated with {words}\n"
    )


def test_the_index_that_spawn_names_is_the_rank_on_one_node(told: Told) -> None:
    alone = told(_spawned("signal SIGKILL")).verdict
    assert alone.rank is not None and alone.rank.number == 2
    several = told("Namespace(lr=0.1, num_nodes=2)\n" + _spawned("exit code 3")).verdict
    assert several.rank is not None and several.rank.number is None and dict(several.rank.axes) == {"local": 2}


def test_a_gathered_traceback_is_that_of_the_rank_at_its_header(told: Told) -> None:
    gathered = (
        "[rank0]: torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([5])\n"
        "[rank0]: Traceback (most recent call last):{0}\n[rank0]:   File \"/j/save.py\", line 5, in write\n[rank0]:     out.write(data)\n"
        "[rank0]: ValueError: torn page\n"
    )
    named = told(gathered.format(" (RANK 5)")).primary
    assert named is not None and named.rank is not None and named.rank.number == 5
    plain = told(gathered.format("")).primary
    assert plain is not None and plain.rank is not None and plain.rank.number == 0
