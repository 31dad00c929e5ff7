"""Causes that stand beside the exception: what a tool said before it, the releases of a library, the limit behind a call."""

from __future__ import annotations

from forensics.model.verdict import Category, Status

from .conftest import Told, primary

FRAME = '[rank6]: Traceback (most recent call last):\n[rank6]:   File "/srv/job/main.py", line 9, in <module>\n[rank6]:     setup()\n[rank6]: {}\n'
NO_GPU = FRAME.format("RuntimeError: No CUDA GPUs are available")
TRUNCATED = (
    "[rank0]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3384, internal error, NCCL version 2.27.5\n"
    "[rank0]: ncclInternalError: Internal check failed.\n[rank0]: Last error:\n[rank0]: Message truncated : received 2048 bytes instead of 512\n"
)


def test_no_gpu_is_there_for_a_reason_that_stands_before_it(told: Told) -> None:
    assert told(NO_GPU).verdict.signature == "torch.no-driver"
    lost = told("Unable to determine the device handle for GPU4: 0000:8A:00.0: Unknown Error\n" + NO_GPU)
    assert (lost.verdict.signature, lost.verdict.category) == ("torch.no-gpu-lost", Category.DRIVER_OR_HARDWARE)
    hidden = told('starting with CUDA_VISIBLE_DEVICES=""\n' + NO_GPU)
    assert (hidden.verdict.signature, hidden.verdict.category) == ("torch.no-gpu-hidden", Category.CONFIG_ERROR)
    assert told('starting with CUDA_VISIBLE_DEVICES="2,3"\n' + NO_GPU).verdict.signature == "torch.no-driver"


def test_the_status_with_which_nvidia_smi_ended_says_what_it_met(told: Told) -> None:
    said = "subprocess.CalledProcessError: Command '['nvidia-smi', '-L']' returned non-zero exit status {}."
    assert told(FRAME.format(said.format(9))).verdict.signature == "driver.smi-cannot-reach-driver"
    assert told(FRAME.format(said.format(15))).verdict.signature == "driver.smi-gpu-off-the-bus"
    assert told(FRAME.format(said.format(6))).verdict.category is Category.UNKNOWN


def test_messages_of_a_wrong_size_between_two_releases_of_nccl(told: Told) -> None:
    banner = "node4:310:310 [0] NCCL INFO NCCL version {}+cuda12.4\n"
    mixed = told(TRUNCATED, banner.format("2.21.5"))
    assert (mixed.verdict.signature, mixed.verdict.category) == ("nccl.mixed-releases", Category.VERSION_MISMATCH)
    assert mixed.verdict.title == "The ranks run different releases of NCCL: 2.21.5, 2.27.5"
    alike = told(TRUNCATED, banner.format("2.27.5"))
    assert (alike.verdict.signature, alike.verdict.category) == ("nccl.message-truncated", Category.NCCL)


def test_shared_memory_that_needs_one_file_more_than_may_be_open(told: Told) -> None:
    said = "RuntimeError: unable to open shared memory object </torch_310_77_4> in read-write mode: {}"
    assert told(FRAME.format(said.format("Too many open files (24)"))).verdict.category is Category.CONFIG_ERROR
    assert told(FRAME.format(said.format("No space left on device (28)"))).verdict.category is Category.OOM_HOST


def test_what_an_npu_stopped_is_no_fault_of_the_users_code(told: Told) -> None:
    incident = told(FRAME.format("RuntimeError: ACL stream synchronize failed, error code:507035"))
    assert incident.verdict.category is Category.UNKNOWN
    assert primary(incident).message.endswith("507035")
    assert incident.verdict.signature == "ascend.stream-exception"


def test_a_thread_pool_that_got_no_thread(told: Told) -> None:
    said = "F1129 20:15:20.100000  1203 env.cc:322] Check failed: ret == 0 (11 vs. 0)Thread tf_data creation via pthread_create() failed.\n"
    assert told(said + "Fatal Python error: Aborted\n").verdict.signature == "host.thread-limit"


PACE = "".join(f"2026-11-29 20:15:{second:02} INFO loop.py:31 step {second} loss 1.5\n" for second in range(10, 30))


