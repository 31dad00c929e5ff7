"""Compiled once, loaded fast, never from a cache that somebody else could have written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from forensics import data
from forensics.errors import UsageError
from forensics.match import anchors, load_signatures
from forensics.match.linting import lint
from forensics.match.load import compile_all, whole_word

GOOD = """\
id = "mine.flux"
title = "The flux capacitor is full"
role = "root"
category = "user_code"
why = "It says so."
next_steps = ["Empty it."]
references = ["flux 1.0"]

[match]
literals = ["flux capacitor is full"]

[[examples]]
text = "flux capacitor is full"

[[counterexamples]]
text = "flux capacitor is empty"
because = "the opposite"
"""


EXAMPLE = 'text = "flux capacitor is full"'


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "cache"
    place.mkdir(mode=0o700)
    monkeypatch.setenv("FORENSICS_CACHE_DIR", str(place))
    monkeypatch.setattr(data, "_memory", {})
    return place


def value_of(stamp: str, value: object, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setattr(data, "_memory", {})
    return data.compiled("t/x", stamp, lambda: value, shipped=False)


def test_what_was_compiled_is_kept_while_its_stamp_holds(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert value_of("one", [1], monkeypatch) == [1]
    assert value_of("one", [2], monkeypatch) == [1]
    assert value_of("two", [2], monkeypatch) == [2]


@pytest.mark.parametrize("damage", ["", "{", "[]", "[1, 2, 3]", "[" * 100_000])
def test_a_damaged_cache_is_made_anew(cache: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    value_of("one", [1], monkeypatch)
    (cache / "t.x.json").write_text(damage)
    assert value_of("one", [2], monkeypatch) == [2]


@pytest.mark.parametrize("place", ["t.x.json", "."])
def test_a_cache_others_may_write_is_not_read(cache: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    value_of("one", [1], monkeypatch)
    (cache / place).chmod(0o777)
    assert value_of("one", [2], monkeypatch) == [2]


def test_a_link_in_the_cache_is_not_followed(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere.json").write_text(json.dumps([data.FORMAT, "one", [9]]))
    (cache / "t.x.json").symlink_to(tmp_path / "elsewhere.json")
    assert value_of("one", [2], monkeypatch) == [2]


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FORENSICS_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert value_of("one", [1], monkeypatch) == [1]


def test_a_changed_table_is_read_again(cache: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.toml"
    path.write_text("a = 1\n")
    first = data.stamp_of([str(path)])
    path.write_text("a = 23\n")
    assert data.stamp_of([str(path)]) != first


def test_details_load_only_when_asked_for(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    signatures = load_signatures()
    assert not [key for key in data._memory if key.endswith("_details")]
    assert signatures[0].title
    assert [key for key in data._memory if key.endswith("_details")]


def test_every_signature_has_an_anchor_of_its_own_text() -> None:
    for one in load_signatures():
        found = [a.literal.decode() for a in anchors([one])]
        assert bool(found) != bool(one.rest.get("frame") or one.rest.get("code")), one.id  # a stack is kept anyway
        needed = (*one.literals, *one.any_literals, *one.rest.get("nearby", ()))
        assert set(found) <= set(needed), one.id


def test_a_users_folder_adds_and_replaces(cache: Path, tmp_path: Path) -> None:
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "a.toml").write_text(GOOD)
    (folder / "b.toml").write_text(GOOD.replace("mine.flux", "cuda.illegal-memory-access"))
    found = {one.id: one for one in load_signatures([str(folder)])}
    assert found["mine.flux"].trusted is False
    assert found["mine.flux"].title == "The flux capacitor is full"
    assert found["cuda.illegal-memory-access"].literals == ("flux capacitor is full",)


def test_a_wrong_user_signature_is_a_usage_error_that_names_it(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(GOOD.replace('role = "root"', 'role = "rot"'))
    with pytest.raises(UsageError) as caught:
        load_signatures([str(tmp_path)])
    assert f"{tmp_path}/a.toml:3: role: 'rot' is none of root" in str(caught.value)


def test_a_folder_that_is_not_there_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        load_signatures(["/nowhere/at/all"])


def test_a_wheel_holds_every_table_and_signature(tmp_path: Path) -> None:
    names = compile_all(str(tmp_path / "out"))
    assert {"facts.gpus.json", "rules._index.json", "rules.nccl._details.json"} <= set(names)
    form, stamp, index = json.loads((tmp_path / "out" / "rules._index.json").read_text())
    assert (form, stamp) == (data.FORMAT, "installed")
    assert index["problems"] == []
    assert not any(os.path.isabs(row[11]) for row in index["rows"])


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (('"flux capacitor is full"]', '"short"]'), "needs 8 bytes or more"),
        (('category = "user_code"\n', ""), "category is missing"),
        (("[match]", '[match]\nliteral = "x"'), "match.literal: no such key"),
        (("[match]", "[match]\npattern = '(a+)+b'"), "unbounded repeat inside another"),
        (("[match]", "[match]\npattern = 'x.*y'"), "write .{0,200}"),
        (('"The flux capacitor is full"', '"The {thing} is full"'), "{thing} is no group"),
        ((EXAMPLE, EXAMPLE + '\ncaptures = { a = "b" }'), "captures a = None, not 'b'"),
        ((EXAMPLE, 'text = "flux capacitor is fool"'), "^ wanted 'ull' here"),
        (("is empty", "is full"), "counterexamples[1] matches, but must not: the opposite"),
        (('because = "the opposite"', ""), "does not say because"),
        (('references = ["flux 1.0"]', ""), "references"),
        (("[match]", "[match"), "not TOML"),
        (('capacitor is full"]', 'capacitor is full", "capacitor"]'), "notices when 'capacitor' of literals is dropped"),
    ],
)
def test_lint_says_what_is_wrong(tmp_path: Path, change: tuple[str, str], problem: str) -> None:
    assert change[0] in GOOD
    (tmp_path / "a.toml").write_text(GOOD.replace(*change))
    problems = lint([str(tmp_path)])
    assert any(problem in str(one) for one in problems), [str(one) for one in problems]


def test_lint_finds_nothing_wrong_with_a_good_one(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(GOOD)
    assert lint([str(tmp_path)]) == []


def test_lint_says_all_problems_at_once_with_their_lines(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(GOOD.replace('"root"', '"rot"').replace('"user_code"', '"usr_code"'))
    assert [one.line for one in lint([str(tmp_path)])] == [3, 4]


def test_a_problem_is_told_at_a_line_of_its_own_signature(tmp_path: Path) -> None:
    """A key that stands amid a line there is not looked for in the next one."""
    one = 'id = "own.{}"\ntitle = "t"\nrole = "advice"\nwhy = "w"\n'
    inline = 'fixes = [{ action = "a", component = "modell" }]\nmatch = { literals = ["the queue ran over"] }\n'
    apart = '[signature.match]\nliterals = ["the queue ran dry"]\n[[signature.fixes]]\naction = "a"\ncomponent = "{}"\n'
    texts = [one.format("first") + inline, one.format("second") + apart.format("scheduler"), one.format("third") + apart.format("x")]
    source = "".join(f"[[signature]]\n{text}" for text in texts)
    (tmp_path / "a.toml").write_text(source)
    problems = [problem for problem in lint([str(tmp_path)]) if "component: none of" in problem.text]
    assert [problem.line for problem in problems] == [1, len(source.splitlines())]


@pytest.mark.parametrize(
    ("literals", "word"),
    [(["an illegal memory access"], "illegal"), (["OutOfMemoryError"], ""), (["failed to load cubin"], "load")],
)
def test_the_first_test_of_a_signature_is_a_word_whole_in_every_match(literals: list[str], word: str) -> None:
    assert whole_word(literals, []) in (word, "memory" if word == "illegal" else word)
