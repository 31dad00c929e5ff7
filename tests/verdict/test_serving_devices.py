"""Failures of serving jobs that are told by several voices, or in words of their own."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, CausalRole, Status
from tests.verdict.conftest import Told, number, primary

OOM = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU {0} has a total capacity of 79.00 GiB of which 1.20 GiB is free."


def worker(rank: int, *lines: str, place: str = "multiproc_executor.py:900") -> str:
    return "".join(f"(Worker_TP{rank} pid={80 + rank}) ERROR 07-16 20:15:40 [{place}] {line}\n" for line in lines)


def raised(rank: int, error: str, file: str = "/srv/vllm/v1/worker/gpu_worker.py", function: str = "execute_model") -> str:
    return worker(
        rank, "WorkerProc hit an exception.", "Traceback (most recent call last):", f'  File "{file}", line 88, in {function}',
        "    return self.step(batch)", *error.split("\n"),
    )  # fmt: skip


STATUS = 'RuntimeError: torch_call_dispatcher("aten::new_empty", "", stack.data()) API call failed at /opt/torch/csrc/stable/ops.h, line 933'


def test_a_status_of_torchs_stable_interface_means_what_its_rank_logged(told: Told) -> None:
    logged = "".join(
        f"[rank{r}]:[E716 20:15:40.32456898{r} shim_common.cpp:523] Exception in aoti_torch: {OOM.format(r)}\n" for r in (1, 0)
    )
    incident = told(raised(1, STATUS) + raised(0, STATUS) + logged)
    assert incident.verdict.category is Category.OOM_GPU
    assert number(incident) == 1
    assert "GPU 1" in primary(incident).root_message
    assert told(raised(1, STATUS)).verdict.category is not Category.OOM_GPU


def test_two_records_of_one_logger_are_two_messages(told: Told) -> None:
    first = raised(1, "RuntimeError: lengths differ")
    between = "".join(worker(r, f"note {n}", place="other.py:5") for n in range(40) for r in range(8))
    again = worker(1, "forward raised RuntimeError: lengths differ, see below")
    incident = told(first + between + again)
    assert primary(incident).message == "lengths differ"


def test_a_panic_and_what_pyo3_raises_of_it_are_one_failure(told: Told) -> None:
    pool = 'The pool is not there.: ThreadPoolBuildError { kind: IOError(Os { code: 11, kind: WouldBlock, message: "Resource temporarily unavailable" }) }'
    text = (
        f"thread '<unnamed>' (4711) panicked at /root/rayon-core/src/registry.rs:171:10:\n{pool}\n"
        "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\nTraceback (most recent call last):\n"
        '  File "/srv/app/tokenize.py", line 8, in encode\n    return self._tokenizer.encode_batch(texts)\n'
        f"pyo3_runtime.PanicException: {pool}\n"
    )
    incident = told(text)
    assert primary(incident).type == "pyo3_runtime.PanicException"
    assert incident.verdict.signature == "host.thread-limit"
    assert len(incident.failures) == 1


WATCHDOG = "[PG ID 5 PG GUID 49 Rank 0] Process group watchdog thread terminated with exception: "


def _watchdog(error: str) -> str:
    return (
        f"[rank6]:[E509 20:15:40.197300260 ProcessGroupNCCL.cpp:2119] {WATCHDOG}{error}\n"
        "terminate called after throwing an instance of 'c10::DistBackendErrorterminate called after throwing an instance of ''\n"
        f"  what():    what():  {WATCHDOG}{error}\n"
        "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x9d (0x7f3624572 in /usr/lib/libc10.so)\n"
    )


def test_a_rank_within_a_group_is_the_rank_whose_own_line_says_so(told: Told) -> None:
    incident = told(_watchdog("Resource temporarily unavailable"))
    assert number(incident) == 6
    assert primary(incident).type == "c10::DistBackendError"
    assert not primary(incident).message.startswith("what()")
    assert incident.verdict.signature == "host.thread-limit"
    # without a line that says who it is nobody is named by a number within a group
    nameless = told(_watchdog("Resource temporarily unavailable").split("\n", 1)[1])
    assert number(nameless) is None


def test_nccls_host_and_pid_are_no_more_ranks_beside_those_with_numbers(told: Told) -> None:
    warned = "node7:4021:4055 [2] misc/socket.cc:578 NCCL WARN connect to 10.0.0.7<4711> returned Connection refused, exceeded error retry count\n"
    trace = (
        "[2026-11-29 20:15:40 TP5] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/srv/sglang/pynccl_wrapper.py", line 370, in NCCL_CHECK\n    raise RuntimeError(text)\n'
        "RuntimeError: NCCL error: remote process exited or there was a network error\n"
    )
    assert [row.rank.label for row in told(warned + trace).ranks] == ["TP5"]
    assert [row.rank.label for row in told(warned).ranks] == ["node7:4021"]


TGI = "2026-11-29T20:15:4{0}.679061Z {1} text_generation_router::server: router/src/server.rs:1672: {2}\n"
IMPORT = TGI.format(0, "ERROR", "Failed to import the tokenizer ModuleNotFoundError: No module named 'transformers'")


@pytest.mark.parametrize(
    ("after", "healthy"),
    [
        (TGI.format(1, " WARN", "Odd tokenizer detected, falling back on legacy tokenization"), True),
        (TGI.format(1, " WARN", "Odd tokenizer detected"), False),
    ],
)
def test_what_the_next_line_does_instead_was_dealt_with(told: Told, after: str, healthy: bool) -> None:
    incident = told(IMPORT + after + TGI.format(2, " INFO", "Connected"))
    assert (incident.status is Status.HEALTHY) is healthy


def test_tensorrt_llms_error_lines_with_a_rank(told: Told) -> None:
    line = "[11/29/2026-20:15:40] [TRT-LLM] [RANK {0}] [{1}] Error executing load_module with args ('layers.{0}', Linear()): {2}\n"
    incident = told(line.format(2, "E", OOM.format(0)) + line.format(6, "E", OOM.format(0)))
    assert incident.verdict.category is Category.OOM_GPU
    assert number(incident) == 2
    assert told(line.format(2, "I", "nothing to do")).primary is None


def test_tensorrts_own_words_come_before_the_exception_made_of_them(told: Told) -> None:
    text = (
        "[TensorRT-LLM][INFO] Loaded engine size: 61204 MiB\n"
        "[TensorRT-LLM][ERROR] [alloc.cpp::allocate::31] Error Code 1: Cuda Runtime (out of memory)\n"
        "[TensorRT-LLM][ERROR] [load.cpp::load::572] Error Code 2: OutOfMemory (Requested size was 62109843456 bytes.)\n"
        "Error: init: [TensorRT-LLM][ERROR] Assertion failed: Failed to deserialize cuda engine. (/src/runtime/tllmRuntime.cpp:135)\n"
        "1       0x7e21a0c3d5b4 tensorrt_llm::common::throwRuntimeError(char const*, int, std::string const&) + 82\n"
    )
    incident = told(text)
    assert incident.verdict.category is Category.OOM_GPU
    alone = told("\n".join(text.split("\n")[3:]))
    assert alone.verdict.category is Category.VERSION_MISMATCH


@pytest.mark.parametrize(("code", "category"), [(136, Category.SEGFAULT), (139, Category.SEGFAULT), (0, Category.NONE)])
def test_an_exit_code_that_stands_for_a_signal(told: Told, code: int, category: Category) -> None:
    text = f"q0s9n1[error]worker exited with exit code {code}\nq0s9n1[info]INFO 11-29 20:15:41 [async_llm.py:210] Added request 19.\n"
    assert told(text).verdict.category is category


def test_an_exit_after_ctrl_c_or_sigterm_explains_nothing(told: Told) -> None:
    ended = 'step 3\nTraceback (most recent call last):\n  File "/j/a.py", line 1, in <module>\n    f()\nKeyError: 7\n'
    for code, role in ((143, CausalRole.CASCADE), (130, CausalRole.CASCADE), (139, CausalRole.UNKNOWN)):
        incident = told(f"q0s9n1[error]worker exited with exit code {code}\n" + ended)
        assert primary(incident).type == "KeyError"
        assert [f.role for f in incident.failures if f.kind == "exit"] == [role]


ROUTER = "[40817] /src/ggml/src/ggml-cuda/attend.cu:57{0}\n[40817] /opt/libggml-base.so.0(+0x18665) [0x7a11c0de4665]\n[40817] /opt/libggml-base.so.0(ggml_print_backtrace+0x1df) [0x7a11c0de4a3f]\n"


def test_a_router_of_llama_cpp_puts_a_port_before_its_servers_lines(told: Told) -> None:
    incident = told(ROUTER.format(": fatal error"))
    assert "attend.cu:57: fatal error" in primary(incident).message
    assert incident.verdict.rank is None
    assert not incident.ranks


ENDING = (
    "(Worker_TP{0} pid=8{0}) Traceback (most recent call last):\n"
    '(Worker_TP{0} pid=8{0})   File "/srv/vllm/v1/executor/multiproc_executor.py", line 820, in signal_handler\n'
    "(Worker_TP{0} pid=8{0})     raise SystemExit()\n(Worker_TP{0} pid=8{0}) SystemExit\n(Worker_TP{0} pid=8{0}) \n"
    "(Worker_TP{0} pid=8{0}) During handling of the above exception, another exception occurred:\n(Worker_TP{0} pid=8{0}) \n"
    "(Worker_TP{0} pid=8{0}) Traceback (most recent call last):\n"
    '(Worker_TP{0} pid=8{0})   File "/srv/vllm/v1/worker/gpu_worker.py", line 1311, in shutdown\n'
    "(Worker_TP{0} pid=8{0})     torch.accelerator.synchronize()\n(Worker_TP{0} pid=8{0}) {1}\n"
)
ABORTED = "terminate called after throwing an instance of 'c10::AcceleratorError'\n  what():  {0}\n"


def test_an_abort_without_a_name_is_of_the_rank_that_met_the_same_while_it_ended(told: Told) -> None:
    broken = "CUDA error: an illegal memory access was encountered"
    incident = told(ENDING.format(2, f"torch.AcceleratorError: {broken}") + ABORTED.format(broken))
    assert number(incident) == 2
    assert broken in primary(incident).root_message
    other = told(ENDING.format(2, "RuntimeError: the pool is closed") + ABORTED.format(broken))
    assert number(other) is None


@pytest.mark.parametrize(
    ("error", "category"),
    [
        ("RuntimeError: batch_size must be equal to batch_size_k", Category.SHAPE_OR_DTYPE_ASSERT),
        ("RuntimeError: Runtime check failed at /srv/k.cuh:963: size_k = 704, is not divisible by scales.size(1) = 5", Category.SHAPE_OR_DTYPE_ASSERT),
        ("RuntimeError: Observed free HBM is below the reserve: 13 bytes available, 15 required", Category.OOM_GPU),
        ("RuntimeError: Topology not found. Pass --numa-bind-nodes explicitly or disable it.", Category.CONFIG_ERROR),
        ("RuntimeError: Topology not found", Category.UNKNOWN),
        ("RuntimeError: open: Address family not supported by protocol", Category.UNKNOWN),
    ],
)  # fmt: skip
def test_words_that_say_what_kind_it_was(told: Told, error: str, category: Category) -> None:
    assert told(raised(1, error)).verdict.category is category


def test_a_socket_that_cannot_be_opened_where_processes_talk_to_each_other(told: Told) -> None:
    error = "RuntimeError: open: Address family not supported by protocol"
    incident = told(raised(1, error, "/srv/sglang/srt/disaggregation/mooncake/transfer_engine.py", "initialize"))
    assert incident.verdict.category is Category.NCCL


# --- the same failure on Windows


WEIGHTS = raised(0, "OSError: Name or service not known", "{0}/site-packages/huggingface_hub/file_download.py", "hf_hub_download")


def test_a_path_with_backslashes_tells_as_much(told: Told) -> None:
    here = told(WEIGHTS.format("/srv/env"))
    there = told("\n".join(
        line.replace("/", "\\") if " File " in line else line for line in WEIGHTS.format("C:/srv/env").split("\n")
    ))  # fmt: skip
    assert here.verdict.category is there.verdict.category is Category.MODEL_LOAD  # by the file, which a row of the tables names
    assert here.facts.engine == there.facts.engine
    assert primary(here).fingerprint == primary(there).fingerprint
    assert primary(here).frame_owners == primary(there).frame_owners
    assert primary(there).frames[-1].file == r"C:\srv\env\site-packages\huggingface_hub\file_download.py"


_OLD = (
    'time=2026-11-29T20:15:20.250Z level=INFO source=gpu.go:600 msg="unable to load cuda driver library" library=/opt/drv/libcuda.so.1 '
    'error="symbol lookup for cuMemGetInfo_v2 failed: undefined symbol: cuMemGetInfo_v2"\n'
)
_RUNS = 'time=2026-11-29T20:15:21.250Z level=INFO source=types.go:130 msg="inference compute" id=0 library=cpu total="62.0 GiB"\n'
_ANSWERED = '[GIN] 2026/11/29 - 20:16:20 | {} |  2.3s | 127.0.0.1 | POST "/api/generate"\n'


def test_a_server_that_goes_on_without_a_driver_too_old_for_it_is_no_failure(told: Told) -> None:
    assert told(_OLD).verdict.signature == "driver.too-old-for-program"
    assert told(_OLD + _RUNS).status is Status.HEALTHY
    assert told(_OLD + _ANSWERED.format(200)).status is Status.HEALTHY
    assert told(_OLD + _ANSWERED.format(500)).status is not Status.HEALTHY
