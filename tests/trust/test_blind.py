"""A part of the program that fails, or of the input that was not read, never makes a log healthy: it is unknown, and says why."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from forensics import data, parse
from forensics.model.verdict import Category, Incident, Status
from forensics.parse import PARSERS
from forensics.pipeline import analyze

REASON = "a comma is missing"

CRASHED = """\
INFO 06-01 10:00:00 [api_server.py:10] vLLM API server version 0.9.1
ERROR 06-01 10:00:05 [core.py:515] EngineCore failed to start.
ERROR 06-01 10:00:05 [core.py:515] Traceback (most recent call last):
ERROR 06-01 10:00:05 [core.py:515]   File "/opt/venv/vllm/v1/worker/gpu_worker.py", line 5, in load_model
ERROR 06-01 10:00:05 [core.py:515]     self.model_runner.load_model()
ERROR 06-01 10:00:05 [core.py:515] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
"""

HEALTHY = """\
INFO 06-01 10:00:00 [api_server.py:10] vLLM API server version 0.9.1
INFO 06-01 10:00:09 [gpu_worker.py:99] Available KV cache memory: 20.00 GiB
INFO:     Application startup complete.
INFO 06-01 10:00:19 [loggers.py:118] Engine 000: Avg prompt throughput: 5.1 tokens/s, Avg generation throughput: 5.0 tokens/s
"""


def broken(*_: object, **__: object) -> Any:
    raise RuntimeError(REASON)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Anchors are kept for the process: here they are asked for anew."""
    caches = (parse._literals, parse._anchors)
    for kept in caches:
        kept.cache_clear()
    yield
    for kept in caches:
        kept.cache_clear()


