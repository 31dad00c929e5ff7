"""What people paste of a training that died: numbered lines, a torn end, several starts in one terminal, ranks that fail alike."""

from __future__ import annotations

from forensics.model.verdict import Category, Status
from tests.verdict.conftest import Told, number, primary

_TRACE = (
    "Traceback (most recent call last):\n"
    '  File "/app/fit.py", line 41, in <module>\n    main()\n'
    '  File "/app/fit.py", line 30, in main\n    dist.barrier()\n'
    "ValueError: the groups are not alike\n"
)


def _numbered(text: str, gutter: str) -> str:
    return "".join(gutter.format(n) + line + "\n" for n, line in enumerate(text.splitlines(), 96))


def test_line_numbers_that_were_copied_with_a_log_are_no_writers(told: Told) -> None:
    ranked = "".join(f"[rank3]: {line}\n" for line in _TRACE.splitlines())
    for gutter in ("{:>6}\t", "{:>4}  "):
        incident = told(_numbered(ranked, gutter))
        assert primary(incident).type == "ValueError"
        assert [frame.line for frame in primary(incident).frames] == [41, 30]
        assert number(incident) == 3
    # a label of srun is no line number
    assert number(told("".join(f"3: {line}\n" for line in _TRACE.splitlines()))) == 3


_AGENT = "/venv/lib/python3.11/site-packages/torch/distributed/elastic/agent/server/api.py:719] "
_TORN = 'Traceback (most recent call last):\n  File "/venv/bin/torchrun", line 8, in <module>\n    sys.exit(main())\n'


def test_a_signal_says_why_a_traceback_ends_that_is_cut_off(told: Told) -> None:
    for name in ("1", "Signals.SIGHUP"):
        incident = told(f"W0311 08:14:02.118000 611 {_AGENT}Received {name} death signal, shutting down workers\n{_TORN}")
        assert incident.verdict.category is Category.KILLED_EXTERNALLY
        assert incident.verdict.signature == "launcher.sighup-received"
    by_hand = told(f"W0311 08:14:02.118000 611 {_AGENT}Received 2 death signal, shutting down workers\n{_TORN}")
    assert by_hand.verdict.category is Category.KILLED_EXTERNALLY
    assert "by hand" in by_hand.verdict.title
    # what a rank raised before it was ended stays the cause
    whole = told(f"{_TRACE}W0311 08:14:02.118000 611 {_AGENT}Received 15 death signal, shutting down workers\n{_TORN}")
    assert primary(whole).type == "ValueError"


def _table(*rows: tuple[int, int]) -> str:
    """The agent's summary of (rank, exit code)."""
    head, *others = rows
    text = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n=====\nfit.py FAILED\n-----\nFailures:\n"
    for place, (rank, code) in enumerate(others, 1):
        text += f"[{place}]:\n  time      : 2026-03-11_08:14:02\n  host      : n1\n  rank      : {rank} (local_rank: {rank})\n"
        text += f"  exitcode  : {code} (pid: 50{rank})\n  error_file: <N/A>\n  traceback : To enable traceback see: https://x\n"
    rank, code = head
    text += "-----\nRoot Cause (first observed failure):\n[0]:\n  time      : 2026-03-11_08:14:02\n  host      : n1\n"
    text += f"  rank      : {rank} (local_rank: {rank})\n  exitcode  : {code} (pid: 50{rank})\n  error_file: <N/A>\n"
    return text + "  traceback : To enable traceback see: https://x\n=====\n"


def test_as_many_alike_tracebacks_as_torchs_agent_saw_workers_fail_are_theirs(told: Told) -> None:
    incident = told(_TRACE * 3 + _table((1, 1), (0, 1), (2, 1)))
    assert number(incident) == 1
    assert sorted(rank.number for rank in incident.verdict.same_failure_ranks if rank.number is not None) == [0, 2]
    # one traceback, three ends: who else raised it is not said
    assert not told(_TRACE + _table((1, 1), (0, 1), (2, 1))).verdict.same_failure_ranks


def test_the_last_line_of_tracebacks_woven_into_each_other_is_the_rank_that_ended_first(told: Told) -> None:
    woven = "^^^^  ^^ ^^^^\nFileNotFoundError: [Errno 2] No such file or directory: '/data/run.yaml'\n"
    assert number(told(woven + _table((2, 1), (5, 1)))) == 2
    assert number(told(woven)) is None


def test_each_command_typed_at_a_prompt_begins_a_run(told: Told) -> None:
    def session(rank: int, error: str) -> str:
        trace = _TRACE.replace("ValueError: the groups are not alike", error)
        return f"amy@gpu7:~/lm$ torchrun --nproc-per-node 4 fit.py\nloading\n{trace}\n{_table((rank, 1))}"

    incident = told(session(3, "ValueError: no data") + session(1, "KeyError: 'split'") + "amy@gpu7:~/lm$ \n")
    assert primary(incident).type == "KeyError"
    assert number(incident) == 1
    assert len(incident.others) == 1
    # an address in a line of the job is no prompt
    one = told(session(3, "ValueError: no data") + "mail amy@gpu7: the python run costs $ 3\n")
    assert not one.others


