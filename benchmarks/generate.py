"""Writes logs to measure on. In: a kind and a size; out: a file or a folder, the same for the same arguments. Sample:

    python benchmarks/generate.py server --megabytes 256 --output /tmp/server.log

Kinds: server (eight ranks serving, 0.06 % of the lines are incidents, a crash at the end), prompts (the same with request texts in
23 % of the lines: English about programming, as Python's own documentation has it, and quoted tracebacks), words (the same of nothing
but the words that failures are told in: the worst that a request can be), dense (6 % of the lines are incidents), half (50 %), damaged (1 %
torn, glued, with bytes of no encoding), long (server with one line of 300 MB), loop (nothing but tracebacks of 3 kB), files (the
server log as many small files, one a rank and step).
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

RANKS = 8
WORDS = [
    "the", "model", "should", "explain", "why", "a", "process", "cannot", "reach", "its", "peer", "waits", "until", "timeout", "what",
    "user", "can", "do", "about", "error", "in", "middle", "of", "batch", "when", "memory", "runs", "out", "or", "kernel", "fails",
    "must", "be", "expected", "allocated", "device", "failed", "connection",
]  # fmt: skip

INCIDENTS = (
    "NCCL WARN Call to connect returned Connection refused, retrying in {n} ms",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {n} MiB. GPU {r} has a total capacity of 79.11 GiB",
    "Watchdog caught collective operation timeout: WorkNCCL(SeqNum={n}, OpType=ALLREDUCE, NumelIn=4096, Timeout(ms)=600000)",
    "CUDA error: an illegal memory access was encountered at step {n}",
    "Failed to load kernel for request {n}: RuntimeError: no kernel image is available for execution on the device",
    "Health check failed. Server couldn't get a response from detokenizer for last {n} seconds",
    "KV cache pool is full. Retract requests. #retracted_reqs: {n}",
    "Error: request {n} was aborted by the client before it was scheduled",
)

TRACEBACK = """[{stamp} TP{r}] Scheduler hit an exception: Traceback (most recent call last):
  File "/srv/engine/scheduler.py", line {n}, in run_scheduler_process
    scheduler.event_loop_overlap()
  File "/srv/engine/scheduler.py", line 812, in event_loop_overlap
    result = self.run_batch(batch)
  File "/srv/engine/tp_worker.py", line 164, in forward_batch_generation
    logits = self.model_runner.forward(batch)
  File "/srv/engine/models/{model}.py", line {m}, in forward
    x = self.{layer}(x)
  File "/srv/engine/layers/{layer}.py", line 33, in forward
    return self.quant_method.apply(self, x)
RuntimeError: CUDA error: an illegal memory access was encountered

"""


def stamp(tick: int) -> str:
    """Tenths of a second since midnight as a date and time."""
    return f"2026-11-29 {tick // 36000 % 24:02d}:{tick // 600 % 60:02d}:{tick // 10 % 60:02d}"


def healthy(rnd: random.Random, tick: int, ranks: int = RANKS) -> str:
    """One line of a server that does well."""
    roll, rank = rnd.random(), rnd.randrange(ranks)
    if roll < 0.84:
        return (
            f"[{stamp(tick)} TP{rank}] Decode batch. #running-req: {rnd.randrange(200)}, #token: {rnd.randrange(99999)}, token usage: "
            f"{rnd.random():.2f}, cuda graph: True, gen throughput (token/s): {rnd.random() * 3000:.2f}, #queue-req: {rnd.randrange(9)}"
        )
    if roll < 0.92:
        return f'[{stamp(tick)}] INFO:     10.0.{rnd.randrange(9)}.7:{rnd.randrange(65535)} - "POST /v1/chat/completions HTTP/1.1" 200 OK'
    if roll < 0.96:
        return f"(Worker_TP{rank} pid={4000 + rank}) INFO 11-29 20:15:{rnd.randrange(60):02d} [loggers.py:123] Avg prompt throughput: {rnd.random() * 900:.1f}"
    if roll < 0.99:
        return f"node1:{4000 + rank}:{5000 + rank} [{rank}] NCCL INFO Channel 0{rnd.randrange(8)}/0 : {rank}[{rank}] -> {(rank + 1) % ranks}"
    return f"Loading shards: {rnd.randrange(99):2d}%|{'#' * rnd.randrange(9)}| 3/9 [00:01<00:03,  1.2it/s]\r" * 4


@cache
def prose() -> list[str]:
    """English as people write it to a model, word by word: some 430 kB about programming that come with every CPython."""
    from pydoc_data.topics import topics

    return " ".join(topics[name] for name in sorted(topics)).split()


def prompt(rnd: random.Random, tick: int, is_prose: bool) -> str:
    """A request written to the log with its text, which may quote a traceback."""
    count = rnd.randrange(30, 160)
    if is_prose:
        start = rnd.randrange(len(prose()) - count)
        text = " ".join(prose()[start : start + count])
    else:
        text = " ".join(rnd.choice(WORDS) for _ in range(count))
    if rnd.random() < 0.05:
        text += " Traceback (most recent call last): File a.py, line 3, in f ValueError: x"
    return f"[{stamp(tick)}] Receive: obj=GenerateReqInput(rid='{rnd.getrandbits(128):032x}', text={text!r})"


def incident(rnd: random.Random, tick: int, ranks: int = RANKS) -> str:
    """One line that an anchor wants."""
    rank = rnd.randrange(ranks)
    return f"[{stamp(tick)} TP{rank}] " + rnd.choice(INCIDENTS).format(n=rnd.randrange(9999), r=rank)


def traceback(rnd: random.Random, tick: int, rank: int) -> str:
    """A whole traceback of one of 550 shapes."""
    return TRACEBACK.format(
        stamp=stamp(tick), r=rank, n=rnd.randrange(400), m=rnd.randrange(2000), model=f"model_{'abcdefghijk'[rnd.randrange(11)]}",
        layer=rnd.choice("abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwx") + "_proj",
    )  # fmt: skip


def deep(text: str) -> str:
    """A traceback with the frames that stand between an engine's loop and its failing layer: 3 kB, 40 lines."""
    head, _, rest = text.partition("  File ")
    between = "".join(
        f'  File "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", line {1700 + n}, in _call_impl_{n}\n'
        f"    return forward_call_with_hooks_and_arguments(self, stage_{n}, *args, **kwargs)\n"
        for n in range(14)
    )
    return head + between + "  File " + rest


