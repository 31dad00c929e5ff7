"""Measures the tool against ripgrep and Python itself, in one interleaved run. In: sizes, rounds; out: a table of ratios. Sample:

    python benchmarks/bench.py --megabytes 256 --rounds 5            # or: make bench
    python benchmarks/bench.py --full                                # logs of 1 GB where it matters, 10,000 files, memory at 4 GB

Every row is two commands that run one after the other, round by round; a row's ratio is the quotient of their medians. CPU (user and
system time of the process and its children) is steady on a busy machine, wall time is not. Ratios are compared with `reached.json` beside
this file; one that is 15 % worse in CPU is marked. Nothing here fails a build.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import generate  # noqa: E402 - scripts beside this one
import latency  # noqa: E402

PYTHON = sys.executable
TOOL = [PYTHON, "-m", "forensics", "analyze", "--format", "json"]
LITERALS = """
from forensics import knowledge, match, parse
found = {a.literal for s in (parse.anchors(), knowledge.anchors(), match.anchors(match.load_signatures())) for a in s}
found = sorted(x for x in found if len(x) >= 8 and b"\\n" not in x)
step = max(1, len(found) // 1000)
import sys; sys.stdout.buffer.write(b"\\n".join(found[::step][:1000]) + b"\\n")
"""
LINES = "import io, sys\nfor line in io.StringIO(open(sys.argv[1], encoding='utf-8').read()): pass"


class Run:
    """One finished command: seconds of wall and CPU time, MB of its biggest process."""

    def __init__(self, wall: float, cpu: float, rss: float) -> None:
        self.wall, self.cpu, self.rss = wall, cpu, rss


def run(command: list[str], *, stdin: list[str] | None = None, cores: int = 1) -> Run:
    """Runs a command (with another one piped into it) on so many cores, output thrown away."""
    everything = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    start = time.monotonic()
    pids: list[int] = []
    read_end = None
    if stdin is not None:
        read_end, write_end = os.pipe()
        pids.append(_start(stdin, None, write_end, everything[-1:]))
        os.close(write_end)
    pids.append(_start(command, read_end, None, everything[:cores]))
    if read_end is not None:
        os.close(read_end)
    cpu = rss = 0.0
    for pid in pids:
        _, _, used = os.wait4(pid, 0)
        cpu += used.ru_utime + used.ru_stime
        rss = used.ru_maxrss / 1024  # of the last one: the command itself
    return Run(time.monotonic() - start, cpu, rss)


def _start(command: list[str], stdin: int | None, stdout: int | None, cores: list[int]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(stdin if stdin is not None else nothing, 0)
        os.dup2(stdout if stdout is not None else nothing, 1)
        os.dup2(nothing, 2)
        if cores and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, cores)
        # without its compiled files Python would compile the tool at each start
        os.execvpe(command[0], command, {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"})
    finally:
        os._exit(127)


class Row:
    """name: what the table says; ours, theirs: what is run; target: the figure that is wanted at most; unit: x (ratio), MB or ms."""

    def __init__(
        self,
        name: str,
        target: float,
        ours: Callable[[Logs], Run],
        theirs: Callable[[Logs], Run] | None = None,
        unit: str = "x",
    ) -> None:
        self.name, self.target, self.ours, self.theirs, self.unit = name, target, ours, theirs, unit


class Logs:
    """What is measured on, written when first asked for. full: the big logs have 1 GB, the biggest 4 GB."""

    def __init__(self, work: Path, megabytes: int, full: bool) -> None:
        self._work, self._megabytes = work, megabytes
        self.big = 1024 if full else megabytes
        self.biggest = 4096 if full else megabytes

    def __call__(self, kind: str, megabytes: int | None = None) -> str:
        """The path of a log (or of the folder "files")."""
        path = self._work / f"{kind}-{megabytes or self._megabytes}"
        if not path.exists():
            generate.write(kind, megabytes or self._megabytes, path)
        return str(path)

    def short(self) -> str:
        """200 lines with a crash at the end."""
        path = self._work / "short"
        if not path.exists():
            head = Path(self("server", 1)).read_bytes().splitlines(keepends=True)[:144]
            stacks = [generate.traceback(random.Random(1), 863_000, rank) for rank in range(4)]
            path.write_bytes(b"".join(head) + "".join(stacks).encode())
        return str(path)

    def literals(self) -> str:
        """The tool's own literals, a thousand of them, one a line."""
        path = self._work / "literals"
        if not path.exists():
            path.write_bytes(_output([PYTHON, "-c", LITERALS]))
        return str(path)

    def signatures(self, count: int) -> str:
        """A folder of so many signatures that match nothing here, each with a literal of its own."""
        folder = self._work / f"rules-{count}"
        if not folder.exists():
            _signatures(folder, count)
        return str(folder)


def rg(logs: Logs, path: str, cores: int = 1) -> Run:
    """ripgrep with the same literals."""
    return run(["rg", "-a", "-c", "-F", "-f", logs.literals(), path], cores=cores)


def tool(*arguments: str, cores: int = 1, stdin: list[str] | None = None) -> Run:
    """The whole analysis, as JSON."""
    return run([*TOOL, *arguments], cores=cores, stdin=stdin)


ROWS = [
    Row("server log, one process / rg", 0.7, lambda log: tool(log("server", log.big)), lambda log: rg(log, log("server", log.big))),
    Row(
        "server log, two processes / rg (wall)",
        0.4,
        lambda log: tool(log("server", log.big), cores=2),
        lambda log: rg(log, log("server", log.big)),
    ),
    Row(
        "5,000 / 500 signatures of one's own",
        1.6,
        lambda log: tool("--signatures", log.signatures(5000), log("server", log.big)),
        lambda log: tool("--signatures", log.signatures(500), log("server", log.big)),
    ),
    Row(
        "prompts in prose in 23 % of the lines / rg",
        0.8,
        lambda log: tool(log("prompts", log.big)),
        lambda log: rg(log, log("prompts", log.big)),
    ),
    Row(
        "the same of nothing but failures' words / rg",
        0.8,
        lambda log: tool(log("words", log.big)),
        lambda log: rg(log, log("words", log.big)),
    ),
    Row("6 % of the lines match / rg", 1.3, lambda log: tool(log("dense", log.big)), lambda log: rg(log, log("dense", log.big))),
    Row("half of the lines match / rg", 6, lambda log: tool(log("half")), lambda log: rg(log, log("half"))),
    Row(
        "cat log \\| tool / cat log \\| rg",
        0.8,
        lambda log: tool("-", stdin=["cat", log("server", log.big)]),
        lambda log: run(["rg", "-a", "-c", "-F", "-f", log.literals()], stdin=["cat", log("server", log.big)]),
    ),
    Row(
        "200 lines piped, console / python -c 'import rich.console, rich.table'",
        2.2,
        lambda log: run([PYTHON, "-m", "forensics"], stdin=["cat", log.short()]),
        lambda log: run([PYTHON, "-c", "import rich.console, rich.table"]),
    ),
    Row(
        "files of 100 kB, two processes / rg over the folder (wall)",
        0.8,
        lambda log: tool(log("files", log.big), cores=2),
        lambda log: rg(log, log("files", log.big), cores=2),
    ),
    Row(
        "100,000 tracebacks / iterating their lines",
        6,
        lambda log: tool(log("loop", 300)),
        lambda log: run([PYTHON, "-c", LINES, log("loop", 300)]),
    ),
    Row("failure shown after its line entered an open pipe, ms (wall)", 50, lambda log: Run(latency.once(), 0, 0), unit="ms"),
    Row("memory, 64 MB", 80, lambda log: tool(log("server", 64)), unit="MB"),
    Row("memory, the big log", 80, lambda log: tool(log("server", log.big)), unit="MB"),
    Row("memory, the biggest log", 80, lambda log: tool(log("server", log.biggest)), unit="MB"),
    Row("memory, the biggest log from a pipe", 80, lambda log: tool("-", stdin=["cat", log("server", log.biggest)]), unit="MB"),
    Row("memory, one line of 300 MB", 80, lambda log: tool(log("long", 64)), unit="MB"),
]


def _output(command: list[str]) -> bytes:
    import subprocess

    return subprocess.run(command, check=True, capture_output=True).stdout


def _signatures(folder: Path, count: int) -> str:
    """A folder of signatures that match nothing here, each with a literal of its own."""
    family = folder / "bench"
    family.mkdir(parents=True)
    for number in range(count):
        word = "".join("bcdfghklmnprstvw"[(number >> shift) & 15] for shift in (12, 8, 4, 0))
        (family / f"rule-{number}.toml").write_text(
            f'id = "bench.rule-{number}"\ntitle = "Rule {number}"\nrole = "root"\ncategory = "unknown"\nwhy = "Measured only."\n\n'
            f'[match]\nliterals = ["unlikely {word} failure"]\n\n[[examples]]\ntext = "RuntimeError: unlikely {word} failure"\n\n'
            f'[[counterexamples]]\ntext = "likely {word}"\nbecause = "not that"\n'
        )
    return str(folder)


def measure(logs: Logs, rounds: int, keep: str) -> dict[str, dict[str, float]]:
    """Ratios by row: cpu, wall, and the tool's memory in MB."""
    chosen = [row for row in ROWS if keep in row.name]
    runs: dict[str, tuple[list[Run], list[Run]]] = {row.name: ([], []) for row in chosen}
    for row in chosen:  # writes what it needs, and warms the caches
        row.ours(logs)
    for number in range(rounds):
        for row in chosen:
            runs[row.name][0].append(row.ours(logs))
            if row.theirs is not None:
                runs[row.name][1].append(row.theirs(logs))
        print(f"round {number + 1} of {rounds} done", file=sys.stderr)
    return {
        name: {
            "cpu": _ratio(mine, other, "cpu"),
            "wall": _ratio(mine, other, "wall"),
            "rss": round(statistics.median(one.rss for one in mine), 1),
        }
        for name, (mine, other) in runs.items()
    }


def _ratio(mine: list[Run], other: list[Run], what: str) -> float:
    own = statistics.median(getattr(r, what) for r in mine)
    return round(own / statistics.median(getattr(r, what) for r in other), 3) if other else round(own, 3)


def show(found: dict[str, dict[str, float]], reached: dict[str, dict[str, float]]) -> str:
    """The table as Markdown."""
    lines = ["| measure | at most | CPU | wall | MB | before (CPU) | |", "|---|---|---|---|---|---|---|"]
    for row in ROWS:
        if row.name not in found:
            continue
        new, old = found[row.name], reached.get(row.name, {})
        key = {"MB": "rss", "ms": "wall", "x": "cpu"}[row.unit]
        value = new["wall"] if "(wall)" in row.name else new[key]
        verdict = "ok" if value <= row.target else "over"
        if old and new[key] > old[key] * 1.15:
            verdict += ", worse than before"
        cpu = f"{new['cpu']:.2f}" if row.unit == "x" else ""
        wall = "" if row.unit == "MB" else f"{new['wall']:.2f}" if row.unit == "x" else f"{new['wall']:.0f}"
        rss = "" if row.unit == "ms" else f"{new['rss']:.0f}"
        lines.append(f"| {row.name} | {row.target:g} | {cpu} | {wall} | {rss} | {old.get(key, '')} | {verdict} |")
    return "\n".join(lines)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=256, help="size of the big logs")
    parser.add_argument("--full", action="store_true", help="1 GB, 10,000 files, memory at 4 GB; needs 9 GB of disk and most of an hour")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="rows whose name holds this")
    parser.add_argument("--save", action="store_true", help="make this run the one that later runs are compared with")
    parser.add_argument("--logs", type=Path, help="a folder that keeps the logs for the next run; else they are removed again")
    chosen = parser.parse_args()
    if shutil.which("rg") is None:
        sys.exit("ripgrep is needed: apt install ripgrep, or pip install ripgrep")
    stored = HERE / "reached.json"
    reached = json.loads(stored.read_text()) if stored.exists() else {}
    work = chosen.logs or Path(tempfile.mkdtemp(prefix="forensics-bench-"))
    work.mkdir(parents=True, exist_ok=True)
    try:
        found = measure(Logs(work, chosen.megabytes, chosen.full), chosen.rounds, chosen.only)
    finally:
        if chosen.logs is None:
            shutil.rmtree(work, ignore_errors=True)
    print(show(found, reached))
    if chosen.save:
        stored.write_text(json.dumps({**reached, **found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