@pytest.fixture(params=[CRASHED, HEALTHY], ids=["crashed", "healthy"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "a.log"
    path.write_text(request.param)
    return path


def assert_says_why(incident: Incident) -> None:
    """Not healthy, and the reason stands in the notes; without a failure it is the verdict's, too."""
    assert any(REASON in note.text for note in incident.coverage.notes)
    assert incident.status is not Status.HEALTHY and incident.verdict.category is not Category.NONE
    if incident.primary is None:
        assert incident.status is Status.UNKNOWN and REASON in incident.verdict.explanation


def test_what_works_is_healthy_or_crashed(log: Path) -> None:
    incident = analyze([log])
    assert (incident.status is Status.HEALTHY) == (log.read_text() == HEALTHY)
    assert not incident.coverage.notes


@pytest.mark.parametrize("name", PARSERS)
def test_a_parser_that_fails(name: str, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = parse._module(name)
    monkeypatch.setattr(module, "parse", broken)
    monkeypatch.setattr(parse, "_wanted", lambda _: list(PARSERS))
    incident = analyze([log])
    assert_says_why(incident)
    if name != "python" and log.read_text() == CRASHED:
        assert incident.verdict.category is Category.OOM_GPU


@pytest.mark.parametrize("name", PARSERS)
def test_a_parser_that_cannot_be_imported(name: str, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = parse._module

    def half_written(wanted: str) -> types.ModuleType:
        if wanted == name:
            raise SyntaxError(REASON)
        return real(wanted)

    keep = data.compiled

    def uncached(key: str, stamp: str, build: Callable[[], Any], *, shipped: bool = True) -> Any:
        return build() if key == "parse/anchors" else keep(key, stamp, build, shipped=shipped)

    monkeypatch.setattr(parse, "_module", half_written)
    monkeypatch.setattr(data, "compiled", uncached)
    incident = analyze([log])
    assert_says_why(incident)
    if name != "python" and log.read_text() == CRASHED:
        assert incident.verdict.category is Category.OOM_GPU


@pytest.mark.parametrize(
    "stage",
    [
        "forensics.parse.anchors", "forensics.knowledge.anchors", "forensics.match.anchors",
        "forensics.match.load_signatures", "forensics.ingest.read", "forensics.parse.parse", "forensics.knowledge.collect",
        "forensics.match.match", "forensics.match.contradictions", "forensics.match.unusable", "forensics.verdict.judge",
        "forensics.match.engine.Matcher.hits", "forensics.match.rules.derive",
    ],
)  # fmt: skip
def test_a_stage_that_fails(stage: str, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, broken)
    assert_says_why(analyze([log]))


@pytest.mark.parametrize("floor", ["parse", "knowledge", "match", "verdict"])
def test_a_floor_that_cannot_be_imported(floor: str, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Hollow(types.ModuleType):
        def __getattr__(self, name: str) -> Any:
            raise ImportError(REASON)

    monkeypatch.setitem(sys.modules, f"forensics.{floor}", Hollow(f"forensics.{floor}"))
    assert_says_why(analyze([log]))


@pytest.mark.parametrize(
    "name", ["verdict/categories", "verdict/consequences", "verdict/progress", "dialects/engines", "facts/gpus", "facts/settings"]
)
def test_a_table_that_does_not_load(name: str, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process of its own: what a table holds is kept for a process."""
    code = f"""
import sys
from forensics import data
real, asked = data.compiled, []
def compiled(key, stamp, build, **more):
    if key == {name!r} or key == {name.split("/")[0] + "/_all"!r}:
        asked.append(key)
        raise ValueError({REASON!r})
    return real(key, stamp, build, **more)
data.compiled = compiled
from forensics.errors import ForensicsError
from forensics.pipeline import analyze
try:
    incident = analyze([sys.argv[1]])
except ForensicsError as error:
    sys.exit(print("unreadable", {REASON!r} in str(error), True))
print(incident.status.value, any({REASON!r} in note.text for note in incident.coverage.notes), bool(asked))
"""
    import subprocess

    status, is_told, is_asked = subprocess.check_output([sys.executable, "-c", code, str(log)], text=True).split()
    assert is_told == is_asked
    assert status != "healthy" or (is_asked == "False" and log.read_text() == HEALTHY)


def test_a_shipped_signature_that_is_half_written(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forensics.match.unusable", lambda: (f"rules/nccl/a.toml: not TOML: {REASON}",))
    assert_says_why(analyze([log]))


def test_whole_rules_have_nothing_unusable() -> None:
    from forensics.match import unusable

    assert unusable() == ()


def test_a_signature_file_with_an_error_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rules" / "nccl").mkdir(parents=True)
    (tmp_path / "rules" / "nccl" / "half.toml").write_text('id = "nccl.half"\ntitle = "no end')
    monkeypatch.setattr(data, "base", lambda: str(tmp_path))
    monkeypatch.setattr(data, "compiled", lambda key, stamp, build, shipped=True: build())
    from forensics.match import unusable

    assert len(unusable()) == 1 and "half.toml" in unusable()[0]


def test_an_input_that_could_not_be_read_beside_a_healthy_one(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(HEALTHY)
    incident = analyze([tmp_path / "a.log", tmp_path / "b.log"])
    assert incident.status is Status.UNKNOWN and "b.log was not read" in incident.verdict.explanation


def test_what_is_no_log_hides_no_failure(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(HEALTHY)
    (tmp_path / "model.bin").write_bytes(bytes(range(256)) * 64)
    incident = analyze([tmp_path])
    assert incident.status is Status.HEALTHY and incident.coverage.skipped


def test_marked_lines_that_did_not_fit_into_the_budget(tmp_path: Path) -> None:
    from forensics.ingest.options import DEFAULT
    from forensics.model.record import replace

    words = ["ash", "elm", "oak", "fir", "yew", "box", "bay", "may"]
    lines = [
        f"WARNING 06-01 10:00:{i % 60:02d} [{words[i % 8]}{words[i // 8 % 8]}.py:1] RuntimeError: {words[i // 64 % 8]} of {words[i // 512 % 8]} "
        f"{words[i * 7 % 8]} {words[i * 3 // 5 % 8]} {'.' * (i % 50)} is retried"
        for i in range(4096)
    ]
    path = tmp_path / "a.log"
    path.write_text(HEALTHY + "\n".join(lines) + "\n" + HEALTHY)
    small = replace(DEFAULT, whole_below=1, budget=20_000)
    notes = analyze([path], read_options=small).coverage.notes
    assert any("budget" in note.text and note.hides for note in notes)
    assert analyze([path], read_options=small).status is not Status.HEALTHY
