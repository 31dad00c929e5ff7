"""Servers that give up what they were loading, and whose word names the process or the model. Every case has a near miss."""

from __future__ import annotations

from forensics.model.verdict import Category, Status

from .conftest import Told, number, primary

# --- the C library's heap check while a program gives up

GAVE_UP = """\
llama_model_loader: loaded meta data with 40 key-value pairs and 500 tensors from /m/a.gguf (version GGUF V3 (latest))
llama_model_load: error loading model: error loading model architecture: unknown model architecture: 'foonext'
llama_load_model_from_file: failed to load model
llama_init_from_gpt_params: error: failed to load model '/m/a.gguf'
"""
CHECK = "free(): invalid pointer\nAborted\n"


def test_a_heap_check_behind_a_model_that_was_not_loaded_is_no_cause(told: Told) -> None:
    incident = told(GAVE_UP + CHECK)
    assert incident.verdict.category is Category.VERSION_MISMATCH
    assert "foonext" in primary(incident).message


def test_a_heap_check_behind_work_is_one(told: Told) -> None:
    work = "srv  update_slots: all slots are idle\nsrv  log_server_r: request: POST /completion 127.0.0.1 200\n" * 10
    incident = told(GAVE_UP.splitlines(keepends=True)[0] + work + CHECK)
    assert incident.verdict.category is Category.SEGFAULT
    assert primary(incident).message == "free(): invalid pointer"


STEPS = "".join(f"step {n}/90 | loss 2.{n} | 1.2 s/it\n" for n in range(1, 9))
LATER = STEPS.replace("step ", "step 1")


def test_a_heap_check_after_a_complaint_that_was_got_over_is_a_crash(told: Told) -> None:
    for complaint in ("ERROR: the tracker is offline, going on without\n", "ERROR: could not open /run/tracker, going on without\n"):
        for later in (LATER, ""):
            incident = told(STEPS + complaint + later + CHECK)
            assert (incident.status, incident.verdict.category) == (Status.CRASHED, Category.SEGFAULT)
        assert told(STEPS + complaint + LATER).status is Status.HEALTHY


def test_an_engine_that_was_seen_dead_served_nobody_behind_that(told: Told) -> None:
    full = "ERROR 11-29 20:15:00 [x.py:1] CUDA out of memory. Tried to allocate 2.00 GiB; trying with less\n"
    dead = "(Worker_TP1 pid=77) ERROR 11-29 20:17:00 Worker proc VllmWorker-1 died unexpectedly, shutting down executor.\n"
    work = STEPS * 4
    assert told(full + work + dead).status is Status.CRASHED
    assert told(full + dead + work).status is Status.DEGRADED


# --- whose failure it was

SHARDS = """\
2026-11-29T20:15:18.250000Z ERROR text_generation_launcher: Error when initializing model
Traceback (most recent call last):
  File "/opt/conda/lib/python3.11/site-packages/text_generation_server/server.py", line 225, in serve_inner
    model = get_model(
  File "/opt/conda/lib/python3.11/site-packages/text_generation_server/models/causal_lm.py", line 46, in __init__
    raise ValueError("this quantization is not for this device")
ValueError: this quantization is not for this device
2026-11-29T20:15:20.250000Z ERROR text_generation_launcher: Shard {} failed to start
2026-11-29T20:15:20.260000Z  INFO text_generation_launcher: Shutting down shards
Error: ShardCannotStart
"""


def test_the_shard_that_did_not_start_is_the_rank(told: Told) -> None:
    assert number(told(SHARDS.format(2))) == 2


def test_a_shard_without_a_number_is_none(told: Told) -> None:
    assert number(told(SHARDS.format("of a replica"))) is None


EXECUTOR = """\
[11/29/2026-20:15:20] [TRT-LLM] [E] [executor] Failed to initialize executor on {}: list index out of range
[11/29/2026-20:15:20] [TRT-LLM] [E] [executor] Traceback (most recent call last):
  File "/srv/env/lib/python3.12/site-packages/tensorrt_llm/executor/worker.py", line 302, in worker_main
    worker: GenerationExecutorWorker = worker_cls(
  File "/srv/env/lib/python3.12/site-packages/tensorrt_llm/_torch/models/mapper.py", line 12, in split
    head = parts[3]
IndexError: list index out of range
"""


def test_the_executors_headline_names_the_rank(told: Told) -> None:
    assert number(told(EXECUTOR.format("rank 3"))) == 3


def test_a_headline_without_a_rank_names_none(told: Told) -> None:
    assert number(told(EXECUTOR.format("this node"))) is None


# --- models of a server that serves on

