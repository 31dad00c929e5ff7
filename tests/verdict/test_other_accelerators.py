"""What run times of NPUs, Gaudi, TPUs and AMD GPUs say without an exception, and short cuts that people take when they paste."""

from __future__ import annotations

from forensics.model.verdict import Category, Status
from tests.verdict.conftest import Told, number, primary

LISTEN = (
    "[ERROR] HCCL(71,python3):2026-11-29-20:15:45.070.463 [hccl_socket.cc:100] [71][HcclSocket][Listen] socket type[1], "
    "listen on ip[10.0.0.4] and specific port[16667] fail. Please check the port status and whether it is used by another process.\n"
)
WAITED = (
    "[ERROR] HCCL(71,python3):2026-11-29-20:17:45.177.194 [hccl_socket_manager.cc:778] [73][Wait][LinkEstablish]"
    "wait socket establish timeout, role[1] rank[3] timeout[120]\n"
)


def test_a_port_that_hccl_could_not_have_is_the_cause_of_the_timeouts(told: Told) -> None:
    incident = told(LISTEN + WAITED)
    assert incident.verdict.signature == "ascend.hccl-port-taken"
    assert incident.verdict.category is Category.NCCL
    assert told(WAITED).verdict.category is Category.HANG_OR_WATCHDOG


def test_an_operator_that_got_no_device_memory_is_out_of_memory(told: Told) -> None:
    line = "[rank7]:[E1129 20:15:45.736 compiler_depend.ts:429] op():x.ts:128 NPU function error: call aclnnMatmul failed, error code is {}\n"
    incident = told(line.format(207001))
    assert (incident.verdict.category, number(incident)) == (Category.OOM_GPU, 7)
    assert told(line.format(561002)).verdict.category is Category.UNKNOWN


def test_gaudis_compiler_speaks_without_python(told: Told) -> None:
    failed = "[20:15:45.164951][GC        ][error][tid:44F8A] Failed to load tpc kernel for node: TPC12, GUID: memset_f8. Got error: GLUE_FAILED\n"
    calm = failed.replace("[error]", "[warning]")
    assert told(failed).verdict.category is Category.JIT_COMPILE
    assert told(calm).primary is None


TERM = (
    "*** SIGTERM received by PID 412 (TID 412) on cpu 51 from PID 398; stack trace: ***\n"
    "PC: @     0x7f7627be9376  (unknown)  pthread_cond_wait@@GLIBC_2.3.2\n    @     0x7f74d8c2aa1a       1152  (unknown)\n"
)


def test_a_caught_sigterm_follows_what_was_printed_before(told: Told) -> None:
    full = "RESOURCE_EXHAUSTED: Attempting to reserve 9.25G at the bottom of memory. That was not possible. There are 7.50G free.\n"
    assert told(full + TERM).verdict.category is Category.OOM_GPU
    assert told(TERM).verdict.category is Category.KILLED_EXTERNALLY


def test_the_runners_panic_follows_the_allocation_that_failed(told: Told) -> None:
    stamp = "Nov 29 20:15:4{} box ollama[402]: "
    alloc = "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 81656.95 MiB on device 0: cudaMalloc failed: out of memory\n"
    load = "llama_model_load: error loading model: unable to allocate CUDA0 buffer\n"
    panic = "panic: unable to load model: /srv/blobs/sha256-12ab\n"
    running = "goroutine 85 [running]:\n"
    text = stamp.format(1) + alloc + stamp.format(2) + load + stamp.format(3) + panic + stamp.format(3) + running
    assert told(text).verdict.category is Category.OOM_GPU
    assert told(stamp.format(3) + panic + stamp.format(3) + running).verdict.category is Category.MODEL_LOAD


