"""Who wrote a line: prefixes, file names, numbers."""

from __future__ import annotations

import pytest

from forensics.ingest import Intake, from_text, read
from forensics.ingest.ranks import Siblings, rank_of_name


def numbers(text: str) -> dict[str, int | None]:
    return {line.rank.label: line.rank.number for line in from_text(text).lines if line.rank is not None}


def stamped(*axes: str) -> str:
    return "".join(f"[2026-11-29 20:15:20 {name}] x\n" for name in axes)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (stamped("TP0", "TP3"), {"TP0": 0, "TP3": 3}),
        (stamped("DP0 TP0", "DP0 TP1", "DP1 TP2", "DP1 TP3"), {"DP0 TP0": 0, "DP0 TP1": 1, "DP1 TP2": 2, "DP1 TP3": 3}),
        (stamped("DP0 TP0", "DP0 TP1", "DP1 TP0", "DP1 TP1"), dict.fromkeys(["DP0 TP0", "DP0 TP1", "DP1 TP0", "DP1 TP1"])),
        (stamped("PP0 TP0", "PP0 TP1", "PP1 TP0", "PP1 TP1"), {"PP0 TP0": 0, "PP0 TP1": 1, "PP1 TP0": 2, "PP1 TP1": 3}),
        ("server_args=ServerArgs(tp_size=8, pp_size=2)\n" + stamped("PP1 TP5"), {"PP1 TP5": 13}),
        (stamped("PP1 TP5"), {"PP1 TP5": None}),
        (stamped("EP3"), {"EP3": None}),
        ("(Worker_DP5_EP5 pid=7) x\n", {"DP5 EP5": 5}),
        ("(Worker_DP1_EP5 pid=7) x\n", {"DP1 EP5": None}),
        ("[rank11]: x\n", {"rank 11": 11}),
        ("[default3]: x\n", {"local rank 3": None}),
        ("torchrun --nnodes=1 --nproc-per-node=4 x.py\n[default3]: x\n", {"local rank 3": 3}),
        ("(Worker_PP1_TP0 pid=7) x\n(Worker_PP0_TP0 pid=6) x\n(Worker_PP0_TP1 pid=5) x\n", {"PP1 TP0": 2, "PP0 TP0": 0, "PP0 TP1": 1}),
        ("(Worker_TP2_DCP2_EP2 pid=7) x\n", {"TP2 EP2 DCP2": 2}),
        ("(Worker_PP1_TP1_PCP0 pid=7) x\n(Worker_PP0_TP0_PCP0 pid=6) x\n", {"PP1 TP1 PCP0": 3, "PP0 TP0 PCP0": 0}),
        ("(Worker pid=7) I am world_size=8 rank=5 local_rank=1 x\n(Worker pid=7) y\n", {"rank 5": 5}),
        ("(Worker pid=7) I am world_size=8 rank=5 local_rank=1 x\n(Worker pid=8) y\n(Worker_TP5 pid=7) z\n", {"TP5": 5}),
        ("(Worker pid=7) rank=5 of the requests\n", {}),
        ("(EngineCore_DP0 pid=7) x\n(APIServer pid=8) x\n(TaskRunner pid=9) x\n", {}),
    ],
)  # fmt: skip
def test_numbers(text: str, expected: dict[str, int | None]) -> None:
    assert numbers(text) == expected


def test_stacked_prefixes() -> None:
    line = from_text(
        "trainer-1  | 2026-11-29T20:15:34.5Z (EngineCore_DP0 pid=71) (Worker_TP1 pid=72) ERROR 11-29 20:15:33 [core.py:515] boom"
    ).lines[0]
    assert (line.text, line.level, line.origin, line.time) == ("boom", "ERROR", "core.py:515", 1795983334.5)
    assert line.rank is not None and (line.rank.label, line.rank.pid) == ("DP0 TP1", 72)
    assert line.stream == "trainer-1/DP0 TP1"


def test_indentation_survives() -> None:
    texts = [
        line.text for line in from_text('[rank3]:   File "a.py", line 1\n[rank3]:     x = 1\n[1,3]<stderr>:  y\n').lines
    ]
    assert texts == ['  File "a.py", line 1', "    x = 1", " y"]


