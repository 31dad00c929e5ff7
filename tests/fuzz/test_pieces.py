"""Cut anywhere, and read in pieces: a log's beginning is an input like any other, and pieces put together are the whole."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from forensics.errors import ForensicsError
from forensics.ingest import ReadOptions, files, pieces
from forensics.model import Incident
from forensics.pipeline import analyze

from .build import log
from .invariants import check

LOG = b"""\
[2026-11-29 20:15:20 TP1] Scheduler hit an exception: Traceback (most recent call last):
  File "/srv/sglang/srt/models/mlp.py", line 12, in forward
    return self.mlp(x)\xe2\x80\xa6
RuntimeError: CUDA error: an illegal memory access was encountered
"""


def test_cut_at_every_third_byte_and_each_of_the_last() -> None:
    for end in (*range(0, len(LOG) - 16, 3), *range(len(LOG) - 16, len(LOG) + 1)):
        incident = analyze([LOG[:end]])
        check([LOG[:end]], incident, ())
        if end >= len(LOG) - 12:
            assert incident.verdict.rank is not None and incident.verdict.rank.label == "TP1", end


def test_begun_anywhere() -> None:
    for start in range(0, len(LOG), 7):
        check([LOG[start:]], analyze([LOG[start:]]), ())


def _story(incident: Incident) -> object:
    """What the report rests on: the verdict with its quotes, every failure with its place and rank, what became of the ranks."""
    failures = [(one.kind, one.root_type, one.rank.label if one.rank else "", one.evidence[:1]) for one in incident.failures]
    verdict = incident.verdict
    ranks = sorted((row.rank.number, row.outcome) for row in incident.ranks if row.rank.number is not None)
    return incident.status, verdict.category, verdict.title, verdict.rank, verdict.evidence, failures, ranks, incident.coverage.lines


@pytest.mark.parametrize("seed", range(24))
def test_pieces_say_what_the_whole_says(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file by one process and by three: the same story. (Which calm lines are sampled between the marked ones may differ.)"""
    shared: list[int] = []
    together = pieces.in_processes
    monkeypatch.setattr(pieces, "in_processes", lambda jobs, meanwhile: shared.append(len(jobs)) or together(jobs, meanwhile))
    monkeypatch.setattr(files, "BIG", 0)
    chance = Random(seed)
    path = tmp_path / "a.log"
    filler = b"Decode batch. #running-req: 8, #token: 4096, gen throughput (token/s): 531.70\n" * chance.randrange(20, 400)
    path.write_bytes(filler + filler.join(log(chance).replace(b"\0", b" ") + b"\n" for _ in range(4)))
    options = [ReadOptions(whole_below=0, processes=count) for count in (1, 3)]
    try:
        one, three = (analyze([path], read_options=each) for each in options)
    except ForensicsError:
        return
    assert shared in ([2], [3])  # else there would be nothing to compare
    assert _story(three) == _story(one)
