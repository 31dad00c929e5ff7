"""Words that stand early in a log and that its job got over, and ends that such words do not explain."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, Status

from .conftest import Told, primary

COMPLAINT = "ERROR:root:tinyattn not found! Please install it before trying to use it.\n"
BARS = "".join(f" {n}%|###       | {n}0/1000 [04:3{n}<27:49:23,  8.54s/it]\n" for n in range(1, 7))
KILLING = "".join(f"[2026-11-30 00:41:2{n},167] [INFO] [launch.py:315:sigkill_handler] Killing subprocess 421{n}\n" for n in range(3))
ENDED = "[2026-11-30 00:41:51,621] [ERROR] [launch.py:321:sigkill_handler] ['/usr/bin/python', '-u', 'train.py', '--local_rank=1'] exits with return code = {}\n"


@pytest.mark.parametrize(
    ("code", "status", "category"),
    [
        (-9, Status.KILLED, Category.KILLED_EXTERNALLY),
        (-11, Status.CRASHED, Category.SEGFAULT),
        (1, Status.UNKNOWN, Category.UNKNOWN),
    ],
)
def test_a_launchers_word_of_a_bad_end_is_not_explained_by_a_complaint_at_the_start(
    told: Told, code: int, status: Status, category: Category
) -> None:
    incident = told(COMPLAINT + BARS + KILLING + ENDED.format(code))
    assert (incident.status, incident.verdict.category) == (status, category)
    assert "exits with return code" in primary(incident).message


@pytest.mark.parametrize(
    "end",
    [
        "srun: error: node7: task 3: Exited with exit code 1\n",
        "mpirun detected that one or more processes exited with non-zero status, thus causing\nthe job to be terminated. The first process to do so"
        " was:\n\n  Process name: [[4217,1],3]\n  Exit code:    1\n",
        "[rank: 1] Child process with PID 4220 terminated with code 1. Forcefully terminating all other processes to avoid zombies\n",
    ],
)
def test_nor_is_any_other_end(told: Told, end: str) -> None:
    incident = told(COMPLAINT + BARS + end)
    assert incident.status is not Status.HEALTHY
    assert primary(incident).message.strip()[:30] in end
    assert "tinyattn" in primary(told(COMPLAINT + end)).message


def test_an_error_printed_amid_the_work_explains_the_end_better(told: Told) -> None:
    incident = told(BARS + "ERROR:root:the shard data/0007.bin cannot be read\n" + KILLING + ENDED.format(1))
    assert "0007.bin" in primary(incident).message


def test_a_complaint_after_which_nothing_worked_explains_the_end(told: Told) -> None:
    incident = told(COMPLAINT + KILLING + ENDED.format(1))
    assert "tinyattn" in primary(incident).message


def test_a_complaint_alone_before_work_is_no_failure(told: Told) -> None:
    assert told(COMPLAINT + BARS).status is Status.HEALTHY


MODULES = "ERROR: Unable to locate a modulefile for 'conda-old'\nPYTHON: /opt/env/bin/python\n"
EPOCHS = "".join(f"Epoch {n}: Train=28{n}.92  Val=281.05  MAE=4.2\nSaved new best model.\n" for n in range(60))


def test_a_script_whose_module_is_not_there_and_whose_training_was_completed_is_healthy(told: Told) -> None:
    assert told(MODULES + EPOCHS + "Training complete!\n").status is Status.HEALTHY


def test_without_the_word_of_the_trainer_nobody_knows(told: Told) -> None:
    assert told(MODULES + EPOCHS).status is not Status.HEALTHY


def test_what_is_printed_after_the_training_counts(told: Told) -> None:
    assert told(EPOCHS + "Training complete!\n" + "ERROR: the weights could not be written to /out\n").status is not Status.HEALTHY


def item(name: str, answer: int) -> str:
    return f"==== sample {name}_{answer} (idx={answer}) ====\n  doc DOC{answer} sections=4\n  -> answer: {answer * 7}\n"


def slow(name: str, outermost: str = "main") -> str:
    return f"""\
==== sample {name}_9 (idx=9) ====
  !! error on {name}_9: the judge did not answer
Traceback (most recent call last):
  File "/work/batch.py", line 41, in {outermost}
    ask(one)
  File "/work/judge.py", line 12, in ask
    raise JudgeTimeout("the judge did not answer")
judge.JudgeTimeout: the judge did not answer

"""


ITEMS = "".join(item("law", n) for n in range(4))


def test_a_batch_whose_items_fail_now_and_then_goes_on(told: Told) -> None:
    incident = told(ITEMS + slow("law") + item("law", 5) + slow("tax") + ITEMS)
    assert incident.status is Status.DEGRADED


def test_an_exception_that_ended_the_program_is_none_of_those(told: Told) -> None:
    assert told(ITEMS + slow("law", "<module>") + ITEMS).status is not Status.HEALTHY
    assert told(ITEMS + slow("law")).status is Status.CRASHED


def test_other_lines_behind_it_do_not_show_that_it_went_on(told: Told) -> None:
    assert told(ITEMS + slow("law") + "summary written\nnothing more to do\n").status is Status.CRASHED


HEAD = """\
Mon Jan  5 05:11:27 2026
+-----------------------------------------------+
| NVIDIA-SMI 570.158.01   CUDA Version: 12.8     |
|-----------------------+-----------------------+
| GPU  Name             | Bus-Id     Volatile ECC |
|=======================+=======================|
|   0  NVIDIA H800   On | 00000000:1B:00.0    0 |
+-----------------------------------------------+
"""
NORMS = """\
Traceback (most recent call last):
  File "/work/train.py", line 28, in <module>
    main()
  File "/work/train.py", line 22, in main
    raise ValueError("statistics not found")
ValueError: statistics not found
"""
STEPS = "".join(f"step {n} loss {4 - n / 100:.4f}\n" for n in range(40))
CANCELLED = "slurmstepd: error: *** JOB 3349 ON dgx-03 CANCELLED AT 2026-01-06T04:52:18 ***\n"


def test_rules_across_the_page_do_not_hide_that_a_job_began_again(told: Told) -> None:
    incident = told(HEAD + NORMS + HEAD.replace("11:27", "13:40") + STEPS + CANCELLED)
    assert (incident.status, incident.verdict.category) == (Status.KILLED, Category.KILLED_EXTERNALLY)
    assert [other.category for other in incident.others] == [Category.USER_CODE]


def test_rules_across_the_page_alone_are_no_beginning(told: Told) -> None:
    rules = "-" * 40 + "\n" + "=" * 40 + "\n" + "-" * 40 + "\n"
    incident = told(rules + NORMS + rules + CANCELLED)
    assert primary(incident).type == "ValueError"


def test_a_size_that_did_not_fit_before_a_training_that_was_brought_to_its_end(told: Told) -> None:
    tried = "trying 48 sequences\nRuntimeError: CUDA out of memory. Tried to allocate 3.00 GiB, so fewer are tried\ntrying 24 sequences\n"
    step = "{'loss': 2.05, 'grad_norm': 1.1, 'learning_rate': 2e-05, 'epoch': 1.0}\n"
    ended = "{'train_runtime': 91.2, 'train_samples_per_second': 7.1, 'train_loss': 2.05, 'epoch': 1.0}\n"
    assert told(tried + step + ended).status is not Status.CRASHED
    assert told(step + tried).status is Status.CRASHED
