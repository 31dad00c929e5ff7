"""What to do fits the GPU and the framework of the run, and is said once."""

from __future__ import annotations

from forensics.model.verdict import Category, Status

from .conftest import Told

FAULT = """\
INFO 05-12 10:00:04 [rocm.py:100] Using AMD Instinct MI300X
Memory access fault by GPU node-3 (Agent handle: 0x55d1c0) on address 0x7f3e00000000. Reason: Unknown.
Fatal Python error: Aborted

Current thread 0x00007f12 (most recent call first):
  File "/usr/lib/python3/dist-packages/aiter/ops/moe_op.py", line 88 in fmoe
"""
JAX_OOM = """\
Traceback (most recent call last):
  File "/home/u/train.py", line 88, in <module>
    state, metrics = p_train_step(state, batch)
jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 25769803776 bytes.
"""
ILLEGAL = """\
[rank1]: Traceback (most recent call last):
[rank1]:   File "/w/train.py", line 90, in <module>
[rank1]:     torch.cuda.synchronize()
[rank1]: RuntimeError: CUDA error: an illegal memory access was encountered
"""
REQUEST = "\n".join(
    [
        "[2026-05-12 08:00:32] The server is fired up and ready to roll!",
        "[2026-05-12 08:01:20 TP0] Decode batch. #running-req: 3, #token: 920, token usage: 0.01, #queue-req: 0",
        "[2026-05-12 08:01:21] Error in request: ",
        "Traceback (most recent call last):",
        '  File "/srv/sglang/srt/entrypoints/openai/serving_chat.py", line 99, in _process_messages',
        "    rendered = tokenizer.apply_chat_template(",
        "jinja2.exceptions.TemplateError: Conversation roles must alternate user/assistant/…",
        *(
            f"[2026-05-12 08:01:{n} TP0] Decode batch. #running-req: 3, #token: 9{n}, token usage: 0.01, #queue-req: 0"
            for n in range(22, 40)
        ),
    ]
)


def test_no_nvidia_tool_on_an_amd_gpu(told: Told) -> None:
    verdict = told(FAULT).verdict
    assert verdict.category is Category.ILLEGAL_MEMORY_ACCESS
    said = " ".join((*verdict.next_steps, *verdict.settled_by))
    assert "AMD_SERIALIZE_KERNEL" in said
    for other in ("CUDA_", "compute-sanitizer", "cuda-gdb", "xid"):
        assert other not in said


def test_no_torch_call_in_a_jax_program(told: Told) -> None:
    verdict = told(JAX_OOM).verdict
    assert verdict.category is Category.OOM_GPU
    assert "torch" not in " ".join((*verdict.next_steps, *verdict.settled_by))


def test_a_variable_is_set_once(told: Told) -> None:
    steps = told(ILLEGAL).verdict.next_steps
    assert sum("CUDA_LAUNCH_BLOCKING=1" in step for step in steps) == 1


def test_an_exception_of_no_category_is_still_known(told: Told) -> None:
    incident = told(REQUEST)
    assert incident.status is Status.DEGRADED
    assert incident.verdict.category is Category.UNKNOWN
    assert "does not say what." not in incident.verdict.explanation
    assert not any("another file" in step for step in incident.verdict.next_steps)
