"""How soon a failure is shown after its line entered an open pipe. In: nothing; out: milliseconds. Sample:

    python benchmarks/latency.py [ROUNDS]      ->  median 9 ms, worst 15 ms (20 rounds)

A child `forensics --follow` reads a pipe. It gets some healthy lines, is left alone for a second, and gets one line of a crash; the clock runs
from the write until the child's answer names the exception.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CALM = "[2026-11-29 20:15:1{n} TP0] Decode batch. #running-req: 3, #token: 900, gen throughput (token/s): 41.2, #queue-req: 0\n"
CRASH = "[2026-11-29 20:15:20 TP1] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 1 has a total capacity of 79 GiB\n"


def once() -> float:
    """Milliseconds of one try."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-m", "forensics", "--follow"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env=environment) as child:
        assert child.stdin is not None and child.stdout is not None
        child.stdin.write("".join(CALM.format(n=n % 10) for n in range(2_000)).encode())
        child.stdin.flush()
        time.sleep(1)
        start = time.perf_counter()
        child.stdin.write(CRASH.encode())
        child.stdin.flush()
        said = b""
        while b"OutOfMemoryError" not in said:
            more = os.read(child.stdout.fileno(), 4096)
            if not more:
                raise SystemExit("the tool ended without a word")
            said += more
        took = time.perf_counter() - start
        child.stdin.close()
        child.stdout.read()
    return took * 1000


def main() -> None:
    """Measures and prints one line."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    once()
    took = [once() for _ in range(rounds)]
    print(f"median {statistics.median(took):.0f} ms, worst {max(took):.0f} ms ({rounds} rounds)")


if __name__ == "__main__":
    main()
