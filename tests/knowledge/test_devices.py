"""Which GPU a log says the job ran on."""

from __future__ import annotations

import pytest

from forensics.errors import UsageError
from forensics.knowledge import collect
from forensics.model import Gpu
from tests.knowledge.logs import intake_of

SEEN = [
    ("  Device 0: NVIDIA GeForce RTX 3090, compute capability 8.6, VMM: yes", "sm_86", "NVIDIA GeForce RTX 3090", "log"),
    ("ggml_cuda_init: found 1 ROCm devices:\n  Device 0: AMD Radeon RX 7900 XTX, gfx1100 (0x1100), VMM: no", "gfx1100", "AMD Radeon RX 7900 XTX", "log"),
    ("| NVIDIA-SMI 580.65.06   Driver Version: 580.65.06   CUDA Version: 13.0 |\n|====|\n|   0  NVIDIA H200                    On  |   00000000:1B:00.0 Off |    0 |",
     "sm_90", "NVIDIA H200", "log"),
    ("GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-00000000-0000-0000-0000-000000000000)", "sm_80", "NVIDIA A100-SXM4-80GB", "log"),
    ("NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.\n"
     "The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90.", "sm_120", "NVIDIA GeForce RTX 5090", "log"),
    ("RuntimeError: Check failed: (cond) is false: This kernel requires 10.x architecture. Current device has SM 120", "sm_120", None, "log"),
    ("Using default MoE config. Config file not found at /x/configs/E=8,N=14336,device_name=NVIDIA_H100_80GB_HBM3,dtype=fp8_w8a8,block_shape=[128, 128].json", "sm_90", "NVIDIA H100 80GB HBM3", "log"),
    ("Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 GPU has compute capability 7.5.", "sm_75", "Tesla T4", "log"),
    ("ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'", "sm_121", None, "log"),
    ("nvcc -gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_90a,code=sm_90a -c x.cu", None, None, ""),
    ("FP8 needs compute capability 8.9 or higher", None, None, ""),
    ("this op requires a GPU with compute capability >= 9.0", None, None, ""),
    ("Error occurred when running GEMM! (Kernel: bmm_E2m1_E2m1E2m1_Fp32_t128x8x512_sm100f)", None, None, ""),
    ("#SBATCH --gres=gpu:a100:4", "sm_80", "NVIDIA A100", "inferred"),
    ("Environment: 8x H100 80GB, driver 550.90.07", "sm_90", "NVIDIA H100", "log"),
    ("  Name:                    gfx942\n  Marketing Name:          AMD Instinct MI300X", "gfx942", "AMD Instinct MI300X", "log"),
    ("/root/.cache/flashinfer/0.5.2/120a/cached_ops/fused_moe_120/build.ninja", "sm_120", None, "log"),
    ("nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3", "sm_90", "NVIDIA-H100-80GB-HBM3", "log"),
    ("GPU 0,1,2,3: NVIDIA H100 80GB HBM3", "sm_90", "NVIDIA H100 80GB HBM3", "log"),
    ("GPU 0,1 Compute Capability: 9.0", "sm_90", None, "log"),
    ("rocBLAS error: Cannot read TensileLibrary.dat for GPU arch : gfx1031", "gfx1031", None, "log"),
    ("trained on A100-SXM4-40GB nodes", "sm_80", "NVIDIA A100", "log"),
    ("training step 100: loss 2.3", None, None, ""),
    ("SM120 (Blackwell) detected: auto-selecting fp4-gemm-backend=flashinfer_cudnn", "sm_120", None, "inferred"),
    ("SM120 (Blackwell) detected: auto-selecting fp4-gemm-backend=flashinfer_cudnn\nthe host has a GB10, 2 of them are tied", "sm_121", "NVIDIA GB10", "inferred"),
    ("SM120 (Blackwell) detected: auto-selecting fp4-gemm-backend=flashinfer_cudnn\nGPU 0: NVIDIA GB10 (UUID: GPU-0)", "sm_121", "NVIDIA GB10", "log"),
    ("SM120 (Blackwell) detected: auto-selecting fp4-gemm-backend=flashinfer_cudnn\nloading /models/x-GB10-fp4", "sm_120", None, "inferred"),
    ("SM120 (Blackwell) detected: auto-selecting fp4-gemm-backend=flashinfer_cudnn\nthis kernel requires a GB10", "sm_120", None, "inferred"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "sm", "name", "source"), SEEN, ids=lambda v: v[:30] if isinstance(v, str) else "")
def test_the_device_of_a_log(text: str, sm: str | None, name: str | None, source: str) -> None:
    gpu = collect(intake_of(text), []).gpu
    if sm is None:
        assert gpu is None
    else:
        assert gpu is not None
        assert (gpu.sm, gpu.name, gpu.source) == (sm, name, source)
        assert gpu.span is not None


def test_what_a_program_states_beats_a_name_in_passing() -> None:
    text = "tuned on NVIDIA H100 80GB HBM3 originally\n  Device 0: NVIDIA L40S, compute capability 8.9, VMM: yes"
    facts = collect(intake_of(text), [])
    assert facts.gpu is not None and facts.gpu.sm == "sm_89"
    assert {gpu.sm for gpu in facts.gpus} == {"sm_89", "sm_90"}


def test_a_printed_target_beats_the_name() -> None:
    """An override makes the runtime report another chip than the card's own: what ran is what is printed."""
    gpu = collect(
        intake_of("found 1 ROCm devices:\n  Device 0: AMD Radeon RX 9070 XT, gfx1100 (0x1100), VMM: no"), []
    ).gpu
    assert gpu is not None and gpu.sm == "gfx1100"


def test_a_shared_memory_limit_names_a_class_only() -> None:
    gpu = collect(
        intake_of("out of resource: shared memory, Required: 147456, Hardware limit: 101376. Reducing"), []
    ).gpu
    assert gpu is not None
    assert (gpu.sm, gpu.name, gpu.source, gpu.smem_optin_bytes) == (None, None, "inferred", 101376)


def test_devices_are_counted() -> None:
    listing = "\n".join(f"GPU {n}: NVIDIA H200 (UUID: GPU-0000-{n})" for n in range(4))
    gpu = collect(intake_of(listing), []).gpu
    assert gpu is not None and gpu.count == 4
    assert collect(intake_of("GPU 0,1,2,3: NVIDIA H100 80GB HBM3"), []).gpu.count == 4  # type: ignore[union-attr]
    assert collect(intake_of("- GPU: 8x RTX 5090"), []).gpu.count == 8  # type: ignore[union-attr]


def test_a_given_gpu_fills_a_silent_log_only() -> None:
    silent, telling = intake_of("step 1"), intake_of("  Device 0: NVIDIA L40S, compute capability 8.9, VMM: yes")
    given = collect(silent, [], gpu="RTX PRO 6000").gpu
    assert given is not None and (given.sm, given.source) == ("sm_120", "flag")
    assert collect(telling, [], gpu="H100").gpu.sm == "sm_89"  # type: ignore[union-attr]
    assert collect(silent, [], gpu=Gpu(None, "sm_90", source="flag")).gpu.family == "Hopper"  # type: ignore[union-attr]


def test_an_ambiguous_gpu_is_refused_with_the_choices() -> None:
    with pytest.raises(UsageError, match="sm_89"):
        collect(intake_of("x"), [], gpu="RTX 6000")
    with pytest.raises(UsageError, match="no GPU called"):
        collect(intake_of("x"), [], gpu="toaster")
