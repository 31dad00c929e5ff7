"""Logs written for these tests, in the shapes that engines, launchers and kernels print."""

from __future__ import annotations


def vllm_worker(rank: int, clock: str, free: str) -> str:
    head = f"(VllmWorker rank={rank} pid={800 + rank}) ERROR 05-12 {clock} [multiproc_executor.py:470]"
    lines = [
        "WorkerProc hit an exception.",
        "Traceback (most recent call last):",
        '  File "/usr/lib/python3/dist-packages/vllm/v1/executor/multiproc_executor.py", line 465, in worker_busy_loop',
        "    output = func(*args, **kwargs)",
        '  File "/usr/lib/python3/dist-packages/vllm/v1/worker/gpu_model_runner.py", line 1506, in profile_run',
        "    sampler_output = self._dummy_sampler_run(hidden_states)",
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 978.00 MiB. GPU {rank} has a total capacity of 44.32 GiB of which {free} MiB is free.",
    ]
    return "".join(f"{head} {line}\n" for line in lines)


VLLM_OOM = (
    "INFO 05-12 09:10:01 [api_server.py:1043] vLLM API server version 0.8.5\n"
    + vllm_worker(2, "09:10:52", "514.31")
    + vllm_worker(0, "09:10:53", "498.31")
    + """Process EngineCore_0:
Traceback (most recent call last):
  File "/usr/lib/python3/dist-packages/vllm/v1/engine/core.py", line 400, in run_engine_core
    raise e
RuntimeError: Worker failed with error 'CUDA out of memory. Tried to allocate 978.00 MiB.', please check the stack trace above for the root cause
Traceback (most recent call last):
  File "/usr/local/bin/vllm", line 8, in <module>
    sys.exit(main())
RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_0': 1}
"""
)

TORCHRUN_KEY_ERROR = """\
[rank5]: Traceback (most recent call last):
[rank5]:   File "/home/u/train/pretrain.py", line 301, in <module>
[rank5]:     pretrain(dataset)
[rank5]:   File "/home/u/train/data.py", line 88, in __getitem__
[rank5]:     return self.index[key]
[rank5]: KeyError: 'doc_5512'
[rank3]: Traceback (most recent call last):
[rank3]:   File "/home/u/train/pretrain.py", line 210, in train
[rank3]:     torch.distributed.all_reduce(x)
[rank3]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2020, remote process exited or there was a network error, NCCL version 2.21.5
[rank3]: ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.
[rank3]: Last error:
[rank3]: socketProgress: Connection closed by remote peer node7<40012>
E0512 10:00:46.200000 139 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 3 (pid: 4014) of binary: /usr/bin/python
Traceback (most recent call last):
  File "/usr/local/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
pretrain.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2025-05-12_10:00:44
  host      : node7
  rank      : 3 (local_rank: 3)
  exitcode  : 1 (pid: 4014)
============================================================
"""

SLURM_OOM_KILL = """\
step 1200 | loss 2.31 | lr 1e-4
slurmstepd: error: Detected 1 oom_kill event in StepId=88231.0. Some of the step tasks have been OOM Killed.
srun: error: node12: task 3: Out Of Memory
slurmstepd: error: *** STEP 88231.0 ON node11 CANCELLED AT 2025-03-02T11:12:13 ***
Traceback (most recent call last):
  File "/home/u/train.py", line 90, in <module>
    main()
RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.1.1.2]:40002
srun: error: node11: tasks 0-2: Exited with exit code 1
"""

DEVICE_ASSERT = """\
/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1515: indexSelectSmallIndex: block: [0,0,0], thread: [5,0,0] Assertion `srcIndex < srcSelectDimSize` failed.
/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1515: indexSelectSmallIndex: block: [0,0,0], thread: [6,0,0] Assertion `srcIndex < srcSelectDimSize` failed.
Traceback (most recent call last):
  File "/home/u/train.py", line 12, in <module>
    loss = model(batch)
  File "/home/u/model.py", line 40, in forward
    return self.embed(tokens).sum().item()
RuntimeError: CUDA error: device-side assert triggered
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.
terminate called after throwing an instance of 'c10::Error'
  what():  CUDA error: device-side assert triggered
"""

