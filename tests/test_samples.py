"""Every sample log says what its case.toml expects: as files, through a pipe, scanned in windows like a big log, compressed."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from forensics.model.verdict import Incident
from forensics.pipeline import analyze

SAMPLES = Path(__file__).parent.parent / "sample_logs"
CASES = sorted(path.parent.name for path in SAMPLES.glob("*/case.toml"))
WAYS = ("files", "windows", "pipe", "gzip")


def case(name: str) -> dict[str, Any]:
    return tomllib.loads((SAMPLES / name / "case.toml").read_text(encoding="utf-8"))


def inputs(name: str) -> list[Path]:
    folder = SAMPLES / name
    named = case(name).get("inputs")
    return [folder / one for one in named] if named else sorted(folder.glob("*.log"))


def analyzed(name: str, way: str, tmp_path: Path) -> Incident:
    paths = inputs(name)
    if way == "pipe":
        if len(paths) > 1:
            pytest.skip("several inputs do not come through one pipe")
        return _piped(paths[0])
    if way == "gzip":
        packed = []
        for path in paths:
            if path.is_dir():
                packed.append(path)
                continue
            packed.append(tmp_path / (path.name + ".gz"))
            packed[-1].write_bytes(gzip.compress(path.read_bytes()))
        return analyze(packed)
    if way == "windows":
        from forensics.ingest import ReadOptions

        return analyze(paths, read_options=ReadOptions(whole_below=0))
    return analyze(paths)


def _piped(path: Path) -> Incident:
    """The analysis of a file that comes through a real pipe on standard input."""
    kept = sys.stdin
    with subprocess.Popen(["cat", str(path)], stdout=subprocess.PIPE) as cat:
        try:
            sys.stdin = io.TextIOWrapper(cat.stdout)  # type: ignore[arg-type]
            return analyze(["-"])
        finally:
            sys.stdin = kept


def test_there_are_samples() -> None:
    """A moved folder must not turn this file green."""
    assert len(CASES) >= 20
    assert sum(name.startswith("healthy_") for name in CASES) >= 4


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_verdict(name: str, way: str, tmp_path: Path) -> None:
    expect = case(name)["expect"]
    found = analyzed(name, way, tmp_path)
    wrong = [
        f"{what}: expected {wanted!r}, found {seen!r}"
        for what, wanted, seen, right in checks(expect, found)
        if not right
    ]
    assert not wrong, "\n".join([name, *wrong])


def checks(expect: dict[str, Any], found: Incident) -> list[tuple[str, Any, Any, bool]]:
    """(what, wanted, seen, right) for everything that the case expects."""
    verdict, primary = found.verdict, found.primary
    rows: list[tuple[str, Any, Any, bool]] = []

    def add(what: str, seen: Any, right: bool) -> None:
        rows.append((what, expect[what], seen, right))

    for what, seen in (
        ("status", found.status.value),
        ("category", verdict.category.value),
        ("confidence", verdict.confidence.value),
    ):
        if what in expect:
            add(what, seen, seen in _several(expect[what]))
    if expect["category"] == ["none"]:
        rows.append(("primary", None, primary, primary is None))
        return rows
    if "rank" in expect:
        number = verdict.rank.number if verdict.rank else None
        add("rank", number, number == expect["rank"])
    for what, ranks in (
        ("same_ranks", verdict.same_failure_ranks),
        ("waiting", found.collective.waiting if found.collective else ()),
    ):
        if what in expect:
            numbers = sorted(rank.number for rank in ranks if rank.number is not None)
            add(what, numbers, numbers == expect[what])
    for what in ("type", "root_type"):
        if what in expect:
            seen = getattr(primary, what, None) or ""
            add(what, seen, seen.rsplit(".", 1)[-1] == expect[what])
    for what in ("phase", "component"):
        if what in expect:
            seen = getattr(primary, what, None)
            add(what, seen, seen == expect[what])
    if "root_message" in expect:
        seen = primary.root_message if primary else ""
        add("root_message", seen, expect["root_message"] in seen)
    if "kernel" in expect:
        seen = primary.kernel.name if primary and primary.kernel else ""
        add("kernel", seen, expect["kernel"].lower() in seen.lower())
    if "kernel_says" in expect:
        seen = primary.kernel.sentence if primary and primary.kernel else ""
        add("kernel_says", seen, all(word.lower() in seen.lower() for word in expect["kernel_says"]))
    if "sm" in expect:
        seen = found.facts.gpu.sm if found.facts.gpu else None
        add("sm", seen, seen == expect["sm"])
    if "path" in expect:
        labels = [step.label for step in primary.call_path.steps] if primary else []
        add("path", labels, _in_order(expect["path"], labels))
    if "contradictions" in expect:
        seen = [(one.requested, one.observed) for one in found.contradictions]
        wanted = expect["contradictions"]
        right = all(any(w["requested"] in r and w["observed"] in o for r, o in seen) for w in wanted)
        add("contradictions", seen, right and bool(wanted) == bool(seen))
    return rows


def _several(wanted: Any) -> list[Any]:
    return wanted if isinstance(wanted, list) else [wanted]


def _in_order(wanted: list[str], labels: list[str]) -> bool:
    """Every wanted word stands in a label, each after the one before."""
    rest = iter(label.lower() for label in labels)
    return all(any(word.lower() in label for label in rest) for word in wanted)
