"""The traps of a fast scan, each kept away by a test: quoted tracebacks, literals that read like prose, imports at start."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import generate

from forensics import knowledge, match, parse
from forensics.ingest import Anchor, ReadOptions, from_text, read
from forensics.ingest.wants import Wants

ANCHORS: list[Anchor] = [*parse.anchors(), *knowledge.anchors(), *match.anchors(match.load_signatures())]


def _prompts(lines: int) -> bytes:
    """Every second request is English, every other one of failures' words only."""
    rnd = random.Random(4)
    texts = (generate.healthy(rnd, n) if n % 4 else generate.prompt(rnd, n, is_prose=n % 8 == 0) for n in range(lines))
    return "".join(text.replace("\r", " ") + "\n" for text in texts).encode()


def test_quoted_tracebacks_open_no_windows() -> None:
    """Prompts quote tracebacks in the middle of a line; each would drag eighty lines along."""
    intake = read([_prompts(12_000)], ANCHORS, ReadOptions(whole_below=0, edge_lines=10))
    assert len(intake.lines) < 1_500


@pytest.mark.parametrize("anchor", list(match.anchors(match.load_signatures())), ids=lambda a: a.literal.decode()[:40])
def test_a_rules_literal_is_no_prose(anchor: Anchor, healthy: bytes) -> None:
    """A literal that stands in healthy logs and prompts makes candidates of their lines."""
    assert len(anchor.literal) >= 8 or not anchor.literal.isalpha()
    assert healthy.count(anchor.literal) <= 3, "choose a longer or rarer part of the message"


@pytest.fixture(scope="module")
def healthy() -> bytes:
    return _prompts(8_000)


def test_few_literals_are_too_short_for_a_fast_search() -> None:
    """hyperscan gives the literals of each length below eight bytes an eighth of its tables, however few they are."""
    heads = Wants(ANCHORS).heads.heads
    assert min(map(len, heads)) >= 5, "name what stands before or after it in signatures/search/forms.toml"
    assert sum(len(head) < 7 for head in heads) <= 40


def test_anchors_are_short_of_line_feeds() -> None:
    assert not [a.literal for a in ANCHORS if b"\n" in a.literal or b"\r" in a.literal or not a.literal]


def test_a_small_log_loads_little(tmp_path: Path) -> None:
    """Nothing is imported that a small log does not need: neither engine nor decompressors nor process pools. From the second start on,
    when the tables lie compiled in the cache."""
    code = (
        "import sys; from forensics.ingest import read, Anchor; read([b'a\\n' * 200], [Anchor(b'needle')]); "
        "print(' '.join(sorted(sys.modules)))"
    )
    environment = {**os.environ, "FORENSICS_CACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    loaded = set(done.stdout.split())
    unwanted = {
        "hyperscan", "ahocorasick_rs", "lzma", "bz2", "zstandard", "tarfile", "zipfile", "tomllib", "logging", "asyncio",
        "multiprocessing", "threading", "pathlib", "subprocess", "importlib.metadata", "datetime", "glob", "regex", "numpy", "rich",
        "forensics.ingest.pieces", "forensics.ingest.follow",
    }  # fmt: skip
    assert not (loaded & unwanted) - _loaded_by_the_interpreter()


def _loaded_by_the_interpreter() -> set[str]:
    out = subprocess.run(
        [sys.executable, "-c", "import sys; print(' '.join(sys.modules))"], check=True, capture_output=True, text=True
    )
    return set(out.stdout.split())


def test_threads_forbid_forking(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork beside a running thread may copy a lock that nobody will open again."""
    import threading

    from forensics.ingest.pieces import processes_for

    assert processes_for(ReadOptions(processes=3), 1 << 30) == 3
    gate = threading.Event()
    thread = threading.Thread(target=gate.wait)
    thread.start()
    try:
        assert processes_for(ReadOptions(processes=3), 1 << 30) == 1
    finally:
        gate.set()
        thread.join()


def test_many_shapes_of_lines_are_peeled_like_any_other() -> None:
    """The memory of prefixes by the shape of a line must not change what a line says."""
    texts = [f"[2026-11-29 20:15:{n:02d} TP{n % 9}] step {n}" for n in range(50)]
    texts += [f"[2026-11-29 20:15:{n:02d} TP{n % 9}] [rank{n}]: boom {n}" for n in range(50)]
    alone = [from_text(text).lines[0] for text in texts]
    together = from_text("\n".join(texts)).lines
    assert [(a.text, a.level, a.time) for a in alone] == [(b.text, b.level, b.time) for b in together]
