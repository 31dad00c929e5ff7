"""What Python dropped, what programs set aside, who Slurm's labels speak of, and a Ctrl-C that met a process asleep."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, Confidence, Status
from forensics.verdict.outcome import is_work_text

from .conftest import Told, number, primary

WORK = "step 118 loss 2.33\nstep 119 loss 2.32\nfinal peak_mem=13.80 GB\n"
DROPPED = (
    "Exception ignored in {where}: <function close_tables at 0x7f00aa10b6a0>\n"
    "Traceback (most recent call last):\n"
    '  File "/opt/trainer/lib/tables.py", line 105, in close_tables\n'
    '    os.replace(self.path + ".tmp", self.path)\n'
    "{what}\n"
)
GONE = "FileNotFoundError: [Errno 2] No such file or directory: '/home/u/tune.pickle.tmp' -> '/home/u/tune.pickle'"


@pytest.mark.parametrize("where", ["atexit callback", "", "on threading shutdown"])
def test_what_python_drops_at_the_end_of_work_is_no_failure(told: Told, where: str) -> None:
    text = DROPPED.format(where=where, what=GONE).replace("in :", "in:").replace("in on threading", "on threading")
    assert told(WORK + text).status is Status.HEALTHY


@pytest.mark.parametrize(
    "what",
    ["KeyboardInterrupt:", "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"],
)
def test_a_dropped_interrupt_or_broken_device_says_more(told: Told, what: str) -> None:
    assert told(WORK + DROPPED.format(where="atexit callback", what=what)).status is not Status.HEALTHY


def test_what_python_drops_before_any_work_proves_no_health(told: Told) -> None:
    assert told(DROPPED.format(where="atexit callback", what=GONE)).status is not Status.HEALTHY


def test_a_failure_beside_a_dropped_exception_is_the_failure(told: Told) -> None:
    failed = 'Traceback (most recent call last):\n  File "/srv/t.py", line 4, in <module>\n    main()\nValueError: no shards\n'
    incident = told(WORK + failed + DROPPED.format(where="atexit callback", what=GONE))
    assert primary(incident).type == "ValueError"


MISSING = (
    "Traceback (most recent call last):\n"
    '  File "/srv/ckpt/default_planner.py", line 471, in plan\n'
    '    raise RuntimeError(f"Missing key in checkpoint state_dict: {fqn}.")\n'
    "RuntimeError: Missing key in checkpoint state_dict: embed.weight.\n"
)


def test_an_import_error_that_was_set_aside_is_no_cause(told: Told) -> None:
    aside = "".join(f"Ignore import error when loading models.m{n}: operator torchvision::nms does not exist\n" for n in range(3))
    assert told(aside + MISSING).verdict.category is Category.MODEL_LOAD
    # the same words as the failure itself
    raised = MISSING.replace("Missing key in checkpoint state_dict: embed.weight.", "operator torchvision::nms does not exist")
    assert told(raised).verdict.category is Category.VERSION_MISMATCH


LABELLED = (
    '0: [rank3]: Traceback (most recent call last):\n0: [rank3]:   File "/srv/t.py", line 9, in <module>\n0: [rank3]:     main()\n'
    "0: [rank3]: ValueError: Attention head count 28 is not divisible by SP size 8\n"
    '1: [rank5]: Traceback (most recent call last):\n1: [rank5]:   File "/srv/t.py", line 9, in <module>\n1: [rank5]:     main()\n'
    "1: [rank5]: ValueError: Attention head count 28 is not divisible by SP size 8\n"
)


def test_sruns_label_before_a_rank_is_no_host(told: Told) -> None:
    incident = told(LABELLED)
    assert incident.verdict.rank is not None and incident.verdict.rank.node is None and number(incident) == 3
    assert incident.verdict.category is Category.CONFIG_ERROR
    # a host's name stays one
    assert told(LABELLED.replace("0: [", "node7: [").replace("1: [", "node8: [")).verdict.rank.node == "node7"  # type: ignore[union-attr]


STEP = "srun: error: node7: tasks 4-7: Exited with exit code 1\nsrun: Terminating StepId=71.0\n"
CANCELLED = " 0: slurmstepd: error: *** STEP 71.0 ON node6 CANCELLED AT 2026-11-29T20:15:02 ***\n"


def test_slurms_daemon_speaks_of_no_task(told: Told) -> None:
    incident = told(" 0: step 1 loss 2.1\n 0: step 2 loss 2.0\n" + CANCELLED)
    assert incident.verdict.category is Category.KILLED_EXTERNALLY and incident.verdict.rank is None


def test_the_task_that_ended_badly_is_why_a_step_is_cancelled(told: Told) -> None:
    incident = told(" 0: step 1 loss 2.1\n" + STEP + CANCELLED)
    assert primary(incident).type == "exit 1" and incident.verdict.category is Category.UNKNOWN
    # tasks that end after the cancellation ended because of it
    assert told(" 0: step 1 loss 2.1\n" + CANCELLED + STEP).verdict.category is Category.KILLED_EXTERNALLY


TABLE = " 0:     33554432       8388608     float     sum      -1   4283.4    7.83   15.18    832\n 0: # Out of bounds values : {said}\n"
BANDWIDTH = " 0: # Avg bus bandwidth    : 23.1289 \n"


def test_wrong_data_of_a_collective_are_a_failure(told: Told) -> None:
    incident = told(TABLE.format(said="3 FAILED") + BANDWIDTH + STEP + CANCELLED)
    assert incident.verdict.category is Category.NCCL and incident.verdict.confidence is Confidence.ESTABLISHED
    assert told(TABLE.format(said="0 OK") + BANDWIDTH).status is Status.HEALTHY


WAITING = (
    "{head}Traceback (most recent call last):\n"
    '  File "/srv/job/iter.py", line 326, in wait_for_port\n    with socket.create_connection((host, port), timeout=2.0):\n'
    '  File "/usr/lib/python3.11/socket.py", line 848, in create_connection\n    sock.connect(sa)\n'
    "ConnectionRefusedError: [Errno 111] Connection refused\n\n"
    "During handling of the above exception, another exception occurred:\n\n"
    "Traceback (most recent call last):\n"
    '  File "/srv/job/iter.py", line 785, in main\n    wait_for_port(HOST, PORT)\n'
    '  File "/srv/job/iter.py", line 330, in wait_for_port\n    {code}\n'
    "KeyboardInterrupt\n"
)


def test_a_ctrl_c_that_met_a_retry_asleep_ended_the_run(told: Told) -> None:
    incident = told(WAITING.format(head=WORK, code="time.sleep(1.0)"))
    assert incident.verdict.category is Category.KILLED_EXTERNALLY
    # an error that was dealt with long before does not make the end a consequence of it
    early = "E0100 backend.py:9] ERROR: Unable to initialize backend 'tpu': libtpu.so not found\n" + WORK
    assert told(WAITING.format(head=early, code="time.sleep(1.0)")).verdict.category is Category.KILLED_EXTERNALLY


def test_a_ctrl_c_in_what_a_handler_did_explains_nothing(told: Told) -> None:
    incident = told(WAITING.format(head="", code="self.close_all()"))
    assert primary(incident).root_type == "ConnectionRefusedError"


def test_a_path_is_no_speed() -> None:
    assert not is_work_text('  File "/srv/jobs/iter.py", line 4, in wait')
    assert is_work_text(" 12%|#  | 4/32 [00:10<01:10,  2.51s/it]") and is_work_text("3.1 it/s")


@pytest.mark.parametrize("words", ["Non-finite loss", "loss is non-finite at step 7"])
def test_a_loss_that_is_not_finite_is_numerics(told: Told, words: str) -> None:
    text = f'Traceback (most recent call last):\n  File "/srv/t.py", line 4, in step\n    raise RuntimeError("x")\nRuntimeError: {words}\n'
    assert told(text).verdict.category is Category.NUMERICS
