"""Jobs that a scheduler's script starts: what stands before the launcher's labels, tasks that are nodes, parents and their programs.
Every case has a near miss beside it."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, Status
from tests.verdict.conftest import Told


def _raised(label: str, script: str, last: str, line: int = 9) -> str:
    rows = ("Traceback (most recent call last):", f'  File "{script}", line {line}, in <module>', "    main()", last)
    return "".join(f"{label}{row}\n" for row in rows)


def _summary(label: str, rank: int, local: int, code: int) -> str:
    rows = (
        f"E0302 10:41:05.100000 71 torch/distributed/elastic/multiprocessing/api.py:880] failed (exitcode: {code}) local_rank: {local} (pid: {900 + rank}) of binary: /usr/bin/python",
        "Root Cause (first observed failure):",
        "[0]:",
        "  time      : 2026-03-02_10:41:05",
        f"  host      : n{rank}",
        f"  rank      : {rank} (local_rank: {local})",
        f"  exitcode  : {code} (pid: {900 + rank})",
        "  error_file: <N/A>",
        "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html",
    )
    return "".join(f"{label}{row}\n" for row in rows)


# --- the environment that a script prints


def test_a_variable_is_no_status_of_a_library(told: Told) -> None:
    env = "CUFFT_VERSION=12.1.0.3\n_COMPAT_STATUS=driver mismatch (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH) cuInit()=803\n"
    raised = _raised("", "/j/train.py", "TypeError: step() takes 1 argument")
    assert told(env + raised).primary.type == "TypeError"  # type: ignore[union-attr]
    assert told("plan of the transform: CUFFT_INTERNAL_ERROR\n").primary.type == "CUFFT_INTERNAL_ERROR"  # type: ignore[union-attr]


def test_a_word_in_small_letters_before_a_status_is_a_programs(told: Told) -> None:
    for line in ("cuda_err=700 (cudaErrorIllegalAddress) in step 12\n", "status=CUDA_ERROR_ILLEGAL_ADDRESS\n"):
        assert told(line).verdict.category is Category.ILLEGAL_MEMORY_ACCESS
    assert told("export last=CUDA_ERROR_ILLEGAL_ADDRESS\n").primary is None


def test_a_label_that_begins_late_is_one(told: Told) -> None:
    script = "".join(f"+ export SETTING_{n}=on\n" for n in range(450))
    failed = "0: [default0]:/usr/bin/python3: Error while finding module specification for 'lab.train' (ModuleNotFoundError: No module named 'lab')\n"
    frames = "".join(f'0:   File "/usr/lib/python3/torch/distributed/run.py", line {n}, in f{n}\n0:     f{n + 1}()\n' for n in range(4))
    raised = "0: torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    block = "".join(f"0: {row}\n" for row in ("=" * 40, "lab.train FAILED", "-" * 40))
    agent = "0: Traceback (most recent call last):\n" + frames + raised + block + _summary("0: ", 0, 0, 1)
    primary = told(script + failed + agent).primary
    assert primary is not None and primary.message.startswith("/usr/bin/python3: Error")
    listed = "".join(f"{n}: a line of a numbered list\n" for n in range(3))
    plain = told(script + listed + _raised("", "/j/train.py", "KeyError: 'lab'")).primary
    assert plain is not None and plain.type == "KeyError" and plain.rank is None


def test_a_step_before_the_launcher_is_another_program(told: Told) -> None:
    step = _raised("", "/home/ada/bin/tracker", "ModuleNotFoundError: No module named 'dataclasses'") + "cat: '': No such file or directory\n"
    spoke = "".join(f"{n}: loading\n" for n in (1, 0, 2, 3))
    job = _raised("2: [rank2]: ", "/j/train.py", "AssertionError: the two schedules differ")
    primary = told(step + spoke + job).primary
    assert primary is not None and primary.type == "AssertionError"
    alone = told(step).primary
    assert alone is not None and alone.message == "No module named 'dataclasses'"  # without the shell's words
    within = told(spoke + step + job).primary  # the job was there already
    assert within is not None and within.type == "ModuleNotFoundError"


# --- tasks that start several ranks


def test_ranks_of_tasks_by_their_agents_summaries(told: Told) -> None:
    usage = "2: [default1]:train.py: error: unrecognized arguments: --keep 5\n"
    told_ = _summary("1: ", 4, 0, 2) + _summary("3: ", 13, 1, 2)
    rank = told(usage + "".join(f"{n}: [default0]:ready\n" for n in range(4)) + told_).verdict.rank
    assert rank is not None and rank.number == 9
    unknown = told(usage + "".join(f"{n}: [default0]:ready\n" for n in range(4))).verdict.rank
    assert unknown is None or unknown.number is None  # which ranks the third task has, nothing says


def test_a_lost_rendezvous_follows_from_the_agent_that_ended(told: Told) -> None:
    lost = _raised(
        "1: ", "/usr/bin/torchrun", "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed. See inner exception for details."
    )
    signal = _summary("0: ", 1, 1, -7).replace("To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html", "Signal 7 (SIGBUS) received by PID 901")
    both = told(signal + lost)
    assert both.verdict.category is Category.SEGFAULT and both.primary.type == "SIGBUS"  # type: ignore[union-attr]
    assert told(lost).verdict.category is Category.NCCL


# --- programs and who started them


def test_a_refused_argument_is_nearer_than_the_parent_and_the_agents(told: Told) -> None:
    usage = "train.py: error: argument --fp8: ignored explicit argument 'true'\n"
    parent = _raised("", "/j/sweep.py", "subprocess.CalledProcessError: Command '['/opt/bin/python3', '-m', 'train']' returned non-zero exit status 2.")
    incident = told(usage + parent)
    assert incident.verdict.category is Category.CONFIG_ERROR
    assert incident.verdict.signature == "launcher.argument-value-refused"
    assert told(parent).primary.type.endswith("CalledProcessError")  # type: ignore[union-attr]


def test_the_child_is_nearer_than_its_parent(told: Told) -> None:
    child = _raised("", "/j/train.py", "ValueError: the vocabulary has no end token")
    parent = "subprocess.CalledProcessError: Command '['{}', '-x']' returned non-zero exit status 1."
    assert told(child + _raised("", "/j/sweep.py", parent.format("/opt/bin/python3"))).primary.type == "ValueError"  # type: ignore[union-attr]
    built = told(_raised("", "/j/sweep.py", parent.format("/opt/bin/ptxas")))
    assert built.primary.type.endswith("CalledProcessError")  # type: ignore[union-attr]


def test_what_several_wrote_over_each_other(told: Told) -> None:
    primary = told("ValueErrorValueErrorValueError: : : no such axis: 7\n").primary
    assert primary is not None and (primary.type, primary.message) == ("ValueError", "no such axis: 7")
    other = told("MyValueError: no such axis: 7\n").primary
    assert other is not None and other.type == "MyValueError"


def test_the_first_of_alike_failures_whose_frames_differ(told: Told) -> None:
    head = "".join(f"{n}: iteration 4/90 | loss 2.1\n" for n in range(4))
    whole = _raised("0: [rank0]: ", "/j/train.py", "AssertionError: 4 samples are too few")
    torn = "1: [rank1]: Traceback (most recent call last):\n1: [rank1]:   File \"/j/other.py\", line 3, in f\n1: [rank1]: AssertionError: 4 samples are too few\n"
    between = "".join(f"{n}: iteration {n}/90 | loss 2.0\n" for n in range(5, 12))
    rank = told(head + whole + between + torn).verdict.rank
    assert rank is not None and rank.number == 0
    other = torn.replace("4 samples are too few", "no cache")
    rank = told(head + whole + between + other).verdict.rank
    assert rank is not None and rank.number == 1  # the job went on after the first


# --- words


@pytest.mark.parametrize(
    "line, category",
    [
        ("LAB_FAST_PATH set to 0, but expected 1 for this layout", Category.CONFIG_ERROR),
        ("the counter was set to 0, but expected 1", Category.UNKNOWN),
    ],
)
def test_a_variable_with_the_wrong_value_is_a_setting(told: Told, line: str, category: Category) -> None:
    framed = f'Traceback (most recent call last):\n  File "/usr/lib/python3/site-packages/megatron/core/lab.py", line 3, in check\n    assert x\nAssertionError: {line}\n'
    assert told(framed).verdict.category is category


def test_whose_heartbeats_stopped(told: Told) -> None:
    words = "2026-03-02 10:41:05.110000: E external/tsl/coordination_service.cc:954] /job:jax_worker/replica:0/task:5 has been set to ERROR in coordination service: UNAVAILABLE: Task /job:jax_worker/replica:0/task:5 heartbeat timeout.\n"
    incident = told(words)
    assert incident.verdict.rank is not None and incident.verdict.rank.number == 5
    assert incident.status is Status.CRASHED
    connected = "2026-03-02 10:41:05.110000: E external/tsl/coordination_service.cc:954] /job:jax_worker/replica:0/task:5 unexpectedly tried to connect while it is already connected.\n"
    assert told(connected).verdict.rank is None


def test_python_says_which_module_it_could_not_run(told: Told) -> None:
    primary = told("/usr/bin/python3: Error while finding module specification for 'lab.train' (ModuleNotFoundError: No module named 'lab')\n").primary
    assert primary is not None and primary.type == "ModuleNotFoundError"
