"""Every shipped signature proves itself: shape, examples, counterexamples, each part needed, silence on healthy text."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import data
from forensics.match import load_signatures, match
from forensics.match.linting import lint
from forensics.match.trial import facts_from, intake_of
from forensics.parse import parse

ROOT = Path(__file__).parents[2]
FAMILIES = sorted(path for path in (ROOT / "signatures" / "rules").iterdir() if path.is_dir())


@pytest.mark.parametrize("family", FAMILIES, ids=lambda path: path.name)
def test_signatures_prove_themselves(family: Path) -> None:
    problems = lint([str(family)])
    assert not problems, "\n".join(map(str, problems))


def test_signatures_have_ids_of_their_own() -> None:
    ids = [entry["id"] for path in data.toml_files(str(ROOT / "signatures" / "rules")) for entry in _entries(path)]
    assert len(ids) == len(set(ids))
    assert {one.id for one in load_signatures(status=("stable", "draft", "retired"))} >= set(ids)


def test_signature_families_are_their_folders() -> None:
    for path in data.toml_files(str(ROOT / "signatures" / "rules")):
        for entry in _entries(path):
            assert entry["id"].split(".")[0] == Path(path).parent.name, f"{path}: {entry['id']}"


def test_no_root_signature_fires_on_healthy_prompts() -> None:
    text = (ROOT / "tests" / "fixtures" / "healthy_prompts.txt").read_text(encoding="utf-8")
    assert _roots(text) == []


#: a healthy run whose log tells of a failure that the program caught and recovered from
HANDLED = "healthy_handled_oom"
HEALTHY = sorted(p for p in (ROOT / "sample_logs").glob("healthy*/**/*.log") if p.parent.name != HANDLED)


@pytest.mark.parametrize("log", HEALTHY, ids=lambda path: path.name)
def test_no_root_signature_fires_on_healthy_logs(log: Path) -> None:
    assert _roots(log.read_text(encoding="utf-8", errors="replace")) == []


def _roots(text: str) -> list[str]:
    intake = intake_of(text)
    found = match(intake, parse(intake), facts_from({}), load_signatures())
    return [f"{f.id}: {f.evidence[0].quote}" for f in found if f.role == "root"]


def _entries(path: str) -> list[dict[str, object]]:
    from forensics.match.load import read_entries

    return read_entries(path)
