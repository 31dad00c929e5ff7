"""Jobs that something starts again: systemd, docker, supervisord, the kubelet, Slurm, Ray Train, a loop in a shell."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, Incident, Status

from .conftest import Told

LIBRARY = "ImportError: libcublasLt.so.13: cannot open shared object file: No such file or directory"
SPACE = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 47.54 GiB of which 1.10 GiB is free."


def begin(pid: int = 7, clock: str = "09:10:01") -> str:
    return (
        f"(APIServer pid={pid}) INFO 05-12 {clock} [api_server.py:1839] vLLM API server version 0.11.0\n"
        f"(EngineCore_DP0 pid={pid + 20}) INFO 05-12 {clock} [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='m'\n"
    )


def fails(what: str, pid: int = 7, clock: str = "09:10:20") -> str:
    head = f"(EngineCore_DP0 pid={pid + 20}) ERROR 05-12 {clock} [core.py:708] "
    lines = ("EngineCore failed to start.", "Traceback (most recent call last):", '  File "/opt/engine/core.py", line 9, in boot', "    load()", what)
    return "".join(f"{head}{line}\n" for line in lines)


def works(pid: int = 7, clock: str = "09:20") -> str:
    rate = "Engine 000: Avg prompt throughput: 80.1 tokens/s, Avg generation throughput: 31.2 tokens/s, Running: 2 reqs, Waiting: 0 reqs"
    return "".join(f"(APIServer pid={pid}) INFO 05-12 {clock}:{n:02d} [loggers.py:127] {rate}\n" for n in range(10, 30))


def steps(first: int, last: int) -> str:
    return "".join(f"step {n} loss {4 - n / 100:.4f}\n" for n in range(first, last))


def prefixed(prefix: str, text: str) -> str:
    return "".join(f"{prefix}{line}\n" for line in text.splitlines())


def journal(text: str, pid: int) -> str:
    return prefixed(f"Apr 07 03:12:44 node4 llm[{pid}]: ", text)


def systemd(text: str) -> str:
    return f"Apr 07 03:14:00 node4 systemd[1]: llm.service: {text}\n"


KILLED = systemd("Main process exited, code=killed, status=9/KILL")
ENDED = systemd("Main process exited, code=exited, status=1/FAILURE")
AGAIN = systemd("Scheduled restart job, restart counter is at 1.")


def recovered(incident: Incident) -> bool:
    return "The job recovered" in incident.verdict.explanation


def test_systemd_starts_a_killed_service_again(told: Told) -> None:
    incident = told(journal(begin() + works(), 811) + KILLED + AGAIN + journal(begin(40) + works(40), 902))
    assert incident.status is Status.DEGRADED and recovered(incident)
    assert incident.verdict.category is Category.KILLED_EXTERNALLY
    assert "systemd" in incident.verdict.explanation


def test_a_service_that_fails_again_has_not_recovered(told: Told) -> None:
    text = journal(begin() + fails(LIBRARY), 811) + ENDED + AGAIN + journal(begin(40) + fails(LIBRARY, 40), 902) + ENDED
    incident = told(text + systemd("Start request repeated too quickly."))
    assert incident.status is Status.CRASHED and not recovered(incident)
    assert incident.verdict.category is Category.MISSING_LIBRARY
    assert [other.category for other in incident.others] == [Category.MISSING_LIBRARY]


def test_a_restart_alone_is_no_failure(told: Told) -> None:
    incident = told(begin() + works() + "llm-1 exited with code 0 (restarting)\n" + begin() + works())
    assert incident.status is Status.HEALTHY


def test_docker_and_supervisord(told: Told) -> None:
    for end in ("llm-1 exited with code 1 (restarting)\n", "2026-04-07 03:12:44,123 WARN exited: llm (exit status 1; not expected)\n"):
        incident = told(begin() + fails(LIBRARY) + end + begin() + works())
        assert incident.status is Status.DEGRADED and recovered(incident), end
        assert told(begin() + fails(LIBRARY) + end + begin() + fails(SPACE)).verdict.category is Category.OOM_GPU


def test_the_kubelet_and_loops_say_nothing_and_the_engine_begins_again(told: Told) -> None:
    crash = "!!!!!!! Segfault encountered !!!!!!!\n" + fails("torch.AcceleratorError: CUDA error: an illegal memory access was encountered")
    incident = told(begin() + works() + crash + begin(90) + works(90))
    assert incident.status is Status.DEGRADED and recovered(incident)
    incident = told(begin() + fails(LIBRARY) + begin(90) + fails(SPACE, 90))
    assert incident.verdict.category is Category.OOM_GPU and incident.status is Status.CRASHED
    assert [other.category for other in incident.others] == [Category.MISSING_LIBRARY]


REQUEUED = "slurmstepd: error: *** JOB 71 ON node4 CANCELLED AT 2026-04-07T03:12:44 DUE TO {} ***\n"


@pytest.mark.parametrize("reason", ["JOB REQUEUE", "NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS", "PREEMPTION"])
def test_slurm_puts_a_job_back_into_its_queue(told: Told, reason: str) -> None:
    end = REQUEUED.format(reason)
    incident = told(steps(1, 90) + end + steps(50, 120))
    assert incident.status is Status.DEGRADED and "Slurm" in incident.verdict.explanation
    crashed = told(steps(1, 90) + end + steps(50, 60) + "Traceback (most recent call last):\n  File \"/j/run.py\", line 4, in <module>\n    go()\n" + SPACE + "\n")
    assert crashed.status is Status.CRASHED and crashed.verdict.category is Category.OOM_GPU


@pytest.mark.parametrize("reason", ["PREEMPTION", "TIME LIMIT"])
def test_steps_of_the_grace_time_are_no_new_run(told: Told, reason: str) -> None:
    incident = told(steps(1, 90) + REQUEUED.format(reason) + steps(90, 95))
    assert incident.status is Status.KILLED and not recovered(incident)


def test_ray_train_starts_its_workers_again(told: Told) -> None:
    report = prefixed(
        "(TrainController pid=88) ",
        '[FailurePolicy] Decision: FailureDecision.RETRY, Error source: worker, Error count / maximum errors allowed: 1/3, Error: …\n[Rank 1]\n'
        'Traceback (most recent call last):\n  File "/j/loop.py", line 44, in loop\n    b = next(it)\nValueError: cannot reshape array of size 511 into shape (2,256)\n'
        "[State Transition] RUNNING -> RESTARTING.\n",
    )
    incident = told(steps(1, 9) + report + steps(5, 30))
    assert incident.status is Status.DEGRADED and "Ray Train" in incident.verdict.explanation
    assert incident.primary is not None and incident.primary.message.endswith("(2,256)")
    assert told(steps(1, 9) + report + steps(5, 30) + report).status is Status.CRASHED


OPENING = "=== tinytrain 0.4 ===\nconfig: lr={} batch=64 seq=2048\nloading tokenizer from ./tok.json\ndataset: 41221 documents\n"
MISSING = 'Traceback (most recent call last):\n  File "/j/run.py", line 6, in <module>\n    go()\nFileNotFoundError: [Errno 2] No such file or directory: \'ckpt/last.pt\'\n'
FULL = f'Traceback (most recent call last):\n  File "/j/run.py", line 6, in <module>\n    go()\n{SPACE}\n'


def test_jobs_appended_to_one_file_begin_with_the_same_lines(told: Told) -> None:
    incident = told(OPENING.format("3e-4") + MISSING + OPENING.format("1e-4") + FULL)
    assert incident.verdict.category is Category.OOM_GPU
    assert [other.title for other in incident.others] == ["[Errno 2] No such file or directory: 'ckpt/last.pt'"]
    incident = told(OPENING.format("3e-4") + MISSING + OPENING.format("1e-4") + steps(1, 20))
    assert incident.status is Status.DEGRADED and recovered(incident)
    assert incident.primary is not None and incident.primary.message.endswith("'ckpt/last.pt'")


def _started(minute: int, second: int) -> str:
    """The opening of a program that was started at 20:minute:second, with its first lines."""
    said = ("Loading the model", "Applying LoRA to the model", "Dataset created with 3 samples", "Starting the first epoch")
    return "".join(f"2026-11-29 20:{minute:02d}:{second + n:02d},100 - __main__ - INFO - {line}\n" for n, line in enumerate(said))


def test_a_program_that_was_stopped_and_started_before_it_ever_failed(told: Told) -> None:
    incident = told(_started(10, 0) + _started(14, 0) + MISSING + _started(20, 0) + FULL)
    assert incident.verdict.category is Category.OOM_GPU
    assert [other.title for other in incident.others] == ["[Errno 2] No such file or directory: 'ckpt/last.pt'"]
    # at once: several processes of one start, and the first that failed is the cause
    assert not told(_started(10, 0) + _started(10, 4) + MISSING + _started(10, 8) + FULL).others
    # woven into each other
    woven = "".join(2 * f"{line}\n" for line in _started(10, 0).splitlines())
    assert not told(woven + MISSING + _started(20, 0) + FULL).others


def test_ranks_that_print_the_same_opening_are_one_run(told: Told) -> None:
    opening = "=== tinytrain 0.4 ===\nrank {}/8 on node4\nloading tokenizer from ./tok.json\n"
    ordinal = 'Traceback (most recent call last):\n  File "/j/run.py", line 6, in <module>\n    go()\nRuntimeError: CUDA error: invalid device ordinal\n'
    incident = told("".join(map(opening.format, range(5))) + ordinal + "".join(map(opening.format, range(5, 8))))
    assert not incident.others and incident.status is Status.CRASHED
    assert not told(opening.format(0) + ordinal + "".join(map(opening.format, range(1, 8)))).others


def test_an_opening_that_comes_back_while_the_job_works_is_no_new_run(told: Told) -> None:
    survived = 'WARNING: could not read a shard, skipping it\nTraceback (most recent call last):\n  File "/j/run.py", line 6, in read\n    go()\nOSError: torn\n'
    text = OPENING.format("3e-4") + steps(1, 9) + survived + steps(9, 40) + OPENING.format("3e-4") + steps(40, 60)
    assert told(text).status is Status.HEALTHY


def test_settings_that_a_parent_prints_again_while_it_ends_begin_nothing(told: Told) -> None:
    start = "".join(f"[2025-06-01 10:00:00 TP{rank}] {what}\n" for what in ("Init torch distributed begin.", "Load weight begin. avail mem=78.00 GB") for rank in (0, 1))
    settings = "[2025-06-01 10:00:00] server_args=ServerArgs(model_path='m', tp_size=2)\n"
    crash = (
        "[2025-06-01 10:00:31 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/opt/engine/runner.py", line 9, in init_memory_pool\n    raise RuntimeError(\nRuntimeError: Not enough memory. Please try to increase --mem-fraction-static.\n\n'
    )
    incident = told(settings + start + crash + settings + "Killed\n")
    assert incident.verdict.category is Category.OOM_GPU and not incident.others
    both = told(settings + start + crash + settings + start + crash + "Killed\n")
    assert len(both.others) == 1


def test_a_launchers_list_of_ends_holds_no_opening(told: Told) -> None:
    entry = "[{0}]:\n  time      : 2026-05-01_11:12:35\n  host      : n1\n  rank      : {0} (local_rank: {0})\n  exitcode  : -6 (pid: 34{0}1)\n  error_file: <N/A>\n  traceback : Signal 6 (SIGABRT) received by PID 34{0}1\n"
    whole = entry.format(6) + entry.format(7) + "-----\nRoot Cause (first observed failure):\n" + entry.format(0)
    for start in (0, 4, 5):
        incident = told("\n".join(whole.split("\n")[start:]))
        assert not incident.others and incident.verdict.rank is not None and incident.verdict.rank.number == 0
