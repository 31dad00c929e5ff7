"""The summary of torch's agent where the workers had left their tracebacks for it, and ranks that it compares."""

from __future__ import annotations

from forensics.model.verdict import Category, CausalRole
from tests.verdict.conftest import Told, number, primary

_HEAD = """torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
pretrain.py FAILED
------------------------------------------------------------
Failures:
"""


def _entry(place: int, rank: int, second: int, frame: str, error: str) -> str:
    return f"""[{place}]:
  time      : 2026-11-29_20:15:{second}
  host      : node3
  rank      : {rank} (local_rank: {rank - 4})
  exitcode  : 1 (pid: {4000 + rank})
  error_file: /tmp/torchelastic_a/none_b/attempt_0/{rank - 4}/error.json
  traceback : Traceback (most recent call last):
    File "/venv/lib/python3.12/site-packages/torch/distributed/elastic/multiprocessing/errors/__init__.py", line 355, in wrapper
      return f(*args, **kwargs)
             ^^^^^^^^^^^^^^^^^^
    File "/srv/model.py", line {frame}, in step
      return table[ids]
             ~~~~~^^^^^
  {error}

------------------------------------------------------------
"""


_LATER = _entry(1, 6, 24, "41", "IndexError: index 5 is out of bounds for dimension 0 with size 4")
_FIRST = "Root Cause (first observed failure):\n" + _entry(0, 5, 22, "40", "KeyError: 'oov'")
_SUMMARY = _HEAD + _LATER + _FIRST


def test_of_the_tracebacks_in_a_summary_the_one_that_was_seen_first_leads(told: Told) -> None:
    for prefix in ("", "3: "):
        incident = told("".join(f"{prefix}{line}\n" for line in _SUMMARY.splitlines()))
        assert primary(incident).type == "KeyError"
        assert number(incident) == 5
        assert primary(incident).frames[-1].line == 40
        # the exits that the summary tells of are those tracebacks
        assert not [f for f in incident.failures if f.kind == "exit"]
        assert {f.rank.number for f in incident.failures if f.rank is not None} == {5, 6}


def _printed(rank: int, line: str, error: str, stamp: str = "") -> str:
    text = f'Traceback (most recent call last):\n  File "/srv/model.py", line {line}, in step\n    return table[ids]\n{error}\n'
    return "".join(f"{stamp}[rank{rank}]: {part}\n" for part in text.splitlines())


def test_ranks_whose_lines_have_no_clock_are_ordered_by_the_agents(told: Told) -> None:
    own = _printed(6, "41", "IndexError: index 5 is out of bounds for dimension 0 with size 4") + _printed(5, "40", "KeyError: 'oov'")
    assert number(told(own + _SUMMARY)) == 5
    # without a word about rank 6 in the summary nothing says which of the two came first but their lines
    assert number(told(own + _HEAD + _FIRST)) == 6


def test_an_exit_whose_traceback_was_not_kept_says_its_code(told: Told) -> None:
    whole = _FIRST.partition("    File ")[0]
    incident = told(_HEAD + whole)
    assert primary(incident).message == "exit code 1"
    assert number(incident) == 5


_PRINT = "CollectiveFingerPrint(SequenceNumber={}OpType=BARRIER)"


def test_fingerprints_without_tensors_are_read(told: Told) -> None:
    told_by = "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: "
    incident = told(f"{told_by}{_PRINT.format(8)}, but Rank 0 is running collective: {_PRINT.format(7)}.\n")
    assert incident.verdict.category is Category.HANG_OR_WATCHDOG
    assert incident.collective is not None
    assert [(row["rank"], row["sequence"]) for row in incident.collective.desync] == [(1, 8), (0, 7)]
    torn = told(f"{told_by}CollectiveFinger\n")
    assert torn.verdict.category is Category.HANG_OR_WATCHDOG
    assert not [note for note in torn.coverage.notes if "error of its own" in note.text]


def test_a_launcher_that_lost_its_rendezvous_says_which_node(told: Told) -> None:
    line = "WARNING:torch.distributed.elastic.rendezvous.dynamic_rendezvous:The node 'node7_81_0' has failed to {} the rendezvous 'none' due to an error of type RendezvousConnectionError.\n"
    assert primary(told(line.format("send a keep-alive heartbeat to") * 2)).message.startswith("The node 'node7_81_0' has failed to send")
    # beside another failure it is what came of that
    other = told(_printed(2, "9", "KeyError: 'oov'") + line.format("shutdown"))
    assert number(other) == 2
    assert [f.role for f in other.failures] == [CausalRole.INITIATING, CausalRole.CASCADE]
