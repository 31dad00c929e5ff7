"""One row a fault and device."""

from __future__ import annotations

from forensics.model.verdict import Category, Status

from .conftest import Told

FALLEN = """\
[1234890.222] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
[1234890.223] NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.
"""


def test_a_device_with_and_without_its_function_is_one(told: Told) -> None:
    rows = told(FALLEN).hardware
    assert [(row.code, row.device) for row in rows] == [(79, "0000:3b:00")]


def _lost(rank: int, what: str) -> str:
    lines = ("Traceback (most recent call last):", '  File "/j/run.py", line 9, in <module>', "    loss.backward()", what)
    return "step 1 loss 2.0\n" + "".join(f"[rank{rank}]: {line}\n" for line in lines)


GONE = "[Mon Mar  2 10:20:44 2026] NVRM: Xid (PCI:0000:9b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"


def test_what_a_runtime_says_of_a_lost_device_follows_from_the_drivers_word(told: Told) -> None:
    for what in ("torch.AcceleratorError: CUDA error: unknown error", "torch.AcceleratorError: CUDA error: unspecified launch failure"):
        incident = told(_lost(5, what), GONE)
        assert incident.primary is not None and incident.primary.type == "Xid 79"
        assert incident.verdict.rank is not None and incident.verdict.rank.number == 5


def test_an_error_of_the_programs_own_beside_it_stays_one(told: Told) -> None:
    incident = told(_lost(5, "KeyError: 'doc_71'"), GONE)
    assert incident.primary is not None and incident.primary.type == "KeyError"
    program = GONE.replace(": 79,", ": 13,").replace("GPU has fallen off the bus", "Graphics Exception")
    incident = told(_lost(5, "torch.AcceleratorError: CUDA error: unspecified launch failure"), program)
    assert incident.primary is not None and incident.primary.type != "Xid 13"


def test_a_rank_that_waited_did_not_lose_its_device(told: Told) -> None:
    work = "WorkNCCL(SeqNum=811, OpType=BARRIER, NumelIn=1, NumelOut=1, Timeout(ms)=600000)"
    waited = f"[rank0]:[E302 10:31:05.100771201 ProcessGroupNCCL.cpp:685] [Rank 0] Watchdog caught collective operation timeout: {work} ran for 600042 milliseconds before timing out.\n"
    ended = "E0302 10:31:20.000000 611 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -6) local_rank: 0 (pid: 702) of binary: /usr/bin/python3\nRoot Cause (first observed failure):\n[0]:\n  time      : 2026-03-02_10:31:20\n  host      : n1\n  rank      : 0 (local_rank: 0)\n  exitcode  : -6 (pid: 702)\n"
    incident = told("2026-03-02 10:20:01,123 step 1 loss 2.0\n" + waited + ended, GONE)
    assert incident.verdict.category is Category.DRIVER_OR_HARDWARE and incident.verdict.rank is None


def test_a_calm_line_above_a_fault_is_no_heading_of_it(told: Told) -> None:
    """Other writers go on beside it; nothing that they say deals with a device that is gone."""
    calm = "".join(f"[2026-11-29 20:15:{n:02d} TP{n % 4}] INFO loaded shard {n} of 90\n" for n in range(40))
    assert told(calm).status is Status.HEALTHY
    found = told(calm + FALLEN + calm)
    assert found.status is Status.CRASHED
    assert found.verdict.category is Category.DRIVER_OR_HARDWARE


CHANNEL = "[Mon Mar  2 10:20:44 2026] NVRM: Xid (PCI:0000:9b:00): 43, pid=812, name=notebook, Ch 00000010\n"
STEPS = "".join(f"[2026-03-02 10:2{n}:00] step {n} loss 2.0\n" for n in range(3, 6))


def test_a_fault_before_a_job_that_came_to_its_end_did_not_end_it(told: Told) -> None:
    killed = "[ 900.1] Out of memory: Killed process 777 (browser) total-vm:9999kB, anon-rss:8888kB, file-rss:0kB, shmem-rss:0kB, UID:1000\n"
    other = told(killed + STEPS + "Training complete.\n")
    assert (other.status, other.verdict.category) == (Status.DEGRADED, Category.OOM_HOST)
    assert told(STEPS + killed).status is Status.KILLED
    for end in ("[2026-03-02 10:30:00] training finished\n", "Training complete.\n"):
        for fault in (CHANNEL, GONE):
            incident = told(fault + STEPS + end)
            assert (incident.status, incident.verdict.category) == (Status.DEGRADED, Category.DRIVER_OR_HARDWARE)
    assert told(STEPS + GONE).status is Status.CRASHED
    assert told(GONE + STEPS).status is Status.CRASHED  # nothing says how it ended


def test_no_node_is_taken_away_for_a_programs_error(told: Told) -> None:
    assert not any("out of service" in step for step in told(CHANNEL).verdict.next_steps)
    assert any("out of service" in step for step in told(CHANNEL.replace(": 43,", ": 62,")).verdict.next_steps)


def test_what_the_driver_only_notes_is_no_cause(told: Told) -> None:
    """A row of memory was remapped, and the program went on to its own error."""
    noted = CHANNEL.replace(": 43,", ": 63,").replace("Ch 00000010", "Row remapper: new row marked for remapping")
    raised = "".join(f"[rank2]: {line}\n" for line in ("Traceback (most recent call last):", '  File "/j/run.py", line 9, in f', "    at(7)"))
    incident = told(noted + raised + "[rank2]: IndexError: list index out of range\n")
    assert incident.primary is not None and incident.primary.type == "IndexError" and [row.code for row in incident.hardware] == [63]
    lost = told(noted.replace(": 63,", ": 48,") + raised + "[rank2]: torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered\n")
    assert lost.verdict.category is Category.DRIVER_OR_HARDWARE
    assert told(noted).verdict.category is Category.DRIVER_OR_HARDWARE  # all that is known