def _asserts(path: str, function: str, code: str) -> str:
    return f'Traceback (most recent call last):\n  File "{path}", line 12, in {function}\n    {code}\nAssertionError\n'


def test_a_bare_assertion_among_the_arguments_is_about_settings(told: Told) -> None:
    path = "/venv/lib/python3.11/site-packages/megatron/training/arguments.py"
    assert told(_asserts(path, "validate_args", "assert not args.fp8")).verdict.category is Category.CONFIG_ERROR
    other = told(_asserts(path.replace("training/arguments", "core/attention"), "forward", "assert self.q == self.k"))
    assert other.verdict.category is Category.UNKNOWN


def test_a_script_that_stops_at_a_loss_that_is_not_finite(told: Told) -> None:
    end = "E0311 08:14:02.1 7 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 0 (pid: 71) of binary: /py\n"
    incident = told("Epoch: [3]  [ 40/500]  loss: 1.2 (1.4)  time: 0.6\nLoss is inf, stopping training\n" + end)
    assert incident.verdict.category is Category.NUMERICS
    assert incident.verdict.signature == "torch.loss-not-finite-stop"
    early = told("Epoch: [3]  [ 40/500]  loss: 1.2 (1.4)  time: 0.6\nloss did not improve, stopping training\n" + end)
    assert early.verdict.category is not Category.NUMERICS


def test_a_store_that_found_no_free_address(told: Told) -> None:
    told_of = (
        "[W socket.cpp:426] [c10d] The server socket has failed to bind to [::]:29507 (errno: {} - {}).\n"
        "[E socket.cpp:462] [c10d] The server socket has failed to listen on any local network address.\n"
        'Traceback (most recent call last):\n  File "fit.py", line 47, in train\n    dist.init_process_group(\n'
    )
    assert told(told_of.format(98, "Address already in use")).verdict.signature == "host.port-in-use-listeners"
    assert told(told_of.format(13, "Permission denied")).verdict.signature != "host.port-in-use-listeners"


def test_an_exception_that_the_log_begins_with_is_that_of_the_rank_whose_traceback_is_whole(told: Told) -> None:
    ranked = "".join(f"[rank0]: {line}\n" for line in _TRACE.splitlines())
    incident = told("[rank5]: ValueError: the groups are not alike\n" + ranked)
    assert number(incident) == 5
    assert [frame.line for frame in primary(incident).frames] == [41, 30]
    assert [rank.number for rank in incident.verdict.same_failure_ranks] == [0]
    # another message is another failure
    other = told("[rank5]: ValueError: no groups\n" + ranked)
    assert not other.verdict.same_failure_ranks


def test_a_store_to_which_too_few_processes_came(told: Told) -> None:
    text = f"{_TRACE.replace('ValueError: the groups are not alike', 'torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/8 clients joined.')}"
    incident = told(text)
    assert incident.verdict.signature == "nccl.store-clients-missing"
    assert "1 of 8" in incident.verdict.title
    # what a rank raised before it could come is the cause
    earlier = told("[rank3]: " + _TRACE.replace("\n", "\n[rank3]: ").removesuffix("[rank3]: ") + text)
    assert primary(earlier).type == "ValueError"


def test_a_box_whose_head_was_cut_off_still_shows_where_it_failed(told: Told) -> None:
    box = (
        "│ ❱  88 │   loss = step(batch)                                │\n"
        "│                                                            │\n"
        "│ /venv/lib/python3.11/site-packages/engine/runtime/conf.py: │\n"
        "│ 412 in _check_sizes                                        │\n"
        "│                                                            │\n"
        "│   411 │   │   sizes = self.sizes                            │\n"
        "│ ❱ 412 │   │   return self.rows[sizes]                       │\n"
        "╰────────────────────────────────────────────────────────────╯\n"
    )
    incident = told(box + "IndexError: index 5 is out of bounds for dimension 0 with size 4\n")
    assert primary(incident).type == "IndexError"
    assert [(f.file.rsplit("/", 1)[-1], f.line, f.function, f.code) for f in primary(incident).frames] == [
        ("conf.py", 412, "_check_sizes", "│   │   return self.rows[sizes]")
    ]
    # a table with such a mark is no stack
    assert told("│ NAME    │ STATUS │\n│ ❱ run-7 │ active │\n").status is Status.HEALTHY


def test_a_code_mark_before_a_rank_is_no_writer(told: Told) -> None:
    lines = [f"[rank3]: {line}" for line in _TRACE.splitlines()]
    for mark in ("`", "` ", "```"):
        incident = told(f"same here\n{mark}" + "\n".join(lines) + "`\n")
        assert number(incident) == 3
        assert [frame.line for frame in primary(incident).frames] == [41, 30]
