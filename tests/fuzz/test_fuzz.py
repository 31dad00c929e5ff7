"""Small generated logs, every time the same ones; `make fuzz` runs as many as you have time for."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forensics.errors import ForensicsError
from forensics.ingest import ReadOptions
from forensics.pipeline import analyze

from .build import log
from .invariants import check


@pytest.mark.parametrize("seed", range(0, 300, 20))
def test_the_report_on_generated_logs_keeps_its_promises(seed: int) -> None:
    for number in range(seed, seed + 20):
        data = log(Random(number))
        try:
            incident = analyze([data])
        except ForensicsError:
            continue
        check([data], incident)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=400))
def test_any_bytes_are_an_input(data: bytes) -> None:
    try:
        incident = analyze([data])
    except ForensicsError:
        return
    check([data], incident)


@pytest.mark.parametrize("seed", range(40))
def test_windows_say_what_the_whole_says(seed: int) -> None:
    """A log small enough to be kept whole gives the same verdict when only its marked regions are kept."""
    data = log(Random(1000 + seed))
    try:
        whole = analyze([data])
        windows = analyze([data], read_options=ReadOptions(whole_below=0))
    except ForensicsError:
        return
    assert windows.verdict.category == whole.verdict.category
    assert windows.verdict.rank == whole.verdict.rank


@pytest.mark.parametrize("seed", range(40))
def test_what_comes_after_the_failure_does_not_change_who_failed(seed: int) -> None:
    """Cut after the last line the verdict rests on: the same rank is blamed."""
    data = log(Random(2000 + seed))
    try:
        whole = analyze([data])
    except ForensicsError:
        return
    if whole.primary is None or len(whole.sources) != 1 or whole.sources[0].compression or data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return
    if whole.collective is not None:  # who is missing from a collective shows in all of the log, not in a line
        return
    last = max(one.span.last_line for one in (*whole.verdict.evidence, *whole.primary.evidence))
    cut = b"\n".join(data.split(b"\n")[:last]) + b"\n"
    again = analyze([cut])
    assert again.verdict.rank == whole.verdict.rank
