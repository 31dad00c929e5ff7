"""Jobs under torchrun whose ranks speak over Gloo: one is killed, one does not come, models differ; and words of JAX, CuPy and trainers."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, Status
from forensics.report.blocks import Timeline
from forensics.report.view import view
from tests.verdict.conftest import Told

WORK = "".join(f"2026-11-29 20:15:0{rank},020 [INFO] fit: worker {rank} of 3 is ready\n[rank{rank}]: INFO step 3 of 90\n" for rank in range(3))
AGENT = "torch/distributed/elastic/multiprocessing/"


def raised(rank: int, error: str, call: str = "loss.backward()") -> str:
    lines = ("Traceback (most recent call last):", '  File "/job/fit.py", line 31, in <module>', f"    {call}", f"RuntimeError: {error}")
    return "".join(f"[rank{rank}]: {line}\n" for line in lines)


def gone(rank: int) -> str:
    return raised(rank, f"[/src/gloo/gloo/transport/tcp/pair.cc:538] Read error [10.0.0.5]:2881{rank}: Connection reset by peer")


def waited(rank: int) -> str:
    error = "[/src/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 20000ms for recv operation to complete"
    return raised(rank, error, "dist.all_reduce(total)")


def agent(code: int, first: int, others: tuple[int, ...]) -> str:
    """torchrun's report: who ended first, and whom it ended."""
    closing = "".join(f"W1129 20:15:21.6760{n} 9 {AGENT}api.py:1012] Sending process 7{n} closing signal SIGTERM\n" for n in others)
    row = "[{at}]:\n  time      : 2026-11-29_20:15:21\n  host      : n1\n  rank      : {rank} (local_rank: {rank})\n  exitcode  : {code} (pid: 7{rank})\n"
    row += "  error_file: <N/A>\n  traceback : {told}\n"
    name = {-9: "Signal 9 (SIGKILL) received by PID", -15: "Signal 15 (SIGTERM) received by PID"}

    def of(at: int, rank: int, ended: int) -> str:
        told = f"{name[ended]} 7{rank}" if ended in name else "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
        return row.format(at=at, rank=rank, code=ended, told=told)

    line = "-" * 54 + "\n"
    return (
        closing + f"E1129 20:15:21.942000 9 {AGENT}api.py:986] failed (exitcode: {code}) local_rank: {first} (pid: 7{first}) of binary: /usr/bin/python\n"
        "Traceback (most recent call last):\n"
        f'  File "/venv/lib/python3.12/site-packages/torch/distributed/launcher/api.py", line 317, in launch_agent\n    raise ChildFailedError(\n'
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n" + "=" * 54 + "\nfit.py FAILED\n" + line + "Failures:\n"
        + "".join(of(at, rank, -15) for at, rank in enumerate(others, 1)) + line + "Root Cause (first observed failure):\n" + of(0, first, code)
        + "=" * 54 + "\n"
    )  # fmt: skip


def test_a_killed_rank_is_the_cause_although_others_printed_first(told: Told) -> None:
    incident = told(WORK + gone(2) + gone(0) + agent(-9, 1, (0, 2)))
    assert (incident.status, incident.verdict.category) == (Status.KILLED, Category.KILLED_EXTERNALLY)
    assert incident.verdict.rank is not None and incident.verdict.rank.number == 1
    assert [alternative.category for alternative in incident.verdict.alternatives] == [Category.OOM_HOST]


def test_a_rank_that_failed_by_itself_is_not_excused_by_the_kill_of_another(told: Told) -> None:
    incident = told(WORK + raised(2, "the table has no row 7", "look_up(7)") + gone(0) + agent(-9, 1, (0, 2)))
    assert incident.verdict.category is Category.USER_CODE
    assert incident.verdict.rank is not None and incident.verdict.rank.number == 2


def test_times_and_lines_are_not_mixed_in_one_timeline(told: Told) -> None:
    section = view(told(WORK + gone(2) + gone(0) + agent(-9, 1, (0, 2)))).section("timeline")
    assert section is not None
    timeline = section.blocks[0]
    assert isinstance(timeline, Timeline)
    assert timeline.clock == "line" and timeline.end < 100


def test_the_only_rank_that_did_not_wait_kept_the_others_waiting(told: Told) -> None:
    incident = told(WORK + waited(0) + waited(2) + agent(1, 2, (0, 1)))
    assert incident.status is Status.HUNG
    assert incident.verdict.rank is not None and incident.verdict.rank.number == 1
    assert incident.collective is not None and incident.collective.timeout_ms == 20_000
    assert [rank.number for rank in incident.collective.waiting] == [0, 2]


def test_where_all_waited_or_one_alone_told_it_nobody_is_blamed(told: Told) -> None:
    everybody = told(WORK + waited(0) + waited(1) + waited(2) + agent(1, 2, (0, 1)))
    alone = told(WORK + waited(0) + agent(1, 0, (1, 2)))
    assert everybody.status is alone.status is Status.HUNG
    assert everybody.verdict.rank is None and alone.verdict.rank is None


FRAME = '  File "/job/fit.py", line 31, in {function}\n    {call}\n'
FETCH = '  File "/venv/lib/python3.12/site-packages/torch/utils/data/_utils/fetch.py", line 54, in fetch\n    data = [self.dataset[i] for i in index]\n'
ARGS = '  File "/venv/lib/python3.12/site-packages/{place}", line 9, in {function}\n    raise ValueError(\n'


