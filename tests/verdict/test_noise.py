"""What looks like a failure and is none, and what looks like noise and is a failure."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, Status

from .conftest import Told

STEPS = "".join(f"step {n} loss 2.{n}\n" for n in range(1, 20))
DONE = "Training completed. 19 steps.\n"
LEAVING = """\
[rank0]:[W302 10:21:02.471190211 ProcessGroupNCCL.cpp:1538] Warning: WARNING: destroy_process_group() was not called before program exit, which can leak resources. (function operator())
[rank1]:[W302 10:21:02.500190211 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=63, addr=[localhost]:51022, remote=[localhost]:29500): failed to recv, got 0 bytes
Exception ignored in: <function _Iter.__del__ at 0x7f0aa1>
Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/torch/utils/data/dataloader.py", line 1664, in __del__
    self._shutdown_workers()
AssertionError: can only test a child process
"""
CRASH = "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f81a0b12345 (most recent call first):\n  File \"/j/data.py\", line 31 in read\n"


def test_processes_that_leave_after_the_work_was_done(told: Told) -> None:
    assert told(STEPS + DONE + LEAVING).status is Status.HEALTHY
    assert told(STEPS + DONE + LEAVING + CRASH).verdict.category is Category.SEGFAULT


def test_a_saved_checkpoint_is_not_the_end_of_the_work(told: Told) -> None:
    gone = LEAVING.splitlines()[1].replace("remote=[localhost]", "remote=[node7]") + "\n"
    assert told(STEPS + "successfully saved checkpoint at 19\n" + gone + gone.replace("rank1", "rank2")).status is not Status.HEALTHY


WORK = "".join(f"[2026-03-02 10:02:{n:02d} TP0] Decode batch. #running-req: 3, gen throughput (token/s): 310.00, #queue-req: 0\n" for n in range(10, 20))
PASTE = """\
[2026-03-02 10:03:04] Receive: obj=GenerateReqInput(rid='5b2', text=\"\"\"here is my log
Traceback (most recent call last):
  File "/home/b/app.py", line 10, in <module>
    run()
KeyError: 'user'
Segmentation fault (core dumped)
what now?\"\"\", sampling_params={'max_new_tokens': 64})
"""
CLOSED = "[2026-03-02 10:03:04] Receive: obj=GenerateReqInput(rid='5b2', text='hello', sampling_params={'max_new_tokens': 64})\n"


def test_a_pasted_log_is_nobodys_failure(told: Told) -> None:
    assert told(WORK + PASTE + WORK.replace("10:02", "10:04")).status is Status.HEALTHY


def test_a_crash_behind_a_request_that_is_whole_is_a_crash(told: Told) -> None:
    for end in ("Segmentation fault (core dumped)\n", CRASH):
        assert told(WORK + CLOSED + end).verdict.category is Category.SEGFAULT


STALL = "(EngineCore_DP0 pid=88) INFO 03-02 10:0{}:12 [shm_broadcast.py:466] No available shared memory broadcast block found in 60 seconds.\n"
START = "(EngineCore_DP0 pid=88) INFO 03-02 10:00:09 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='m'\n"
STOP = """\
^C(APIServer pid=7) Traceback (most recent call last):
(APIServer pid=7)   File "/opt/venv/bin/vllm", line 10, in <module>
(APIServer pid=7)     sys.exit(main())
(APIServer pid=7) KeyboardInterrupt
"""


@pytest.mark.parametrize(("minutes", "between", "status"), [(6, "", Status.HUNG), (2, "", Status.KILLED), (6, "(EngineCore_DP0 pid=88) INFO 03-02 10:08:00 [w.py:3] Loading weights took 71.2 seconds\n", Status.KILLED)])  # fmt: skip
def test_a_ctrl_c_that_ends_a_hang_is_part_of_it(told: Told, minutes: int, between: str, status: Status) -> None:
    incident = told(START + "".join(map(STALL.format, range(1, 1 + minutes))) + between + STOP)
    assert incident.status is status


def test_what_a_loaders_worker_said_before_it_died_is_the_root(told: Told) -> None:
    miss = '[rank3]: Traceback (most recent call last):\n[rank3]:   File "/opt/venv/lib/python3.12/site-packages/torch/utils/data/dataloader.py", line 1284, in _try_get_data\n[rank3]:     raise RuntimeError(\n[rank3]: RuntimeError: DataLoader worker (pid(s) 8112) exited unexpectedly\n'
    bus = "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).\n"
    incident = told(STEPS + bus + miss)
    assert incident.verdict.category is Category.OOM_HOST and incident.primary is not None
    assert (incident.primary.root_type, incident.primary.type) == ("SIGBUS", "RuntimeError")
    assert incident.verdict.rank is not None and incident.verdict.rank.number == 3
    incident = told(STEPS + "ERROR: Unexpected segmentation fault encountered in worker.\n" + miss)
    assert incident.verdict.category is Category.SEGFAULT
    assert told(STEPS + "ERROR: could not push metrics\n" + miss).verdict.category is Category.UNKNOWN


def test_the_rank_whose_scheduler_was_seen_dead(told: Told) -> None:
    incident = told(WORK + "[2026-03-02 10:00:40] Rank 3 scheduler is dead. Please check if there are relevant logs there.\n[2026-03-02 10:00:41] Exit code: -9\n")
    assert incident.verdict.rank is not None and incident.verdict.rank.number == 3


RAYLET = "(raylet, ip=10.2.0.5) A worker died or was killed while executing a task by an unexpected system error. RayTask ID: ff01 Worker ID: 0a1b Worker PID: 2211 Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file.\n"
REPORT = "(EngineCore_0 pid=991) ERROR 03-02 10:00:58 [core.py:718] "
TORN = REPORT + "EngineCore failed to start.\n" + REPORT + "Traceback (most recent call last):\n" + REPORT + '  File "/opt/engine/core.py", line 709, in run\n'


def test_a_worker_that_vanished_says_more_than_a_report_cut_off(told: Told) -> None:
    for report in (TORN, REPORT + "EngineCore failed to sta", ""):
        incident = told(RAYLET + report)
        assert incident.primary is not None and "Worker unexpectedly exits" in incident.primary.message, report
    incident = told(RAYLET + TORN + REPORT + "ValueError: unknown quantization method 'int3'\n")
    assert incident.primary is not None and incident.primary.type == "ValueError"


def test_somebody_elses_kill_while_the_server_works_on(told: Told) -> None:
    later = "".join(WORK.replace("10:02", f"10:0{n}") for n in range(3, 7))
    assert told(WORK + "Killed\n" + later).status is Status.HEALTHY
    assert told(WORK + "Killed\n").status is Status.KILLED
    start = "[2026-03-02 10:02:40] server_args=ServerArgs(model_path='m', tp_size=1)\n"
    assert told(start + WORK + "Killed\n" + start + later).status is not Status.HEALTHY


OOM = "[{}] Out of memory: Killed process 99123 (python3) total-vm:91234567kB, anon-rss:71234567kB, file-rss:0kB, shmem-rss:0kB, UID:1000 pgtables:151234kB oom_score_adj:0\n"
DATED = "".join(f"2026-03-02 10:20:{n:02d},123 step {n} loss 2.{n}\n" for n in range(1, 20))


def test_a_kill_from_before_the_job_explains_nothing(told: Told) -> None:
    missed = 'Traceback (most recent call last):\n  File "/j/run.py", line 9, in <module>\n    main()\nKeyError: \'doc_71\'\n'
    assert told(DATED + missed, OOM.format("Fri Feb 27 02:11:45 2026")).verdict.category is Category.USER_CODE
    assert told(DATED + missed, OOM.format("Mon Mar  2 10:20:10 2026")).verdict.category is Category.OOM_HOST
    assert told(DATED, OOM.format("Mon Mar  2 10:20:21 2026")).verdict.category is Category.OOM_HOST


def test_a_watchdog_that_hangs_itself_is_a_hang(told: Told) -> None:
    words = "[rank3]:[F302 10:41:05.110211771 ProcessGroupNCCL.cpp:1557] [PG ID 0 PG GUID 0(default_pg) Rank 3] [PG ID 0 PG GUID 0(default_pg) Rank 3] Terminating the process after attempting to dump debug info, due to ProcessGroupNCCL watchdog hang.\n"
    assert told(STEPS + words).status is Status.HUNG


def test_a_fault_from_before_the_job_explains_nothing(told: Told) -> None:
    missed = 'Traceback (most recent call last):\n  File "/j/run.py", line 9, in <module>\n    main()\nKeyError: \'doc_71\'\n'
    fault = "[{}] python3[99123]: segfault at 10 ip 00007f11a2b3c4d5 sp 00007ffc10203040 error 4 in libtorch_cpu.so[7f11a0000000+8000000]\n"
    assert told(DATED + missed, fault.format("Fri Feb 27 02:11:45 2026")).verdict.category is Category.USER_CODE
    assert told(DATED, fault.format("Mon Mar  2 10:20:21 2026")).verdict.category is Category.SEGFAULT


def test_what_failed_before_the_job_was_started_is_another_programs(told: Told) -> None:
    first = 'Traceback (most recent call last):\n  File "<stdin>", line 4, in <module>\n  File "/usr/lib/python3/os.py", line 680, in __getitem__\nKeyError: \'GPUS\'\n'
    start = "n1: [2026-11-29 20:15:40,123] [INFO] [launch.py:162:main] WORLD INFO DICT: {'n1': [0, 1], 'n2': [0, 1]}\n"
    rank = "".join(
        f"n1: [rank1]: {line}\n"
        for line in ("Traceback (most recent call last):", '  File "/j/train.py", line 3, in <module>', "    main()", "OSError: [Errno 5] Input/output error")
    )
    assert told(first + start + rank).primary.type == "OSError"  # type: ignore[union-attr]
    assert told(first + rank).primary.type == "KeyError"  # type: ignore[union-attr]


def test_packages_that_pip_left_alone_do_not_end_a_job(told: Told) -> None:
    pip = "3: ERROR: Could not install packages due to an OSError: [Errno 2] No such file or directory: '/opt/lib/h5py/__init__.py'\n"
    ok = "".join(f"{n}: ready\n" for n in range(4))
    raised = "".join(f"6: {line}\n" for line in ("Traceback (most recent call last):", '  File "/j/a.py", line 1, in <module>', "    import faiss", "ImportError: libx.so.1: cannot read file data"))
    assert told(ok + pip + raised).primary.type == "ImportError"  # type: ignore[union-attr]
    assert told(ok + pip).primary.type == "OSError"  # type: ignore[union-attr]


def test_nccls_missing_plugin_explains_nothing(told: Told) -> None:
    info = "n1:71:71 [0] NCCL INFO NET/Plugin : Plugin load (libnccl-net.so) returned 2 : libnccl-net.so: cannot open shared object file: No such file or directory\n"
    raised = 'Traceback (most recent call last):\n  File "/j/a.py", line 1, in <module>\n    f()\nAssertionError: 64 heads do not fit 6 ranks\n'
    assert told(info + raised).verdict.category is not Category.MISSING_LIBRARY
    assert told("ImportError: libq.so.2: cannot open shared object file: No such file or directory\n").verdict.category is Category.MISSING_LIBRARY


def _tool(pid: int, top: str) -> str:
    lines = ("Traceback (most recent call last):", f'  File "/j/search.py", line 40, in {top}', "    return table[text]", "KeyError: 'q'")
    return "".join(f"(AgentLoopWorker pid={pid}) {line}\n" for line in lines)


def test_an_exception_that_a_worker_prints_and_survives_again_and_again(told: Told) -> None:
    steps = "".join(f"(TaskRunner pid=100) step:{n} - actor/loss:0.3 - perf/throughput:812.1\n" for n in (12, 13))
    assert told(_tool(201, "call") + steps + _tool(202, "call")).status is Status.DEGRADED
    assert told(_tool(201, "<module>") + steps + _tool(202, "<module>")).status is Status.CRASHED
    assert told(_tool(201, "call") + _tool(202, "call")).status is Status.CRASHED


def test_several_exceptions_that_workers_print_and_survive_again_and_again(told: Told) -> None:
    steps = "".join(f"(TaskRunner pid=100) step:{n} - actor/loss:0.3 - perf/throughput:812.1\n" for n in (12, 13))
    torn = "(AgentLoopWorker pid=203)     return table[text]\n(AgentLoopWorker pid=203) KeyError: 'q'\n"
    bare = "(AgentLoopWorker pid=204) ValueError: no action in the answer\n"
    again = _tool(201, "call") + torn + bare
    assert told(again + steps + again).status is Status.DEGRADED
    assert told(again + steps + again + _tool(205, "<module>")).status is Status.CRASHED  # one of them ended its program
    assert told(_tool(201, "call") + torn + steps + again).status is Status.CRASHED  # of the other nobody knows that it was survived
    assert told(bare + steps + bare).status is not Status.HEALTHY


@pytest.mark.parametrize("space", ["41.2 GB; capacity: 900 GB", "41; capacity: 900"])
def test_rays_word_of_a_disk_that_fills_and_tunes_end(told: Told, space: str) -> None:
    warned = (
        "(raylet) [2026-11-29 20:20:01,001 E 812 812] (raylet) file_system_monitor.cc:116: /tmp/ray/session is over 95% full, "
        f"available space: {space}. Object creation will fail if spilling is required.\n"
    )
    steps = "".join(f"(RayTrainWorker pid=300{n % 4}, ip=10.0.0.{n % 4}) step {n} ok\n" for n in range(40))
    end = "2026-11-29 20:20:00,101\tINFO tune.py:1000 -- Total run time: 301.11 seconds (300.12 seconds for the tuning loop).\n"
    incident = told(steps + end + warned)
    assert incident.status is Status.HEALTHY and "in order" in incident.verdict.explanation