def test_files_of_a_model_that_are_missing_or_cut(told: Told) -> None:
    shard = told(FRAME.format('FileNotFoundError: No such file or directory: "/mnt/base/model-00003-of-00011.safetensors"'))
    assert (shard.verdict.signature, shard.verdict.category) == ("loader.shard-missing", Category.MODEL_LOAD)
    data = told(FRAME.format("FileNotFoundError: [Errno 2] No such file or directory: '/mnt/data/train.jsonl'"))
    assert data.verdict.signature != "loader.shard-missing"
    empty = FRAME.replace("main.py", "../venv/torch/serialization.py").replace("in <module>", "in _legacy_load").format("EOFError: Ran out of input")
    assert told(empty).verdict.signature == "loader.checkpoint-empty"
    assert told(FRAME.format("EOFError: Ran out of input")).verdict.signature != "loader.checkpoint-empty"
    assert told(FRAME.format("tarfile.ReadError: unexpected end of data")).verdict.category is Category.STORAGE


def test_a_placement_group_that_was_given_up_hangs_no_more(told: Told) -> None:
    wait = "INFO 11-29 20:15:{} [ray_utils.py:232] Waiting for creating a placement group of specs for {} seconds. specs=[{{'GPU': 1.0}}].\n"
    waits = "".join(wait.format(10 + n, 10 * 2**n) for n in range(5))
    given_up = FRAME.format("ValueError: Cannot provide a placement group of placement_group_specs=[{'GPU': 1.0}] within 900 seconds.")
    incident = told(waits + given_up)
    assert (incident.status, incident.verdict.category) == (Status.CRASHED, Category.CONFIG_ERROR)
    assert told(waits).status is not Status.CRASHED


def test_words_of_scripts_and_runtimes_that_end_a_job(told: Told) -> None:
    curl = "curl: (6) Could not resolve host: files.example.org\n"
    assert told(curl + "ERROR: no weights\n").verdict.category is Category.CONFIG_ERROR
    assert told(curl + PACE).status is Status.HEALTHY
    assert told("omegaconf.errors.ConfigAttributeError: Key 'lrr' is not in struct\n    full_key: optim.lrr\n").verdict.category is Category.CONFIG_ERROR
    hook = "Error: OCI runtime error: crun: error executing hook `/usr/bin/nvidia-container-toolkit` (exit code: 1)\n"
    assert told(hook).verdict.signature == "launcher.container-without-gpu-runtime"


def test_kernels_of_another_gpu(told: Told) -> None:
    ptxas = "ptxas /tmp/tmpq1.ptx, line 77; error   : Instruction 'wgmma.mma_async' cannot be compiled for architecture 'sm_121a'"
    incident = told(FRAME.format(f"triton.runtime.errors.PTXASError: PTXAS error: Internal Triton PTX codegen error\n[rank6]: {ptxas}"))
    assert incident.verdict.category is Category.ARCH_MISMATCH
    unknown = FRAME.format("RuntimeError: Assertion error (csrc/apis/gemm.hpp:88): Unknown kernel or scaling factor types")
    gpu = "GPU 0: NVIDIA {}\n"
    assert told(gpu.format("GeForce RTX 5090") + unknown).verdict.signature == "deepgemm.unknown-kernel-on-gpu"
    assert told(gpu.format("H200") + unknown).verdict.signature != "deepgemm.unknown-kernel-on-gpu"


def test_the_cxx_library_is_not_the_c_library(told: Told) -> None:
    said = "ImportError: {} not found (required by /srv/app/_C.abi3.so)"
    cxx = told(FRAME.format(said.format("/opt/env/lib/libstdc++.so.6: version `GLIBCXX_3.4.31'")))
    assert cxx.verdict.signature == "host.libstdcxx-too-old"
    assert told(FRAME.format(said.format("/lib64/libc.so.6: version `GLIBC_2.38'"))).verdict.signature == "host.glibc-too-old"


def test_a_network_port_that_lost_its_link_gets_no_advice_for_gpus(told: Told) -> None:
    lost = FRAME.format("torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2300, remote process exited or there was a network error")
    kernel = "Nov 29 20:15:{} node4 kernel: {}: Link {}\n"
    incident = told(kernel.format("07", "mlx5_core 0000:9a:00.0 ib2", "down") + lost)
    assert incident.verdict.signature == "driver.network-link-down"
    assert not any("dcgmi" in step for step in incident.verdict.next_steps)
    assert told(kernel.format("07", "mlx5_core 0000:9a:00.0 ib2", "up") + lost).verdict.signature != "driver.network-link-down"
