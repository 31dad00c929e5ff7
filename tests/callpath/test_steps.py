"""Frames to steps: plumbing folded, layers named, gaps told."""

from __future__ import annotations

import pytest

from forensics.callpath import build, component_of, is_plumbing, owner_of, phase_of
from forensics.model.event import Event, EventKind
from forensics.model.record import replace
from forensics.model.source import Span
from forensics.model.stack import Frame
from forensics.model.verdict import Owner

TORCH = "/usr/local/lib/python3.12/dist-packages/torch/"
SGLANG = "/sgl-workspace/sglang/python/sglang/srt/"
FLASHINFER = "/usr/local/lib/python3.12/dist-packages/flashinfer/"

CALL = (
    Frame("_wrapped_call_impl", TORCH + "nn/modules/module.py", 1751, "return self._call_impl(*args, **kwargs)"),
    Frame("_call_impl", TORCH + "nn/modules/module.py", 1762, "return forward_call(*args, **kwargs)"),
)
DRAFT_CAPTURE = (
    Frame("run_scheduler_process", SGLANG + "managers/scheduler.py", 2900, "scheduler = Scheduler(server_args)"),
    Frame("capture", SGLANG + "speculative/eagle_draft_cuda_graph_runner.py", 210, "self.capture_one_batch_size(bs)"),
    Frame("forward", SGLANG + "models/deepseek_v4_nextn.py", 140, "hidden_states = self.decoder(positions)"),
    *CALL,
    Frame("forward", SGLANG + "models/deepseek_v4.py", 1400, "hidden_states = self.mlp(hidden_states)"),
    *CALL,
    Frame("mlp", SGLANG + "models/deepseek_v4.py", 1546, "return self.experts(x, topk)"),
    *CALL,
    Frame("trtllm_fp4_block_scale_routed_moe", FLASHINFER + "fused_moe/core.py", 3100, "return module.run("),
)


def labels(frames: tuple[Frame, ...], message: str = "") -> list[str]:
    return [step.label for step in build(frames, message).steps]


def test_the_draft_head_is_named_and_its_layers() -> None:
    found = labels(DRAFT_CAPTURE)
    named = [label for label in found if label in ("nextn", "mlp", "trtllm routed MoE")]
    assert named == ["nextn", "mlp", "trtllm routed MoE"]
    assert "deepseek_v4" not in found


def test_plumbing_is_never_a_step() -> None:
    assert all(is_plumbing(frame) for frame in CALL)
    assert not any("call_impl" in label for label in labels(DRAFT_CAPTURE))


def test_steps_point_at_their_frames() -> None:
    path = build(DRAFT_CAPTURE)
    step = next(step for step in path.steps if step.label == "trtllm routed MoE")
    assert step.frame == len(DRAFT_CAPTURE) - 1
    assert step.owner is Owner.KERNEL_LIBRARY


def test_classes_and_attributes_of_one_file_name_the_layers() -> None:
    frames = (
        Frame("run", "/srv/app/serve.py", 47, "NextN()(torch.randn(16, 2048))"),
        *CALL,
        Frame("forward", "/srv/app/serve.py", 43, "def forward(self, x): return self.mlp(x)", marked="self.mlp(x)"),
        *CALL,
        Frame("forward", "/srv/app/serve.py", 38, "def forward(self, x): return self.experts(x)"),
    )
    assert labels(frames)[-3:] == ["nextn", "mlp", "experts"]


def test_windows_writes_the_same_path_otherwise() -> None:
    """Owners, steps, component and phase of a stack are the same where its files have backslashes."""
    capture = (*DRAFT_CAPTURE, Frame("main", "/home/me/models_of_mine/vllm_train.py", 3, "serve()"))
    twins = tuple(replace(frame, file="C:\\" + frame.path.lstrip("/").replace("/", "\\")) for frame in capture)
    assert [owner_of(frame) for frame in twins] == [owner_of(frame) for frame in capture]
    assert build(twins) == build(capture)
    assert (component_of(twins), phase_of(twins)) == (component_of(capture), phase_of(capture)) == ("draft_model", "graph_capture")


@pytest.mark.parametrize(
    ("code", "marked", "inside", "layers"),
    [
        ("out = self.emb(tokens)", None, (), ["emb"]),
        ("out = self.emb(tokens)  # as in the paper", None, (), ["emb"]),
        ("out = self.emb(", None, (), ["emb"]),  # it goes on in the next line
        ("return self.emb(tokens).sum().item()", None, (), []),  # an error that came out at item() was in no layer's call
        ("return self.emb(tokens).sum().item()", None, CALL, ["emb"]),  # here a layer was called, and there is but one
        ("return self.emb(tokens).sum().item()", "self.emb(tokens)", (), ["emb"]),
        ("h = self.drop(self.emb(x)) + self.pos(x)", None, (), []),  # which of the three?
        ("h = self.drop(self.emb(x)) + self.pos(x)", None, CALL, []),
        ("h = self.drop(self.emb(x)) + self.pos(x)", "self.emb(x)", CALL, ["emb"]),
        ("h = self.drop(self.emb(x)) + self.pos(x)", "self.drop(self.emb(x))", (), ["drop"]),
        ("h = self.drop(self.emb(x)) + self.pos(x)", "self.drop(self.emb(x)) + self.pos(x)", (), []),
    ],
)
def test_a_layer_is_named_where_it_must_have_been_called(code: str, marked: str | None, inside: tuple[Frame, ...], layers: list[str]) -> None:
    frames = (Frame("fit", "/srv/app/train.py", 30, "net(x)"), Frame("forward", "/srv/app/net.py", 12, code, marked=marked), *inside)
    named = [label for label in labels(frames) if label in ("emb", "drop", "pos")]
    assert named == layers


