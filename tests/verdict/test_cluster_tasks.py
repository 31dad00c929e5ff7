"""Whose failure it was by srun's and mpirun's words, launch scripts that could not start, accelerators' own errors."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, Incident, Status

from .conftest import Told


def _said(incident: Incident) -> str:
    assert incident.primary is not None
    return f"{incident.primary.message}\n{incident.primary.root_message}"


def _raised(line: str = "KeyError: 'bucket'", at: int = 7) -> str:
    return f'Traceback (most recent call last):\n  File "/home/me/train.py", line {at}, in main\n    fit()\n{line}\n'


def _ended(task: int, code: int = 1) -> str:
    return f"srun: error: node8: task {task}: Exited with exit code {code}\n"


def test_the_only_failure_before_the_first_ended_task_was_its(told: Told) -> None:
    verdict = told(_raised() + _ended(3) + _ended(0, 137)).verdict
    assert verdict.rank is not None and verdict.rank.number == 3
    # Two had been printed: nobody knows which of them was the task's.
    assert told(_raised() + _raised("KeyError: 'other'", 9) + _ended(3) + _ended(0, 137)).verdict.rank is None
    # It had been printed after the task's end.
    late = told("step 1\n" + _ended(3, 137) + _raised())
    assert not any(f.rank is not None and f.rank.number == 3 for f in late.failures if f.root_type == "KeyError")


def test_tasks_that_ended_alike_failed_alike(told: Told) -> None:
    incident = told(_raised() + _raised() + _ended(2) + _ended(5))
    assert {row.rank.number: row.outcome for row in incident.ranks if row.rank.number is not None}.keys() == {2, 5}
    assert not {row.outcome for row in incident.ranks} & {"unknown", "silent"}
    fewer = told(_raised() + _ended(2) + _ended(5))
    assert [(row.rank.number, row.outcome) for row in fewer.ranks] == [(2, "initiating"), (5, "cascade")]


def test_an_exit_is_not_the_heading_of_the_next_traceback(told: Told) -> None:
    incident = told(_raised() + _ended(3) + _raised("ValueError: I/O operation on closed file", 21))
    assert incident.primary is not None and incident.primary.root_type == "KeyError"
    assert all("Exited with" not in (failure.root_message or "") for failure in incident.failures if failure.kind == "python")


def test_the_logger_of_runs_heads_no_traceback(told: Told) -> None:
    synced = "wandb: You can sync this run to the cloud by running: wandb sync /tmp/run\n"
    incident = told(synced + _raised())
    assert incident.primary is not None and "You can sync" not in _said(incident)
    assert "wandb sync" not in incident.primary.evidence[0].quote


LOST = (
    "ORTE has lost communication with a remote daemon.\n\n  HNP daemon   : [[43,0],0] on node node7\n"
    "  Remote daemon: [[43,0],2] on node node8\n\nThis is usually due to either a failure of the TCP network\n"
)


def test_mpirun_that_lost_a_node(told: Told) -> None:
    incident = told("step 120 loss 2.31\n" + LOST)
    assert (
        incident.status is Status.CRASHED
        and incident.verdict.category is Category.DRIVER_OR_HARDWARE
        and "node8" in incident.verdict.title
    )
    assert (
        told("step 120 loss 2.31\nthe scheduler has lost communication with a remote daemon.\n").status
        is Status.HEALTHY
    )


NO_SCRIPT = "/opt/py/bin/python: can't open file '/srv/pretrain.py': [Errno 2] No such file or directory\n"
AGENT = "E1129 20:15:46.2 139 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 2) local_rank: 0 (pid: 4014) of binary: /opt/py/bin/python\n"


def test_a_script_that_is_not_there(told: Told) -> None:
    incident = told(NO_SCRIPT * 2 + AGENT)
    assert incident.verdict.category is Category.CONFIG_ERROR and "pretrain.py" in _said(incident)
    assert (
        told("viewer: can't open file 'plot.png': [Errno 2] No such file or directory\nstep 2 loss 3.1\n").status
        is Status.HEALTHY
    )


@pytest.mark.parametrize(
    ("line", "category"),
    [
        ("!!!! FATAL ERROR !!!! for [/dev/accel1 tpu7:pe0:1] , fatal_error: true", Category.DRIVER_OR_HARDWARE),
        (
            "XlaRuntimeError: INTERNAL: Accelerator device halted prematurely, perhaps due to an on-device check-failure.",
            Category.DRIVER_OR_HARDWARE,
        ),
        (
            "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: during context [pre-optimization]: channel 7 has two sends",
            Category.JIT_COMPILE,
        ),
        (
            "RuntimeError: hccl fftsplus task timeout occurred during task execution, stream_id:5",
            Category.HANG_OR_WATCHDOG,
        ),
        ("RuntimeError: [ERROR] HCCL error in: torch_npu/csrc/distributed/ProcessGroupHCCL.cpp:64", Category.NCCL),
    ],
)
def test_accelerators_own_errors(told: Told, line: str, category: Category) -> None:
    assert told(line + "\n").verdict.category is category


def test_what_cann_says_is_the_cause_of_the_call_that_failed(told: Told) -> None:
    """torch_npu names the rank and its process, CANN below it the reason and the process."""
    call = "[ERROR] 2026-11-29-20:15:45 (PID:4711, Device:3, RankID:11) ERR00100 PTA call acl api failed.\n"
    reason = "EI0002: [PID: 4711] 2026-11-29-20:15:45.713.335 The wait execution of the Notify register times out. Reason: no record came\n"
    incident = told(call + reason)
    assert incident.primary is not None and incident.primary.message.startswith("The wait execution")
    assert incident.verdict.category is Category.HANG_OR_WATCHDOG
    memory = "EL0004: [PID: 4711] 2026-11-29-20:15:45.713.335 Failed to allocate memory.\n"
    incident = told(call + memory)
    assert incident.verdict.rank is not None and incident.verdict.rank.number == 11
    alone = told(call)
    assert alone.primary is not None and alone.primary.message.startswith("ERR00100") and alone.status is not Status.HEALTHY
    other = told(call + memory.replace("4711", "4712"))
    assert other.verdict.rank is None


def test_a_port_of_the_rendezvous_is_a_setting(told: Told) -> None:
    refused = "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use\n"
    verdict = told(_raised(refused.rstrip("\n"))).verdict
    assert verdict.category is Category.CONFIG_ERROR
    assert told("listening on port 29500\nstep 2 loss 3.1\n").status is Status.HEALTHY


@pytest.mark.parametrize(
    "said",
    [
        "input must be a matrix",
        "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [32]",
        "Tensors must have the same number of dimensions: got 2 and 3",
        "Dimension out of range (expected to be in range of [-1, 0], but got 1)",
    ],
)
def test_words_about_dimensions(told: Told, said: str) -> None:
    assert told(_raised(f"RuntimeError: {said}")).verdict.category is Category.SHAPE_OR_DTYPE_ASSERT


def test_a_reader_that_ranges_out_is_no_shape(told: Told) -> None:
    assert (
        told(_raised("ValueError: the answer must be a number")).verdict.category is not Category.SHAPE_OR_DTYPE_ASSERT
    )


def test_the_line_below_last_error_is_its_message(told: Told) -> None:
    lines = (
        "torch.distributed.DistBackendError: NCCL error in: /src/NCCLUtils.cpp:77, internal error, NCCL version 2.26.2",
        "ncclInternalError: Internal check failed.",
        "Last error:",
        "Net/Socket: recv from 10.0.2.7 failed after 3 tries",
    )
    incident = told("".join(f"(WorkerDict pid=4021) {line}\n" for line in lines))
    assert "failed after 3 tries" in _said(incident)


def test_a_wrapper_does_not_speak_for_a_cause_without_words(told: Told) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/home/me/a.py", line 3, in load\n    assert ok\nAssertionError\n\n'
        "The above exception was the direct cause of the following exception:\n\n"
        + _raised("RuntimeError: shard 3 went missing")
    )
    incident = told(text)
    assert incident.primary is not None and incident.primary.root_type == "AssertionError"
    assert "went missing" not in incident.verdict.title


def test_an_uncorrectable_error_is_the_reporters_own(told: Told) -> None:
    text = _raised("RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution")
    verdict = told("".join(f"[rank5]: {line}\n" for line in text.splitlines())).verdict
    assert verdict.category is Category.DRIVER_OR_HARDWARE and verdict.rank is not None and verdict.rank.number == 5


def _blocked(task: str, module: str) -> str:
    return (
        f"[Sun Nov 29 20:10:52 2026] INFO: task {task} blocked for more than 120 seconds.\n"
        "[Sun Nov 29 20:10:52 2026] Call Trace:\n[Sun Nov 29 20:10:52 2026]  __schedule+0x2d1/0x860\n"
        f"[Sun Nov 29 20:10:52 2026]  wait_for_reply+0x1e/0xa0 [{module}]\n[Sun Nov 29 20:10:52 2026]  ksys_write+0x4f/0xb0\n"
    )


def test_a_task_that_the_kernel_saw_blocked(told: Told) -> None:
    service = "[Sun Nov 29 19:10:52 2026] sshd[812]: segfault at 0 ip 0000000000000000 sp 00007ffd3c1a9e58 error 14 in sshd[55d8+d0]\n"
    storage = told(service + _blocked("epilog.sh:70", "sunrpc") + _blocked("python:4711", "sunrpc") * 3)
    assert (
        storage.status is Status.HUNG
        and storage.verdict.category is Category.STORAGE
        and "python:4711" in _said(storage)
    )
    assert storage.primary is not None and storage.primary.kernel is None
    assert told(_blocked("python:4711", "nvidia")).verdict.category is Category.HANG_OR_WATCHDOG
    assert told(service).status is Status.HEALTHY


def test_a_broken_socket_does_not_explain_the_device(told: Told) -> None:
    socket = "terminate called after throwing an instance of 'std::system_error'\n  what():  Transport endpoint is not connected\n"
    device = "terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: uncorrectable NVLink error detected during the execution\n"
    incident = told(socket + device)
    assert incident.primary is not None and incident.primary.type == "c10::Error"
    mount = _raised("OSError: [Errno 107] Transport endpoint is not connected: '/mnt/data/shard'")
    assert told(mount).verdict.category is Category.STORAGE


def test_what_actors_print_after_the_drivers_end_is_no_life(told: Told) -> None:
    actor = "(WorkerDict pid=4021) step 121 loss 2.30\n(WorkerDict pid=4022) step 122 loss 2.29\n"
    driver = (
        'Traceback (most recent call last):\n  File "/home/me/main.py", line 70, in <module>\n    ray.get(runner.run.remote(config))\n'
        '  File "/opt/py/ray/_private/worker.py", line 2660, in get\n    raise value.as_instanceof_cause()\n'
        "ray.exceptions.RayTaskError(RuntimeError): ray::TaskRunner.run() (pid=133, ip=10.0.0.7)\n"
        '  File "/home/me/worker.py", line 9, in run\n    self.reduce(x)\nRuntimeError: No backend type associated with device type cpu\n'
    )
    assert told(driver + actor).status is Status.CRASHED
    caught = driver.replace("line 70, in <module>", "line 70, in serve")
    assert told(caught + actor).status is Status.DEGRADED


def test_a_signal_to_torchs_agent_is_no_ranks_failure(told: Told) -> None:
    started = "Initializing distributed: world size 1, rank 0\n2026-11-29 20:10:42.318207: I tensorflow/core/util/port.cc:110] oneDNN custom operations are on.\n"
    frames = (
        'Traceback (most recent call last):\n  File "/opt/py/torch/distributed/launch.py", line 196, in <module>\n    main()\n'
        '  File "/opt/py/torch/distributed/elastic/multiprocessing/api.py", line 62, in _terminate_process_handler\n'
        '    raise SignalException(f"Process {os.getpid()} got signal: {sigval}", sigval=sigval)\n'
    )
    incident = told(
        started + frames + "torch.distributed.elastic.multiprocessing.api.SignalException: Process 470 got signal: 1\n"
    )
    assert incident.verdict.category is Category.KILLED_EXTERNALLY and incident.verdict.rank is None
    assert incident.primary is not None and incident.primary.phase is None and incident.facts.engine != "tensorflow"
    own = told("".join(f"[rank0]: {line}\n" for line in _raised().splitlines()))
    assert own.verdict.rank is not None and own.verdict.rank.number == 0


@pytest.mark.parametrize(
    ("frame", "category"),
    [
        (
            '  File "/usr/lib/python3.11/urllib/request.py", line 1351, in do_open\n    raise URLError(err)\n',
            Category.MODEL_LOAD,
        ),
        ('  File "/home/me/metrics.py", line 13, in push\n    self.sock.connect(address)\n', Category.USER_CODE),
    ],
)
def test_a_download_without_a_network(told: Told, frame: str, category: Category) -> None:
    text = 'Traceback (most recent call last):\n  File "/home/me/main.py", line 7, in main\n    load()\n' + frame
    assert told(text + "OSError: [Errno 101] Network is unreachable\n").verdict.category is category


def test_a_task_that_ended_as_a_crowd_before_it_is_not_blamed(told: Told) -> None:
    failed = "RuntimeError: NCCL error in: /src/NCCLUtils.hpp:82, invalid argument, NCCL version 2.4.8\n"
    crowd = "srun: error: node7: tasks 2-7: Exited with exit code 1\n"
    assert told(failed + crowd + _ended(14)).verdict.rank is None
    killed = "srun: error: node7: tasks 2-7: Terminated\n"
    alone = told(failed + killed + _ended(14)).verdict
    assert alone.rank is not None and alone.rank.number == 14


CHECKPOINT = """\
torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([2])
Traceback (most recent call last): (RANK 2)
  File "/opt/py/torch/distributed/checkpoint/utils.py", line 164, in reduce_scatter
    local_data = map_fun()
ValueError: Size mismatch between saved torch.Size([100, 8]) and current: torch.Size([101, 8]) for embed.weight
"""


def test_what_a_rank_raised_is_the_cause_below_the_callers_own_traceback_too(told: Told) -> None:
    caller = 'Traceback (most recent call last):\n  File "/home/me/train.py", line 119, in setup\n    checkpointer.load(step)\n'
    incident = told(caller + CHECKPOINT)
    assert incident.primary is not None and incident.primary.root_message.startswith("Size mismatch")
    alone = told(caller + CHECKPOINT.partition("\n")[0] + "\n")
    assert alone.primary is not None and alone.primary.root_message.startswith("CheckpointException")


def test_monarch_repeats_what_an_actor_raised(told: Told) -> None:
    actor = "monarch._src.actor.actor_mesh.ActorError: Actor call Trainer.setup failed with BaseException.\n"
    raised = "Traceback (most recent call last):\n  File \"/home/me/train.py\", line 119, in setup\n    load(step)\nKeyError: 'step'\n"
    incident = told(actor + raised)
    assert incident.primary is not None and incident.primary.type == "KeyError"
    alone = told(actor).primary
    assert alone is not None and alone.type is not None and alone.type.endswith("ActorError")
