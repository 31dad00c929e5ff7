"""Did the job go on? Healthy, degraded and asked-to-stop logs."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, Status

from . import logs
from .conftest import Told, primary


def test_a_server_that_serves_on_is_degraded(told: Told) -> None:
    incident = told(logs.SERVES_ON)
    assert incident.status is Status.DEGRADED
    assert incident.primary is not None
    assert incident.primary.type == "ValueError"


def test_the_same_error_as_the_last_words_is_a_crash(told: Told) -> None:
    text = "".join(line for line in logs.SERVES_ON.splitlines(keepends=True) if "INFO" not in line)
    assert told(text).status is Status.CRASHED


def test_an_orderly_stop_is_healthy(told: Told) -> None:
    incident = told(logs.ASKED_TO_STOP)
    assert incident.status is Status.HEALTHY
    assert incident.verdict.category is Category.NONE
    assert incident.primary is None


def test_ctrl_c_in_the_middle_is_a_kill(told: Told) -> None:
    incident = told(logs.CTRL_C_IN_TRAINING)
    assert incident.status is Status.KILLED
    assert incident.verdict.category is Category.KILLED_EXTERNALLY


def test_a_program_that_ends_in_order_because_it_could_not_start_has_crashed(told: Told) -> None:
    incident = told(logs.LLAMA_OOM)
    assert incident.status is Status.CRASHED
    assert incident.verdict.category is Category.OOM_GPU


def test_an_error_line_amid_work_is_no_failure(told: Told) -> None:
    text = "step 1 | loss 2.31\nERROR: telemetry endpoint did not answer\nstep 2 | loss 2.30\nstep 3 | loss 2.29\n"
    assert told(text).status is Status.HEALTHY


def test_an_error_line_as_the_last_word_is_one(told: Told) -> None:
    text = "step 1 | loss 2.31\nERROR: the checkpoint directory is not writable\n"
    assert told(text).status is not Status.HEALTHY


def test_a_handled_exception_is_told_but_not_blamed(told: Told) -> None:
    text = """\
step 1 | loss 2.31
WARNING:root:reference could not be made, falling back to cosine
Traceback (most recent call last):
  File "/work/bench.py", line 9, in reference
    model.double()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB.
step 2 | loss 2.30
pass
"""
    incident = told(text)
    assert incident.status is Status.HEALTHY
    assert incident.primary is None
    assert any("out of memory" in other.title for other in incident.others)


PROMPT = (
    "(APIServer pid=7) INFO 12-01 10:06:12 [logger.py:40] Received request chat-1: prompt: '<|im_start|>user\\n{}<|im_end|>', params: x\n"
    'INFO:     10.7.0.2:55100 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
    'INFO:     10.7.0.2:55101 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
)


@pytest.mark.parametrize(
    "said",
    [
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.",
        "[rank3]:[E1129 20:11:22 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1000) ran for 1001 milliseconds before timing out.",
        "Segmentation fault (core dumped)",
    ],
)
def test_what_users_ask_about_is_no_failure_of_the_server(told: Told, said: str) -> None:
    assert told(PROMPT.format(said)).status is Status.HEALTHY


ASKED = "INFO 12-01 10:06:12 [logger.py:40] Received request chat-1: "
PASTE = """\
Traceback (most recent call last):
  File "/home/u/train.py", line 40, in main
    loss.backward('x')
RuntimeError: CUDA error: an illegal memory access was encountered
Segmentation fault (core dumped)
"""
SERVED = 'INFO:     10.7.0.2:55100 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'


@pytest.mark.parametrize("behind", ["", SERVED * 3])
@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("prompt: 'It's my job that ends so:\n\n", "What can I do?', params: SamplingParams(n=1)\n"),
        ("prompt: '", "', params: SamplingParams(n=1)\n"),
        ("obj=GenerateReqInput(rid='a1', text='look:\n", "What now?', sampling_params={'temperature': 0})\n"),
        ('{"messages": [{"role": "user", "content": "look:\n', 'What now?"}]}\n'),
    ],
)
def test_a_prompt_of_several_lines_is_no_failure_and_none_that_was_dealt_with(told: Told, start: str, end: str, behind: str) -> None:
    incident = told(SERVED + ASKED + start + PASTE + end + behind)
    assert (incident.status, incident.primary, incident.others) == (Status.HEALTHY, None, ())
    assert "dealt with" not in incident.verdict.explanation


@pytest.mark.parametrize("behind", ["", 'INFO:     10.7.0.9:61 - "POST /v1/completions HTTP/1.1" 200 OK\n' * 3])
def test_a_prompt_that_does_not_end_leaves_open_whose_words_follow(told: Told, behind: str) -> None:
    incident = told(SERVED + ASKED + "prompt: 'hello\n" + PASTE + behind)
    assert (incident.status, incident.verdict.category) == (Status.UNKNOWN, Category.UNKNOWN)
    assert incident.verdict.evidence[0].span.first_line > 2


@pytest.mark.parametrize("behind", ["", SERVED * 3])
def test_what_stands_behind_a_prompt_that_is_whole_is_the_servers_own(told: Told, behind: str) -> None:
    for record in ("prompt: 'hello', params: SamplingParams(n=1)\n", "prompt: 'he\nllo', params: SamplingParams(n=1)\n"):
        assert told(SERVED + ASKED + record + PASTE + behind).status is Status.CRASHED


def test_an_empty_log_has_no_failure(told: Told) -> None:
    assert told("").primary is None


def _rank_file(rank: int, clock: str, prefix: str, fails: bool) -> str:
    lines = [f"{clock.format(n)}step {n} loss {4 - n / 100:.3f}" for n in range(1, 15)]
    if fails:
        lines += ["Traceback (most recent call last):", '  File "/j/run.py", line 9, in <module>', "    main()", "ValueError: bucket 7 has no samples"]
    return "".join(f"{prefix.format(rank)}{line}\n" for line in lines)


@pytest.mark.parametrize("clock", ["", "[2026-03-02 10:20:{:02d},123] "])
@pytest.mark.parametrize("prefix", ["", "[rank{}]: "])
def test_files_of_ranks_behind_each_other_are_no_work_after_the_failure(told: Told, clock: str, prefix: str) -> None:
    files = [_rank_file(rank, clock, prefix, rank == 2) for rank in range(8)]
    assert told("".join(files)).status is Status.CRASHED
    later = "".join(f"{prefix.format(0)}{clock.format(n)}step {n} loss 2.1\n" for n in range(15, 40))
    assert told("".join(files) + later).status is Status.DEGRADED


STEPS = "".join(f"2026-03-02 10:00:0{n} INFO trainer: step {n} loss {3 - n / 10:.2f}\n" for n in range(1, 8))
CAUGHT = """\
2026-03-02 10:00:08 ERROR data: could not read a shard
Traceback (most recent call last):
  File "/srv/train/data.py", line 88, in fetch
    row = self.index[key]
