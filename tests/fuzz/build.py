"""Builds logs that never were: dialects, failures, weaving, damage. In: a random source; out: bytes. Sample:

    log(Random(7)) -> b"[2026-11-29 20:15:20 TP1] Scheduler hit an exception: Traceback (most recent call last):\\n…"
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from random import Random

Lines = list[str]

TYPES = ("RuntimeError", "ValueError", "torch.AcceleratorError", "torch.OutOfMemoryError", "KeyError", "AssertionError", "OSError")
MESSAGES = (
    "CUDA error: an illegal memory access was encountered",
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.00 GiB is free.",
    "mm_fp4 does not support backend 'cudnn' with capability 90",
    "NCCL error in: ../ProcessGroupNCCL.cpp:3356, unhandled system error, NCCL version 2.28.9",
    "No supported CUDA architectures found for major versions [10].",
    "mat1 and mat2 shapes cannot be multiplied (4x8 and 16x4)",
    "Engine core initialization failed. See root cause above. Failed core proc(s): {}",
    "",
    "[red]not markup[/red] <script>alert(1)</script> \x1b]0;title\x07",
    "Error occurred when running GEMM! (numBatches: 8, GemmMNK: 16 1024 2048, Kernel: "
    "bmm_MxE4m3_MxE2m1MxE4m3_Fp32_bA32_bB32_bC32_t128x16x256_s3_et128x16_m128x16x32_cga1x1x1_16dp256b_rM_TN_sm100f)",
)
FILES = ("deepseek_v4.py", "scheduler.py", "module.py", "core.py", "model_runner.py", "flashinfer/fused_moe/core.py")
NAMES = ("forward", "mlp", "_call_impl", "run_scheduler_process", "capture", "__init__", "<module>", "<lambda>")
HEALTHY = (
    "Decode batch. #running-req: 8, #token: 4096, token usage: 0.01, cuda graph: True",
    "Application startup complete.",
    "iteration 12/ 100 | consumed samples: 96 | loss: 2.31E+00",
    "Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:01<00:01]",
    "NCCL INFO Channel 00/04 : 0 1 2 3",
    "server_args=ServerArgs(model_path='/m', tp_size=4, moe_runner_backend='triton', quantization=None)",
    "device=NVIDIA H200 capability=(9, 0) torch=2.11.0+cu130 cuda=13.0",
    "WARNING: The error rate is fine; no timeout, no failure.",
)
ODD = (
    "/aten/src/ATen/native/cuda/Indexing.cu:1515: indexSelectSmallIndex: block: [0,0,0], thread: [3,0,0] Assertion `srcIndex < srcSelectDimSize` failed.",
    "terminate called after throwing an instance of 'c10::Error'",
    "  what():  CUDA error: unspecified launch failure",
    "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x57 (0x7f1 in /lib/libc10.so)",
    "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600012 milliseconds before timing out.",
    "Fatal Python error: Segmentation fault",
    'Current thread 0x00007f0000000000 (most recent call first):',
    "[ 1234.567890] NVRM: Xid (PCI:0000:3b:00): 79, pid=123, name=python, GPU has fallen off the bus.",
    "Out of memory: Killed process 4711 (python) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB",
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
    "[1]:\n  time      : 2026-11-29_20:15:20\n  host      : node1\n  rank      : 1 (local_rank: 1)\n  exitcode  : -9 (pid: 4711)",
    "srun: error: node7: task 3: Exited with exit code 1",
    "slurmstepd: error: *** JOB 12 ON node7 CANCELLED AT 2026-11-29T20:15:20 DUE TO TIME LIMIT ***",
    "Received sigquit from a child process. It usually means the child failed.",
    "During handling of the above exception, another exception occurred:",
    "  + Exception Group Traceback (most recent call last):",
    "╭───────────── Traceback (most recent call last) ─────────────╮",
    "E   RuntimeError: x",
    '{"log":"Traceback (most recent call last):\\n","stream":"stderr","time":"2026-11-29T20:15:20Z"}',
    "```",
    "> quoted",
)


def _prefix(chance: Random, rank: int) -> Callable[[], str]:
    second = chance.randrange(60)
    forms: Sequence[str] = (
        "[2026-11-29 20:15:{s:02d} TP{r}] ",
        "[2026-11-29 20:15:{s:02d} DP0 TP{r} EP{r}] ",
        "(VllmWorker rank={r} pid={p}) ERROR 11-29 20:15:{s:02d} [multiproc_executor.py:527] ",
        "(Worker_TP{r} pid={p}) ",
        "[rank{r}]: ",
        "[default{r}]:",
        "{r}: ",
        "[1,{r}]<stderr>:",
        "(WorkerDict pid={p}) ",
        "",
        "2026-11-29T20:15:{s:02d}.123456789Z stderr F ",
        "worker-{r}  | ",
    )
    form = chance.choice(forms)
    return lambda: form.format(s=second, r=rank, p=4700 + rank)


def _traceback(chance: Random) -> Lines:
    lines = [chance.choice(("", "Scheduler hit an exception: ")) + "Traceback (most recent call last):"]
    for _ in range(chance.randrange(1, 9)):
        lines.append(f'  File "/srv/{chance.choice(FILES)}", line {chance.randrange(1, 2000)}, in {chance.choice(NAMES)}')
        if chance.random() < 0.9:
            lines.append("    self.mlp(x)")
        if chance.random() < 0.3:
            lines.append("    ^^^^^^^^^^^")
    kind, message = chance.choice(TYPES), chance.choice(MESSAGES)
    lines.append(f"{kind}: {message}" if message else kind)
    return lines


def _block(chance: Random) -> Lines:
    roll = chance.random()
    if roll < 0.45:
        return [chance.choice(HEALTHY) for _ in range(chance.randrange(1, 4))]
    if roll < 0.75:
        return _traceback(chance)
    return [line for _ in range(chance.randrange(1, 4)) for line in chance.choice(ODD).split("\n")]


def _rank(chance: Random, rank: int) -> Lines:
    prefix = _prefix(chance, rank)
    first_only = chance.random() < 0.3
    lines: Lines = []
    for _ in range(chance.randrange(1, 5)):
        for index, line in enumerate(_block(chance)):
            lines.append(("" if first_only and index else prefix()) + line)
    return lines


def woven(chance: Random, parts: list[Lines]) -> Lines:
    """The lines of several writers in one random order that keeps each writer's own."""
    left = [part[::-1] for part in parts if part]
    lines: Lines = []
    while left:
        part = chance.choice(left)
        for _ in range(chance.choice((1, 1, 3, 1000))):
            if part:
                lines.append(part.pop())
        left = [part for part in left if part]
    return lines