def test_pid_tells_the_rank_where_it_was_seen_with_one() -> None:
    text = (
        "(WorkerDict pid=26106, ip=10.0.0.7) [2026-11-29 20:15:20 TP1] loading\n"
        "(WorkerDict pid=26106, ip=10.0.0.7) Traceback (most recent call last):\n(WorkerDict pid=26109, ip=10.0.0.7) x\n"
    )
    ranks = [line.rank.label if line.rank else None for line in from_text(text).lines]
    assert ranks == ["TP1", "TP1", None]


def test_a_weak_prefix_needs_a_majority() -> None:
    srun = "".join(f"{n % 4}: line {n}\n" for n in range(40))
    assert {line.rank.label for line in from_text(srun).lines if line.rank} == {f"rank {n}" for n in range(4)}
    prose = "Steps to take:\n1: open it\n2: close it\nthen wait\nand see\nwhat comes\nof it\n"
    assert all(line.rank is None for line in from_text(prose).lines)


def test_a_json_message_with_line_feeds() -> None:
    text = '{"log":"[rank1]: Traceback (most recent call last):\\n  File \\"a.py\\", line 1","time":"2026-11-29T20:15:20Z"}\n'
    lines = from_text(text).lines
    assert [(line.number, line.text) for line in lines] == [
        (1, "Traceback (most recent call last):"),
        (1, '  File "a.py", line 1'),
    ]


def test_quoted_source() -> None:
    lines = from_text("> [rank1]: boom\n> [rank1]:   File\n>\n> end\n").lines
    assert [line.text for line in lines] == ["boom", "  File", "", "end"]
    assert lines[0].raw == "> [rank1]: boom"


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("logs/attempt_0/3/stderr.log", "local rank 3"),
        ("slurm-3.out", None),
        ("srun-3.out", "rank 3"),
        ("slurm-12345678_3.out", "rank 3"),
        ("slurm-19693242.out", None),
        ("rank_3.log", "rank 3"),
        ("run/train_rank3.log.gz", "rank 3"),
        ("rank3/stdout.txt", "rank 3"),
        ("tp1.log", "TP1"),
        ("sglang_pp0_tp1.log", "PP0 TP1"),
        ("a.tar!logs/local_rank_2.err", "local rank 2"),
        ("crash-dp16-on-gfx1100.log", None),
        ("server.log", None),
    ],
)
def test_file_names(name: str, label: str | None) -> None:
    rank = rank_of_name(name)
    assert (rank.label if rank else None) == label


def test_a_capital_that_is_longer_in_small_moves_no_name() -> None:
    found = rank_of_name("İİ/pods/ns_llm-0_0123456789/c.log")
    assert found is not None and found.label == "pod llm-0"


def test_pods_are_told_by_their_siblings() -> None:
    siblings = Siblings(["x/llm-0.log", "x/llm-1.log", "server-8080.log"])
    first = rank_of_name("x/llm-0.log", siblings)
    assert first is not None and (first.label, first.node) == ("pod llm-0", "llm-0")
    assert rank_of_name("server-8080.log", siblings) is None


def test_a_silent_rank_is_seen_in_samples(tmp_path: object) -> None:
    """TP2 stops in the middle of a big log without any marked line: its last line is known by sampling."""
    lines = [
        f"[2026-11-29 20:{n // 6000:02d}:{n // 100 % 60:02d} TP{n % 4}] Decode batch. #step: {n}" for n in range(60_000)
    ]
    lines = [line for n, line in enumerate(lines) if " TP2]" not in line or n < 30_000]
    intake: Intake = read(["\n".join(lines).encode()], [])
    last = {a.rank.label: (a.last_line or 0, a.last_time or 0) for a in intake.activity}
    assert set(last) == {"TP0", "TP1", "TP2", "TP3"}
    true = max(n for n, line in enumerate(lines, 1) if " TP2]" in line)
    assert abs(last["TP2"][0] - true) < 12_000 < last["TP0"][0] - true


def test_a_global_rank_behind_torchruns_local_one_is_one_process() -> None:
    rank = from_text("[default3]:[rank11]: boom\n").lines[0].rank
    assert rank is not None and (rank.number, rank.axes) == (11, (("local", 3),))
    alone = from_text("[rank11]: boom\n").lines[0].rank
    assert alone is not None and alone.axes == ()
