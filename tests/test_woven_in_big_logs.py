"""Stacks of several ranks, interleaved line by line, in a log of which only what stands around hits is kept: no frame is lost."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from forensics.ingest.options import ReadOptions
from forensics.model.verdict import Category
from forensics.pipeline import analyze

HOME = "/opt/env/lib/python3.12/site-packages/"
#: file, line, function, code: the calls of each rank, outermost first
CALLS = [
    ("torchserve/worker.py", 700 + n, f"stage_{n}", f"return self.stage_{n + 1}(batch, state)") if n % 3 else
    ("vllm/model_executor/layers/block.py", 40 + n, f"stage_{n}", f"hidden = self.stage_{n + 1}(hidden)")
    for n in range(24)
]  # fmt: skip
END = "RuntimeError: The size of tensor a (32) must match the size of tensor b (31) at non-singleton dimension 0"
#: what the ranks write before each of their lines; the last two write none
PREFIXES = ["(Worker_TP0 pid=100) ERROR 11-29 20:15:41 [worker.py:88] ", "(Worker_TP1 pid=101) ERROR 11-29 20:15:41 [worker.py:88] ", "", ""]


def stack() -> list[str]:
    lines = ["Traceback (most recent call last):"]
    for file, line, function, code in CALLS:
        lines += [f'  File "{HOME}{file}", line {line}, in {function}', f"    {code}"]
    return [*lines, END]


def woven(prefixes: list[str], seed: int) -> str:
    chance = random.Random(seed)
    left = [[prefix + line for line in stack()] for prefix in prefixes]
    told = []
    while any(left):
        told.append(chance.choice([lines for lines in left if lines]).pop(0))
    return "\n".join(told) + "\n"


def calm(first: int) -> str:
    """More than is kept whole."""
    return "".join(
        f"(Worker_TP{n % 2} pid={100 + n % 2}) INFO 11-29 20:{n // 60 % 60:02}:{n % 60:02} [pump.py:1{n % 7}] batch {n} of {n * 3} tokens is done\n"
        for n in range(first, first + 2_500)
    )


@pytest.mark.parametrize("prefixes", [PREFIXES[:2] + PREFIXES[2:3], PREFIXES], ids=["one without", "two without"])
@pytest.mark.parametrize("seed", range(4))
def test_the_path_of_woven_stacks_is_whole_in_a_big_log(tmp_path: Path, prefixes: list[str], seed: int) -> None:
    text = calm(0) + woven(prefixes, seed) + calm(2_500)
    assert len(calm(0)) > ReadOptions().whole_below
    log = tmp_path / "a.log"
    log.write_text(text, encoding="utf-8")
    incident = analyze([log])
    assert incident.primary is not None
    assert incident.verdict.category is Category.SHAPE_OR_DTYPE_ASSERT
    shown = [(frame.path.removeprefix(HOME), frame.line, frame.function) for frame in incident.primary.frames]
    assert shown == [call[:3] for call in CALLS]
    assert {rank.number for rank in incident.primary.ranks} >= {0, 1}
    assert incident.coverage.lines > 5_000  # and not all of them were kept


def test_the_same_without_the_rest_of_the_log(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text(woven(PREFIXES, 1), encoding="utf-8")
    incident = analyze([log])
    assert incident.primary is not None
    assert len(incident.primary.frames) == len(CALLS)
