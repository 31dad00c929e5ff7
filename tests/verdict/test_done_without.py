"""What is told as an error and done without, what a program refuses each time that it is started, and who came back after a kill."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, Status

from .conftest import Told

STEPS = "".join(f"iteration {n}/ 9000 | loss: 2.{n}\n" for n in range(10, 14))
GIT = (
    "(main_task pid=812) ERROR:2026-03-02 11:56:34,332:git root error: Cmd('git') failed due to: exit code(128)\n"
    "(main_task pid=812)   cmdline: git rev-parse --show-toplevel\n"
)
PLACE = "E0302 02:07:21.091000 1929 torch/_inductor/select_algorithm.py:2100] [3/0] "
TRIED = f"{PLACE}Runtime error during autotuning: \n{PLACE}No valid triton configs. OutOfResources: out of resource: shared memory, Required: 245760, Hardware limit: 232448. Reducing block sizes or `num_stages` may help.\n"
LEFT = f"{PLACE}Ignoring this choice.\n"


@pytest.mark.parametrize("text", [GIT, TRIED + LEFT, (TRIED + LEFT) * 4, GIT + TRIED + LEFT])
def test_what_a_job_does_without_by_its_own_words_is_no_failure(told: Told, text: str) -> None:
    # nothing is printed behind it: the job may write to another place
    assert told(STEPS + text).status is Status.HEALTHY


def test_no_choice_that_is_left_ends_the_job(told: Told) -> None:
    raised = 'Traceback (most recent call last):\n  File "run.py", line 9, in <module>\n    model(x)\n  File "/opt/venv/lib/python3.12/site-packages/torch/_inductor/select_algorithm.py", line 2480, in __call__\n    raise\nRuntimeError: No valid triton configs. OutOfResources: out of resource: shared memory, Required: 245760, Hardware limit: 232448. Reducing block sizes or `num_stages` may help.\n'
    assert told(TRIED + LEFT + raised).status is Status.CRASHED
    assert told("fatal: detected dubious ownership in repository at '/data/job'\n").status is not Status.CRASHED


USAGE = "Usage: served-bench [OPTIONS] COMMAND [ARGS]...\nTry 'served-bench --help' for help.\n\n"
DONE = "Benchmark completed successfully for config {}/9\n"


@pytest.mark.parametrize(
    "words", ["No such option: --turbo", "No such command 'servee'.", "Missing option '--model'.", "Invalid value for '--tp': x is not a valid integer."]
)
def test_a_program_refuses_its_arguments(told: Told, words: str) -> None:
    incident = told(USAGE + f"Error: {words}\n")
    assert (incident.status, incident.verdict.category) == (Status.CRASHED, Category.CONFIG_ERROR)


def test_a_sweep_of_runs_that_all_refused_their_arguments_did_nothing(told: Told) -> None:
    each = [USAGE + "Error: No such option: --turbo\n" + DONE.format(n) for n in range(1, 6)]
    incident = told("".join(each))
    assert (incident.status, incident.verdict.category) == (Status.DEGRADED, Category.CONFIG_ERROR)
    # a script that tried one of them, and then worked
    steps = "".join(f"step {n} loss: 2.{n}\n" for n in range(10, 14))
    assert told(each[0] + steps).status is Status.HEALTHY


BEGIN = "nohup: ignoring input\n"
CANCELLED = "slurmstepd: error: *** JOB 4711 ON node7 CANCELLED AT 2026-03-02T01:31:22 DUE TO PREEMPTION ***\n"


def test_a_job_that_was_preempted_and_started_again(told: Told) -> None:
    again = STEPS.replace("iteration 1", "iteration 2")
    incident = told(BEGIN + STEPS + CANCELLED + BEGIN + again)
    assert (incident.status, incident.verdict.category) == (Status.DEGRADED, Category.KILLED_EXTERNALLY)
    assert told(BEGIN + STEPS + CANCELLED).status is Status.KILLED
    assert told(BEGIN + STEPS + CANCELLED + BEGIN).status is Status.KILLED  # nothing shows that it went well


XID = "[81320.1] NVRM: Xid (PCI:0000:3b:00): 63, pid='<unknown>', name=<unknown>, Row Remapper: New row (0x1) marked for remapping, reset gpu to activate.\n"


def test_a_device_that_waits_for_its_reset_while_the_job_works_on(told: Told) -> None:
    later = "".join(f"iteration {n}/ 9000 | loss: 1.{n}\n" for n in range(20, 60))
    incident = told(STEPS + XID + later)
    assert (incident.status, incident.verdict.category) == (Status.DEGRADED, Category.DRIVER_OR_HARDWARE)
    assert told(STEPS + XID).status is Status.CRASHED
    assert told(STEPS + XID + "iteration 20/ 9000 | loss: 1.2\n").status is Status.CRASHED  # it may have been on its way


@pytest.mark.parametrize(
    ("end", "category"),
    [
        ("node systemd[1]: llm.service: A process of this unit has been killed by the OOM killer.\n", Category.OOM_HOST),
        ("CPU time limit exceeded (core dumped)\n", Category.KILLED_EXTERNALLY),
        ("./run.sh: line 12:  4711 CPU time limit exceeded python train.py\n", Category.KILLED_EXTERNALLY),
    ],
)
def test_limits_that_end_a_process(told: Told, end: str, category: Category) -> None:
    incident = told(STEPS + end)
    assert (incident.status, incident.verdict.category) == (Status.KILLED, category)
    ray = "(raylet) Worker exit detail: Worker unexpectedly exits. There are some potential root causes. (1) The process is killed by SIGKILL by OOM killer.\n"
    assert told(STEPS + ray).verdict.category is not Category.OOM_HOST  # one of several, says Ray
    assert told(STEPS + "the CPU time limit exceeded the default of the queue\n").status is Status.HEALTHY
