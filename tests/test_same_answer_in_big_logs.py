"""A log amid a big healthy one, of which only what stands around hits is kept: the answer is the one that all of the lines give."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.ingest.options import ReadOptions
from forensics.model.verdict import Incident, Status
from forensics.pipeline import analyze

WHOLE = ReadOptions(whole_below=1 << 40)

SAID = "mat1 and mat2 shapes cannot be multiplied (8x4096 and 4000x32)"
TRACEBACK = f"""Traceback (most recent call last):
  File "/srv/app/train.py", line 31, in <module>
    main()
  File "/srv/app/train.py", line 22, in main
    loss = step(batch)
  File "/srv/app/model.py", line 8, in step
    return weight @ batch
RuntimeError: {SAID}
"""


def calm(first: int, lines: int = 2_400, prefix: str = "") -> str:
    """Lines that no anchor wants; 2,400 of them are more than is kept whole."""
    return "".join(
        f"{prefix}the pump moved {n * 7 % 4096} rows, {n % 97} of them late, mean wait {n % 13}.{n % 10} ms, part {n}\n"
        for n in range(first, first + lines)
    )


def both(folder: Path, text: str) -> tuple[Incident, Incident]:
    """What is said of all lines, and of those that are kept of a log of this size."""
    log = folder / "a.log"
    log.write_text(calm(0) + text + calm(2_400), encoding="utf-8")
    assert log.stat().st_size > 2 * ReadOptions().whole_below
    return analyze([log], read_options=WHOLE), analyze([log])


def told(incident: Incident) -> list[tuple[object, ...]]:
    """What must not depend on what was kept."""
    verdict = incident.verdict
    return [(incident.status, verdict.category, verdict.title, verdict.rank), *(
        (failure.type, failure.message, failure.rank, failure.count, failure.frames, failure.fingerprint) for failure in incident.failures
    )]  # fmt: skip


def test_a_message_ends_where_lines_were_not_kept(tmp_path: Path) -> None:
    whole, windows = both(tmp_path, TRACEBACK)
    assert told(whole) == told(windows)
    assert windows.primary is not None
    assert "part 2400" in windows.primary.message  # nothing says that these lines are another's
    assert "part 4799" not in windows.primary.message


def test_a_level_in_brackets_is_no_part_of_a_message(tmp_path: Path) -> None:
    whole, windows = both(tmp_path, TRACEBACK + "[INFO] the shard is sealed\n[WARNING] one reader is slow\n")
    assert told(whole) == told(windows)
    assert windows.primary is not None
    assert windows.primary.message == SAID


@pytest.mark.parametrize(
    "more",
    [
        "[INFORMATION MISSING] of both\n[8, 4096]",
        "[ERROR] 2026-11-29-20:15:31 (PID:71, Device:3) the link to its peer is down",
    ],
)
def test_a_message_may_go_on_with_brackets(tmp_path: Path, more: str) -> None:
    log = tmp_path / "a.log"
    log.write_text(f"{TRACEBACK}{more}\n", encoding="utf-8")
    primary = analyze([log]).primary
    assert primary is not None
    assert primary.message.endswith(more)


def test_an_error_line_that_runs_on_is_cut_alike(tmp_path: Path) -> None:
    text = "RuntimeError: the reader of the shard is gone\n" + "".join(f"    slot {n} held {n * 3} rows\n" for n in range(40))
    whole, windows = both(tmp_path, text)
    assert told(whole) == told(windows)


def test_threads_of_an_assertion_that_were_folded_are_counted(tmp_path: Path) -> None:
    text = "".join(
        f"/src/aten/Index.cu:77: gatherRows: block: [{n // 64},0,0], thread: [{n % 64},0,0] Assertion `row >= 0 && row < rows` failed.\n"
        for n in range(700)
    )
    end = TRACEBACK.replace(SAID, "CUDA error: device-side assert triggered")
    whole, windows = both(tmp_path, text + end)
    for incident in (whole, windows):
        assert [failure.count for failure in incident.failures if failure.kind == "device_assert"] == [700]


@pytest.mark.parametrize("label", ["{}: ", " {}: ", "[{}] "])
def test_labels_that_only_tracebacks_show_name_ranks(tmp_path: Path, label: str) -> None:
    text = "".join(label.format(rank) + line + "\n" for rank in (3, 5) for line in [*TRACEBACK.splitlines(), ""])
    whole, windows = both(tmp_path, text)
    assert told(whole) == told(windows)
    assert windows.primary is not None
    assert sorted(rank.number for rank in windows.primary.ranks if rank.number is not None) == [3, 5]


def test_what_each_line_says_is_no_woven_crash(tmp_path: Path) -> None:
    """A literal that begins a block, in every line of a healthy log: only some of them are kept."""
    log = tmp_path / "a.log"
    log.write_text(calm(0, 40_000, "[runner.py:77] "), encoding="utf-8")
    from forensics.ingest import read
    from forensics.pipeline import anchors_for

    wanted = anchors_for([])
    assert any(anchor.literal == b"[runner.py" and anchor.after >= 20 for anchor in wanted)
    assert len(read([log], wanted).lines) < 20_000


def test_the_only_rank_that_is_named_is_no_answer_where_lines_were_not_kept(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text(f"launching RANK=0 here\n{calm(0)}launching RANK=1 here\n{calm(2_400)}{TRACEBACK}", encoding="utf-8")
    assert log.stat().st_size > 2 * ReadOptions().whole_below
    assert analyze([log]).verdict.rank is None
    log.write_text(f"launching RANK=0 here\n{calm(0, 40)}{TRACEBACK}", encoding="utf-8")
    rank = analyze([log]).verdict.rank
    assert rank is not None and rank.number == 0


def test_an_orderly_end_amid_a_big_log_is_one(tmp_path: Path) -> None:
    api, core = "(APIServer pid=9) INFO 10-02 10:{}:00 ", "(EngineCore pid=71) INFO 10-02 10:{}:00 "
    serves = "".join(
        f"{api.format(n)}[loggers.py:127] Engine 000: Avg prompt throughput: 2.0 tokens/s, Avg generation throughput: 9.{n} tokens/s\n"
        for n in range(10, 14)
    )
    asked = f"{core.format(20)}[core.py:1300] [shutdown] EngineCore: trigger received signal=SIGTERM\n"
    left = f"{api.format(20)}[launcher.py:149] [shutdown] API server: shutting down FastAPI HTTP server\n"
    pause = calm(7_000, 60)  # what stands between is not kept
    whole, windows = both(tmp_path, serves + asked + pause + left)
    assert whole.status is windows.status is Status.HEALTHY
    assert both(tmp_path, serves + asked + pause)[1].status is not Status.HEALTHY


def test_in_a_big_log_a_local_rank_is_another_one_in_each_task(tmp_path: Path) -> None:
    said = [f"{task}: [default{local}]:go.py: error: unrecognized arguments: --keep 5\n" for task in range(10) for local in range(4)]
    told = "0: [default0]:[rank0]: so it is\n1: [default0]:[rank4]: so it is\n"
    log = tmp_path / "a.log"
    log.write_text(calm(0, 2_400, "3: ") + told + "".join(line + calm(n, 60, "3: ") for n, line in enumerate(said)) + calm(0, 2_400, "3: "))
    whole, kept = analyze([log], read_options=WHOLE), analyze([log])
    assert len(whole.verdict.same_failure_ranks) == len(kept.verdict.same_failure_ranks) == 39
