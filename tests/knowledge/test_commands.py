"""`forensics gpu`, `support`, `kernel`, `binary`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from forensics.cli.knowledge_commands import COMMANDS
from forensics.errors import UsageError
from tests.knowledge.test_binaries import fatbin

KERNEL = "bmm_MxE4m3_MxE2m1MxE4m3_Fp32_bA32_bB32_bC32_t128x16x256u2_s4_et128x16_m128x16x32_cga1x1x1_16dp256b_rM_TN_transOut_schedS_bN_tma_clmp_swiGlu_dynBatch_sm100f"


def run(command: str, *words: str, stdin: str | None = None) -> str:
    result = CliRunner().invoke(COMMANDS[command], words, input=stdin, catch_exceptions=False, standalone_mode=False)
    return result.output


def test_kernel_json_follows_the_contract() -> None:
    rows = json.loads(run("kernel", KERNEL, "not-a-kernel", "--format", "json"))
    assert set(rows[0]) >= {"name", "grammar", "op", "dtypes", "tile", "archs", "runs_on", "sentence"}
    assert rows[0]["dtypes"] == {"a": "mxfp4", "b": "mxfp8", "out": "mxfp8", "acc": "fp32"}
    assert rows[0]["tile"] == [128, 16, 256]
    assert rows[0]["runs_on"] == ["sm_100", "sm_103", "sm_107"]
    assert rows[1]["grammar"] is None and rows[1]["name"] == "not-a-kernel"


def test_kernel_reads_names_from_standard_input() -> None:
    rows = json.loads(run("kernel", "-", "--format", "json", stdin=f"{KERNEL}\n\nfused_moe_kernel\n"))
    assert [row["op"] for row in rows] == ["batched gemm", "moe gemm"]
    assert "trtllm-gen" in run("kernel", stdin=KERNEL)


def test_gpu_says_what_it_is_and_what_runs() -> None:
    facts = json.loads(run("gpu", "RTX", "PRO", "6000", "--format", "json"))
    assert [one["sm"] for one in facts] == ["sm_120"]
    assert "sm_120f" in facts[0]["loads"] and "sm_100f" not in facts[0]["loads"]
    assert "fi.cutlass_fused_moe" in [row["id"] for row in facts[0]["families"]["yes"]]
    assert "fi.trtllm_fp4_block_scale_moe" in [row["id"] for row in facts[0]["families"]["no"]]
    assert run("gpu", "RTX 6000").count("compute capability") == 3
    with pytest.raises(UsageError):
        run("gpu", "toaster")


def test_support_says_where_an_op_runs() -> None:
    rows = json.loads(run("support", "trtllm_fp4_block_scale_moe", "--gpu", "sm_120", "--format", "json"))
    assert (rows[0]["id"], rows[0]["supported"]) == ("fi.trtllm_fp4_block_scale_moe", "no")
    assert "0.6.16" in [note["fixed_in"] for note in rows[0]["versions"]]
    assert "flashinfer 0.6.7 to 0.6.15" in run("support", "trtllm_fp4_block_scale_moe", "--gpu", "sm_120")
    assert "no (" in run("support", "flashinfer_trtllm_routed", "--gpu", "sm_120")
    assert "fa.fa3" in run("support", "flashattention", "3")
    with pytest.raises(UsageError):
        run("support", "no-such-op")
    with pytest.raises(UsageError, match="several GPUs"):
        run("support", "fa.fa3", "--gpu", "RTX 6000")


def test_binary_lists_targets(tmp_path: Path) -> None:
    file = tmp_path / "k.fatbin"
    file.write_bytes(fatbin((2, 90, 0x100011), (2, 100, 0x1100011)))
    rows = json.loads(run("binary", str(file), "--gpu", "sm_121", "--format", "json"))
    assert rows[0]["runs"] is False
    assert [c["target"] for c in rows[0]["code"]] == ["sm_90a", "sm_100a"]
    assert "no, none of this code loads there" in run("binary", str(file), "--gpu", "sm_121")
    assert run("binary", str(tmp_path)).startswith(str(file))
