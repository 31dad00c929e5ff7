"""What the verdict says to a reader: titles, reasons and steps that fit the failure that is there."""

from __future__ import annotations

from forensics.model.verdict import Category, Confidence
from tests.verdict.conftest import Told
from tests.verdict.test_serving_devices import raised, worker

FULL = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {1} MiB. GPU {0} has a total capacity of 79.00 GiB of which 1.20 GiB is free."


def test_the_device_in_the_title_is_that_of_the_rank_that_failed_first(told: Told) -> None:
    later = worker(1, "[retry] " + FULL.format(1, 96)).replace("20:15:40", "20:15:39").replace("ERROR", "INFO")
    incident = told(later + raised(3, FULL.format(3, 64)))
    assert incident.verdict.category is Category.OOM_GPU
    assert incident.verdict.title == "GPU 3 is too full: 64 MiB more were asked for"


def test_a_cublas_failure_with_an_illegal_access_after_it_is_proven(told: Told) -> None:
    cublas = "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx( handle, opa)`"
    fault = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"
    both = worker(
        2, "WorkerProc hit an exception.", "Traceback (most recent call last):",
        '  File "/srv/vllm/model_executor/layers/linear.py", line 8, in forward', "    return mm(x, w)", cublas, "",
        "During handling of the above exception, another exception occurred:", "", "Traceback (most recent call last):",
        '  File "/srv/vllm/v1/worker/gpu_worker.py", line 88, in execute_model', "    return self.step(batch)", fault,
    )  # fmt: skip
    assert told(both).verdict.confidence is Confidence.ESTABLISHED
    alone = told(raised(2, cublas))
    assert alone.verdict.category is Category.ILLEGAL_MEMORY_ACCESS
    assert alone.verdict.confidence is Confidence.HYPOTHESIS


def test_a_quota_is_not_a_full_disk_and_every_rank_meets_it_with_its_own_file(told: Told) -> None:
    text = "".join(raised(n, f"OSError: [Errno 122] Disk quota exceeded: '/home/u/.cache/{name}/k.source'") for n, name in ((2, "QHLX"), (0, "ZWBA"), (1, "MNOP")))
    incident = told(text)
    assert incident.verdict.title == "The disk quota is used up"
    assert len(incident.verdict.same_failure_ranks) == 2
    full = told(raised(2, "OSError: [Errno 28] No space left on device: '/ckpt/a.pt'"))
    assert full.verdict.title == "The disk is full"
    files = told("".join(raised(n, f"FileNotFoundError: [Errno 2] No such file or directory: '/ckpt/{name}.pt'") for n, name in ((0, "left"), (1, "right"))))
    assert not files.verdict.same_failure_ranks


def test_a_title_ends_at_a_word_and_leaves_out_where_a_check_stands(told: Told) -> None:
    place = "Runtime check failed at /srv/sglang/jit_kernel/csrc/gemm/moe.cuh:963: "
    incident = told(raised(0, f"RuntimeError: {place}size_k = 704, is not divisible by b_scales.size(1) = 5"))
    assert incident.verdict.title.endswith("(RuntimeError: size_k = 704, is not divisible by b_scales.size(1) = 5)")
    long = "Chunked input is disabled, " + "and the number of tokens of one item exceeds the budget, " * 3
    assert told(raised(0, f"RuntimeError: {long}")).verdict.title.endswith(" …")


def test_an_assertion_that_compares_no_shapes_is_not_explained_by_shapes(told: Told) -> None:
    other = told(raised(0, "AssertionError: the builder of this batch was never made"))
    assert "shapes" not in other.verdict.explanation.lower()
    shapes = told(raised(0, "AssertionError: q.shape[-1] == self.head_dim"))
    assert "shapes" in shapes.verdict.explanation.lower()


