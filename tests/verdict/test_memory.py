"""Whose memory it was when a GPU was full, and what that asks for."""

from __future__ import annotations

import pytest

from forensics.verdict.memory import may_help, memory_in, said_of, steps_of

from .conftest import Told

HEAD = "CUDA out of memory. Tried to allocate {wanted}. GPU 3 has a total capacity of 80.00 GiB of which {free} is free. "
TAIL = "Of the allocated memory {allocated} is allocated by PyTorch, and {idle} is reserved by PyTorch but unallocated."


def of(wanted: str = "2.00 GiB", free: str = "1.00 GiB", allocated: str = "70.00 GiB", idle: str = "128.00 MiB", between: str = "") -> str:
    return HEAD.format(wanted=wanted, free=free) + between + TAIL.format(allocated=allocated, idle=idle)


OWN = "Including non-PyTorch memory, this process has {} memory in use. "
LISTED = "Process 4711 has {} memory in use. "


@pytest.mark.parametrize(
    ("text", "says", "does", "expandable"),
    [
        (of(between=OWN.format("72.00 GiB")), "70.0 GiB in PyTorch's tensors, 128 MiB reserved", "tensors themselves fill", False),
        (of(allocated="30.00 GiB", idle="45.00 GiB"), "45.0 GiB reserved by PyTorch but idle", "45.0 GiB lie idle in pieces", True),
        (of(allocated="30.00 GiB", between=LISTED.format("44.00 GiB") + OWN.format("31.00 GiB")), "44.0 GiB of process 4711", "See what process 4711 is", False),
        (of(allocated="12.00 GiB", between=LISTED.format("78.00 GiB")), "65.9 GiB of the same process outside", "lie outside PyTorch's pool", False),
        (of(allocated="0 bytes", idle="0 bytes", between=LISTED.format("78.00 GiB")), "78.0 GiB of process 4711", "See what process 4711 is", False),
        (of(allocated="30.00 GiB"), "48.9 GiB of others or outside", "See in nvidia-smi whose 48.9 GiB", False),
        (
            "CUDA out of memory. Tried to allocate 2.93 GiB (GPU 0; 11.17 GiB total capacity; 5.54 GiB already allocated; 2.22 GiB free; 8.52 GiB reserved in total by PyTorch)",
            "5.5 GiB in PyTorch's tensors, 3.0 GiB reserved", "3.0 GiB lie idle", True,
        ),
    ],
    ids=["full", "fragmented", "another process", "outside the pool", "nothing of its own", "unnamed", "old wording"],
)  # fmt: skip
def test_whose_memory_it_was(text: str, says: str, does: str, expandable: bool) -> None:
    memory = memory_in(text)
    assert memory is not None
    assert says in said_of(memory) and does in " ".join(steps_of(memory))
    assert may_help("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", memory) is expandable
    assert may_help("--mem-fraction-static 0.8", memory)


def test_a_message_that_is_told_twice_or_cut_is_counted_once() -> None:
    whole = of(between=LISTED.format("78.00 GiB"), allocated="12.00 GiB")
    assert memory_in("Tried to allocate 1002.\n" + whole + "\n" + whole) == memory_in(whole)
    assert memory_in("CUDA error: out of memory") is None
    assert memory_in("CUDA out of memory. Tried to allocate 2.00 GiB. GPU") is None


def test_the_report_tells_it(told: Told) -> None:
    log = 'Traceback (most recent call last):\n  File "/srv/job/loop.py", line 7, in <module>\n    step()\ntorch.OutOfMemoryError: '
    verdict = told(log + of(between=OWN.format("72.00 GiB")) + "\n").verdict
    assert "Of 80.0 GiB: 70.0 GiB in PyTorch's tensors" in verdict.explanation
    assert not any("expandable_segments" in fix.action for fix in verdict.fixes) and "tensors themselves" in verdict.next_steps[0]
    verdict = told(log + of(allocated="30.00 GiB", idle="45.00 GiB") + "\n").verdict
    assert [fix.action for fix in verdict.fixes] == ["PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"]  # and no flag of an engine
    assert not any("expandable_segments" in step for step in verdict.next_steps)  # once is enough


def test_numbers_without_end_cost_no_more_than_their_text() -> None:
    for text in ("Tried to allocate 1 GiB" * 4_000, "Process 1 has 1.0 GiB memory in use. " * 4_000, "Tried to allocate " + "9" * 100_000):
        assert memory_in(text) is None


FRAGMENTED = (
    'Traceback (most recent call last):\n  File "/srv/job/train.py", line 8, in main\n    step()\n'
    "{} out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.00 GiB is free. Of the allocated memory "
    "60.00 GiB is allocated by PyTorch, and 8.00 GiB is reserved by PyTorch but unallocated.{}\n"
)


@pytest.mark.parametrize(
    ("kind", "more", "variable"),
    [
        ("torch.OutOfMemoryError: CUDA", "", "PYTORCH_CUDA_ALLOC_CONF"),
        ("torch.OutOfMemoryError: HIP", "", "PYTORCH_HIP_ALLOC_CONF"),
        ("RuntimeError: NPU", "", "PYTORCH_NPU_ALLOC_CONF"),
        ("torch.OutOfMemoryError: CUDA", " Try setting PYTORCH_ALLOC_CONF=expandable_segments:True.", "PYTORCH_ALLOC_CONF"),
    ],
)
def test_the_allocators_variable_is_the_one_that_is_read_there(told: Told, kind: str, more: str, variable: str) -> None:
    verdict = told(FRAGMENTED.format(kind, more)).verdict
    assert [fix.action for fix in verdict.fixes if "expandable" in fix.action] == [f"{variable}=expandable_segments:True"]