def damaged(chance: Random, data: bytes) -> bytes:
    """Torn, cut, salted with control bytes, in another encoding, compressed; or as it was."""
    roll = chance.randrange(12)
    if roll == 0:
        return data[: chance.randrange(len(data) + 1)]
    if roll == 1:
        return data[chance.randrange(len(data) + 1) :]
    if roll == 2:
        return data.replace(b"\n", b"\r\n")
    if roll == 3:
        return data.decode("utf-8", "replace").encode("utf-16")
    if roll == 4:
        return gzip.compress(data)[: chance.choice((40, 10_000))]
    if roll == 5:
        return data.replace(b" ", chance.choice((b"\x00", b"\t", b"\x1b[31m", b"\xe2\x80\xae", b"\xff")))
    if roll == 6:
        spots = bytearray(data)
        for _ in range(chance.randrange(1, 20)):
            if spots:
                spots[chance.randrange(len(spots))] = chance.randrange(256)
        return bytes(spots)
    if roll == 7:
        return data.replace(b"\n", b"\r")
    return data


def log(chance: Random) -> bytes:
    """One small log."""
    return _made(chance, [_rank(chance, rank) for rank in range(chance.choice((1, 1, 2, 2, 4, 8)))])


def tiny(chance: Random) -> bytes:
    """One log of a few lines: a failure or two, so that very many can be tried."""
    return _made(chance, [_rank(chance, rank)[:12] for rank in range(chance.choice((1, 1, 1, 2)))])


def _made(chance: Random, parts: list[Lines]) -> bytes:
    text = "\n".join(woven(chance, parts)) + chance.choice(("", "\n"))
    return damaged(chance, text.encode("utf-8", "surrogateescape"))