def test_a_server_that_was_not_ready_in_time_may_have_been_slow(told: Told) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/srv/sglang/test/test_utils.py", line 687, in popen_launch_server\n'
        '    raise TimeoutError(why)\nTimeoutError: {0}\n'
    )  # fmt: skip
    slow = told(text.format("Server failed to start within the timeout period."))
    assert slow.verdict.category is Category.HANG_OR_WATCHDOG
    assert "slow" in slow.verdict.explanation
    assert "py-spy" not in slow.verdict.next_steps[0]
    stuck = told(text.format("RPC call to execute_model timed out."))
    assert "slow" not in stuck.verdict.explanation


def test_a_part_that_an_installed_package_lacks_is_a_matter_of_its_version(told: Told) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/srv/vllm/model_executor/layers/quantization/{0}/schemes.py", line 3, in <module>\n'
        "    from packed.compressors.nested import N\nModuleNotFoundError: No module named 'packed.compressors.nested'\n"
    )
    assert "installed, but this version" in told(text.format("packed")).verdict.explanation
    assert "installed, but this version" not in told(text.format("other")).verdict.explanation


def test_a_server_that_was_told_to_end_was_not_stopped_by_hand(told: Told) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/srv/vllm/entrypoints/openai/api_server.py", line 1775, in signal_handler\n'
        "    raise KeyboardInterrupt({0})\nKeyboardInterrupt{1}\n"
    )
    asked = told(text.format('"terminated"', ": terminated"))
    assert asked.verdict.title.startswith("The server was told to end")
    assert told(text.format("", "")).verdict.title.startswith("The run was stopped by hand")


def test_what_is_named_as_the_failure_is_quoted_first(told: Told) -> None:
    place = "/pytorch/aten/src/ATen/native/cuda/IndexKernel.cu:402: masked_scatter_size_check: block: [0,0,0], thread: [0,0,0]"
    wrapped = "torch.AcceleratorError: CUDA error: device-side assert triggered"
    told_thrice = raised(0, wrapped) + raised(0, wrapped, function="determine") + raised(0, wrapped, function="profile")
    incident = told(f"{place} Assertion `totalElements <= srcSize` failed.\n" + told_thrice)
    assert "totalElements" in incident.verdict.evidence[0].quote


def test_a_line_that_the_compiler_evaluates_is_not_the_users(told: Told) -> None:
    text = (
        "Traceback (most recent call last):\n{0}"
        '  File "<string>", line 1, in <module>\nTypeError: \'NoneType\' object is not subscriptable\n'
    )
    guard = '  File "/usr/lib/python3.10/dist-packages/torch/_dynamo/guards.py", line 48, in get\n    return eval(name, self.scope)\n'
    assert told(text.format(guard)).verdict.category is Category.JIT_COMPILE
    assert told(text.format("")).verdict.category is Category.USER_CODE


def test_why_tells_no_other_ranks_exit_code(told: Told) -> None:
    raised_by = "".join(f"[rank2]: {line}\n" for line in ("Traceback (most recent call last):", '  File "/srv/train.py", line 9, in <module>', "    main()", "KeyError: 'lr'"))
    agent = "E0302 10:00:46.2 139 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: {}) local_rank: {} (pid: 40{}) of binary: /usr/bin/python\n"
    incident = told(raised_by + agent.format(1, 2, 14) + agent.format(-9, 0, 12))
    assert incident.verdict.rank is not None and incident.verdict.rank.number == 2
    assert "SIGKILL" not in incident.verdict.explanation
    own = told(raised_by.replace("KeyError: 'lr'", "OSError: lost") + agent.format(-9, 2, 14))
    assert "SIGKILL" in own.verdict.explanation


def test_what_turbomind_prints_is_lmdeploys(told: Told) -> None:
    said = "[TM][INFO] Set logger level to INFO\n[TM][FATAL] models/llama/LlamaBatch.cc(310): Check failed: x > 0\n"
    assert told(said).facts.engine == "lmdeploy"
    assert told(said.replace("[TM]", "[TN]")).facts.engine is None
