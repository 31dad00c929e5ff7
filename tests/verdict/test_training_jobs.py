"""What schedulers, launchers and dying processes say of training jobs, and what of it is the cause."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from forensics.model.verdict import Category, CausalRole, Status
from forensics.pipeline import analyze

from .conftest import Told

PROGRESS = "Epoch 3:  93%|######## | 17310/18000 [5:43:21<25:20,  0.90it/s, train_loss=3.40]\n"


def test_a_step_that_ran_into_its_time_limit_was_killed_though_its_last_steps_follow(told: Told) -> None:
    text = (
        PROGRESS
        + "slurmstepd: error: *** STEP 77.0 ON node7 CANCELLED AT 2026-11-29T20:15:20 DUE TO TIME LIMIT ***\n"
        + "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n"
        + PROGRESS * 3
    )
    incident = told(text)
    assert incident.status is Status.KILLED
    assert incident.verdict.category is Category.KILLED_EXTERNALLY
    assert "time limit" in incident.verdict.title.lower()


def test_a_preempted_step_has_a_title_in_words(told: Told) -> None:
    incident = told(
        PROGRESS + "slurmstepd: error: *** STEP 77.0 ON node7 CANCELLED AT 2026-11-29T20:15:20 DUE TO PREEMPTION ***\n"
    )
    assert incident.verdict.signature == "launcher.slurm-cancelled"
    assert incident.verdict.title == "The job was cancelled (PREEMPTION)"


def test_a_step_cancelled_because_a_task_failed_is_a_consequence(told: Told) -> None:
    text = (
        "srun: error: node7: task 3: Segmentation fault (core dumped)\n"
        "slurmstepd: error: *** STEP 77.0 ON node7 CANCELLED AT 2026-11-29T20:15:20 DUE TO TASK FAILURE ***\n"
    )
    incident = told(text)
    assert incident.verdict.category is Category.SEGFAULT
    assert incident.verdict.rank is not None and incident.verdict.rank.number == 3


def _summary(rank: int, code: str, traceback: str, root: bool, time: str = "2026-11-29_20:16:49") -> str:
    head = "Root Cause (first observed failure):\n" if root else ""
    return f"""{head}[{rank}]:
  time      : {time}
  host      : node7
  rank      : {rank} (local_rank: {rank})
  exitcode  : {code} (pid: {2700 + rank})
  error_file: <N/A>
  traceback : {traceback}
------------------------------------------------------------
"""


def test_of_workers_that_died_alike_the_first_observed_one_leads(told: Told) -> None:
    dead = "Signal 11 (SIGSEGV) received by PID 270"
    text = "Failures:\n" + _summary(1, "-11", dead + "1", False) + _summary(0, "-11", dead + "0", True)
    incident = told(text)
    assert incident.verdict.rank is not None and incident.verdict.rank.number == 0
    assert [rank.number for rank in incident.verdict.same_failure_ranks] == [1]
    assert incident.primary is not None and incident.primary.message.endswith("PID 2700")


BOOM = """[default3]:Traceback (most recent call last):
[default3]:  File "/srv/train.py", line 88, in main
[default3]:    run()
[default3]:ValueError: bucket 7 has no samples
"""


@pytest.mark.parametrize(
    ("launch", "number"),
    [
        ("+ torchrun --nproc_per_node=4 train.py\n", 3),
        ("+ torchrun --nnodes=1 --nproc_per_node=4 train.py\n", 3),
        ("+ torchrun --nnodes=2 --nproc_per_node=4 train.py\n", None),
        ("+ torchrun --nproc_per_node=4 --rdzv_endpoint=node0:29400 train.py\n", None),
        ("", None),
    ],
)
def test_a_local_rank_is_global_where_the_job_has_one_node(told: Told, launch: str, number: int | None) -> None:
    rank = told(launch + BOOM).verdict.rank
    assert rank is not None and rank.number == number


def test_a_local_rank_gets_the_number_that_the_launcher_names_with_it(told: Told) -> None:
    summary = _summary(11, "1", "To enable traceback see: https://pytorch.org", True).replace(
        "(local_rank: 11)", "(local_rank: 3)"
    )
    incident = told(BOOM + summary)
    assert incident.verdict.rank is not None and incident.verdict.rank.number == 11
    assert [row.rank.number for row in incident.ranks] == [11]


def test_two_nodes_that_name_one_local_rank_leave_it_open(told: Told) -> None:
    one = _summary(3, "1", "x", True)
    other = _summary(7, "1", "x", False).replace("(local_rank: 7)", "(local_rank: 3)").replace("node7", "node8")
    rank = told(BOOM + one + other).verdict.rank
    assert rank is not None and rank.number is None


DUMP = """Current thread 0x00007e41c0a13000 (most recent call first):
  File "/srv/mixer/scan.py", line 57 in forward
  File "/srv/train.py", line 12 in <module>
