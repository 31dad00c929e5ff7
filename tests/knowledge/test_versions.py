"""Versions of software, their order, what is known of them; engines and faults."""

from __future__ import annotations

import pytest

from forensics.knowledge import collect, versions_from
from forensics.knowledge.faults import exit_meaning, signal_name, sxid, xid
from forensics.knowledge.gates import admitted, gates
from forensics.knowledge.notes import version_notes
from forensics.knowledge.releases import at_least, between, order
from forensics.knowledge.versions import flashinfer_of_line
from tests.knowledge.logs import intake_of


@pytest.mark.parametrize(
    ("text", "package", "value"),
    [
        ("Initializing a V1 LLM engine (v0.10.2) with config: model='m'", "vllm", "0.10.2"),
        ("PyTorch version: 2.7.1+cu126", "torch", "2.7.1+cu126"),
        ("PyTorch version: 2.7.1+cu126", "cuda", "12.6"),
        ("torch==2.6.0+rocm6.3 torchvision==0.21", "torch", "2.6.0+rocm6.3"),
        ("NCCL version 2.27.3+cuda12.8", "nccl", "2.27.3"),
        ("| NVIDIA-SMI 580.65.06  Driver Version: 580.65.06  CUDA Version: 13.0 |", "driver", "580.65.06"),
        ("/root/.cache/flashinfer/0.6.10+cf49.nv26/121a/cached_ops/x", "flashinfer", "0.6.10"),
        ("/tmp/build-x/flashinfer-0.1.6+cu121torch2.4/include/x.cuh: line 1", "torch", "2.4"),
        ("flashinfer-python==0.6.12", "flashinfer", "0.6.12"),
        ("sgl_kernel: 0.3.16.post5", "sgl_kernel", "0.3.16.post5"),
        ("transformers              4.57.1", "transformers", "4.57.1"),
        ('File "/opt/conda/lib/python3.11/site-packages/a.py", line 1, in f', "python", "3.11"),
        ("docker run lmsysorg/sglang:v0.5.6-cu129 python3 -m sglang.launch_server --tp 2", "sglang", "0.5.6"),
        ("DeepSpeed info: version=0.16.4, git-hash=unknown", "deepspeed", "0.16.4"),
    ],
)
def test_a_version_is_read(text: str, package: str, value: str) -> None:
    assert {v.name: v.value for v in versions_from(intake_of(text))}.get(package) == value


def test_what_the_driver_can_run_is_not_the_toolkit() -> None:
    assert (
        collect(intake_of("| NVIDIA-SMI 580.65.06  Driver Version: 580.65.06  CUDA Version: 13.0 |"), []).version(
            "cuda"
        )
        is None
    )


def test_a_fallback_configuration_is_no_version() -> None:
    assert (
        versions_from(intake_of("Config file not found. Fallback to triton version 3.4.0 and use MoE kernel config"))
        == ()
    )


def test_a_source_line_dates_flashinfer() -> None:
    text = "RuntimeError: Error in function 'run' at /x/csrc/trtllm_batched_gemm_runner.cu:286: Error occurred when running GEMM! (numBatches: 8)"
    found = versions_from(intake_of(text))
    assert [(v.name, v.value, v.how) for v in found] == [("flashinfer", "0.6.12", "fingerprint")]
    assert flashinfer_of_line("trtllm_batched_gemm_runner.cu", 265)[0] == "0.6.4"
    assert flashinfer_of_line("trtllm_batched_gemm_runner.cu", 9_999) == ()
    with_banner = versions_from(intake_of("flashinfer-python==0.6.11\n" + text))
    assert [v.value for v in with_banner if v.name == "flashinfer"] == ["0.6.11"]


def test_order_of_releases() -> None:
    assert order("0.6.9rc2") < order("0.6.9") < order("0.6.9.post1") < order("0.6.10")
    assert at_least("v2.11.0+cu130", "2.11")
    assert not at_least("0.5.9", "0.5.12")
    assert between("0.6.15.post1", "0.6.7", "0.6.15")
    assert not between("0.6.16", "0.6.7", "0.6.15")
    assert between("0.5.23", None, "0.5")
    assert not between("12.8", None, "12.0")
    assert order("garbage") < order("0.0.1")


def test_known_versions() -> None:
    notes = version_notes({"flashinfer": "0.6.9"}, "sm_120", ["fi.trtllm_fp4_block_scale_moe"])
    assert [(n.id, n.fixed_in) for n in notes] == [("flashinfer.trtllm-moe-gate-open", "0.6.16")]
    assert version_notes({"flashinfer": "0.6.9"}, "sm_100", ["fi.trtllm_fp4_block_scale_moe"]) == []
    assert version_notes({"flashinfer": "0.6.9"}, "sm_120", []) == []
    assert version_notes({"cuda": "12.8"}, "sm_103")[0].fixed_in == "12.9"


def test_gates_by_release() -> None:
    assert admitted("b12x_fused_moe", "0.6.8") is None
    assert admitted("b12x_fused_moe", "0.6.9") == ("sm_120", "sm_121")
    assert admitted("bmm_fp8", "0.5.3", "cudnn") == ("sm_89", "sm_90", "sm_100", "sm_103", "sm_120", "sm_121")
    assert {g.backend for g in gates("bmm_fp8", "0.5.3")} == {"cudnn", "cublas", "cutlass"}
    assert gates("no_such_op") == []


def test_faults() -> None:
    fallen = xid(79)
    assert fallen is not None and fallen.severity == "fatal" and "bus" in fallen.name
    assert xid(31).application  # type: ignore[union-attr]
    assert xid(9999) is None
    assert sxid(20034).name == "LTSSM Fault Up"  # type: ignore[union-attr]
    for code in (-9, 137):
        killed = exit_meaning(code)
        assert killed is not None and killed.signal == "SIGKILL" and "does not prove" in killed.caution
    assert exit_meaning(127).signal is None  # type: ignore[union-attr]
    assert exit_meaning(0) is None
    assert signal_name(11) == "SIGSEGV"


@pytest.mark.parametrize(
    ("text", "engine"),
    [
        (
            'File "/usr/lib/python3/dist-packages/sglang/srt/managers/scheduler.py", line 1, in f\nFile "/x/vllm/model_executor/layers/a.py", line 2, in g',
            "sglang",
        ),
        (
            'File "/x/site-packages/vllm/v1/engine/core.py", line 1, in f\nFile "/x/torch/nn/modules/module.py", line 2, in g',
            "vllm",
        ),
        ("[TensorRT-LLM][ERROR] Assertion failed: x", "tensorrt-llm"),
        ("ggml_cuda_init: found 1 CUDA devices:", "llama.cpp"),
        ('File "/w/Megatron-LM/megatron/training/training.py", line 1, in f', "megatron"),
        ('File "/x/site-packages/torch/nn/modules/module.py", line 1, in f', "pytorch"),
        ("hello", None),
    ],
)
def test_the_engine_of_a_log(text: str, engine: str | None) -> None:
    assert collect(intake_of(text), []).engine == engine
