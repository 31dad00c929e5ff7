"""Every shipped recipe: sound data, a script that compiles, words that the templates know."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

import pytest

from forensics import data
from forensics.errors import ForensicsError
from forensics.repro.masking import masked
from forensics.repro.planning import plan_with
from forensics.repro.recipe import Recipe, load_recipes, read
from forensics.repro.render import render
from tests.repro.conftest import ROW, case

RECIPES = load_recipes()


def test_the_issue_wants_thirty_op_families() -> None:
    assert len(RECIPES) >= 30
    assert len({recipe.id for recipe in RECIPES}) == len(RECIPES)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.id)
def test_its_script_is_a_whole_program(recipe: Recipe) -> None:
    text = render(plan_with(case("RuntimeError", "something", "unknown"), recipe.id))
    tree = ast.parse(text)
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert {"prepare", "main", "child", "run_child"} <= names
    assert not [
        n
        for n in ast.walk(tree)
        if isinstance(n, ast.ImportFrom) and n.module in ("runtime", "supervision", "compile_runtime")
    ]
    assert "forensics" not in {
        alias.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names
    }
    assert ("compile_for" in names) is recipe.compiles
    defined = [n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    assert len(defined) == len(set(defined)), "two parts define the same name"


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.id)
def test_its_template_reads_only_its_own_parameters(recipe: Recipe) -> None:
    template = (data.root() / "recipes" / recipe.script).read_text()
    known = {spec.name for spec in recipe.parameters}
    read_by_name = set(re.findall(r"\bp\[\"(\w+)\"\]", template))
    shared = {spec.name for other in RECIPES if other.script == recipe.script for spec in other.parameters}
    assert read_by_name <= shared
    assert known <= shared | {"seed"}


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.id)
def test_its_words_stand_in_the_tables(recipe: Recipe) -> None:
    from forensics.knowledge import families, sms

    assert set(recipe.families) <= {family.id for family in families()}
    assert set(recipe.sms) <= set(sms())
    for sign in recipe.signs:
        assert sign.regex.search("") is None, "a sign that every log has"
        assert set(sign.parameters) <= {spec.name for spec in recipe.parameters}
        for name, value in sign.parameters.items():
            assert next(spec for spec in recipe.parameters if spec.name == name).accepts(value)
    for spec in recipe.parameters:
        for source in spec.sources:
            assert all(spec.accepts(value) for value in source.values.values()), f"{spec.name}: {source.values}"
            assert source.regex is None or source.regex.groups <= 1


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"surprise": 1}, "unknown key 'surprise'"),
        ({"signs": [{"id": "x", "pattern": "("}]}, "unterminated"),
        ({"variants": [{"name": "other", "title": "t"}]}, "as-logged"),
        ({"parameters": [{"name": "n", "default": 0, "why": "w", "minimum": 1}]}, "default 0 is not acceptable"),
        ({"parameters": [{"name": "n", "default": "a", "why": "w"}]}, "default 'a' is not acceptable"),
        ({"title": None, "op": None, "signs": None}, "signs"),
    ],
)
def test_a_recipe_that_is_not_sound_says_where(change: dict[str, Any], why: str) -> None:
    row = {**ROW, "script": "x.py", **change}
    if change.get("signs", 1) is None:
        del row["signs"]
    with pytest.raises(ForensicsError) as caught:
        read(row, "recipes/x.toml")
    assert caught.value.where == "recipes/x.toml" and why in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "a 0x7f12 b 3.25 c\n  d", "matrices (4x8 and 16x8)", "7" * 50_000, "\u202e 12 \x00"]
)
def test_scripts_mask_as_the_package_does(text: str) -> None:
    namespace: dict[str, Any] = {}
    source = (data.root() / "recipes" / "runtime.py").read_text().replace("from supervision import run_child", "")
    exec(compile(source, "runtime.py", "exec"), namespace)
    assert namespace["masked"](text) == masked(text)


def test_the_limits_in_scripts_are_those_of_the_gpu_table() -> None:
    text = render(plan_with(case("X", "y", "jit_compile"), "triton-shared-memory"))
    written = next(line for line in text.splitlines() if line.startswith("SHARED_MEMORY_LIMITS = "))
    limits = ast.literal_eval(written.split(" = ", 1)[1])
    assert limits["sm_90"] == 232448 and limits["sm_120"] == 101376 and limits["sm_80"] == 166912
    assert json.dumps(limits)


def test_a_kernel_that_a_sign_names_is_one_that_the_script_can_call() -> None:
    """The sign lists the kernels, and the parameter says which op each belongs to: a name in one list only would rebuild another op."""
    (recipe,) = (one for one in RECIPES if one.id == "torch-dtype")
    (sign,) = (one for one in recipe.signs if one.id == "not-implemented")
    (op,) = (one for one in recipe.parameters if one.name == "op")
    listed = re.search(r"\(\?:([\w|]+)\)", sign.pattern)
    assert listed is not None and set(listed[1].split("|")) == set(op.sources[0].values)
    assert set(op.sources[0].values.values()) <= set(op.choices)