"""


def test_a_fault_told_by_the_shell_has_the_stack_that_stands_above_it(told: Told) -> None:
    incident = told(DUMP + "Segmentation fault (core dumped)\n")
    assert incident.primary is not None
    assert [frame.function for frame in incident.primary.frames] == ["<module>", "forward"]


def test_a_stack_that_was_asked_for_is_not_a_faults(told: Told) -> None:
    incident = told("Timeout (0:05:00)!\n" + DUMP + "step 4 | loss 2.0\n" * 4 + "Segmentation fault (core dumped)\n")
    assert incident.primary is not None
    assert incident.primary.frames == ()


def test_mpiruns_report_of_a_process_is_nearer_than_its_report_of_the_job(told: Told) -> None:
    text = """Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
--------------------------------------------------------------------------
mpirun detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:

  Process name: [[29973,1],2]
  Exit code:    3
"""
    incident = told(text)
    assert incident.primary is not None and incident.primary.type == "exit 3"
    assert incident.primary.message.startswith("mpirun detected that one or more processes exited")
    assert incident.verdict.rank is not None and incident.verdict.rank.number == 2


WARNED = "node7:811:820 [4] ib_plugin.c:1673 NCCL WARN NET/IB: Got completion from peer 10.0.1.23<41210> with status=12 opcode=0 len=0 vendor err 129 (Recv)\n"
QUOTED = """[rank{rank}]:[E1229 16:51:08.214907331 ProcessGroupNCCL.cpp:541] [Rank {rank}] found async exception when checking for NCCL errors: NCCL error: remote process exited or there was a network error, NCCL version 2.22.3
ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.
Last error:
NET/IB: Got completion from peer 10.0.1.23<41210> with status=12 opcode=0 len=0 vendor err 129 (Recv)
"""


def test_a_warning_is_of_the_rank_that_quotes_it(told: Told) -> None:
    rank = told(WARNED + QUOTED.format(rank=12)).verdict.rank
    assert rank is not None and rank.number == 12 and rank.pid == 811


def test_a_warning_that_two_ranks_quote_is_of_neither(told: Told) -> None:
    rank = told(WARNED + QUOTED.format(rank=12) + QUOTED.format(rank=13)).verdict.rank
    assert rank is None or rank.number is None


def test_a_loggers_line_below_an_exception_is_no_part_of_its_message(told: Told) -> None:
    text = """Traceback (most recent call last):
  File "/srv/a.py", line 3, in load
    raise KeyError("w13")
KeyError: 'w13'
[job-runner] 2026-11-29 20:15:20,123 - runner - INFO - process 1 ended
"""
    primary = told(text).primary
    assert primary is not None and primary.message == "'w13'"


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 21.9G of 15.4G hbm.\n", Category.OOM_GPU),
        ("RuntimeError: NCCL Error 5: invalid usage\n", Category.NCCL),
        ("AssertionError: torch.float32 != torch.bfloat16\n", Category.SHAPE_OR_DTYPE_ASSERT),
        ("ray.exceptions.RayTaskError(OutOfMemoryError): ray::Worker.step() (pid=71, ip=10.0.0.1)\n", Category.OOM_GPU),
        ("Non-OK-status: GpuLaunchKernel(Fill, 1, 1, 0, s) status: Internal: out of memory\n", Category.OOM_GPU),
    ],
)  # fmt: skip
def test_words_that_name_the_kind(told: Told, text: str, category: Category) -> None:
    assert told(text).verdict.category is category


def test_the_proxys_words_follow_from_the_line_before(told: Told) -> None:
    text = """node7:811:820 [1] misc/socket.cc:518 NCCL WARN Net : Call to recv from 10.0.0.7<51204> failed : Broken pipe