def test_an_asynchronous_error_leaves_a_gap() -> None:
    said = "CUDA error: an illegal memory access was encountered"
    assert build(DRAFT_CAPTURE, said).gaps
    assert not build(DRAFT_CAPTURE, said, launch_blocking=True).gaps
    assert not build(DRAFT_CAPTURE, "KeyError: 'x'").gaps


def test_many_frames_stay_readable() -> None:
    frames = tuple(Frame(f"step_{i}", f"/srv/app/module_{i}.py", i) for i in range(80))
    found = labels(frames)
    assert len(found) <= 10
    assert found[-1] == "step_79"


def test_native_frames_lose_arguments_and_the_way_to_abort() -> None:
    frames = (
        Frame("__libc_start_main", module="/lib64/libc.so.6"),
        Frame("llama_context::decode(llama_batch const&)", module="/opt/libllama.so"),
        Frame("ggml_abort", module="/opt/libggml-base.so"),
    )
    assert labels(frames) == ["llama_context::decode"]


def test_no_frames_no_steps() -> None:
    assert build(()).steps == ()


def test_capture_beats_the_decode_inside_it() -> None:
    frames = (*DRAFT_CAPTURE, Frame("forward_decode", SGLANG + "layers/attention/triton_backend.py", 1))
    assert phase_of(frames) == "graph_capture"
    assert component_of(frames) == "draft_model"


@pytest.mark.parametrize(
    ("frames", "phase", "component"),
    [
        ((Frame("load_model", SGLANG + "model_executor/model_runner.py"),), "weight_load", None),
        ((Frame("save_checkpoint", "/srv/train/trainer.py"),), "checkpoint", None),
        ((Frame("_try_get_data", TORCH + "utils/data/dataloader.py"),), None, "dataloader"),
        ((Frame("run", TORCH + "distributed/run.py"),), None, "launcher"),
        ((Frame("main", "train.py"),), None, None),
    ],
)
def test_phase_and_component(frames: tuple[Frame, ...], phase: str | None, component: str | None) -> None:
    assert phase_of(frames) == phase
    assert component_of(frames) == component


def test_a_verified_target_is_not_the_draft() -> None:
    frames = (
        Frame("verify", SGLANG + "speculative/eagle_worker.py"),
        Frame("forward", SGLANG + "models/deepseek_v4.py"),
    )
    assert component_of(frames) == "target_model"


def test_the_model_that_a_speculator_loads_is_the_draft() -> None:
    vllm = "/srv/env/site-packages/vllm/"
    loads = Frame("load_draft_model", vllm + "v1/worker/gpu/spec_decode/lookahead/speculator.py")
    layer = Frame("__init__", vllm + "model_executor/models/qwen3.py")
    assert component_of((loads, layer)) == "draft_model"
    assert component_of((layer,)) == "target_model"


def lifecycle(phase: str, state: str, line: int) -> Event:
    return Event(EventKind.LIFECYCLE, Span(0, line, line), fields={"phase": phase, "state": state})


def test_the_log_says_the_phase_where_no_frame_does() -> None:
    begun = [
        lifecycle("weight_load", "begin", 1),
        lifecycle("weight_load", "end", 2),
        lifecycle("graph_capture", "begin", 3),
    ]
    assert phase_of((), begun) == "graph_capture"
    assert phase_of((), begun[:2]) is None


def test_a_capture_has_the_devices_name() -> None:
    drafts = [[step.label for step in build(DRAFT_CAPTURE, amd=amd).steps] for amd in (False, True)]
    assert "draft CUDA graph capture" in drafts[0] and "draft HIP graph capture" in drafts[1]
    vllm = "/usr/lib/python3/dist-packages/vllm/v1/worker/"
    tpu = (Frame("compile_or_warm_up_model", vllm + "tpu_worker.py", 210), Frame("capture_model", vllm + "tpu_model_runner.py", 1210))
    assert labels(tpu)[0] == "XLA compilation" and phase_of(tpu) == "warmup"
    gpu = (Frame("compile_or_warm_up_model", vllm + "gpu_worker.py", 210), Frame("capture_model", vllm + "gpu_model_runner.py", 1210))
    assert "CUDA graph capture" in labels(gpu) and phase_of(gpu) == "graph_capture"
    npu = (Frame("capture", SGLANG + "model_executor/npu_graph_runner.py", 90),)
    assert labels(npu)[0] == "NPU graph capture" and phase_of(npu) == "graph_capture"