def test_a_destructors_exception_does_not_hide_a_torn_traceback(told: Told) -> None:
    ignored = (
        "(RayWorker pid=142) Exception ignored in: <function Comm.__del__ at 0x7f4d8c3212d0>\n(RayWorker pid=142) Traceback (most recent call last):\n"
        '(RayWorker pid=142)   File "/srv/vllm/comm.py", line 264, in __del__\n(RayWorker pid=142)     destroy(self.comm)\n'
        "(RayWorker pid=142) AttributeError: 'Comm' object has no attribute 'comm'\n"
    )
    torn = (
        "(RayWorker pid=142) ERROR 04-17 09:00:33 ray_utils.py:44] Error executing method init_device. This might cause deadlock.\n"
        "(RayWorker pid=142) ERROR 04-17 09:00:33 ray_utils.py:44] Traceback (most recent call last):\n"
        '(RayWorker pid=142) ERROR 04-17 09:00:33 ray_utils.py:44]   File "/srv/vllm/worker/worker.py", line 100, in init_devi\n'
    )
    incident = told(ignored + torn)
    assert incident.verdict.category is Category.UNKNOWN
    assert not primary(incident).type
    assert incident.status is not Status.HEALTHY


def test_frames_that_were_shortened_by_hand_are_frames(told: Told) -> None:
    text = (
        "[2026-11-29 20:15:20 TP2] Scheduler hit an exception: Traceback (most recent call last):\n  ...\n"
        '  File ".../gemmlib/ops/table.py", ...\n    raise ValueError(f"Unknown tile: {name}")\nValueError: Unknown tile: t16x64\n'
    )
    incident = told(text)
    assert number(incident) == 2
    assert [frame.file for frame in primary(incident).frames] == [".../gemmlib/ops/table.py"]


def test_an_illegal_instruction_is_told_by_the_shell_alone(told: Told) -> None:
    begun = "2026-11-29 20:15:20,560 INFO server/main.py[29]: Creating tables\n"
    assert primary(told(begun + "Illegal instruction\n")).type == "SIGILL"
    assert told(begun + "Illegal instruction handling is on\n").primary is None


def test_turbomind_says_fatal_before_it_aborts(told: Told) -> None:
    text = "[TM][FATAL] kernels/mask.cu(21): Check failed: a.first == b.first the two must have the same batch size.\n"
    incident = told(text)
    assert (primary(incident).type, incident.verdict.category) == ("Check failed", Category.SHAPE_OR_DTYPE_ASSERT)
    assert told(text.replace("FATAL", "INFO")).primary is None


def test_hips_statuses_have_hips_names(told: Told) -> None:
    text = "[AITER] /srv/jit/build/fwd.cpp:141 fail to call hipModuleLaunchKernel(fn, gdx, 1, 1) ---> [HIP error](invalid resource handle)\n"
    assert primary(told(text)).type == "hipErrorInvalidHandle"
    assert primary(told(text)).message.startswith("fail to call hipModuleLaunchKernel(")
    assert primary(told("CUDA error: invalid resource handle at a.cu:3\n")).type == "cudaErrorInvalidResourceHandle"


def test_a_passing_ray_serve_test_is_understood(told: Told) -> None:
    actor = "(ServeReplica:default:lab/Tiny-1B-chat:lab--Tiny-1B-chat pid=529) "
    text = f"{actor}INFO 2026-11-29 20:15:46,933 default_lab/Tiny x1 80c3 -- CALL llm_config OK 2.2ms\n" * 3
    incident = told(text)
    assert incident.status is Status.HEALTHY


WORK = "".join(f"I1129 20:1{n}:05.100000   412 train.py:88] step {n}00, loss 2.{n}\n" for n in range(4))


def test_an_error_that_was_survived_is_not_why_the_job_was_ended(told: Told) -> None:
    cache = "ERROR: Could not find the cache /srv/cache/x.json\n"
    for end in (TERM, "Terminated\n", "/srv/run.sh: line 3:   412 Terminated              python train.py\n"):
        assert told(cache + WORK + end).verdict.category is Category.KILLED_EXTERNALLY
        # without work between them nothing says that it was survived
        assert told(cache + end).verdict.category is not Category.KILLED_EXTERNALLY


