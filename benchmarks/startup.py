"""What a start costs: CPU time of a 200-line log piped into `forensics`, report on the console, as a multiple of
`python -c "import rich.console, rich.table"` (and of `python -c pass`).

    python benchmarks/startup.py [ROUNDS]

All commands run in turn, ROUNDS times (15 by default) after one round that fills the caches; user and system time from wait4; medians,
and the best of each. Write-protected or missing caches (PYTHONDONTWRITEBYTECODE) would measure the compiler, so that variable is unset.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
LOG = ROOT / "sample_logs" / "all_ranks_moe" / "all_ranks_moe.log"
LINES = 200
BASE = "rich"
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    BASE: [sys.executable, "-c", "import rich.console, rich.table"],
    "forensics, console report": [sys.executable, "-m", "forensics", "-"],
    "forensics --format json": [sys.executable, "-m", "forensics", "--format", "json", "-"],
}


def cpu(command: list[str], log: Path, environment: dict[str, str]) -> float:
    """Seconds of CPU that one run takes."""
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, str(log), os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
    ]
    child = os.posix_spawn(command[0], command, environment, file_actions=actions)
    _, status, used = os.wait4(child, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        raise SystemExit(f"{command}: ended with {os.waitstatus_to_exitcode(status)}")
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Measures and prints one line a command."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = str(ROOT)
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        log.write_bytes(b"".join(LOG.read_bytes().splitlines(keepends=True)[:LINES]))
        environment["FORENSICS_CACHE_DIR"] = os.path.join(folder, "cache")
        for number in range(rounds + 2):
            for name, command in COMMANDS.items():
                took = cpu(command, log, environment)
                if number > 1:
                    times[name].append(took)
    base, least = statistics.median(times[BASE]), min(times[BASE])
    print(f"{'CPU time':28} {'median':>9} {'/ rich':>7} {'best':>9} {'/ rich':>7}")
    for name, took in times.items():
        middle, best = statistics.median(took), min(took)
        print(f"{name:28} {middle * 1e3:6.1f} ms {middle / base:7.2f} {best * 1e3:6.1f} ms {best / least:7.2f}")


if __name__ == "__main__":
    main()
