"""Ends that others' words hide: a cancelled job whose srun waited, a Ctrl-C behind what had been got over, checks of Gaudi's libraries,
a dead worker of Ray's in a line that a terminal broke, a stack that a warning only shows."""

from __future__ import annotations

from forensics.model.verdict import Category, CausalRole, Status
from tests.verdict.conftest import Told, primary

_CHDIR = "slurmstepd: error: couldn't chdir to `/work': No such file or directory: going to /tmp instead\n"
_WAITS = "srun: Job 88 step creation temporarily disabled, retrying (Requested nodes are busy)\n"
_REFUSED = "srun: error: Unable to create step for job 88: {}\n"
_ENDING = "Job/step already completing or completed"
_CANCELLED = (
    "slurmstepd: error: *** STEP 88.0 ON n1 CANCELLED AT 2026-03-24T17:21:31 ***\n"
    "slurmstepd: error: *** JOB 88 ON n1 CANCELLED AT 2026-03-24T17:21:31 ***\n"
)


def test_a_job_that_was_cancelled_while_its_srun_waited(told: Told) -> None:
    verdict = told(_CHDIR + _WAITS * 3 + _REFUSED.format(_ENDING) + _CANCELLED).verdict
    assert verdict.category is Category.KILLED_EXTERNALLY
    assert any("--overlap" in fix.action for fix in verdict.fixes)
    assert any("step creation" in one.quote for one in verdict.evidence)


def test_a_directory_that_was_missed_explains_no_cancellation(told: Told) -> None:
    incident = told(_CHDIR + _CANCELLED)
    assert (incident.status, incident.verdict.category) == (Status.KILLED, Category.KILLED_EXTERNALLY)
    assert not any("--overlap" in fix.action for fix in incident.verdict.fixes)


def test_a_request_that_slurm_cannot_meet_is_still_refused(told: Told) -> None:
    verdict = told(_CHDIR + _REFUSED.format("More processors requested than permitted")).verdict
    assert (verdict.category, verdict.signature) == (Category.CONFIG_ERROR, "launcher.slurm-request-refused")


def test_a_step_that_was_granted_at_last_is_no_advice(told: Told) -> None:
    verdict = told(_WAITS + "srun: Step created for StepId=88.3\n" + _CANCELLED).verdict
    assert verdict.category is Category.KILLED_EXTERNALLY
    assert not verdict.fixes


_CALL = "demo: In function setup(): synDeviceAcquire(&id, nullptr) failed with synapse error: 20\n"
_CHECK = "/src/hcl/x/credit_manager.cpp::44(next): The condition [ a != b ] failed. {} \n"


def test_the_check_of_gaudis_library_says_why_its_caller_failed(told: Told) -> None:
    incident = told("terminate called without an active exception\n" + _CALL + _CHECK.format("No available intermediate buffer"))
    assert (incident.verdict.category, incident.verdict.signature) == (Category.NCCL, "gaudi.no-intermediate-buffer")
    assert primary(incident).message.startswith("The condition [ a != b ] failed")
    assert not any("NCCL_DEBUG" in one for one in incident.verdict.settled_by)


def test_a_check_that_is_not_known_is_named_all_the_same(told: Told) -> None:
    assert primary(told(_CHECK.format("unexpected expiration value") + _CALL)).message.endswith("unexpected expiration value")


def test_a_caller_alone_is_the_best_there_is(told: Told) -> None:
    assert "synDeviceAcquire" in primary(told(_CALL)).message


def test_a_condition_that_a_user_prints_is_no_check_of_it(told: Told) -> None:
    assert told("train.py(next): The condition [ a != b ] failed. again\n").primary is None


_WARNED = (
    "/opt/lib/python3.11/site-packages/torch/cuda/__init__.py:174: UserWarning: CUDA initialization: CUDA unknown error - this may be due "
    "to an incorrectly set up environment. Setting the available devices to be zero. (Triggered internally at CUDAFunctions.cpp:109.)\n"
    "  return torch._C._cuda_getDeviceCount() > 0\n"
)
_NO_GPU = (
    'Traceback (most recent call last):\n  File "/opt/lib/python3.11/site-packages/tuner/device.py", line 9, in find\n'
    '    raise RuntimeError("No GPU found. A GPU is needed.")\nRuntimeError: No GPU found. A GPU is needed.\n'
)


def test_no_gpu_is_found_where_cuda_did_not_start(told: Told) -> None:
    verdict = told(_WARNED + _NO_GPU).verdict
    assert (verdict.category, verdict.signature) == (Category.DRIVER_OR_HARDWARE, "torch.no-device-after-failed-start")
    assert any("CUDA unknown error" in one.quote for one in verdict.evidence)
    assert told(_NO_GPU).verdict.signature != "torch.no-device-after-failed-start"


_LIBUV = (
    'Traceback (most recent call last):\n  File "C:\\env\\Lib\\site-packages\\torch\\distributed\\{}.py", line 67, in {}\n'
    "    store = TCPStore(\nRuntimeError: use_libuv was requested but PyTorch was build without libuv support\n"
)


