"""kill -9 at random moments, then the next run. In: a number of moments and a seed; out: a count, or what was left damaged.

    python -m tests.trust.kills 100 [SEED [SCENE]]       # of each: analysis with a cold cache, the cache itself, a report's file, notes, a repro
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
LOG = ROOT / "sample_logs" / "one_oom" / "one_oom.log"

_NOTES = """
import sys
from forensics.report.triage import load
notes = load({log!r})
for number in range(len(notes.notes) + 1, 100_000):
    notes.write(number, f"note {{number}}", "quote " * 20)
    notes.save()
    print(number, flush=True)
"""


_CACHE = """
import json, os
from forensics import data
folder = os.environ["FORENSICS_CACHE_DIR"]
for number in range(100_000):
    data.write_own(os.path.join(folder, f"{number % 3}.json"), json.dumps([number] * 40_000).encode())
    print(number, flush=True)
"""


def killed(command: list[str], env: dict[str, str], after: float) -> bytes:
    """Starts a command, kills it with all that it started, and returns what it had printed."""
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
    time.sleep(after)
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    told = process.communicate()[0]
    return bytes(told)


def _run(words: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "forensics", *words], env=env, capture_output=True, timeout=180, check=False)


def analysis(place: Path, env: dict[str, str], chance: random.Random, whole_s: float) -> str:
    """A cold cache is being filled: the next run has the same report, and no draft is believed."""
    killed([sys.executable, "-m", "forensics", str(LOG)], env, chance.uniform(0, whole_s))
    again = _run([str(LOG), "--format", "json"], env)
    wrong = again.returncode != 1 or again.stdout != _whole_report() or again.stderr
    return f"the next run: {again.returncode} {again.stderr[-300:]!r}" if wrong else ""


@cache
def _whole_report() -> bytes:
    """What a run that nobody killed says."""
    return _run([str(LOG), "--format", "json"], {**os.environ, "PYTHONPATH": str(ROOT), "FORENSICS_CACHE_DIR": os.devnull + "/none"}).stdout


def cached(place: Path, env: dict[str, str], chance: random.Random, whole_s: float) -> str:
    """The cache is being written all the time: every entry is whole, and the last confirmed one is there."""
    told = killed([sys.executable, "-c", _CACHE], env, chance.uniform(0, whole_s))
    last = int((told.split() or [b"-1"])[-1])
    try:
        entries = [json.loads(path.read_bytes()) for path in (place / "cache").glob("*.json")] if (place / "cache").exists() else []
    except ValueError as error:
        return f"half an entry: {error}"
    newest = max((entry[0] for entry in entries), default=-1)
    return "" if newest >= last and all(len(entry) == 40_000 for entry in entries) else f"lost: {newest} of {last}"


def report(place: Path, env: dict[str, str], chance: random.Random, whole_s: float) -> str:
    """A report is being written over an older one: whole, old or new."""
    out = place / "report.json"
    out.write_text('{"old": true}')
    killed([sys.executable, "-m", "forensics", str(LOG), "--format", "json", "-o", str(out)], env, chance.uniform(0, whole_s))
    content = json.loads(out.read_text())
    if seen := [path.name for path in place.iterdir() if path.name not in ("cache", "report.json") and not path.name.startswith(".")]:
        return f"a draft that the next look at this folder would read: {seen}"
    return "" if content == {"old": True} or content["verdict"]["category"] == "oom_gpu" else f"half a report: {str(content)[:200]}"


def notes(place: Path, env: dict[str, str], chance: random.Random, whole_s: float) -> str:
    """A person's notes are being saved: every one that was confirmed is there."""
    log = place / "typed.log"
    log.write_bytes(LOG.read_bytes())
    told = killed([sys.executable, "-c", _NOTES.format(log=str(log))], env, chance.uniform(0, whole_s))
    last = int((told.split() or [b"0"])[-1])
    from forensics.report.triage import load

    kept = load(str(log)).notes
    lost = [number for number in range(1, last + 1) if number not in kept or kept[number].text != f"note {number}"]
    return f"lost: {lost[:5]} of {last}" if lost else ""


def repro(place: Path, env: dict[str, str], chance: random.Random, whole_s: float) -> str:
    """A script is being written and run: what stands under its name is whole, and the next run works."""
    log = ROOT / "sample_logs" / "cpu_matmul_shape" / "cpu_matmul_shape.log"
    log = log if log.exists() else LOG
    issue = chance.random() < 0.3
    out = place / ("bug.md" if issue else "repro.py")
    words = ["repro", str(log), "-o", str(out), *(["--issue"] if issue else [])]
    killed([sys.executable, "-m", "forensics", *words], env, chance.uniform(0, whole_s))
    if out.exists() and issue and "Read it before you publish it" not in out.read_text():
        return "half a bug report"
    if out.exists() and not issue:
        compile(out.read_text(), str(out), "exec")
        if not os.access(out, os.X_OK):
            return "a script that cannot be run"
    again = _run(words, env)
    return "" if b"Traceback" not in again.stderr and again.returncode in (0, 1, 2, 125) else f"{again.returncode} {again.stderr[-300:]!r}"


SCENES: tuple[Callable[[Path, dict[str, str], random.Random, float], str], ...] = (analysis, cached, report, notes, repro)


def kills(count: int, seed: int = 0, only: str = "") -> list[str]:
    """What was damaged, for every moment where something was. count: kills of each scene; only: of this one."""
    wrong, scenes = [], [scene for scene in SCENES if only in ("", scene.__name__)]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        env = {**os.environ, "PYTHONPATH": str(ROOT), "FORENSICS_CACHE_DIR": str(place / "measured")}
        started = time.monotonic()
        _run([str(LOG)], env)
        whole_s = time.monotonic() - started
        for number in range(count * len(scenes)):
            scene = scenes[number % len(scenes)]
            own = place / f"{number}"
            own.mkdir()
            env["FORENSICS_CACHE_DIR"] = str(own / "cache")
            damage = scene(own, env, random.Random(seed + number), whole_s * 1.1)
            if damage:
                wrong.append(f"{scene.__name__}, moment {seed + number}: {damage}")
    return wrong


def main() -> int:
    """Runs the moments and says what came of them."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    started = time.monotonic()
    only = sys.argv[3] if len(sys.argv) > 3 else ""
    wrong = kills(count, int(sys.argv[2]) if len(sys.argv) > 2 else 0, only)
    print("\n".join([*wrong, f"{count} kills of each of {1 if only else len(SCENES)} scenes, {len(wrong)} left damage, {time.monotonic() - started:.0f} s"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