KeyError: 'shard-17'
"""
WENT_ON = "2026-03-02 10:00:09 INFO trainer: step 8 loss 2.20\n"


def test_one_line_of_work_behind_a_logged_exception_at_the_end_of_the_log_shows_that_the_job_went_on(told: Told) -> None:
    assert told(STEPS + CAUGHT + WENT_ON).status is Status.DEGRADED
    assert told(STEPS + CAUGHT).status is Status.CRASHED


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("in fetch", "in <module>"),  # nobody caught it
        ("KeyError: 'shard-17'", "RuntimeError: CUDA error: an illegal memory access was encountered"),  # no process gets over it
        ("2026-03-02 10:00:08 ERROR data: could not read a shard\n", ""),  # printed by nobody knows whom
        ("10:00:09 INFO", "10:00:07 INFO"),  # written before
    ],
)
def test_one_line_of_work_behind_an_exception_proves_nothing_where_it_may_be_anothers(told: Told, old: str, new: str) -> None:
    text = STEPS + CAUGHT + WENT_ON
    assert old in text
    assert told(text.replace(old, new)).status is Status.CRASHED


@pytest.mark.parametrize(("rank", "status"), [(1, Status.DEGRADED), (0, Status.CRASHED)])
def test_one_line_of_work_counts_for_the_rank_that_printed_it(told: Told, rank: int, status: Status) -> None:
    steps = "".join(f"[rank{r}]: step {n}: loss={3 - n / 10:.2f}\n" for n in range(1, 6) for r in (0, 1))
    failed = "".join(f"[rank1]: {line}\n" for line in CAUGHT.splitlines()[1:])
    assert told(steps + failed + f"[rank{rank}]: step 6: loss=2.4\n").status is status


REFUSED = """\
INFO 03-02 10:00:01 [api_server.py:1] Started server process
ERROR 03-02 10:00:09 [serving.py:88] Error in preprocessing prompt inputs
ERROR 03-02 10:00:09 [serving.py:88] Traceback (most recent call last):
ERROR 03-02 10:00:09 [serving.py:88]   File "/opt/engine/entrypoints/serving.py", line 80, in create
ERROR 03-02 10:00:09 [serving.py:88]     prompt = self.render(messages)
ERROR 03-02 10:00:09 [serving.py:88] ValueError: the message has no content
"""


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ("POST /v1/completions HTTP/1.1\" 400 Bad Request", Status.DEGRADED),
        ("POST /v1/completions HTTP/1.1\" 200 OK", Status.DEGRADED),
        ("POST /v1/completions HTTP/1.1\" 500 Internal Server Error", Status.CRASHED),
        ("GET /health HTTP/1.1\" 200 OK", Status.CRASHED),
    ],
)
def test_a_server_that_refuses_a_request_lives(told: Told, answer: str, status: Status) -> None:
    assert told(f'{REFUSED}INFO:     10.0.0.4:51002 - "{answer}\n').status is status


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("NET/IB : link of mlx5_0 is slow", Status.HEALTHY),
        ("NET/Plugin: this setting may cost performance", Status.HEALTHY),
        ("socketProgress: Connection closed by remote peer node2<40222>", Status.CRASHED),
        ("NET/Socket : peer 10.0.0.5<41022> did not answer", Status.CRASHED),
        ("AllReduce : this communicator was destroyed before", Status.CRASHED),
        ("NET/Socket : timed-out at peer 10.0.0.5<41022>", Status.CRASHED),
    ],
)
def test_a_warning_at_the_end_is_a_failure_where_it_names_one(told: Told, said: str, status: Status) -> None:
    assert told(f"{STEPS}node1:771:802 [0] NCCL WARN {said}\n").status is status


def test_a_command_that_a_script_did_not_find_before_the_job_began_did_not_end_it(told: Told) -> None:
    missing = "/var/spool/slurmd/job7/slurm_script: line 85: gpu-report: command not found\n"
    began = "".join(f"[rank{n}]: loading the data set\n" for n in range(4))
    assert told(missing + began).verdict.category is Category.NONE
    assert told(missing).verdict.category is Category.MISSING_LIBRARY
    assert told(began + missing).verdict.category is Category.MISSING_LIBRARY
    failed = "[rank2]: Traceback (most recent call last):\n[rank2]:   File \"/srv/train.py\", line 7, in <module>\n[rank2]:     main()\n[rank2]: KeyError: 'a'\n"
    incident = told(missing + began + failed)
    assert incident.verdict.category is Category.USER_CODE and primary(incident).type == "KeyError"
