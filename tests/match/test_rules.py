"""Rules derived from knowledge: the kernel against the GPU, asked against ran, backends that can run."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.ingest import read
from forensics.knowledge import anchors as fact_anchors
from forensics.knowledge import can_run, collect, family, supported
from forensics.match import anchors, contradictions, load_signatures, match
from forensics.match.conditions import Context
from forensics.match.fixes import fixes_of
from forensics.match.launch import with_action
from forensics.match.rules.backends import choices
from forensics.match.rules.fix_chooser import choose, vetted
from forensics.match.trial import facts_from, from_entry
from forensics.model.verdict import Category, Confidence, Contradiction, Finding, Fix
from forensics.parse import anchors as parse_anchors
from forensics.parse import parse

SAMPLES = Path(__file__).parents[2] / "sample_logs"
RULE = "rule.kernel-architecture"


def analysed(path: Path) -> tuple[list[Finding], list[Contradiction]]:
    signatures = load_signatures()
    intake = read([str(path)], [*parse_anchors(), *fact_anchors(), *anchors(signatures)])
    events = parse(intake)
    facts = collect(intake, events)
    return match(intake, events, facts, signatures), contradictions(intake, events, facts)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "a.log"
    path.write_text(text)
    return path


def trtllm_moe(gpu: str, message: str) -> str:
    return f'''\
[2026-11-29 20:14:07 TP0] device={gpu}
[2026-11-29 20:14:08 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/srv/engine/moe.py", line 31, in forward
    return trtllm_fp4_block_scale_moe(
  File "/usr/lib/python3/site-packages/flashinfer/fused_moe/core.py", line 2745, in trtllm_fp4_block_scale_moe
    return module.trtllm_fp4_block_scale_moe(
{message}
'''


@pytest.mark.parametrize("case", ["founding_case", "backend_asked_for", "cubin_load", "all_ranks_moe"])
def test_a_kernel_that_cannot_load_is_proven(case: str) -> None:
    findings, _ = analysed(SAMPLES / case / f"{case}.log")
    rule = next(f for f in findings if f.id == RULE)
    assert rule.category is Category.ARCH_MISMATCH
    assert rule.confidence is Confidence.ESTABLISHED
    assert rule.evidence and all(e.quote for e in rule.evidence)


@pytest.mark.parametrize("case", ["founding_case", "backend_asked_for"])
@pytest.mark.parametrize(("gpu", "sm"), [("B200", "sm_100"), ("B300", "sm_103")])
def test_on_a_gpu_that_loads_the_kernel_nothing_is_claimed(case: str, gpu: str, sm: str, tmp_path: Path) -> None:
    assert can_run("sm_100f", sm)
    text = (SAMPLES / case / f"{case}.log").read_text()
    for spelled in ("RTX PRO 6000 Blackwell Server Edition", "RTX_PRO_6000_Blackwell_Server_Edition"):
        text = text.replace(spelled, gpu)
    findings, _ = analysed(written(tmp_path, text))
    assert findings
    assert not [f for f in findings if f.category is Category.ARCH_MISMATCH]


def test_the_draft_of_the_founding_case_did_not_run_what_was_asked_for() -> None:
    _, found = analysed(SAMPLES / "founding_case" / "founding_case.log")
    (one,) = found
    assert (one.setting, one.requested, one.observed, one.component) == (
        "moe_runner_backend", "triton", "flashinfer_trtllm_routed", "draft_model",
    )  # fmt: skip
    assert "quantization is None" in one.explanation
    assert "Hypothesis: the code that would move a DeepSeek FP4 draft to Triton" in one.explanation


def test_where_the_backend_asked_for_ran_no_contradiction_is_claimed() -> None:
    assert analysed(SAMPLES / "backend_asked_for" / "backend_asked_for.log")[1] == []


def test_a_version_known_to_be_broken_is_said_with_the_failure_it_bears_on() -> None:
    findings, _ = analysed(SAMPLES / "founding_case" / "founding_case.log")
    advice = next(f for f in findings if f.id == "version.flashinfer.trtllm-moe-gate-open")
    assert advice.evidence[0].quote and "0.6.12" in advice.title
    healthy, _ = analysed(SAMPLES / "healthy_vllm" / "healthy_vllm.log")
    assert not [f for f in healthy if f.id.startswith("version.")]


def test_an_op_whose_list_leaves_the_gpu_out_is_a_mismatch_where_the_error_speaks_of_it(tmp_path: Path) -> None:
    text = trtllm_moe("NVIDIA H200", "RuntimeError: this kernel is not supported on the current architecture")
    (rule,) = [f for f in analysed(written(tmp_path, text))[0] if f.id == RULE]
    assert rule.confidence is Confidence.ESTABLISHED
    assert "trtllm_fp4_block_scale_moe cannot run on NVIDIA H200 (sm_90)" in rule.title


@pytest.mark.parametrize(
    "message",
    [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "ImportError: cannot import name 'trtllm_fp4_block_scale_moe' from 'flashinfer'",
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled system error",
    ],
)
def test_errors_of_another_kind_are_no_mismatch(tmp_path: Path, message: str) -> None:
    assert not [f for f in analysed(written(tmp_path, trtllm_moe("NVIDIA H200", message)))[0] if f.id == RULE]


def test_without_a_gpu_nothing_is_derived(tmp_path: Path) -> None:
    message = "RuntimeError: Error occurred when running GEMM! (Kernel: bmm_E2m1_E2m1E2m1_Fp32_t128x8x512u2_sm100f)"
    assert not [f for f in analysed(written(tmp_path, trtllm_moe("unknown", message)))[0] if f.id == RULE]


def test_fixes_never_name_a_backend_that_the_gpu_cannot_run() -> None:
    for sm in ("sm_75", "sm_80", "sm_90", "sm_100", "sm_103", "sm_120", "sm_121"):
        for engine in ("sglang", "vllm"):
            facts = facts_from({"gpu": sm, "engine": engine})
            for failed in {id for choice in choices() if choice.engine == engine for id in choice.families}:
                for fix in choose({failed}, facts):
                    row = next(c for c in choices() if c.engine == engine and fix.action == f"{c.flag} {c.value}")
                    assert any(supported(id, sm).answer == "yes" for id in row.families if id != failed), (sm, engine, fix)


def test_a_signatures_fix_for_another_gpu_is_left_out() -> None:
    actions = ("--moe-runner-backend flashinfer_trtllm", "--moe-runner-backend flashinfer_cutlass", "Wait.")
    kept = vetted([Fix(action, "") for action in actions], facts_from({"gpu": "sm_120", "engine": "sglang"}))
    assert [fix.action for fix in kept] == ["--moe-runner-backend flashinfer_cutlass", "Wait."]


def test_the_table_of_choices_names_families_that_exist() -> None:
    for choice in choices():
        for id in choice.families:
            assert family(id).id == id


COMMAND = "FOO=1 python -m serve --model m --speculative-algorithm EAGLE --speculative_num_steps 3 --tp=4 --fast"


@pytest.mark.parametrize(
    ("action", "result"),
    [
        ("--tp 8", COMMAND.replace("--tp=4", "--tp 8")),
        ("drop --speculative-*", "FOO=1 python -m serve --model m --tp=4 --fast"),
        ("drop --fast", COMMAND.removesuffix(" --fast")),
        ("FOO=2", COMMAND.replace("FOO=1", "FOO=2")),
        ("--moe-runner-backend triton BAR=x", "BAR=x " + COMMAND + " --moe-runner-backend triton"),
        ("Use another backend", None),
        ("--tp=4", None),
    ],
)
def test_a_fix_goes_into_the_users_own_command(action: str, result: str | None) -> None:
    assert with_action(COMMAND, action) == result


SHORTER = [
    {"action": "--max-model-len 8192", "lowers": "max_model_len", "confidence": "hypothesis"},
    {"action": "--gpu-memory-utilization 0.95", "raises": "gpu_memory_utilization", "confidence": "hypothesis"},
]


@pytest.mark.parametrize(
    ("settings", "left"),
    [
        ({}, 2),
        ({"max_model_len": "32768", "gpu_memory_utilization": "0.9"}, 2),
        ({"max_model_len": "4096"}, 1),  # it is shorter already
        ({"max_model_len": "8192", "gpu_memory_utilization": "0.97"}, 0),
        ({"max_model_len": "auto"}, 2),  # no number
    ],
)
def test_a_fix_that_would_not_change_a_number_in_its_direction_is_left_out(settings: dict[str, str], left: int) -> None:
    one = from_entry({"id": "x.y", "title": "t", "role": "root", "category": "unknown", "why": "w", "fixes": SHORTER, "match": {"literals": ["z"]}})
    assert len(fixes_of(one, Context(), facts_from({"settings": settings}), str)) == left


def test_a_fix_whose_value_the_message_does_not_tell_is_left_out() -> None:
    match = {"literals": ["too long"], "pattern": r"too long(?:, (?P<fits>\d+) fit)?"}
    fixes = [{"action": "--max-model-len {fits}", "lowers": "max_model_len"}]
    one = from_entry({"id": "x.y", "title": "t", "role": "root", "category": "unknown", "why": "w", "fixes": fixes, "match": match})
    facts = facts_from({"settings": {"max_model_len": "4096"}})

    def told(fits: str) -> int:
        captures = {"fits": fits} if fits else {}
        return len(fixes_of(one, Context(captures=captures), facts, lambda text: text.replace("{fits}", fits)))

    assert (told(""), told("2048"), told("4096")) == (0, 1, 0)