def test_the_variable_for_libuv_helps_where_it_is_read(told: Told) -> None:
    own = told(_LIBUV.format("rendezvous", "_create_c10d_store")).verdict
    launchers = told(_LIBUV.format("elastic\\rendezvous\\static_tcp_rendezvous", "next_rendezvous")).verdict
    assert own.category is launchers.category is Category.CONFIG_ERROR
    assert own.next_steps[0].startswith("Set USE_LIBUV=0")
    assert launchers.next_steps[0].startswith("Start the script without torchrun")


_EARLIER = 'Traceback (most recent call last):\n  File "/job/go.py", line 9, in <module>\n    main()\nValueError: no such part: 7\n'
_STOPPED = 'Traceback (most recent call last):\n  File "/job/go.py", line 9, in <module>\n    main()\nKeyboardInterrupt\n'
_WORK = "".join(f"step: {n} loss: 2.{n}\n" for n in range(6))
_ABORTED = (
    "terminate called without an active exception\n\n\n--------------------------------------\nC++ Traceback (most recent call last):\n"
    "--------------------------------------\n0   paddle::framework::SignalHandle(char const*, int)\n\n----------------------\n"
    "Error Message Summary:\n----------------------\nFatalError: `Process abort signal` is detected by the operating system.\n"
    "  [SignalInfo: *** SIGABRT (@0x6e38) received by PID 71 (TID 0x7f8b2efcd700) from PID 71 ***]\n"
)


def test_an_abort_behind_a_ctrl_c_is_its_consequence(told: Told) -> None:
    incident = told(_WORK + _STOPPED + _ABORTED)
    assert (incident.status, incident.verdict.category) == (Status.KILLED, Category.KILLED_EXTERNALLY)
    assert all(f.role is not CausalRole.INITIATING for f in incident.failures[1:])


def test_an_abort_by_itself_is_still_the_failure(told: Told) -> None:
    assert primary(told(_WORK + _ABORTED)).message


def test_a_ctrl_c_behind_work_ends_what_had_begun_again(told: Told) -> None:
    incident = told(_EARLIER + _WORK + _STOPPED)
    assert (incident.status, primary(incident).type) == (Status.KILLED, "KeyboardInterrupt")


def test_a_ctrl_c_without_work_before_it_follows_from_the_failure(told: Told) -> None:
    assert primary(told(_WORK + _EARLIER + _STOPPED)).type == "ValueError"


_RAYLET = (
    "(raylet) A worker died or was killed while executing a task by an unexpected system error. To troubleshoot the problem, check the "
    "logs for the dead worker. RayTask ID: ffff77 Worker ID: 9d83 Node ID: 5c5e Worker IP address: 10.1.2.3 Worker port: 38191 Worker PID: "
    "8702 Worker exit type: SYSTEM_ERROR Worker exit detail: Worker exits unexpectedly by a signal. SystemExit is raised (sys.exit is "
    "called). Exit code: 1. The process receives a {}."
)


def _broken(text: str, width: int = 120) -> str:
    return "\n".join(text[at : at + width] for at in range(0, len(text), width)) + "\n"


def test_a_dead_worker_in_a_line_that_a_terminal_broke(told: Told) -> None:
    whole, pieces = (told(form(_RAYLET.format("SIGTERM"))) for form in (lambda text: text + "\n", _broken))
    for incident in (whole, pieces):
        assert (incident.verdict.category, primary(incident).type) == (Category.KILLED_EXTERNALLY, "SIGTERM")
        assert "The process receives a SIGTERM" in primary(incident).message


def test_lines_of_others_are_no_pieces_of_it(told: Told) -> None:
    words = _broken(_RAYLET.format("SIGTERM")).splitlines()[0]
    message = primary(told(words + "\nall is well\nThe process receives a SIGTERM.\n")).message
    assert "all is well" not in message


_SHOWN = (
    "/opt/lib/python3.12/site-packages/torch/_dynamo/variables/functions.py:2152: UserWarning: Dynamo detected a call to a wrapped function\n"
    '\nThis call originates from:\n  File "/opt/lib/python3.12/site-packages/transformer_engine/pytorch/ops/_common.py", line 45, in cast\n'
    "    if torch_version() >= (2, 4, 3):\n\n  torch._dynamo.utils.warn_once(msg)\n"
)
_FAILED = "srun: error: n1: task 0: Exited with exit code 1\n"


def test_a_stack_that_a_warning_shows_is_no_failure(told: Told) -> None:
    assert told(_SHOWN + _WORK).status is Status.HEALTHY
    assert primary(told(_SHOWN + _FAILED)).kind == "exit"


def test_a_stack_whose_head_was_cut_off_is_one(told: Told) -> None:
    cut = _SHOWN.split("originates from:\n")[1].split("\n\n")[0] + "\n"
    assert primary(told(cut + _FAILED)).frames
