"""Runs of plans on the CPU: real operators, judged by the same pipeline as the log."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from forensics.errors import ForensicsError
from forensics.pipeline import analyze
from forensics.report import render
from forensics.repro import compare, issue, plan, run
from forensics.repro.judge import judge
from forensics.repro.minimizing import minimize
from forensics.repro.planning import Plan, plan_case
from forensics.repro.running import Limits
from tests.repro.conftest import case, plan_for

Make = Callable[..., Plan]

TRACEBACK = """[2026-11-29 20:15:20 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/srv/engine/scheduler.py", line 12, in run_scheduler_process
    model(x)
  File "/srv/engine/model.py", line 60, in forward
    return {code}
{error}
"""

SHAPE = TRACEBACK.format(
    code="linear(x, self.weight)", error="RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x8 and 16x32)"
)
INDEX = TRACEBACK.format(code="self.embed(ids)", error="IndexError: index out of range in self")
DTYPE = TRACEBACK.format(
    code="linear(x, self.weight)",
    error="RuntimeError: mat1 and mat2 must have the same dtype, but got Float and BFloat16",
)
WORKER = TRACEBACK.format(
    code="next(loader)", error="RuntimeError: DataLoader worker (pid 77) is killed by signal: Killed. "
)


def planned(log: str) -> Plan:
    found = plan(analyze([log.encode()]))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("log", "works"),
    [(SHAPE, "fitting"), (INDEX, "in-range"), (DTYPE, "fitting"), (WORKER, "healthy")],
    ids=["shape", "index", "dtype", "worker"],
)
def test_a_failure_of_the_log_fails_here_and_its_fix_works(log: str, works: str) -> None:
    pytest.importorskip("torch")
    found = planned(log)
    failed = run(found)
    assert (failed.outcome, failed.exit_code) == ("reproduced", 1), failed.why
    assert [aspect.name for aspect in failed.aspects if aspect.same is False] == []
    assert {"op", "category", "root error", "message"} <= {aspect.name for aspect in failed.aspects}
    assert run(found, variant=works).exit_code == 0


KERNEL = TRACEBACK.format(code="softmax(scores, -1)", error="NotImplementedError: \"softmax_lastdim_kernel_impl\" not implemented for 'Long'")
LOADED = TRACEBACK.format(
    code="self.load_state_dict(state)",
    error="RuntimeError: Error(s) in loading state_dict for Net:\n\tsize mismatch for head.weight: copying a param with shape torch.Size([7, 5]) "
    "from checkpoint, the shape in current model is torch.Size([7, 6]).",
)
PICKED = TRACEBACK.format(code="rows[picked]", error="IndexError: index 9 is out of bounds for dimension 0 with size 8")


@pytest.mark.parametrize("log", [KERNEL, LOADED, PICKED], ids=["kernel", "loaded", "picked"])
def test_the_op_that_the_log_names_is_the_one_that_runs(log: str) -> None:
    pytest.importorskip("torch")
    failed = run(planned(log))
    assert failed.outcome == "reproduced", failed.why


def test_another_op_without_a_kernel_is_another_failure() -> None:
    pytest.importorskip("torch")
    other = run(planned(KERNEL).with_values({"op": "layer_norm"}))
    assert (other.outcome, other.exit_code) != ("reproduced", 1) and "LayerNormKernelImpl" in other.output


def test_one_call_from_an_incident_and_from_a_report() -> None:
    pytest.importorskip("torch")
    from forensics import reproduce

    assert reproduce(analyze([SHAPE.encode()])).outcome == "reproduced"
    report = json.loads(render(analyze([INDEX.encode()]), "json"))
    assert reproduce(report, variant="in-range").outcome == "works"
    nothing = reproduce(analyze([b"step 1 loss 2.0\nstep 2 loss 1.9\n"]))
    assert (nothing.outcome, nothing.exit_code) == ("cannot_try", 125)


def test_the_backends_side_by_side(plan_with: Make) -> None:
    body = "if variant == 'as-logged':\n    raise ValueError('the wanted failure')\nif variant == 'slow':\n    time.sleep(100)\nreturn lambda: None"
    variants = [{"name": name, "title": name} for name in ("as-logged", "other", "slow")]
    rows = {row.variant: row for row in compare(plan_with(body, variants=variants), Limits(timeout_s=3))}
    assert [rows[name].state for name in ("as-logged", "other", "slow")] == ["fails", "works", "cannot be tried"]
    assert rows["other"].ms is not None and rows["as-logged"].ms is None and "wanted" in rows["as-logged"].why


def test_other_words_in_the_pipeline_are_another_failure() -> None:
    found = plan_for(
        "RuntimeError", "mat1 and mat2 shapes cannot be multiplied (4x8 and 16x32)", "shape_or_dtype_assert"
    )
    error = {"kind": "python", "type": "RuntimeError", "root_type": "RuntimeError"}
    same, _, _ = judge(found, {"error": error}, SHAPE)
    assert same
    oom = TRACEBACK.format(
        code="torch.empty(n)", error="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 16.00 GiB."
    )
    same, why, aspects = judge(found, {"error": {"kind": "python", "type": "OutOfMemoryError"}}, oom)
    assert not same and "category is oom_gpu" in why
    assert {a.name for a in aspects if a.same is False} >= {"category", "message"}


def test_a_script_that_says_reproduced_is_not_believed_alone(plan_with: Make) -> None:
    """The words stand in the output, but what failed is something else."""
    body = "print('the wanted failure')\nraise ValueError('CUDA out of memory, not at all the wanted failure')"
    found = plan_with(body)
    judged = run(replace(found, case=replace(found.case, category="nccl")), Limits(timeout_s=30))
    assert (judged.outcome, judged.exit_code) == ("different_failure", 125)


def test_a_script_that_never_ends_is_ended(plan_with: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forensics.repro.running._GRACE_S", 1.0)
    body = "return lambda: None"
    found = plan_with(body)
    script = Path(found.recipe.script)
    script.write_text(script.read_text().replace("from runtime import", "time.sleep(600)\nfrom runtime import"))
    began = time.monotonic()
    ended = run(found, Limits(timeout_s=1))
    assert (ended.outcome, ended.exit_code) == ("cannot_try", 125) and "did not end in time" in ended.why
    assert time.monotonic() - began < 60


def test_a_script_that_dies_early_could_not_be_tried(plan_with: Make) -> None:
    found = plan_with("return lambda: None")
    script = Path(found.recipe.script)
    script.write_text(
        script.read_text().replace("from runtime import", "raise ImportError('broken build')\nfrom runtime import")
    )
    ended = run(found)
    assert (ended.outcome, ended.exit_code) == ("cannot_try", 125) and "broken build" in ended.why


def test_an_interpreter_that_is_not_there(plan_with: Make) -> None:
    with pytest.raises(ForensicsError) as caught:
        run(plan_with("return lambda: None"), Limits(python="/nonexistent/python"))
    assert "--python" in caught.value.help


def test_output_is_shown_as_it_comes(plan_with: Make) -> None:
    seen: list[bytes] = []
    run(plan_with("print('hello from the op')\nreturn lambda: None"), on_output=seen.append)
    assert b"hello from the op" in b"".join(seen)


def test_a_bug_report_has_what_a_maintainer_asks_for(plan_with: Make) -> None:
    found = plan_with("print('on node7.dc.internal as /home/anna')\nraise ValueError('the wanted failure')")
    text = issue(found, run(found))
    for part in (
        "the wanted failure",
        "```python",
        "| compared | log | run | same |",
        "**Environment**",
        "**Output**",
        "host-1",
        "/home/user-1",
    ):
        assert part in text, part
    assert "anna" not in text and "node7" not in text
    assert "It was not run" in issue(found)


def test_an_index_shrinks_to_one_element() -> None:
    pytest.importorskip("torch")
    found = plan_for(
        "IndexError", "index out of range in self", "user_code", config={"vocab_size": "1000"}
    ).with_values({"count": 64, "beyond": 37})
    assert found.values["rows"] == 1000
    smallest = minimize(found, Limits(timeout_s=60), seconds=300)
    assert smallest.minimal, smallest.why
    assert (smallest.values["rows"], smallest.values["count"], smallest.values["beyond"]) == (1, 1, 0)


def test_a_healthy_log_has_no_plan() -> None:
    assert plan_case(case("", "", "none")) is None
