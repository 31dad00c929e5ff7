"""Times in all the forms that logs print."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.ingest import ReadOptions, read
from forensics.ingest.clock import moment, with_year

T = 1795983320.0  # 2026-11-29 20:15:20 UTC
JANUARY = 28757720.0  # 29 November 20:15:20, counted from 1 January


@pytest.mark.parametrize(
    ("stamp", "seconds", "kind"),
    [
        ("2026-11-29 20:15:20", T, "wall"),
        ("2026-11-29T20:15:20.250Z", T + 0.25, "wall"),
        ("2026-11-29 20:15:20,250", T + 0.25, "wall"),
        ("2026-11-29T22:15:20.250000+02:00", T + 0.25, "wall"),
        ("2026-11-29T15:15:20-0500", T, "wall"),
        ("11/29/2026-20:15:20", T, "wall"),
        ("11/29/2026 20:15:20", T, "wall"),
        ("Sun Nov 29 20:15:20 2026", T, "wall"),
        ("1795983320.25", T + 0.25, "wall"),
        ("1795983320250", T + 0.25, "wall"),
        ("1129 20:15:20.25", JANUARY + 0.25, "wall_no_year"),
        ("302 20:15:20.25", JANUARY - 272 * 86400 + 0.25, "wall_no_year"),  # c10, from January to September
        ("11-29 20:15:20", JANUARY, "wall_no_year"),
        ("Nov 29 20:15:20", JANUARY, "wall_no_year"),
        ("Nov29 20:15", JANUARY - 20, "wall_no_year"),
        ("20:15:20.5", 72920.5, "time_of_day"),
        ("8123.456789", 8123.456789, "monotonic"),
        ("0.01.301.037", 1.301037, "monotonic"),
    ],
)
def test_moment(stamp: str, seconds: float, kind: str) -> None:
    found = moment(stamp)
    assert found is not None
    assert found[0] == pytest.approx(seconds, abs=1e-5) and found[1] == kind


@pytest.mark.parametrize("stamp", ["", "yesterday", "2026-13-01 00:00:00", "2026-02-30 00:00:00", "1332 20:15:20", "932 20:15:20"])
def test_no_moment(stamp: str) -> None:
    assert moment(stamp) is None


@given(st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2099, 12, 31)))
def test_calendar(when: datetime) -> None:
    found = moment(when.strftime("%Y-%m-%d %H:%M:%S"))
    assert found is not None and found[0] == when.replace(microsecond=0, tzinfo=UTC).timestamp()


@given(st.datetimes(min_value=datetime(2020, 1, 1), max_value=datetime(2030, 1, 1)))
def test_years_come_from_a_dated_neighbour(when: datetime) -> None:
    anchor = when.replace(microsecond=0, tzinfo=UTC).timestamp()
    bare = moment(when.strftime("%m%d %H:%M:%S"))
    assert bare is not None
    if (when.month, when.day) != (2, 29):
        assert with_year(bare[0], anchor + 3600) == anchor


def test_clocks_of_sources() -> None:
    dated = b"[2026-11-29 20:15:20 TP0] a\nE1129 20:15:21.500000 7 run.py:1] b\n[2026-11-29 20:15:22 TP0] c\n"
    intake = read(
        [dated, b"ERROR 11-29 20:15:20 [core.py:5] x\n", b"[ 8123.456789] NVRM: Xid\n", b"no time\n"], [], ReadOptions()
    )
    assert [source.clock.kind for source in intake.sources] == ["wall", "wall_no_year", "monotonic", "none"]
    assert [line.time for line in intake.lines][:3] == [T, T + 1.5, T + 2]
    assert intake.sources[0].clock.resolution_s == 1.0