class Shape(NamedTuple):
    """ranks: processes that write; density: share of the lines that are incidents; prompts: that hold request texts; prose: of English, not
    of failures' words; damage: that are torn, glued, or hold bytes that are no text."""

    ranks: int = RANKS
    density: float = 600e-6
    prompts: float = 0.0
    prose: bool = True
    damage: float = 0.0


KINDS = {
    "dense": Shape(density=0.06), "half": Shape(density=0.5), "prompts": Shape(prompts=0.26), "words": Shape(prompts=0.26, prose=False),
    "damaged": Shape(damage=0.01),
}  # fmt: skip


def damaged(rnd: random.Random, line: str) -> str:
    """A line as a dying machine leaves it: torn, with the next one glued to it, with NULs, half an escape, bytes of no encoding."""
    cut = rnd.randrange(len(line) + 1)
    how = rnd.randrange(5)
    if how == 0:
        return line[:cut]
    if how == 1:
        return line[:cut] + line
    return line[:cut] + ("\0" * rnd.randrange(1, 400), "\x1b[3", "\udcff\udcfe\udc80")[how - 2] + line[cut:]


def blocks(megabytes: float, shape: Shape, seed: int) -> Iterator[bytes]:
    """The log in blocks of some MB. A pool of healthy lines is shuffled: making each anew would take minutes."""
    rnd = random.Random(seed)
    pool = [healthy(rnd, tick, shape.ranks) for tick in range(30_000)]
    texts = [prompt(rnd, tick, shape.prose) for tick in range(3_000)] if shape.prompts else []
    done, tick = 0, 0
    while done < megabytes * 1e6:
        lines = pool[(at := rnd.randrange(5_000)) : at + 20_000]
        for _ in range(int(len(lines) * shape.prompts)):
            lines[rnd.randrange(len(lines))] = rnd.choice(texts)
        if shape.density >= 0.5:
            lines[::2] = [incident(rnd, tick, shape.ranks) for _ in lines[::2]]
        else:
            for _ in range(int(len(lines) * shape.density)):
                lines[rnd.randrange(len(lines))] = incident(rnd, tick, shape.ranks)
        for _ in range(int(len(lines) * shape.damage)):
            at = rnd.randrange(len(lines))
            lines[at] = damaged(rnd, lines[at])
        tick += 20_000
        block = ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")
        done += len(block)
        yield block


def crash(seed: int, ranks: int = RANKS) -> bytes:
    """The end: all ranks fail alike, their tracebacks woven."""
    rnd = random.Random(seed)
    stacks = [traceback(random.Random(seed), 863_000, rank).splitlines() for rank in range(ranks)]
    woven = [stack.pop(0) for stack in stacks]
    while any(stacks):
        stack = rnd.choice([s for s in stacks if s])
        woven.append(stack.pop(0))
    woven.append(f"[{stamp(863_001)}] Received sigquit from a child process. It usually means the child failed.")
    return ("\n".join(woven) + "\n").encode()


def write(kind: str, megabytes: float, output: Path, seed: int = 1, shape: Shape | None = None) -> None:
    """Writes one log (or, for "files", a folder of logs of 100 kB). shape: other than the kind's own."""
    shape = shape or KINDS.get(kind, Shape())
    if kind == "files":
        output.mkdir(parents=True, exist_ok=True)
        number = 0
        for block in blocks(megabytes, shape, seed):
            for start in range(0, len(block), 100_000):
                part = block[start : start + 100_000]
                (output / f"step_{number // shape.ranks}_rank{number % shape.ranks}.log").write_bytes(part)
                number += 1
        return
    with output.open("wb") as file:
        if kind == "loop":
            rnd = random.Random(seed)
            for tick in range(int(megabytes * 1e6 / 3_000)):
                file.write(deep(traceback(rnd, tick, tick % shape.ranks)).encode())
            return
        for block in blocks(megabytes, shape, seed):
            file.write(block)
            if kind == "long" and file.tell() < 2 * len(block):
                file.write(b"x" * 300_000_000 + b"\n")
        file.write(crash(seed, shape.ranks))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["server", *KINDS, "long", "loop", "files"])
    parser.add_argument("--megabytes", type=float, default=256)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ranks", type=int)
    for share in ("density", "prompts", "damage"):
        parser.add_argument(f"--{share}", type=float, help="share of the lines")
    chosen = parser.parse_args()
    shape = KINDS.get(chosen.kind, Shape())
    shape = shape._replace(**{name: value for name in Shape._fields if (value := getattr(chosen, name, None)) is not None})
    write(chosen.kind, chosen.megabytes, chosen.output, chosen.seed, shape)


if __name__ == "__main__":
    main()
