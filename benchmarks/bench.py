"""Measures the tool against ripgrep and Python itself, in one interleaved run. In: sizes, rounds; out: a table of ratios. Sample:

    python benchmarks/bench.py --megabytes 256 --rounds 5            # or: make bench

Every row is two commands that run one after the other, round by round; a row's ratio is the quotient of their medians. CPU (user and
system time of the process and its children) is steady on a busy machine, wall time is not. Ratios are compared with `reached.json` beside
this file; one that is 15 % worse in CPU is marked. Nothing here fails a build.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import generate  # noqa: E402 - a script beside this one

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
        os.execvp(command[0], command)
    finally:
        os._exit(127)


class Row:
    """ours, theirs: what is run; name: what the table says; target: the ratio that is wanted at most."""

    def __init__(
        self, name: str, ours: Callable[[], Run], theirs: Callable[[], Run] | None, target: float, unit: str = "x"
    ) -> None:
        self.name, self.ours, self.theirs, self.target, self.unit = name, ours, theirs, target, unit


def rows(work: Path, megabytes: int) -> list[Row]:
    """All rows; writes the logs that they need."""
    logs = {}
    for kind in ("server", "prompts", "dense", "half"):
        logs[kind] = str(work / f"{kind}.log")
        generate.write(kind, megabytes, Path(logs[kind]))
    logs["small"] = str(work / "small.log")
    generate.write("server", 64, Path(logs["small"]))
    logs["long"] = str(work / "long.log")
    generate.write("long", 64, Path(logs["long"]))
    logs["loop"] = str(work / "loop.log")
    generate.write("loop", 74, Path(logs["loop"]))
    generate.write("files", megabytes, work / "files")
    head = Path(logs["server"]).read_bytes()[:30_000].splitlines(keepends=True)[:130]
    start = work / "start.log"
    start.write_bytes(b"".join(head) + generate.crash(1)[:9_000])
    literals = str(work / "literals")
    with open(literals, "wb") as file:
        file.write(_output([PYTHON, "-c", LITERALS]))
    few, many = _signatures(work / "few", 500), _signatures(work / "many", 5_000)
    rg = ["rg", "-a", "-c", "-F", "-f", literals]
    cat = ["cat", logs["server"]]

    def tool(path: str, *more: str, cores: int = 1) -> Callable[[], Run]:
        return lambda: run([*TOOL, *more, path], cores=cores)

    return [
        Row("server log, one process / rg", tool(logs["server"]), lambda: run([*rg, logs["server"]]), 0.7),
        Row("server log, two processes / rg (wall)", tool(logs["server"], cores=2), lambda: run([*rg, logs["server"]]), 0.4),
        Row("5,000 / 500 signatures", tool(logs["server"], "--signatures", many), tool(logs["server"], "--signatures", few), 1.6),
        Row("log with prompts in 23 % of the lines / rg", tool(logs["prompts"]), lambda: run([*rg, logs["prompts"]]), 0.8),
        Row("6 % of the lines match / rg", tool(logs["dense"]), lambda: run([*rg, logs["dense"]]), 1.3),
        Row("half of the lines match / rg", tool(logs["half"]), lambda: run([*rg, logs["half"]]), 6),
        Row("cat log | tool / cat log | rg", lambda: run([*TOOL, "-"], stdin=cat), lambda: run([*rg, "-"], stdin=cat), 0.8),
        Row(
            "200 lines piped, console / python -c 'import rich.console, rich.table'",
            lambda: run([PYTHON, "-m", "forensics"], stdin=["cat", str(start)]),
            lambda: run([PYTHON, "-c", "import rich.console, rich.table"]),
            2.2,
        ),
        Row(
            "files of 100 kB, two processes / rg over the folder (wall)",
            lambda: run([*TOOL, str(work / "files")], cores=2),
            lambda: run([*rg, str(work / "files")], cores=2),
            0.8,
        ),
        Row("100,000 tracebacks / iterating their lines", tool(logs["loop"]), lambda: run([PYTHON, "-c", LINES, logs["loop"]]), 6),
        Row("memory at 64 MB", tool(logs["small"]), None, 80, "MB"),
        Row(f"memory at {megabytes} MB", tool(logs["server"]), None, 80, "MB"),
        Row(f"memory at {megabytes} MB from a pipe", lambda: run([*TOOL, "-"], stdin=cat), None, 80, "MB"),
        Row("memory with a line of 300 MB", tool(logs["long"]), None, 80, "MB"),
    ]  # fmt: skip


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


def measure(table: list[Row], rounds: int, keep: str) -> dict[str, dict[str, float]]:
    """Ratios by row: cpu, wall, and the tool's memory in MB."""
    ours: dict[str, list[Run]] = {row.name: [] for row in table}
    theirs: dict[str, list[Run]] = {row.name: [] for row in table}
    for number in range(rounds):
        for row in table:
            if keep not in row.name:
                continue
            ours[row.name].append(row.ours())
            if row.theirs is not None:
                theirs[row.name].append(row.theirs())
        print(f"round {number + 1} of {rounds} done", file=sys.stderr)
    found = {}
    for row in table:
        if not ours[row.name]:
            continue
        mine, other = ours[row.name], theirs[row.name]
        found[row.name] = {
            "cpu": _ratio(mine, other, "cpu"),
            "wall": _ratio(mine, other, "wall"),
            "rss": round(statistics.median(r.rss for r in mine), 1),
        }
    return found


def _ratio(mine: list[Run], other: list[Run], what: str) -> float:
    own = statistics.median(getattr(r, what) for r in mine)
    return round(own / statistics.median(getattr(r, what) for r in other), 3) if other else round(own, 3)


def show(table: list[Row], found: dict[str, dict[str, float]], reached: dict[str, dict[str, float]]) -> str:
    """The table as Markdown."""
    lines = ["| measure | at most | CPU | wall | MB | before (CPU) | |", "|---|---|---|---|---|---|---|"]
    for row in table:
        if row.name not in found:
            continue
        new, old = found[row.name], reached.get(row.name, {})
        value = new["rss"] if row.unit == "MB" else new["wall"] if "(wall)" in row.name else new["cpu"]
        verdict = "ok" if value <= row.target else "over"
        key = "rss" if row.unit == "MB" else "cpu"
        if old and new[key] > old[key] * 1.15:
            verdict += ", worse than before"
        cpu, wall = ("", "") if row.unit == "MB" else (f"{new['cpu']:.2f}", f"{new['wall']:.2f}")
        lines.append(
            f"| {row.name} | {row.target:g} | {cpu} | {wall} | {new['rss']:.0f} | {old.get(key, '')} | {verdict} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=256, help="size of the big logs")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="rows whose name holds this")
    parser.add_argument("--save", action="store_true", help="make this run the one that later runs are compared with")
    parser.add_argument("--work", type=Path, help="where the logs are written (removed again)")
    chosen = parser.parse_args()
    if shutil.which("rg") is None:
        sys.exit("ripgrep is needed: apt install ripgrep, or pip install ripgrep")
    stored = HERE / "reached.json"
    reached = json.loads(stored.read_text()) if stored.exists() else {}
    work = Path(tempfile.mkdtemp(prefix="forensics-bench-", dir=chosen.work))
    try:
        table = rows(work, chosen.megabytes)
        found = measure(table, chosen.rounds, chosen.only)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(show(table, found, reached))
    if chosen.save:
        stored.write_text(json.dumps({**reached, **found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
