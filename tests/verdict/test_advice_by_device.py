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
            "HW Exception by GPU node-9 (Agent handle: 0x55d0c4a81e10) reason :GPU Hang\n",
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


@pytest.mark.parametrize(
    ("line", "foreign", "own"),
    [
        ("XlaRuntimeError: INTERNAL: during context [pre-optimization]: channel 7 has two sends\n", "nvcc", "xla_dump_to"),
        ("RuntimeError: Graph compile failed. synStatus=synStatus 26 [Generic failure].\n", "nvcc", "HABANA_LOGS"),
        ("RuntimeError: Error building extension 'fused_op'\n", "HABANA_LOGS", "nvcc"),
        ("EJ0001: 2026-11-29-11:58:31.204.377 Failed to initialize the HCCP process. Reason: Maybe the last training process is running.\n", "NCCL_", "plog"),
        ("RuntimeError: [ERROR] HCCL error in: torch_npu/csrc/distributed/ProcessGroupHCCL.cpp:64\n", "NCCL_", "plog"),
    ],
)  # fmt: skip
def test_compilers_and_libraries_are_asked_for_their_own_logs(told: Told, line: str, foreign: str, own: str) -> None:
    verdict = told(line if "Error: " in line else f"RuntimeError: HCCL error in: x.cpp:64\n{line}").verdict
    words = " ".join((*verdict.next_steps, *verdict.settled_by))
    assert own in words and foreign not in words


def _died(reason: str) -> str:
    return (
        'Traceback (most recent call last):\n  File "/home/me/main.py", line 7, in main\n    ray.get(refs)\n'
        "ray.exceptions.RayTaskError(ActorDiedError): ray::Runner.run() (pid=18, ip=10.0.0.7)\n"
        '  File "/home/me/runner.py", line 9, in run\n    ray.get(workers)\n'
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n\tclass_name: Worker\n"
        + reason
    )


def test_an_actor_that_died_is_looked_for_where_ray_keeps_its_words(told: Told) -> None:
    worker = told(
        _died("The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR\n")
    ).verdict
    assert "worker-*-PID.err" in " ".join(worker.next_steps) and "outside this log" in worker.explanation
    node = told(_died("The actor is dead because its node has died. Node Id: 71\n")).verdict
    assert "gcs_server.out" in " ".join(node.next_steps)
    vanished = told("RuntimeError: a worker died unexpectedly\n").verdict
    assert "ray" not in " ".join(vanished.next_steps)


def test_a_path_and_advice_agree_whose_gpu_it_is(told: Told) -> None:
    said = 'Traceback (most recent call last):\n  File "/srv/job/loop.py", line 7, in <module>\n    step(state)\n'
    words = advice(told(said + "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB.\n"))
    assert "rocm-smi" in words and "nvidia-smi" not in words


def steps(incident: Incident) -> str:
    return " ".join((*incident.verdict.next_steps, *incident.verdict.settled_by))


PAGE_FAULT = (
    "[  912.345678] amdgpu 0000:43:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:40 vmid:3 pasid:32771)\n"
    "[  912.345679] amdgpu 0000:43:00.0: amdgpu:  Process ray::Worker pid 4711 thread ray::Worker pid 4720\n"
)


def test_the_drivers_page_fault_names_its_process_and_amds_tools(told: Told) -> None:
    incident = told(PAGE_FAULT)
    words = steps(incident)
    assert "rocgdb" in words and "CUDA_LAUNCH_BLOCKING" not in words
    assert incident.hardware[0].meaning.endswith("process ray::Worker, pid 4711")
    assert "process" not in told(PAGE_FAULT.partition("\n")[0] + "\n").hardware[0].meaning


def test_intels_runtime_gets_no_nvidia_tools(told: Told) -> None:
    said = 'Traceback (most recent call last):\n  File "/srv/job/loop.py", line 7, in <module>\n    step(state)\n'
    words = advice(told(said + "RuntimeError: level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)\n"))
    assert "xpu-smi" in words and "nvidia-smi" not in words


CHECKED = "========= Invalid __global__ write of size 4 bytes\n=========     at void scatter<float>(float *, const int *)+0x140\n"


def test_who_runs_under_the_sanitizer_is_not_told_to(told: Told) -> None:
    assert "under compute-sanitizer" not in steps(told("========= COMPUTE-SANITIZER\n" + CHECKED))


GGML = "CUDA error: an illegal memory access was encountered\n  current device: 0, in function launch at {}ggml-cuda.cu:88\n  cudaGetLastError()\n"


def test_windows_has_no_kernel_log_and_no_cuda_gdb(told: Told) -> None:
    assert "nvlddmkm" in steps(told(GGML.format("D:\\b\\src\\"))) and "nvlddmkm" not in steps(told(GGML.format("/b/src/")))