READY = "I1129 20:15:2{0}.250000 71 grpc_server.cc:2495] Started GRPCInferenceService at 0.0.0.0:8001\nI1129 20:15:2{0}.260000 71 http_server.cc:4619] Started HTTPService at 0.0.0.0:8000\n"
REFUSED = "E1129 20:15:22.250000 71 model_lifecycle.cc:621] failed to load 'encoder' version 1: Invalid argument: tensor 'out' has 4 dimensions\n"
AFTER = "I1129 20:15:23.250000 71 model_lifecycle.cc:756] failed to load 'encoder'\n" + "I1129 20:15:24.250000 71 model_lifecycle.cc:461] loading: other:1\n" * 3


def test_a_model_that_a_server_does_not_have_stays_a_failure(told: Told) -> None:
    incident = told(READY.format(1) + REFUSED + AFTER)
    assert incident.status is Status.DEGRADED
    assert "4 dimensions" in primary(incident).message


def test_a_model_that_it_has_in_the_end_is_none(told: Told) -> None:
    loaded = "I1129 20:15:25.250000 71 model_lifecycle.cc:849] successfully loaded 'encoder'\n"
    assert told(READY.format(1) + REFUSED + AFTER + loaded + READY.format(6)).status is Status.HEALTHY


def test_a_complaint_before_a_server_is_ready_is_no_failure(told: Told) -> None:
    complaint = "E1129 20:15:20.250000 71 ensemble_scheduler.cc:1311] unable to create stream for ensemble: no CUDA-capable device is detected\n"
    assert told(complaint + READY.format(1)).status is Status.HEALTHY
    assert told(complaint).status is not Status.HEALTHY


# --- what was said where the list of frames is nobody's

STUB = """\
E1129 20:15:20.285773 71 backend_model.cc:634] ERROR: Failed to create instance: ValueError: Tokenizer class FooTokenizer is not imported.

At:
  /srv/env/lib/python3.10/site-packages/transformers/models/auto/tokenization_auto.py(748): from_pretrained
  /srv/models/pre/1/model.py(66): initialize

"""


def test_frames_below_a_loggers_line_are_those_of_its_exception(told: Told) -> None:
    failure = primary(told(STUB))
    assert failure.type == "ValueError"
    assert [frame.function for frame in failure.frames] == ["initialize", "from_pretrained"]


def test_frames_below_other_words_are_nobodys(told: Told) -> None:
    assert not primary(told(STUB.replace("\n\nAt:", "\nthe next model\nand more\nand more\n\nAt:"))).frames


# --- words of devices

TVM = """\
Traceback (most recent call last):
  File "/srv/env/lib/python3.10/site-packages/mlc_llm/serve/engine_base.py", line 96, in _background_loop
    self._ffi["run_background_loop"]()
  File "/srv/env/lib/python3.10/site-packages/tvm/_ffi/base.py", line 481, in raise_last_ffi_error
    raise py_err
tvm._ffi.base.TVMError: Traceback (most recent call last):
  2: void tvm::contrib::sort<float, int>(DLTensor*, DLTensor*, bool)
  1: tvm::runtime::Workspace::allocate(unsigned long)
  0: _ZN3tvm7runtime4deta
  File "/src/contrib/sort.cu", line 66
TVMError: Check failed: (result) is false: {}
"""


def test_tvms_exception_is_the_one_below_its_frames(told: Told) -> None:
    incident = told(TVM.format("Failed to allocate 99121664 bytes with alignment 16 bytes."))
    assert incident.verdict.category is Category.OOM_GPU
    assert "_background_loop" in {frame.function for raised in primary(incident).chain for frame in raised.frames}
    assert told(TVM.format("the workspace was given back twice")).verdict.category is not Category.OOM_GPU


MEMORY = 'Traceback (most recent call last):\n  File "/srv/nodes.py", line 9, in decode\n    return conv(x)\n{}: {}\n'


def test_torchs_own_name_of_a_full_device_says_so_in_few_words(told: Told) -> None:
    assert told(MEMORY.format("torch.OutOfMemoryError", "Allocation on device")).verdict.category is Category.OOM_GPU
    assert told(MEMORY.format("ValueError", "Allocation on device")).verdict.category is not Category.OOM_GPU


ACL = "RuntimeError: call aclnnMatmul failed, detail:EZ1001: [PID: 71] 2026-11-29-20:15:20.294.465 {}\n"
CALL = 'Traceback (most recent call last):\n  File "/srv/env/lib/python3.10/site-packages/vllm/model_executor/layers/linear.py", line 202, in apply\n    return gemm(x, w)\n'


def test_an_operator_of_the_npu_says_which_shapes_do_not_fit(told: Told) -> None:
    said = told(CALL + ACL.format("The k-axis of the two inputs are different [229376,128], [3584,3584]"))
    assert said.verdict.category is Category.SHAPE_OR_DTYPE_ASSERT
    assert told(CALL + ACL.format("The stream of the call was gone.")).verdict.category is not Category.SHAPE_OR_DTYPE_ASSERT
