"""Starts the op's process, watches it and ends it. In: the script's own path and limits; out: what its processes wrote. Sample:

    run_child("repro.py", RECIPE, PARAMETERS, "as-logged", 120, 32 << 30, [])
    -> ([{"state": "raised", "error": {…}}], {"kind": "python", "type": "RuntimeError", …}, "Traceback…", 4.2)

Copied into every script beside runtime.py. Time limit, memory cap and output are held here, outside of the process that may hang.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

KEPT_OUTPUT_BYTES = 4 << 20


def group_rss_bytes(group):
    """Resident memory of all processes of one process group, 0 where /proc does not say."""
    total, page = 0, os.sysconf("SC_PAGE_SIZE")
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if entry.isdigit():
            try:
                if os.getpgid(int(entry)) == group:
                    with open(f"/proc/{entry}/statm", encoding="ascii") as file:
                        total += int(file.read().split()[1]) * page
            except (OSError, IndexError, ValueError):
                continue
    return total


def kill_group(process):
    """Ends the child and everything that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(OSError):
            os.killpg(process.pid, number)
        try:
            process.wait(timeout=3)
        except subprocess.TimeoutExpired:
            continue
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        return


def run_child(script, recipe, parameters, variant, timeout, memory_bytes, extra):
    """Runs the op in a child. Returns (states written by its processes, error or None, output, seconds)."""
    folder = tempfile.mkdtemp(prefix="repro-")
    environment = dict(
        os.environ, REPRO_RESULT=os.path.join(folder, "state"), PYTHONUNBUFFERED="1", PYTHONFAULTHANDLER="1"
    )
    if recipe.get("launch_blocking", True) and "--time" not in extra:
        environment["CUDA_LAUNCH_BLOCKING"] = "1"
    environment.update(recipe.get("environment", {}))
    command = [sys.executable, script, "--child", variant, *extra]
    if recipe.get("processes"):
        processes = str(int(parameters[recipe["processes"]]))
        command[1:1] = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", processes]
    for name, value in parameters.items():
        command += ["--set", f"{name}={json.dumps(value)}"]
    started = time.monotonic()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        start_new_session=True,
    )
    kept = bytearray()

    def copy_output():
        while block := os.read(process.stdout.fileno(), 65536):
            sys.stderr.buffer.write(block)
            sys.stderr.flush()
            kept.extend(block)
            if len(kept) > KEPT_OUTPUT_BYTES:
                del kept[: len(kept) - KEPT_OUTPUT_BYTES]

    def stop_child(number, frame):
        kill_group(process)
        raise SystemExit(125)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop_child)
    reader = threading.Thread(target=copy_output, daemon=True)
    reader.start()
    error = None
    while process.poll() is None:
        if time.monotonic() - started > timeout:
            error = {"kind": "timeout", "type": None, "message": f"still running after {timeout:g} s"}
        elif memory_bytes and group_rss_bytes(process.pid) > memory_bytes:
            error = {"kind": "memory", "type": None, "message": f"used more than {memory_bytes >> 20} MiB of memory"}
        if error:
            break
        time.sleep(0.05)
    kill_group(process)
    reader.join(timeout=5)
    seconds = time.monotonic() - started
    states = []
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        with contextlib.suppress(ValueError), open(path, encoding="utf-8") as file:
            states.append(json.load(file))
        os.unlink(path)
    os.rmdir(folder)
    if error is None and process.returncode < 0:
        name = signal.Signals(-process.returncode).name
        error = {"kind": "signal", "type": name, "message": f"the child was ended by {name}"}
    elif error is None and process.returncode:
        error = {
            "kind": "exit",
            "type": f"exit {process.returncode}",
            "message": f"the child ended with exit code {process.returncode}",
        }
    raised = next((state["error"] for state in states if state["state"] == "raised"), None)
    if raised and (error is None or error["kind"] == "exit"):
        error = raised
    return states, error, kept.decode("utf-8", "replace"), seconds
