"""Advice fits what ran: no torch calls for llama.cpp, no nvidia-smi for a TPU."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, Incident

from .conftest import Told

LLAMA = (
    "llama_model_load: loading model from 'q4.gguf'\n"
    "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 9000.00 MiB on device 0: cudaMalloc failed: out of memory\n"
    "llama_model_load: error loading model: unable to allocate CUDA0 buffer\n"
)
JAX = 'Traceback (most recent call last):\n  File "/srv/job/loop.py", line 7, in <module>\n    step(state)\njaxlib._jax.XlaRuntimeError: RESOURCE_EXHAUSTED: '


def advice(incident: Incident) -> str:
    assert incident.verdict.category is Category.OOM_GPU
    return " ".join(
        (
            incident.verdict.title,
            incident.verdict.explanation,
            *incident.verdict.next_steps,
            *incident.verdict.settled_by,
        )
    )


def test_llama_cpp_is_not_asked_for_torch(told: Told) -> None:
    words = advice(told(LLAMA))
    assert "torch" not in words and "-ngl" in words


@pytest.mark.parametrize(
    "said",
    [
        "XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 40.10G of 31.25G hbm.",
        "XLA:TPU compile permanent error. Ran out of memory in memory space hbm while loading.",
        "Attempting to allocate 2.00G. That was not possible.",
        "Attempting to reserve 5.12G at the bottom of memory. That was not possible. There are 3.01G free, 0B reserved.",
    ],
)
def test_a_tpu_is_no_gpu(told: Told, said: str) -> None:
    words = advice(told(JAX + said + "\n"))
    assert "nvidia-smi" not in words and "gpu" not in words.lower()


def test_jax_on_a_gpu_keeps_its_advice(told: Told) -> None:
    assert "nvidia-smi" in advice(told(JAX + "Out of memory while trying to allocate 17179869184 bytes.\n"))


def test_torch_keeps_its_advice(told: Told) -> None:
    said = 'Traceback (most recent call last):\n  File "/srv/job/loop.py", line 7, in <module>\n    step(state)\n'
    words = advice(told(said + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"))
    assert "torch.cuda.memory" in words


@pytest.mark.parametrize(
    ("line", "foreign", "own"),
    [
        (
            "HW Exception by GPU node-9 (Agent handle: 0x631351bb5a20) reason :GPU Hang\n",
            ("nvidia-smi", "Xid"),
            "amdgpu",
        ),
        (
            "E1129 20:15:41.2 71 driver.cc:820] !!!! FATAL ERROR !!!! for [/dev/accel0 tpu7:pe1:0]\n",
            ("nvidia-smi", "dcgmi"),
            "tpu",
        ),
        (
            "srun: error: Node failure on node8\nslurmstepd: error: *** STEP 7.0 ON node7 CANCELLED AT 2026-11-29T03:17:51 DUE TO NODE FAILURE ***\n",
            ("nvidia-smi",),
            "scontrol",
        ),
        ("[71.2] NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus.\n", ("rocm-smi",), "nvidia-smi"),
    ],
)
def test_hardware_is_looked_at_with_its_own_tools(told: Told, line: str, foreign: tuple[str, ...], own: str) -> None:
    verdict = told(line).verdict
    assert verdict.category is Category.DRIVER_OR_HARDWARE
    words = " ".join((*verdict.next_steps, *verdict.settled_by))
    assert own in words and not any(word in words for word in foreign)
