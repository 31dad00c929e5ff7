"""The scan keeps what it must, says where it stood, and stays linear and bounded."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from forensics.ingest import Anchor, Intake, ReadOptions, read
from forensics.ingest import files as files_module
from forensics.ingest import scan as scan_module

WORDS = "ghijklmnop"


def made(seed: int, lines: int, *, folds: bool = False) -> list[str]:
    """A log: healthy lines, single hits, tracebacks. Without `folds` every hit says something else."""
    rnd = random.Random(seed)
    out: list[str] = []
    for index in range(lines):
        roll = rnd.random()
        word = "" if folds and rnd.random() < 0.7 else "".join(rnd.choice(WORDS) for _ in range(9))
        if roll < 0.015:
            out.append(f"[2026-11-29 20:15:{rnd.randrange(60):02d} TP{rnd.randrange(4)}] BOOMERANG hit {word}")
        elif roll < 0.02:
            out.append("Traceback (most recent call last):")
            out += [f'  File "x{rnd.choice(WORDS)}.py", line {rnd.randrange(99)}' for _ in range(rnd.randrange(2, 7))]
            out.append(f"{word}Error: bad")
        elif roll < 0.03:
            out.append("")
        else:
            out.append(f"healthy line {index} " + "y" * rnd.randrange(120))
    return [*out, "the end"]


def windows(lines: list[str], anchors: list[Anchor]) -> set[int]:
    """Numbers of the lines that the anchors ask for, found the slow way."""
    wanted: set[int] = set()
    for number, text in enumerate(lines, 1):
        for anchor in anchors:
            if anchor.literal.decode() in text:
                wanted.update(range(max(1, number - anchor.before), min(len(lines), number + anchor.after) + 1))
    return wanted


def kept(intake: Intake) -> dict[int, str]:
    return {line.number: line.raw for line in intake.lines}


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("chunk", [4096, 1 << 20])
def test_windows_are_complete_and_numbers_right(seed: int, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_module, "CHUNK", chunk)
    rnd = random.Random(seed)
    lines = made(seed, rnd.randrange(1, 2500))
    anchors = [Anchor(b"BOOMERANG", rnd.randrange(4), rnd.randrange(7)), Anchor(b"Error: bad", rnd.randrange(9), 1)]
    data = "\n".join(lines).encode() + (b"\n" if seed % 2 else b"")
    intake = read([data], anchors, ReadOptions(whole_below=0, edge_lines=0))
    got = kept(intake)
    assert intake.sources[0].lines == len(lines)
    assert set(got) == windows(lines, anchors)
    assert all(lines[number - 1] == text for number, text in got.items())
    for literal, where in intake.marks.items():
        assert [i for i, line in enumerate(intake.lines) if literal.decode() in line.raw] == where


def test_small_input_is_whole_and_big_one_has_head_and_tail() -> None:
    lines = [f"healthy {n} " + "y" * 80 for n in range(5000)]
    small = read(["\n".join(lines[:100]).encode()], [Anchor(b"nothing here")])
    assert [line.number for line in small.lines] == list(range(1, 101))
    big = read(["\n".join(lines).encode()], [Anchor(b"nothing here")])
    numbers = [line.number for line in big.lines]
    assert numbers[0] == 1 and numbers[-200:] == list(range(4801, 5001)) and len(numbers) < 2500


@pytest.mark.parametrize("seed", range(12))
def test_pieces_equal_one_pass(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_module, "BIG", 0)
    path = tmp_path / "a.log"
    path.write_text("\n".join(made(seed, 6000)))
    anchors = [Anchor(b"BOOMERANG", 2, 5), Anchor(b"Traceback (most", 1, 12)]
    for whole, edges in ((0, 0), (3000, 5)):
        one = read([path], anchors, ReadOptions(whole_below=whole, edge_lines=edges, processes=1))
        for processes in (2, 3, 5):
            other = read([path], anchors, ReadOptions(whole_below=whole, edge_lines=edges, processes=processes))
            assert other.lines == one.lines
            assert other.sources == one.sources
            assert other.marks == one.marks
            assert [a.rank for a in other.activity] == [a.rank for a in one.activity]
            assert not other.skipped


@pytest.mark.parametrize("seed", range(6))
def test_pieces_fold_like_one_pass(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is folded depends on what came before; the pieces do not know it, their sum does."""
    monkeypatch.setattr(files_module, "BIG", 0)
    path = tmp_path / "a.log"
    path.write_text("\n".join(made(seed, 12000, folds=True)))
    anchors = [Anchor(b"BOOMERANG", 0, 2), Anchor(b"Traceback (most", 0, 12)]
    one = read([path], anchors, ReadOptions(whole_below=0, edge_lines=0, processes=1))
    two = read([path], anchors, ReadOptions(whole_below=0, edge_lines=0, processes=3))
    assert sum(one.repeats.values()) > 20
    assert len({line.number for line in one.lines} ^ {line.number for line in two.lines}) <= 12  # a latest copy or two
    assert abs(sum(one.repeats.values()) - sum(two.repeats.values())) < 10