@pytest.mark.parametrize(
    ("frames", "error", "category"),
    [
        (FETCH + FRAME.format(function="__getitem__", call="open(path)"), "FileNotFoundError: [Errno 2] No such file or directory: '/data/7.jpg'", Category.USER_CODE),
        (FRAME.format(function="main", call="open(args.tokens)"), "FileNotFoundError: [Errno 2] No such file or directory: '/data/t.bin'", Category.CONFIG_ERROR),
        (
            ARGS.format(place="transformers/trainer.py", function="__init__"),
            "ValueError: You have set `args.eval_strategy` to epochs but you didn't pass an `eval_dataset`.", Category.CONFIG_ERROR,
        ),
        (
            ARGS.format(place="accelerate/commands/launch.py", function="_check"),
            "ValueError: You can only use one of `--cpu`, `--multi_gpu`, `--tpu` at a time.", Category.CONFIG_ERROR,
        ),
        (ARGS.format(place="accelerate/commands/launch.py", function="_check"), "ValueError: the table is empty at a time", Category.USER_CODE),
        (FRAME.format(function="main", call="mm(a, b)"), "RuntimeError: Expected trailing dimension of mat1 to be divisible by 16 but got mat1 shape: (8x8).", Category.SHAPE_OR_DTYPE_ASSERT),
        (FRAME.format(function="main", call="mlp(x)"), "TypeError: mul got incompatible shapes for broadcasting: (8, 16), (8, 32).", Category.SHAPE_OR_DTYPE_ASSERT),
        (FRAME.format(function="main", call="zeros(n)"), "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,589,934,592 bytes (allocated so far: 512 bytes).", Category.OOM_GPU),
        (FRAME.format(function="main", call="lstm(x, h)"), "RuntimeError: Expected hidden[0] size (1, 2, 8), got [1, 3, 8]", Category.SHAPE_OR_DTYPE_ASSERT),
        (FRAME.format(function="main", call="put(x)"), "ValueError: Resource axis: x of P('x',) is not found in mesh: ('d',).", Category.USER_CODE),
        (ARGS.format(place="jax/_src/named_sharding.py", function="check"), "ValueError: Resource axis: x of P('x',) is not found in mesh: ('d',).", Category.CONFIG_ERROR),
        (FRAME.format(function="main", call="all_gather(out, x)"), "RuntimeError: ProcessGroupGloo::allgather: invalid tensor size at index 0 (expected (6), got (4))", Category.SHAPE_OR_DTYPE_ASSERT),
        (ARGS.format(place="torch/distributed/distributed_c10d.py", function="_object_to_tensor"), "AttributeError: Can't pickle local object 'main.<locals>.<lambda>'", Category.USER_CODE),
        (ARGS.format(place="torch/distributed/distributed_c10d.py", function="_object_to_tensor"), "AttributeError: module 'torch' has no attribute 'pickle_local'", Category.VERSION_MISMATCH),
    ],
)  # fmt: skip
def test_words_of_libraries(told: Told, frames: str, error: str, category: Category) -> None:
    assert told(f"Traceback (most recent call last):\n{frames}{error}\n").verdict.category is category


def test_a_kill_that_only_the_agents_first_line_tells_comes_before_broken_connections(told: Told) -> None:
    broken = "[/src/gloo/gloo/transport/tcp/pair.cc:537] Connection closed by peer [10.0.0.7]:4411"
    line = "E1129 20:16:49.666000 2669 torch/distributed/elastic/multiprocessing/api.py:986] failed (exitcode: {}) local_rank: 2 (pid: 2750) of binary: /opt/venv/bin/python\n"
    for code, category in ((-9, Category.KILLED_EXTERNALLY), (-11, Category.SEGFAULT)):
        incident = told(WORK + raised(0, broken) + raised(1, broken) + line.format(code))
        assert incident.verdict.category is category
        assert incident.primary is not None and incident.primary.rank is not None and ("local", 2) in incident.primary.rank.axes
    asked = told(WORK + raised(0, "the table has no row 7", "look_up(7)") + line.format(-9))
    assert asked.verdict.category is Category.USER_CODE  # what a rank raised itself is nearer


DUMP = "Timeout (0:00:08)!\nThread 0x00007f443f4b2b80 (most recent call first):\n" + '  File "/job/fit.py", line 53 in wait\n  File "/job/fit.py", line 9 in <module>\n'


def test_stacks_printed_at_a_time_limit_tell_of_a_hang_only_where_the_job_ends_there(told: Told) -> None:
    ended = told(WORK + DUMP * 2 + agent(1, 1, (0, 2)))
    assert ended.status is Status.HUNG and ended.verdict.signature == "python.faulthandler-timeout"
    assert told(WORK + DUMP + "[rank0]: step 7 | loss 2.0\n" * 4).status is Status.HEALTHY
    assert told(WORK + DUMP + raised(2, "the table has no row 7", "look_up(7)")).verdict.category is Category.USER_CODE


def test_what_cuda_gdb_warns_of_is_no_failure(told: Told) -> None:
    warned = "warning: Cuda Driver error detected: Returning 201 (CUDA_ERROR_INVALID_CONTEXT) from cuCtxGetDevice_v2\n"
    assert told(WORK + warned + "[Inferior 1 (process 1527) exited normally]\n").primary is None
    assert told(WORK + "CUDA driver error: CUDA_ERROR_INVALID_CONTEXT\n").primary is not None
