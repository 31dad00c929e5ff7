"""A hostile log cannot put code into a script: its text is data there, whatever it looks like."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.repro.bug_report import issue
from forensics.repro.case import Case, Text, case_of_report
from forensics.repro.planning import Plan, plan_case, plan_with
from forensics.repro.render import render
from tests.repro.conftest import execute, report

DATA = {"PARAMETERS", "EXPECTED", "PROVENANCE"}
ATTACKS = [
    '"""\nimport os\nos.system("touch {marker}")\n"""',
    "'); __import__('os').system('touch {marker}') #",
    "\\'); __import__('os').system('touch {marker}') #",
    "\n}}\n__import__('pathlib').Path('{marker}').touch()\nX = {{",
    "{{__import__('os').system('touch {marker}')}}",
    "${{jndi:ldap://x}} `touch {marker}` $(touch {marker}); touch {marker}",
    "# --- end of data ---\nopen('{marker}', 'w')\n",
    'if __name__ == "__main__":\n    main(globals())\nopen("{marker}", "w")\n',
    "\r\nopen('{marker}', 'w')\r\n",
    "\u2028open('{marker}', 'w')\u2028\u202e\u2066\x00\x1b]0;x\x07\ud800",
]


def hostile(text: str) -> dict[str, Any]:
    """A report in which this text stands wherever text can stand, on top of a failure that a recipe answers."""
    message = f"mat1 and mat2 shapes cannot be multiplied (4x8 and 16x8) {text}"
    found = report(
        "RuntimeError", message, "shape_or_dtype_assert", title=text,
        frames=[{"function": text, "file": text, "line": 1, "code": text}],
        kernel={"name": text, "family": text}, config={"dtype": text, text: text, "vocab_size": text},
        software={text: text, "torch": text}, device={"name": text, "sm": text},
    )  # fmt: skip
    found["verdict"]["signature"] = text
    found["coverage"] = {"sources": [{"name": text}]}
    found["primary"]["evidence"] = [{"source": text, "first_line": 1, "last_line": 2, "quote": f"{message}\n{text}"}]
    found["primary"]["fingerprint"] = text
    return found


def planned(text: str) -> Plan:
    plan = plan_case(case_of_report(hostile(text)))
    assert plan is not None
    return plan


def code_of(script: str) -> str:
    """The script's syntax tree without its docstring (which names the file) and the values of its data."""
    tree = ast.parse(script)
    assert isinstance(tree.body[0], ast.Expr) and isinstance(tree.body[0].value, ast.Constant)
    tree.body[0].value.value = ""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in DATA:
            ast.literal_eval(node.value)
            node.value = ast.Constant(None)
    return ast.dump(tree)


BENIGN = code_of(render(planned("benign")))


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_changes_no_code_and_does_nothing(attack: str, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    text = attack.format(marker=marker)
    plan = planned(text)
    script = render(plan, name=text[:100])
    assert code_of(script) == BENIGN
    assert script.isascii()
    assert execute(plan, tmp_path, "--variant", "none of these")[0] == 2
    assert not marker.exists()


def test_an_attack_in_a_script_that_runs(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    marker = tmp_path / "marker"
    plan = planned(ATTACKS[0].format(marker=marker))
    code, result, _ = execute(plan, tmp_path)
    assert (code, result["outcome"]) == (1, "reproduced")
    assert not marker.exists()


@settings(max_examples=25, deadline=None)
@given(st.text(alphabet=st.characters(), max_size=200))
def test_any_text_is_data(text: str) -> None:
    assert code_of(render(planned(text))) == BENIGN


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=60))
def test_words_for_choices_are_only_the_known_ones(word: str) -> None:
    found = report("RuntimeError", "No available kernel. Aborting execution.", "unsupported_dtype_or_quant")
    plan = plan_case(case_of_report(found, [Text(f"SDPBackend.{word} dtype=torch.{word} head_dim: {word}")]))
    assert plan is not None
    assert plan.values["backend"] in ("FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION", "MATH")
    assert plan.values["dtype"] in ("float32", "float16", "bfloat16", "float64")


def test_comments_hold_no_text_of_the_log() -> None:
    plan = planned("SECRETWORD")
    comments = [line.split("#", 1)[1] for line in render(plan).splitlines() if "  # " in line]
    assert comments and not [comment for comment in comments if "SECRETWORD" in comment]


def test_a_name_of_a_file_stays_a_name() -> None:
    script = render(planned("x"), name='a";import os;"\n.py')
    assert code_of(script) == code_of(render(planned("x"), name="a__import_os___.py"))


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("token hf_abcdefghijKLMNOPqrstuv end", "token <secret-1> end"),
        ("/home/anna/run.py", "/home/user-1/run.py"),
        ("mail to a.b@example.org now", "mail to e-mail-1 now"),
        ("rendezvous at 10.1.2.3:29500", "rendezvous at ip-1:29500"),
        ("on gpu-17.dc1.internal today", "on host-1 today"),
        ("API_KEY=abcd1234", "API_KEY=<secret-1>"),
        ("torch 2.11.0 on sm_90, 4x8 and 16x8", "torch 2.11.0 on sm_90, 4x8 and 16x8"),
    ],
)
def test_what_a_bug_report_leaves_out(said: str, kept: str) -> None:
    """One mechanism with the reports: the script in it still is one."""
    message = f"mat1 and mat2 shapes cannot be multiplied (4x8 and 16x8) {said}"
    plan = plan_case(case_of_report(report("RuntimeError", message, "shape_or_dtype_assert")))
    assert plan is not None
    text = issue(plan)
    assert kept in text and "*Redacted: " in text
    assert said == kept or said not in text
    ast.parse(text.split("```python\n", 1)[1].split("\n```", 1)[0])


def test_a_plan_by_hand_takes_no_free_text() -> None:
    plan = plan_with(Case("crashed", "unknown", "t"), "torch-shape")
    from forensics.errors import UsageError

    for given_value in ("__import__('os')", 10**30, 1.5, None):
        with pytest.raises(UsageError):
            plan.with_values({"op": given_value})
    with pytest.raises(UsageError):
        plan.with_values({"nothing": 1})
