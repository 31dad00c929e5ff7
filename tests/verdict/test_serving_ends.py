"""How serving ends, and what is no end: requests that were refused, engines that leave in order, workers taken along, words that only
sound like a kill. Every case has a near miss."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, Confidence, Status

from .conftest import Told, number, primary

FRAME = '  File "/srv/env/lib/python3.12/site-packages/'
SERVER = "(APIServer pid=100) "
ENGINE = "(EngineCore pid=200) "

# --- requests that were refused

CHAT = SERVER + 'INFO:     10.0.0.7:50100 - "POST /v1/chat/completions HTTP/1.1" {status}\n'
REFUSED = (
    SERVER
    + "INFO:     Application startup complete.\n"
    + CHAT.format(status="200 OK")
    + CHAT.format(status="{status}")
    + SERVER
    + "ERROR:    Exception in ASGI application\n"
    + SERVER
    + "Traceback (most recent call last):\n"
    + SERVER
    + FRAME
    + 'vllm/renderers/params.py", line 402, in _check_length\n'
    + SERVER
    + "    raise VLLMValidationError(\n"
    + SERVER
    + "vllm.exceptions.VLLMValidationError: the prompt holds 9001 tokens, which is more than the 8192 of this model\n"
    + CHAT.format(status="200 OK") * 3
)


def test_a_request_that_was_refused_is_no_failure(told: Told) -> None:
    incident = told(REFUSED.format(status="400 Bad Request"))
    assert incident.status is Status.HEALTHY
    assert incident.verdict.category is Category.NONE


def test_a_request_that_the_server_failed_is_one(told: Told) -> None:
    assert told(REFUSED.format(status="500 Internal Server Error")).status is Status.DEGRADED


LOGGED = (
    SERVER
    + "INFO:     Application startup complete.\n"
    + CHAT.format(status="200 OK")
    + SERVER
    + "ERROR 11-29 20:15:04 [serving_chat.py:256] {heading}\n"
    + SERVER
    + "ERROR 11-29 20:15:04 [serving_chat.py:256] Traceback (most recent call last):\n"
    + SERVER
    + "ERROR 11-29 20:15:04 [serving_chat.py:256] "
    + FRAME
    + 'vllm/entrypoints/openai/serving_chat.py", line 234, in create_chat_completion\n'
    + SERVER
    + "ERROR 11-29 20:15:04 [serving_chat.py:256]     prompt = await self._prepare(request)\n"
    + SERVER
    + "ERROR 11-29 20:15:04 [serving_chat.py:256] {raised}\n"
)
PREPARING = "Error in preprocessing prompt inputs"


@pytest.mark.parametrize(
    ("heading", "raised", "status"),
    [
        (PREPARING, "ValueError: this tokenizer has no chat template", Status.DEGRADED),
        (PREPARING, "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.", Status.CRASHED),
        ("AsyncLLM output_handler failed.", "ValueError: this tokenizer has no chat template", Status.CRASHED),
    ],
    ids=["one request's", "the engine's", "the whole service's"],
)
def test_what_fails_one_request_leaves_the_service_standing(told: Told, heading: str, raised: str, status: Status) -> None:
    """The log ends with the traceback: nothing behind it shows that the server lives."""
    assert told(LOGGED.format(heading=heading, raised=raised)).status is status


def test_a_jobs_own_client_is_no_front_end(told: Told) -> None:
    raised = 'Traceback (most recent call last):\n  File "/srv/rl/rollout.py", line 8, in ask\n    x = d["b17"]\nKeyError: \'b17\'\n'
    assert told("step 1 | loss 2.31\nERROR:root:Error in request: sampling\n" + raised).status is Status.CRASHED


def test_a_front_end_in_rust_at_work_shows_by_its_answers(told: Told) -> None:
    sent = "2026-11-29T20:15:{:02d}.100000Z  INFO http-request: dynamo_llm::http::service::service_v2: http response sent status={} latency_ms=812\n"
    error = "2026-11-29T20:15:05.100000Z ERROR dynamo_llm::discovery::watcher: error removing model error=no card for w/7f\n"
    assert told(sent.format(1, 200) + error + sent.format(9, 200) * 2).status is Status.HEALTHY
    assert told(sent.format(1, 200) + error + sent.format(9, 503) * 2).status is not Status.HEALTHY


# --- leaving in order

STOPPED = (
    SERVER
    + "INFO:     Application startup complete.\n"
    + CHAT.format(status="200 OK")
    + SERVER
    + "INFO 11-29 20:15:20 [launcher.py:100] [shutdown] API server: shutdown triggered\n"
    + ENGINE
    + "INFO 11-29 20:15:20 [core.py:1313] [shutdown] EngineCore: trigger received signal=SIGTERM\n"
    + "{last}"
)


def test_a_newer_vllm_that_was_stopped_has_ended_in_order(told: Told) -> None:
    last = SERVER + "INFO 11-29 20:15:21 [launcher.py:125] [shutdown] API server: engine client stopped\n"
    assert told(STOPPED.format(last=last)).status is Status.HEALTHY
    assert told(STOPPED.format(last="")).status is not Status.HEALTHY


DIED = ENGINE + "ERROR 11-29 20:15:25 [multiproc_executor.py:283] Worker proc VllmWorker-1 died unexpectedly, shutting down executor.\n"
DONE = "Processed prompts: 100%|██████████| 50/50 [01:39<00:00,  1.99s/it, est. speed input: 90.10 toks/s, output: 44.02 toks/s]\n"
LEAVES = ENGINE + "INFO 11-29 20:15:20 [core.py:1363] Shutdown initiated (timeout=0)\n"


def test_an_engine_that_leaves_takes_its_workers_along(told: Told) -> None:
    assert told(DONE + LEAVES + DIED).status is Status.HEALTHY


def test_a_worker_that_dies_while_the_engine_works_is_a_failure(told: Told) -> None:
    assert told(DONE + DIED).status is not Status.HEALTHY
    assert told(DONE.replace("100%", " 40%") + DIED + LEAVES).status is not Status.HEALTHY


def test_workers_whose_engine_had_ended_in_order_have_lost_no_parent(told: Told) -> None:
    complete = ENGINE + "INFO 11-29 20:15:21 [core.py:1257] Shutdown complete\n"
    gone = "(Worker_TP0 pid=300) INFO 11-29 20:15:21 [multiproc_executor.py:775] Parent process exited, terminating worker queues\n"
    work = "step 1 | loss 2.31\n"
    assert told(work + LEAVES + complete + gone).status is Status.HEALTHY
    assert told(work + gone).status is not Status.HEALTHY


def test_a_server_that_survived_an_error_and_was_stopped_later_has_ended_in_order(told: Told) -> None:
    error = SERVER + "ERROR 11-29 20:15:02 [cache.py:17] the table could not be read\n"
    last = SERVER + "INFO 11-29 20:15:21 [launcher.py:125] [shutdown] API server: engine client stopped\n"
    text = STOPPED.format(last=last).replace(CHAT.format(status="200 OK"), error + CHAT.format(status="200 OK") * 3)
    assert told(text).status is Status.HEALTHY
    assert told(text.replace(last, "")).status is not Status.HEALTHY


# --- whose failure

RAISED = (
    ENGINE
    + "ERROR 11-29 20:15:20 [core.py:1330] EngineCore failed to start.\n"
    + ENGINE
    + "ERROR 11-29 20:15:20 [core.py:1330] Traceback (most recent call last):\n"
    + ENGINE
    + "ERROR 11-29 20:15:20 [core.py:1330] "
    + FRAME
    + 'vllm/v1/core/kv_cache_utils.py", line 812, in group_specs\n'
    + ENGINE
    + "ERROR 11-29 20:15:20 [core.py:1330]     raise ValueError(text)\n"
    + ENGINE
    + "ERROR 11-29 20:15:20 [core.py:1330] ValueError: 61 layers, but 58 cache groups were asked for\n"
)


def test_a_worker_that_goes_down_with_the_engine_is_not_who_failed(told: Told) -> None:
    incident = told(RAISED + DIED)
    assert primary(incident).type == "ValueError"
    assert incident.verdict.rank is None


def test_a_worker_that_went_before_the_engine_is_named(told: Told) -> None:
    incident = told(DIED + LEAVES)
    assert incident.verdict.rank is not None
    assert incident.verdict.rank.number == 1


def test_the_engine_that_missed_its_workers_is_nearer_than_the_server_that_missed_the_engine(told: Told) -> None:
    trace = "Traceback (most recent call last):\n"
    text = (
        ENGINE + trace + ENGINE + FRAME + 'vllm/v1/executor/multiproc_executor.py", line 765, in wait_for_ready\n' + ENGINE + "    raise e from None\n"
        + ENGINE + "Exception: WorkerProc initialization failed due to an exception in a background process. See stack trace for root cause.\n"
        + SERVER + trace + SERVER + FRAME + 'vllm/v1/engine/utils.py", line 1272, in wait_for_engine_startup\n' + SERVER + "    raise RuntimeError(\n"
        + SERVER + "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n"
    )  # fmt: skip
    incident = told(text)
    assert incident.verdict.category is Category.UNKNOWN
    assert primary(incident).message.startswith("WorkerProc initialization failed")


TERM = ENGINE + "WARNING 11-29 20:15:18 [multiproc_executor.py:441] [shutdown] Executor: workers still running after grace period; sending SIGTERM count=2\n"
WORKER = "(Worker_TP1 pid=301) "
WORKER_RAISED = (
    WORKER
    + "ERROR 11-29 20:15:18 [multiproc_executor.py:901] Traceback (most recent call last):\n"
    + WORKER
    + "ERROR 11-29 20:15:18 [multiproc_executor.py:901] "
    + FRAME
    + 'vllm/model_executor/model_loader/base_loader.py", line 60, in load_model\n'
    + WORKER
    + "ERROR 11-29 20:15:18 [multiproc_executor.py:901]     tensor = f.read(name)\n"
    + WORKER
    + "ERROR 11-29 20:15:18 [multiproc_executor.py:901] ValueError: the storage has no shape\n"
)
GAVE_UP = RAISED.replace("ValueError: 61 layers, but 58 cache groups were asked for", "Exception: WorkerProc initialization failed due to an exception in a background process. See stack trace for root cause.")


def test_what_a_worker_raises_when_the_engine_ends_it_is_not_why_the_engine_gave_up(told: Told) -> None:
    incident = told(TERM + WORKER_RAISED + GAVE_UP)
    assert incident.verdict.rank is None
    assert incident.verdict.category is Category.UNKNOWN


def test_what_a_worker_raised_before_is(told: Told) -> None:
    incident = told(WORKER_RAISED + TERM + WORKER_RAISED.replace("TP1 pid=301", "TP0 pid=300") + GAVE_UP)
    assert primary(incident).type == "ValueError"
    assert incident.verdict.rank is not None
    assert incident.verdict.rank.number == 1


# --- words that sound like a kill, and kills

def scheduler_says(words: str) -> str:
    return "Traceback (most recent call last):\n" + FRAME + 'vllm/v1/core/sched/scheduler.py", line 973, in _preempt\n    assert ok\nAssertionError: ' + words + "\n"


def test_a_request_that_is_preempted_is_no_job_that_is(told: Told) -> None:
    incident = told(scheduler_says("a waiting request cannot be preempted"))
    assert incident.verdict.category is not Category.KILLED_EXTERNALLY
    assert incident.verdict.confidence is not Confidence.ESTABLISHED


def test_a_job_that_was_preempted_was_ended_from_outside(told: Told) -> None:
    assert told("step 1 | loss 2.31\nERROR: job 4711 was preempted by the scheduler\n").verdict.category is Category.KILLED_EXTERNALLY


SHARD = (
    "2026-11-29T20:15:01.100000Z  INFO text_generation_launcher: Starting shard 0\n"
    "2026-11-29T20:15:03.100000Z  {level} shard-manager: text_generation_launcher: Flash attention models are left out\n"
    "Traceback (most recent call last):\n"
    '  File "/opt/env/lib/python3.11/site-packages/text_generation_server/models/__init__.py", line 56, in <module>\n'
    '    raise ImportError("no device was found")\n'
    "ImportError: no device was found\n"
    "2026-11-29T20:15:20.100000Z  INFO text_generation_launcher: Waiting for shard 0 to be ready...\n"
    "2026-11-29T20:16:20.100000Z ERROR text_generation_launcher: {end}\n"
    "2026-11-29T20:16:20.200000Z ERROR text_generation_launcher: Shard 0 failed to start\n"
    "Error: ShardCannotStart\n"
)
SIGNALLED = "Shard process was signaled to shutdown with signal 9"


def test_who_is_killed_had_lived_through_what_was_only_a_warning(told: Told) -> None:
    incident = told(SHARD.format(level="WARN", end=SIGNALLED))
    assert incident.verdict.category is Category.KILLED_EXTERNALLY
    assert primary(incident).type == "SIGKILL"


def test_an_error_before_a_kill_and_a_warning_before_no_kill_stay_the_failure(told: Told) -> None:
    assert primary(told(SHARD.format(level="ERROR", end=SIGNALLED))).type == "ImportError"
    assert primary(told(SHARD.format(level="WARN", end="Shard complete standard error output:"))).type == "ImportError"


@pytest.mark.parametrize(
    "end",
    [
        "2026-11-29T20:16:20.100000Z ERROR shard-manager: text_generation_launcher: " + SIGNALLED + " rank=1\n",
        "2026-11-29T20:16:20.100000Z ERROR text_generation_launcher: Shard 1 process was signaled to terminate with signal 9\n",
    ],
)
def test_the_shard_that_was_killed_is_named(told: Told, end: str) -> None:
    incident = told("2026-11-29T20:15:03.100000Z  INFO text_generation_launcher: Starting shard 1\n" + end)
    assert (incident.status, primary(incident).type, number(incident)) == (Status.KILLED, "SIGKILL", 1)
    unnamed = told(end.replace(" rank=1", "").replace("Shard 1 ", "Shard "))
    assert primary(unnamed).type == "SIGKILL" and number(unnamed) is None


# --- TensorRT-LLM's two voices

FORWARD = (
    "[11/29/2026-20:15:19] [TRT-LLM] [W] the default of max_tokens is negative\n"
    "Traceback (most recent call last):\n"
    + FRAME
    + 'tensorrt_llm/_torch/attention_backend/trtllm.py", line 851, in prepare\n'
    "    assert longest <= self.most\n"
    "AssertionError: sequences of 9001 tokens do not fit into a cache for 8192\n"
    "{line}"
    "[a7b8c9d0e1f2:1722 :0:1777] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x18)\n"
    "==== backtrace (tid:   1777) ====\n"
    " 0  /opt/hpcx/ucx/lib/libucs.so.0(ucs_handle_error+0x2e4) [0x7bea593c7774]\n"
    " 1  /opt/hpcx/ucx/lib/libucs.so.0(+0x3796a) [0x7bea593c796a]\n"
    "=================================\n"
)
ERROR_LINE = "[11/29/2026-20:15:20] [TRT-LLM] [E] Encountered an error in forward function: sequences of 9001 tokens do not fit into a cache for 8192\n"


def test_a_traceback_that_an_error_line_repeats_is_no_warning(told: Told) -> None:
    incident = told(FORWARD.format(line=ERROR_LINE))
    assert primary(incident).type == "AssertionError"
    assert "Caught signal" not in primary(incident).message


def test_a_traceback_below_a_warning_alone_may_have_been_dealt_with(told: Told) -> None:
    assert primary(told(FORWARD.format(line=""))).type == "SIGSEGV"


EXECUTOR = (
    "[11/29/2026-20:15:20] [TRT-LLM] [E] Failed to initialize executor on rank {rank}: {words}\n"
    "{frames}"
    "[11/29/2026-20:15:20] [TRT-LLM] [E] Traceback (most recent call last):\n"
    + FRAME
    + 'tensorrt_llm/executor/worker.py", line 698, in worker_main\n'
    "    self.impl.release_pools()\n"
    "{type}: {words}\n"
    "{frames}"
)
NATIVE = "[TensorRT-LLM][ERROR] CUDA runtime error in ::cudaFree(ptr): an illegal memory access was encountered (/src/cpp/runtime/tllmBuffers.h:98)"
FRAMES = "1       0x7f684f8a7d2b /opt/lib/libtensorrt_llm.so(+0x1cedd2b) [0x7f684f8a7d2b]\n2       0x7f684fe47e57 tensorrt_llm::runtime::release() + 119\n"


def test_the_executor_that_did_not_come_up_names_its_rank_and_its_exception(told: Told) -> None:
    incident = told(EXECUTOR.format(rank=1, words=NATIVE, frames=FRAMES, type="RuntimeError"))
    assert primary(incident).type == "RuntimeError"
    assert "libtensorrt" not in primary(incident).message
    assert incident.verdict.category is Category.ILLEGAL_MEMORY_ACCESS
    assert incident.verdict.rank is not None
    assert incident.verdict.rank.number == 1


def test_the_words_of_another_error_leave_it_alone(told: Told) -> None:
    text = EXECUTOR.format(rank=1, words=NATIVE, frames=FRAMES, type="RuntimeError").replace("RuntimeError: " + NATIVE, "KeyError: 'pool'")
    assert len(told(text).failures) > 1


# --- tests, and files of the checkpoint


def test_the_letters_of_a_test_run_are_no_words_of_the_exception(told: Told) -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/srv/tests/test_speed.py", line 41, in test_latency\n    self.assertLess(took, 12.5)\n'
        '  File "/usr/lib/python3.12/unittest/case.py", line 715, in fail\n    raise self.failureException(msg)\n'
        "AssertionError: 19.75 not less than 12.5\n..E.\n======================\nERROR: test_latency\n"
    )
    assert primary(told(text)).message == "19.75 not less than 12.5"
    assert primary(told(text.replace("..E.\n", "Either value may be off\n"))).message.startswith("19.75 not less than 12.5\nEither")


def test_a_value_error_inside_of_the_reader_of_weights_is_no_setting(told: Told) -> None:
    text = (
        "INFO 11-29 20:15:10 [gpu_model_runner.py:90] Starting to load model org/model...\nTraceback (most recent call last):\n"
        + FRAME
        + 'vllm/model_executor/model_loader/{file}", line 1013, in {name}\n    tensor = f.get_tensor(key)\nValueError: the storage has no shape\n'
    )
    reader = told(text.format(file="weight_utils.py", name="safetensors_weights_iterator")).verdict
    other = told(text.format(file="base_loader.py", name="check")).verdict
    assert reader.category is Category.MODEL_LOAD
    assert other.category is not Category.MODEL_LOAD


def test_workers_that_saw_their_parent_go_were_torn_down(told: Told) -> None:
    start = "".join(f"(Worker_TP{n} pid={70 + n}) INFO 10-02 10:00:01 [model_runner.py:100] Starting to load the model\n" for n in range(3))
    raised = "".join(
        f"(EngineCore_DP0 pid=60) ERROR 10-02 10:00:09 [core.py:708] {line}\n"
        for line in (
            "Traceback (most recent call last):",
            '  File "/usr/lib/python3/dist-packages/vllm/v1/engine/core.py", line 699, in run_engine_core',
            "    engine = make(args)",
            "ValueError: no such engine",
        )
    )
    gone = "".join(
        f"(Worker_TP{n} pid={70 + n}) INFO 10-02 10:00:10 [multiproc_executor.py:558] Parent process exited, terminating worker\n"
        for n in range(2)
    )
    assert {row.rank.label: row.outcome for row in told(start + raised + gone).ranks if row.rank.label.startswith("TP")} == {
        "TP0": "teardown", "TP1": "teardown", "TP2": "unobserved",
    }  # fmt: skip


# --- Triton

TRITON = (
    "I1129 20:15:20.100000 71 grpc_server.cc:2519] Started GRPCInferenceService at 0.0.0.0:8001\n"
    "I1129 20:15:20.200000 71 http_server.cc:4623] Started HTTPService at 0.0.0.0:8000\n"
)
TOLD_TO_END = (
    "Signal (15) received.\n"
    "I1129 20:17:11.100000 71 server.cc:307] Waiting for in-flight requests to complete.\n"
    "I1129 20:17:11.200000 71 server.cc:338] All models are stopped, unloading models\n"
    "I1129 20:17:11.300000 71 server.cc:345] Timeout 30: Found 1 live models and 0 in-flight non-inference requests\n"
)
UNLOADED = (
    "I1129 20:17:11.800000 71 model_lifecycle.cc:612] successfully unloaded 'ranker' version 1\n"
    "I1129 20:17:12.300000 71 server.cc:345] Timeout 29: Found 0 live models and 0 in-flight non-inference requests\n"
)


def test_a_triton_server_that_unloads_all_of_its_models_ends_in_order(told: Told) -> None:
    assert told(TRITON + TOLD_TO_END + UNLOADED).status is Status.HEALTHY
    assert told(TRITON + TOLD_TO_END).status is not Status.HEALTHY  # a model that stays keeps it from its end


def test_a_triton_server_that_unloads_what_it_had_loaded_because_one_failed(told: Told) -> None:
    failed = "E0412 09:10:40.500000 71 model_lifecycle.cc:621] failed to load 'embedder' version 1: Internal: unable to load plan\n"
    left = "error: creating server: Internal - failed to load all models\n"
    assert told(failed + TOLD_TO_END.partition("\n")[2] + UNLOADED + left).status not in (Status.HEALTHY, Status.DEGRADED)


# --- Text Embeddings Inference

NO_BACKEND = "Error: Could not create backend\n\nCaused by:\n    Could not start backend: {}\n"
TRIED = "2026-04-12T09:10:40.100000Z ERROR text_embeddings_backend: backends/src/lib.rs:491: Could not start Candle backend: Could not start backend: {}\n"
CAP = "Runtime compute cap 61 is not compatible with compile time compute cap 90"


def test_the_last_cause_of_a_rust_programs_error_says_what_was_wrong(told: Told) -> None:
    incident = told(NO_BACKEND.format(CAP))
    assert (incident.status, incident.verdict.category) == (Status.CRASHED, Category.ARCH_MISMATCH)
    assert incident.facts.gpu is not None and incident.facts.gpu.sm == "sm_61"
    other = told(NO_BACKEND.format("Weights not found: no such file"))
    assert other.verdict.category is not Category.ARCH_MISMATCH and "Weights not found" in (other.primary.message if other.primary else "")


def test_a_server_that_has_no_backend_left_has_said_why(told: Told) -> None:
    incident = told(TRIED.format(CAP) + NO_BACKEND.format("Could not start a suitable backend"))
    assert incident.verdict.category is Category.ARCH_MISMATCH
    alone = told(NO_BACKEND.format("Could not start a suitable backend"))
    assert alone.primary is not None and "suitable" in alone.primary.message


@pytest.mark.parametrize(
    ("log", "engine"),
    [
        (TRITON, "triton-server"),
        (TRIED.format(CAP), "tei"),
        ("Successfully installed tritonclient-2.41 triton-3.1.0\n", None),
        (TRITON + "[TensorRT-LLM][ERROR] Encountered an error in forward function: x\n" * 2, "tensorrt-llm"),
    ],
)
def test_servers_are_named(told: Told, log: str, engine: str | None) -> None:
    assert told(log).facts.engine == engine
