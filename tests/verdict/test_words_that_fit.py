"""What the verdict says where a general word would be wrong: broken Gloo pairs, cores of llama.cpp, release after a refusal, launch tasks."""

from __future__ import annotations

from forensics.model.verdict import Category

from .conftest import Told

GLOO = "".join(
    f"[2026-11-29 20:15:4{rank} TP{rank}] Scheduler hit an exception: Traceback (most recent call last):\n"
    '  File "/opt/sglang/python/sglang/srt/managers/scheduler.py", line 1292, in recv_requests\n'
    "    reqs = broadcast_pyobj(reqs)\n"
    '  File "/usr/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py", line 2830, in broadcast\n'
    "    work.wait()\n"
    "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:535] Read error [10.0.0.9]:6858: Connection reset by peer\n\n"
    for rank in (2, 3)
)


def test_those_who_saw_a_gloo_pair_break_did_not_fail_by_themselves(told: Told) -> None:
    verdict = told(GLOO).verdict
    assert verdict.category is Category.NCCL
    assert "2 ranks saw the connection break" in verdict.explanation
    assert "each by itself" not in verdict.explanation
    assert not any("NCCL_DEBUG" in step for step in (*verdict.next_steps, *verdict.settled_by))


def test_ranks_that_raised_the_same_did(told: Told) -> None:
    assert "each by itself" in told(GLOO.replace("Read error [10.0.0.9]:6858: Connection reset by peer", "x should have one element")).verdict.explanation


def test_a_fault_of_llama_cpp_asks_for_no_torch(told: Told) -> None:
    verdict = told(
        "llama_model_loader: loaded meta data with 23 key-value pairs and 322 tensors from m.gguf\n"
        'time=2026-11-29T20:15:12Z level=ERROR source=sched.go:455 msg="error loading llama server" '
        'error="llama runner process has terminated: signal: segmentation fault (core dumped)"\n'
    ).verdict
    assert verdict.category is Category.SEGFAULT
    assert not any("torch" in step for step in verdict.next_steps)


REFUSED = "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 5000.12 MiB on device 4: cudaMalloc failed: out of memory\n"
RELEASED = (
    "CUDA error: out of memory\n"
    "  current device: 4, in function ggml_backend_cuda_host_buffer_free_buffer at /src/ggml-cuda.cu:993\n"
    "  cudaFreeHost(buffer->context)\n"
    '/src/ggml-cuda.cu:61: !"CUDA error"\n'
)


def test_what_could_not_be_released_is_not_what_was_refused(told: Told) -> None:
    incident = told(REFUSED + "llama_model_load: error loading model: unable to allocate backend buffer\n" + RELEASED)
    assert incident.verdict.signature == "llama_cpp.buffer-not-allocated"
    assert incident.primary is not None and "allocating 5000.12 MiB" in (incident.primary.message or "")


def test_a_release_that_failed_alone_is_told(told: Told) -> None:
    assert told(RELEASED).verdict.category is Category.OOM_GPU


EXITED = "srun: error: node7: task 0: Exited with exit code 1\n"


def test_the_task_of_an_engine_is_no_rank(told: Told) -> None:
    engine = "(EngineCore pid=21) RuntimeError: Worker failed with error 'CUDA out of memory. Tried to allocate 896.00 MiB. GPU 0 has 95 GiB'\n"
    rank = told(engine + EXITED).verdict.rank
    assert rank is None or rank.number is None


def test_the_task_of_a_program_is(told: Told) -> None:
    rank = told("step 3\n" + EXITED).verdict.rank
    assert rank is not None and rank.number == 0


def test_a_signatures_steps_stand_alone(told: Told) -> None:
    verdict = told(
        'Traceback (most recent call last):\n  File "/home/u/train.py", line 5, in <module>\n    torch.cuda.init()\n'
        "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method\n"
    ).verdict
    assert verdict.signature is not None
    assert not any("setting that the message" in step for step in verdict.next_steps)