LLAMA_OOM = """\
ggml_cuda_init: found 1 CUDA devices:
load_tensors: offloading 33 repeating layers to GPU
ggml_backend_cuda_buffer_type_alloc_buffer: allocating 18432.00 MiB on device 0: cudaMalloc failed: out of memory
llama_model_load: error loading model: unable to allocate CUDA0 buffer
srv    load_model: failed to load model, '/models/x.gguf'
srv    operator(): operator(): cleaning up before exit...
main: exiting due to model loading error
"""

SERVES_ON = """\
INFO 07-01 10:00:00 [api_server.py:1818] Starting vLLM API server 0 on http://0.0.0.0:8000
INFO:     Application startup complete.
INFO:     10.0.0.2:1234 - "POST /v1/completions HTTP/1.1" 200 OK
ERROR 07-01 10:05:00 [serving_chat.py:200] Error in preprocessing prompt inputs
ERROR 07-01 10:05:00 [serving_chat.py:200] Traceback (most recent call last):
ERROR 07-01 10:05:00 [serving_chat.py:200]   File "/usr/lib/python3/dist-packages/vllm/entrypoints/openai/serving_chat.py", line 190, in create_chat_completion
ERROR 07-01 10:05:00 [serving_chat.py:200]     prompt = await self._preprocess_chat(
ERROR 07-01 10:05:00 [serving_chat.py:200] ValueError: you must provide a chat template if the tokenizer does not define one.
INFO:     10.0.0.2:1235 - "POST /v1/chat/completions HTTP/1.1" 400 Bad Request
INFO:     10.0.0.2:1236 - "POST /v1/completions HTTP/1.1" 200 OK
INFO:     10.0.0.2:1237 - "POST /v1/completions HTTP/1.1" 200 OK
"""

ASKED_TO_STOP = """\
INFO:     Started server process [100]
INFO:     Application startup complete.
INFO:     10.0.0.2:1236 - "POST /v1/completions HTTP/1.1" 200 OK
^CINFO:     Shutting down
INFO:     Application shutdown complete.
INFO:     Finished server process [100]
Traceback (most recent call last):
  File "/usr/local/bin/serve", line 10, in <module>
    main()
KeyboardInterrupt
"""

CTRL_C_IN_TRAINING = """\
step 1200 | loss 2.31 | lr 1e-4
^CTraceback (most recent call last):
  File "/home/u/train.py", line 10, in <module>
    main()
  File "/home/u/train.py", line 7, in main
    loss.backward()
KeyboardInterrupt
"""

TWO_SCRIPTS = """\
$ python collect.py
Traceback (most recent call last):
  File "/work/collect.py", line 3, in <module>
    import extension
ModuleNotFoundError: No module named 'extension'
$ python serve.py
Traceback (most recent call last):
  File "/work/serve.py", line 5, in <module>
    import native
ImportError: /lib64/libc.so.6: version `GLIBC_2.32' not found (required by native.so)
"""

VANISHED = """\
[2025-04-01 12:00:00,123] [INFO] [launch.py:256:main] process 1001 spawned with command: ['python', '-u', 'train.py', '--local_rank=0']
[2025-04-01 12:01:20,555] [INFO] [launch.py:319:sigkill_handler] Killing subprocess 1001
[2025-04-01 12:01:20,560] [ERROR] [launch.py:325:sigkill_handler] ['python', '-u', 'train.py', '--local_rank=1'] exits with return code = -9
"""

ONLY_CONSEQUENCES = """\
Traceback (most recent call last):
  File "/usr/lib/python3/dist-packages/vllm/entrypoints/openai/api_server.py", line 300, in generate
    await engine.check()
vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.
"""

NCCL_WARNING = """\
gpu3:1201:1301 [4] transport/shm.cc:100 NCCL WARN Error while creating shared memory segment /dev/shm/nccl-abc123 (size 9469025)
Traceback (most recent call last):
  File "/home/u/train.py", line 12, in <module>
    dist.all_reduce(x)
torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1691, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.19.3
"""


def scheduler(rank: int, clock: str, kind: str, message: str, line: int = 100) -> str:
    return (
        f"[2025-06-01 {clock} TP{rank}] Scheduler hit an exception: Traceback (most recent call last):\n"
        f'  File "/sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py", line {line}, in run_scheduler_process\n'
        "    scheduler.event_loop_normal()\n"
        f'  File "/sgl-workspace/sglang/python/sglang/srt/layers/moe/topk.py", line {line + 7}, in select_experts\n'
        "    topk = gate(x)\n"
        f"{kind}: {message}\n\n"
    )