def test_a_crash_loop_is_folded_and_its_odd_one_is_not() -> None:
    block = (
        "[2026-11-29 20:15:{s:02d} TP{r}] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/srv/a.py", line {n}, in run\n    self.step()\n  File "/srv/b.py", line 7, in step\n    boom()\n'
        "RuntimeError: CUDA error: an illegal memory access was encountered ({n})\n"
    )
    parts = [block.format(s=n % 60, r=n % 8, n=n) for n in range(20_000)]
    parts[13_000] = parts[13_000].replace("RuntimeError: CUDA error", "ValueError: quite another thing")
    intake = read(
        ["".join(parts).encode()], [Anchor(b"Traceback (most recent call last):", 0, 40)], ReadOptions(whole_below=0)
    )
    raws = [line.raw for line in intake.lines]
    assert any("quite another thing" in raw for raw in raws)
    assert len(raws) < 3000
    heads = intake.marks[b"Traceback (most recent call last):"]
    assert {intake.lines[i].rank.label for i in heads if intake.lines[i].rank} == {f"TP{r}" for r in range(8)}
    assert len(heads) + sum(intake.repeats.values()) >= 19_900
    assert intake.lines[-1].number == 120_000
    assert any("repeat" in note.text for note in intake.notes)


def test_a_flood_of_unlike_lines_stays_within_the_budget() -> None:
    rnd = random.Random(1)
    flood = "".join(f"ERROR {''.join(rnd.choice(WORDS) for _ in range(60))}\n" for _ in range(60_000))
    middle = "Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus\n"
    data = (flood + middle + flood).encode()
    anchors = [Anchor(b"ERROR ", 1, 3), Anchor(b"Xid (PCI", 2, 2)]
    intake = read([data], anchors, ReadOptions(whole_below=0, budget=400_000))
    size = sum(len(line.raw) for line in intake.lines)
    assert size < 1_000_000
    assert any("fallen off" in line.raw for line in intake.lines), "a rare literal must survive a flood"
    assert intake.lines[-1].number == 120_001 and intake.lines[0].number == 1
    assert any("budget" in note.text for note in intake.notes)


@pytest.mark.parametrize("pause", [False, True])
def test_a_long_line_is_bounded(pause: bool) -> None:
    long = b"a" * 6_000_000 + b" CUDA error: boom " + b"b" * 3_000_000
    data = b"before\n" + long + b"\nafter one\nafter two\n" + (b"x\n" * 3 if pause else b"")
    intake = read([data], [Anchor(b"CUDA error", 0, 0)], ReadOptions(whole_below=0, edge_lines=2))
    line = next(line for line in intake.lines if line.number == 2)
    assert "CUDA error: boom" in line.raw and len(line.raw) < 100_000
    assert "9000018" in line.raw
    assert intake.sources[0].lines == (7 if pause else 4)
    assert intake.marks[b"CUDA error"]
    assert any("long lines" in note.text for note in intake.notes)


def test_one_healthy_line_costs_no_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the healthy lines must not mean more decoded, peeled or counted lines."""
    from forensics.ingest import lines as lines_module

    made_lines = 0
    original = lines_module.LineMaker.take

    def counted(self: lines_module.LineMaker, number: int, text: str) -> object:
        nonlocal made_lines
        made_lines += 1
        return original(self, number, text)

    monkeypatch.setattr(lines_module.LineMaker, "take", counted)
    healthy = "[2026-11-29 20:15:20 TP0] Decode batch. #running-req: 7\n" * 20_000
    counts = []
    for times in (4, 8):
        made_lines = 0
        read([(healthy * times).encode()], [Anchor(b"never there")], ReadOptions(whole_below=0))
        counts.append(made_lines)
    assert counts[1] <= counts[0] + 2


@pytest.mark.parametrize("ranks", [20, 300])
def test_a_woven_crash_of_many_ranks_is_kept_whole(ranks: int) -> None:
    """Alike lines of as many ranks: none of them repeats another, since each belongs to a stack of its own."""
    calm = [f"[2026-11-29 20:15:20 TP{n % ranks}] Decode batch. #running-req: {n}" for n in range(4_000)]
    heads = [f"[2026-11-29 20:15:21 TP{rank}] Scheduler hit an exception: Traceback (most recent call last):" for rank in range(ranks)]
    frames = ['  File "/srv/a.py", line 7, in run', "    self.step()", '  File "/srv/b.py", line 9, in step', "    boom()"]
    text = "\n".join([*calm, *heads, *(frame for frame in frames for _ in range(ranks)), *["RuntimeError: boom"] * ranks, *calm])
    anchors = [Anchor(b"Traceback (most recent call last):", 0, 40), Anchor(b'", line ', 2, 40)]
    intake = read([text.encode()], anchors, ReadOptions(whole_below=0, edge_lines=10))
    kept = {line.number for line in intake.lines}
    assert kept >= set(range(4_001, 4_001 + 6 * ranks))
    assert len(kept) < 6 * ranks + 100 * ranks + 500


def test_the_process_that_waits_reads_less_and_has_something_else_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from forensics.ingest.pieces import cuts

    path = tmp_path / "a.log"
    path.write_bytes(b"calm line\n" * 100_000)
    edges = cuts(str(path), 1_000_000, 3, less=60_000)
    assert edges[0] == 0 and edges[-1] == 1_000_000 and all(edge % 10 == 0 for edge in edges)
    assert edges[1] == pytest.approx(273_330, abs=20) and edges[2] - edges[1] == pytest.approx(363_330, abs=20)
    monkeypatch.setattr(files_module, "BIG", 0)
    called: list[int] = []
    options = ReadOptions(whole_below=0, processes=2, meanwhile=lambda: called.append(1))
    assert read([str(path)], [Anchor(b"needle")], options).sources[0].lines == 100_000
    assert called == [1]