def test_a_page_fault_that_the_driver_reports_is_the_programs(told: Told) -> None:
    xid = "[14328.198504] NVRM: Xid (PCI:0000:0a:00): {}, pid=1333, name=python3, Ch 00000010, {}\n"
    fault = xid.format(31, "intr 0. MMU Fault: ENGINE CE2 HUBCLIENT_CE0 faulted @ 0x7f29_5b8c9000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ")
    assert told(fault).verdict.category is Category.ILLEGAL_MEMORY_ACCESS
    assert told(xid.format(79, "GPU has fallen off the bus.")).verdict.category is Category.DRIVER_OR_HARDWARE
    amd = "[  100.1] amdgpu 0000:03:00.0: amdgpu: VM_L2_PROTECTION_FAULT_STATUS:0x00341051\n"
    assert told(amd).verdict.category is Category.ILLEGAL_MEMORY_ACCESS
    ring = "[  100.1] amdgpu 0000:03:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=12, emitted seq=14\n"
    assert told(ring).verdict.category is Category.DRIVER_OR_HARDWARE


def test_a_proven_cause_in_prose_speaks_where_nothing_else_does(told: Told) -> None:
    prose = "[BUG]: RuntimeError: NPU out of memory. Tried to allocate 3.50 GiB (NPU 0; 60.97 GiB total capacity; 1.66 GiB free)\n"
    incident = told("It worked with the other model.\n" + prose)
    assert incident.verdict.category is Category.OOM_GPU
    assert primary(incident).type == "RuntimeError"
    assert told("It worked with the other model.\nWARNING: " + prose).status is Status.HEALTHY


def test_triton_servers_last_word_holds_the_models_status(told: Told) -> None:
    text = "error: creating server: Invalid argument - load failed for model 'm': version 1 is at UNAVAILABLE state: Internal: {};\n"
    assert told(text.format("unable to create stream: CUDA error: out of memory")).verdict.category is Category.OOM_GPU
    assert primary(told(text.format("warm-up sample 3 was not answered"))).message == "warm-up sample 3 was not answered;"


def test_what_may_not_differ_between_prefill_and_decode(told: Told) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/srv/sglang/disaggregation/nixl/conn.py", line 53, in transfer_worker\n'
        "    self.send()\nRuntimeError: PD Disaggregation does NOT support PD different TP sizes for this cache yet.\n"
    )
    assert told(text).verdict.category is Category.CONFIG_ERROR
    assert told(text.replace("NOT support", "support")).verdict.signature is None


def test_a_quoted_line_is_read(told: Told) -> None:
    incident = told("> ValueError: the two lists differ\n\nlooks like a bug\n")
    assert (primary(incident).type, primary(incident).message) == ("ValueError", "the two lists differ")


def test_an_engines_or_a_librarys_own_exception_is_not_the_users(told: Told) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/usr/lib/python3/dist-packages/{}", line 53, in pick\n'
        "    return rows[at]\nIndexError: list index out of range\n"
    )
    for file in ("vllm/v1/worker/gpu_model_runner.py", "aiter/ops/tuned.py"):
        incident = told(text.format(file))
        assert incident.verdict.category is not Category.USER_CODE, file
        assert "user" not in incident.verdict.title
    own = text.replace("/usr/lib/python3/dist-packages/{}", "/home/me/serve.py")
    assert told(own).verdict.category is Category.USER_CODE


CAPTURED = (
    'Traceback (most recent call last):\n  File "/sgl/python/sglang/srt/model_executor/cuda_graph_runner.py", line 300, in capture\n'
    '    self.capture_one_batch_size(bs, forward)\n  File "/sgl/python/sglang/srt/layers/pooler.py", line 30, in pool\n    x = torch.empty(n)\n'
)


def test_graphs_of_an_amd_gpu_are_hip_graphs(told: Told) -> None:
    steps = [
        {step.label for step in primary(told(f"{CAPTURED}torch.OutOfMemoryError: {who} out of memory. Tried to allocate 2.00 GiB.\n")).call_path.steps}
        for who in ("HIP", "CUDA")
    ]
    assert "HIP graph capture" in steps[0] and "CUDA graph capture" in steps[1]


def test_vllm_on_a_cpu_is_told_of_the_hosts_memory(told: Told) -> None:
    text = (
        "INFO 03-02 10:00:02 [__init__.py:244] Automatically detected platform {}.\n"
        "INFO 03-02 10:00:02 [core.py:58] Initializing a V1 LLM engine (v0.9.1) with config: model='m'\n"
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"
    )
    assert told(text.format("cpu")).verdict.category is Category.OOM_HOST
    assert told(text.format("cuda")).verdict.category is Category.OOM_GPU
