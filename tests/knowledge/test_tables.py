"""The fact tables: every row is complete, its pattern compiles and fits its own example, and what it refers to exists."""

from __future__ import annotations

import re

import pytest

from forensics.data import table
from forensics.knowledge.architectures import parse_target
from forensics.knowledge.engines import engines
from forensics.knowledge.families import families, families_for_symbol, family
from forensics.knowledge.gates import gated_ops, gates
from forensics.knowledge.gpus import chip
from forensics.knowledge.linerules import rules
from forensics.knowledge.releases import order
from forensics.knowledge.settings.names import canonical
from forensics.model import Category
from forensics.parse.kernel_trace import is_host_service

LINES = [
    ("device_lines", "line"),
    ("device_lines", "limit"),
    ("device_lines", "count"),
    ("version_lines", "line"),
    ("resolved_lines", "line"),
    ("launchers", "launcher"),
]


@pytest.mark.parametrize(("name", "key"), LINES)
def test_every_line_row_fits_its_own_example(name: str, key: str) -> None:
    for row in table(f"facts/{name}")[key]:
        anchors = row["anchor"] if isinstance(row["anchor"], list) else [row["anchor"]]
        example = row["example"]
        found = re.search(row["pattern"], example)
        assert found, f"{name}: {row['pattern']} does not fit {example!r}"
        assert row.get("lines") or any(anchor in example for anchor in anchors), (
            f"{name}: no anchor of {anchors} in {example!r}"
        )
        assert not (row.get("unless") and re.search(row["unless"], example)), (
            f"{name}: {row['unless']} shuts out its own example {example!r}"
        )


@pytest.mark.parametrize(("name", "key"), LINES[:5])
def test_scanned_literals_are_long_enough(name: str, key: str) -> None:
    for row in rules(name, key):
        if row.where != "head":
            assert all(len(anchor) >= 6 for anchor in row.anchors), row.anchors


def test_families() -> None:
    rows = table("facts/kernel_families")["family"]
    assert len(rows) == 96
    assert len({row["id"] for row in rows}) == 96
    for row in rows:
        assert row["confidence"] in ("source", "inferred")
        assert row["source"] and row["title"] and row["symbols"] and row["sms"]
        for entry in row.get("history", ()):
            assert order(entry["since"])[0] and entry["package"]
    for known in families():
        assert all(parse_target(sm) and chip(sm) for sm in known.sms), known.id


def test_every_symbol_finds_its_family() -> None:
    for row in families():
        for symbol in row.symbols:
            name = symbol.replace("*", "x")
            assert families_for_symbol(name), f"{row.id}: {symbol}"


def test_chips() -> None:
    for row in table("facts/gpus")["chip"]:
        assert parse_target(row["sm"]), row
        assert row["confidence"] in ("source", "inferred")
        for target in (*row.get("arch_specific", ()), *row.get("family_specific", ())):
            assert parse_target(target), target


def test_faults() -> None:
    xids = [row["code"] for row in table("facts/xids")["xid"]]
    sxids = [row["code"] for row in table("facts/sxids")["sxid"]]
    assert len(xids) == len(set(xids)) == 110
    assert len(sxids) == len(set(sxids)) and min(sxids) > 9_999
    words = {category.value for category in Category}
    for row in table("facts/exit_codes")["signal"]:
        assert row["category"] in words, row["name"]


def test_host_services() -> None:
    rows = table("facts/host_services")["service"]
    names = [name for row in rows for name in row.get("names", ())]
    assert len(names) == len(set(names)) and all(row["what"] and row["counterexamples"] for row in rows)
    for row in rows:
        assert set(row) <= {"what", "names", "pattern", "examples", "counterexamples"}
        assert bool(row.get("pattern")) == bool(row.get("examples")) and (row.get("names") or row.get("pattern"))
        for name in row.get("examples", ()):
            assert re.fullmatch(row["pattern"], name) and is_host_service(name), name
        for name in row["counterexamples"]:
            assert not is_host_service(name), name
    assert all(is_host_service(name) for name in names) and not is_host_service("python3")


def test_gates_know_real_chips() -> None:
    assert len(gated_ops()) == 69
    for op in gated_ops():
        for gate in gates(op):
            assert all(chip(sm) for sm in gate.sms), gate


def test_line_fingerprints_are_in_order_of_release() -> None:
    for check in table("facts/flashinfer_lines")["check"]:
        versions = [order(row["version"]) for row in check["releases"]]
        assert versions == sorted(versions)
        assert all(isinstance(line, int) for row in check["releases"] for line in row["lines"])


def test_settings_have_one_meaning() -> None:
    seen: dict[str, str] = {}
    for row in table("facts/settings")["setting"]:
        for spelling in (*row["spellings"], *row.get("draft", ())):
            assert spelling not in seen or seen[spelling] == row["name"], (
                f"{spelling}: {seen.get(spelling)} and {row['name']}"
            )
            seen[spelling] = row["name"]
            assert canonical(spelling) is not None
        assert row.get("component") in (None, "target_model", "draft_model")
        assert bool(row.get("draft")) <= bool(row.get("component")) or row["name"] == "load_format"


def test_backends_lead_to_known_families() -> None:
    names = {engine.name for engine in engines()}
    for row in table("facts/backend_choices")["choice"]:
        assert row["engine"] in names, row
        name = canonical(row["setting"])
        assert name is not None and name.name == row["setting"], row
        for id in row["families"]:
            family(id)


def test_resolution_rules() -> None:
    names = {engine.name for engine in engines()}
    ids = [row["id"] for row in table("facts/resolution")["rule"]]
    assert len(ids) == len(set(ids))
    for row in table("facts/resolution")["rule"]:
        assert row["engine"] in names and row["why"] and row["result"]
        assert canonical(row["setting"]), row["id"]
        assert row.get("component") in (None, "target_model", "draft_model")
        for key in ("model", "algorithm", "quantization"):
            re.compile(row.get(key, ""))
        assert all(chip(sm) for sm in row.get("sms", ())), row["id"]


def test_version_notes() -> None:
    for row in table("facts/version_notes")["note"]:
        assert row["kind"] in ("broken", "changed", "needs") and row["text"] and row["source"]
        for id in row.get("families", ()):
            family(id)
        assert all(chip(sm) for sm in row.get("sms", ())), row["id"]


def test_kernel_words_compile() -> None:
    for key in ("op", "library"):
        for row in table("facts/kernel_ops")[key]:
            re.compile(row["pattern"])
            if "family" in row:
                family(row["family"])