node7:811:820 [1] proxy.cc:1119 NCCL WARN [Proxy Service 9] Failed to execute operation Connect from rank 9, retcode 6
"""
    incident = told(text)
    assert incident.primary is not None and incident.primary.message.endswith("failed : Broken pipe")
    assert incident.failures[-1].role is CausalRole.CASCADE


def test_a_verdict_that_could_not_be_reached_is_not_called_healthy(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def breaks(*given: object) -> object:
        calls.append(given)
        if len(calls) == 1:
            raise RuntimeError("boom")
        return real(*given)  # type: ignore[arg-type]

    module = import_module("forensics.verdict.judge")
    real = module.analyse
    monkeypatch.setattr(module, "analyse", breaks)
    monkeypatch.delenv("FORENSICS_DEBUG", raising=False)
    assert told("step 1 | loss 2.0\n" * 5).status is Status.UNKNOWN


ATTEMPT = """[rank3]: Traceback (most recent call last):
[rank3]:   File "/srv/train.py", line 88, in main
[rank3]:     return self.rows[index]
[rank3]: {error}
E1129 20:16:49.666000 2551 torch/distributed/elastic/multiprocessing/api.py:986] failed (exitcode: 1) local_rank: 3 (pid: 2750) of binary: /usr/bin/python
"""
AGAIN = "I1129 20:16:49.700000 2551 torch/distributed/elastic/agent/server/api.py:889] [default] Worker group FAILED. {left}/2 attempts left; will restart worker group\n"
SAME, OTHER = "IndexError: list index out of range", "KeyError: 'w13'"


@pytest.mark.parametrize(
    ("errors", "told_of"),
    [
        ([SAME, SAME, SAME], "The same failure in 3 of 3 attempts."),
        ([SAME, OTHER, SAME], "The same failure in 2 of 3 attempts."),
        ([SAME, OTHER, OTHER], "Only attempt 1 of 3 failed this way."),
    ],
)
def test_restarts_that_failed_alike_are_counted(told: Told, errors: list[str], told_of: str) -> None:
    text = "".join(
        ATTEMPT.format(error=error) + (AGAIN.format(left=2 - place) if place < 2 else "")
        for place, error in enumerate(errors)
    )
    verdict = told(text).verdict
    assert told_of in verdict.explanation
    assert any("will restart worker group" in proof.quote for proof in verdict.evidence)


def test_one_attempt_is_not_counted(told: Told) -> None:
    assert "attempt" not in told(ATTEMPT.format(error=SAME)).verdict.explanation


DISAGREES = """[rank2]: Traceback (most recent call last):
[rank2]:   File "/srv/train.py", line 88, in main
[rank2]:     batch = next(loader)
[rank2]: IndexError: list index out of range
[rank5]: Traceback (most recent call last):
[rank5]:   File "/srv/train.py", line 97, in main
[rank5]:     dist.all_reduce(x)
[rank5]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2020, remote process exited or there was a network error
"""


def test_it_is_said_why_torchruns_root_cause_is_another_rank(told: Told) -> None:
    verdict = told(DISAGREES + _summary(5, "1", "To enable traceback see: https://pytorch.org", True)).verdict
    assert verdict.rank is not None and verdict.rank.number == 2
    assert "torchrun names rank 5 as the root cause" in verdict.explanation
    assert "follows from the failure of rank 2" in verdict.explanation
    assert any("rank      : 5" in proof.quote for proof in verdict.evidence)
    assert any("IndexError" in proof.quote for proof in verdict.evidence)


def test_nothing_is_said_where_torchrun_agrees(told: Told) -> None:
    verdict = told(DISAGREES + _summary(2, "1", "To enable traceback see: https://pytorch.org", True)).verdict
    assert "torchrun names" not in verdict.explanation


def test_the_steps_of_a_hang_name_the_rank_that_is_to_blame(told: Told) -> None:
    late = "[rank{0}]:[E1129 20:15:45.3 ProcessGroupNCCL.cpp:632] [Rank {0}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=6, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=15000) ran for 15017 milliseconds before timing out.\n"
    behind = "[rank1]:[E1129 20:15:45.4 ProcessGroupNCCL.cpp:1914] [PG ID 0 PG GUID 0(default_pg) Rank 1] Observed flight recorder dump signal from another rank via TCPStore. last enqueued NCCL work: 5, last completed NCCL work: 5.\n"
    verdict = told("".join(late.format(n) for n in (0, 2, 3)) + behind).verdict
    assert verdict.rank is not None and verdict.rank.number == 1
    assert all("rank 1" in step for step in verdict.next_steps)
    nobody = told("".join(late.format(n) for n in (0, 1, 2, 3))).verdict
    assert nobody.rank is None and not any("rank 1" in step for step in nobody.next_steps)


def test_an_error_file_is_a_failure_of_its_rank(tmp_path: Path) -> None:
    folder = tmp_path / "run_x" / "attempt_0" / "3"
    folder.mkdir(parents=True)
    stack = 'Traceback (most recent call last):\\n  File \\"/srv/train.py\\", line 88, in main\\n    run()\\nValueError: bucket 7 has no samples\\n'
    (folder / "error.json").write_text(
        f'{{"message": {{"message": "ValueError: bucket 7 has no samples", "extraInfo": {{"py_callstack": "{stack}"}}}}}}'
    )
    (tmp_path / "launcher.log").write_text(
        _summary(11, "1", "ValueError", True).replace("(local_rank: 11)", "(local_rank: 3)")
    )
    incident = analyze([tmp_path])
    assert incident.primary is not None and incident.primary.type == "ValueError"
    assert [frame.function for frame in incident.primary.frames] == ["main"]
    assert incident.verdict.rank is not None and incident.verdict.rank.number == 11


@pytest.mark.parametrize(
    ("last", "category"),
    [
        ("=>> PBS: job killed: walltime 86411 exceeded limit 86400\n", Category.KILLED_EXTERNALLY),
        ("TERM_RUNLIMIT: job killed after reaching LSF run time limit.\n", Category.KILLED_EXTERNALLY),
        ("=>> PBS: job killed: vmem 9000000kb exceeded limit 8388608kb\n", Category.OOM_HOST),
        ("TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.\n", Category.OOM_HOST),
    ],
)
def test_other_batch_systems_end_jobs_too(told: Told, last: str, category: Category) -> None:
    incident = told(PROGRESS * 3 + last)
    assert incident.status is Status.KILLED and incident.verdict.category is category


def test_a_job_that_reports_its_time_is_not_ended_by_it(told: Told) -> None:
    assert told(PROGRESS * 3 + "resources_used.walltime=71:59:25\n").status is Status.HEALTHY


CHECKPOINT = """\
torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([2])
Traceback (most recent call last): (RANK 2)
  File "/opt/venv/lib/python3.11/site-packages/torch/distributed/checkpoint/utils.py", line 164, in reduce_scatter
    local_data = map_fun()
  File "/opt/venv/lib/python3.11/site-packages/torch/distributed/checkpoint/default_planner.py", line 233, in create_local_plan
    return create_default_local_load_plan(
ValueError: Size mismatch between saved torch.Size([100, 8]) and current: torch.Size([101, 8]) for embed.weight
"""


def test_what_a_rank_raised_in_a_checkpoint_is_the_cause(told: Told) -> None:
    incident = told(CHECKPOINT)
    assert incident.primary is not None and incident.primary.root_message.startswith("Size mismatch")
    assert [frame.function for frame in incident.primary.frames] == ["reduce_scatter", "create_local_plan"]
    assert incident.verdict.category is Category.MODEL_LOAD
    alone = told(CHECKPOINT.partition("\n")[0] + "\n").verdict
    assert alone.category is Category.UNKNOWN


def test_a_file_that_cannot_be_written_is_no_broken_model(told: Told) -> None:
    stack = 'Traceback (most recent call last):\n  File "/opt/venv/lib/python3.11/site-packages/torch/serialization.py", line 287, in _open_zipfile_writer\n    super().__init__(torch._C.PyTorchFileWriter(str(name)))\n'
    verdict = told(stack + "RuntimeError: File out/checkpoints/checkpoint_0.pt cannot be opened.\n").verdict
    assert verdict.category is Category.STORAGE
    verdict = told(stack + "RuntimeError: Parent directory out/checkpoints does not exist.\n").verdict
    assert verdict.category is Category.STORAGE


def test_a_kernel_that_miopen_cannot_build(told: Told) -> None:
    failed = 'Traceback (most recent call last):\n  File "train.py", line 93, in train\n    prediction = model(image)\nRuntimeError: miopenStatusUnknownError\n'
    built = "MIOpen Error: /MIOpen/src/hipoc/hipoc_program.cpp:286: Code object build failed. Source: MIOpenIm2d2Col.cl\n"
    assert told(built + failed).verdict.category is Category.JIT_COMPILE
    assert told(failed).verdict.category is Category.UNKNOWN


def test_the_short_sentence_of_a_time_out_is_enough(told: Told) -> None:
    head = "llama.node-3.nolog [stderr] [rank3]:[E1129 09:55:46.9966 ProcessGroupNCCL.cpp:"
    incident = told(
        head
        + "1709] [PG 0 (default_pg) Rank 3] Timeout at NCCL work: 207, last enqueued NCCL work: 208, last completed NCCL work: 206.\n"
        + head
        + "621] [Rank 3] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.\n"
    )
    assert incident.verdict.category is Category.HANG_OR_WATCHDOG
    assert incident.primary is not None and incident.primary.message.startswith("Timeout at NCCL work: 207")


@pytest.mark.parametrize(
    ("status", "category"),
    [
        (3221225477, Category.SEGFAULT),
        (-1073741819, Category.SEGFAULT),
        (3221225781, Category.MISSING_LIBRARY),
        (3221225478, Category.UNKNOWN),
        (1, Category.UNKNOWN),
    ],
)
def test_the_exit_status_of_windows_tells_what_happened(told: Told, status: int, category: Category) -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "C:\\py\\accelerate\\commands\\launch.py", line 637, in simple_launcher\n'
        "    raise subprocess.CalledProcessError(returncode=process.returncode, cmd=cmd)\n"
        f"subprocess.CalledProcessError: Command '['python.exe', 'train.py']' returned non-zero exit status {status}.\n"
    )
    assert told(text).verdict.category is category


STALL = (
    "[2026-11-29 20:15:35.181832: W horovod/common/stall_inspector.cc:105] One or more tensors were submitted to be reduced, gathered or broadcasted "
    "by subset of ranks and are waiting for remainder of ranks for more than 60 seconds. This may indicate that different ranks are trying to submit different tensors.\n"
    "Missing ranks:\n"
)


def test_horovod_names_the_rank_for_which_the_others_wait(told: Told) -> None:
    verdict = told(STALL + "3: [grad/HorovodAllreduce_grad_7_0 ...]\n").verdict
    assert verdict.category is Category.HANG_OR_WATCHDOG
    assert verdict.rank is not None and verdict.rank.number == 3
    several = told(STALL + "3: [HorovodAllreduce_a_0 ...]\n1: [HorovodAllreduce_b_0 ...]\n").verdict
    assert several.category is Category.HANG_OR_WATCHDOG and several.rank is None


def test_a_stall_that_ended_or_followed_is_not_the_failure(told: Told) -> None:
    assert told(STALL + "3: [HorovodAllreduce_a_0 ...]\n" + PROGRESS * 3).status is Status.HEALTHY
    error = "Traceback (most recent call last):\n  File \"train.py\", line 9, in main\n    step()\nValueError: bucket 7 has no samples\n"
    for text in (error + STALL, STALL + error):
        incident = told(text)
        assert incident.primary is not None and incident.primary.type == "ValueError"


def test_an_error_behind_all_of_the_work_is_told_as_that(told: Told) -> None:
    """Clearing up, or saving what the work was for: nobody knows which, and so it is neither healthy nor a crash."""
    work, error = "".join(f"step {n} | loss 2.{n}1\n" for n in range(1, 6)), "2026-11-29 20:15:20 ERROR could not write to {}\n".format("/data/out")
    incident = told(work + "Training completed\n" + error)
    assert incident.status is Status.UNKNOWN and "its work was done" in incident.verdict.explanation
    assert any(proof.quote == "Training completed" for proof in incident.verdict.evidence)
    assert "its work was done" not in told(work + error).verdict.explanation
