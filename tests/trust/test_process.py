"""The program as a process: signals, closed pipes, and what a user sees of an error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from . import logs

Run = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_ctrl_c_ends_at_once_and_in_one_word() -> None:
    read, write = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "forensics"],
        stdin=read,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # jobs in the background of a script inherit an ignored SIGINT
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.write(write, logs.crash("boom").encode())
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:  # it reads once it is ready to be interrupted
        if _reads(process.pid):
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    os.close(write)
    os.close(read)
    assert (process.returncode, told.strip()) == (130, b"interrupted")


def _reads(pid: int) -> bool:
    """Whether a process waits in a read of its pipe; True after three seconds where the system does not say."""
    try:
        where = Path(f"/proc/{pid}/wchan").read_text()
        return "pipe" in where
    except OSError:
        time.sleep(3)
        return True


@pytest.mark.parametrize("format", ["console", "json"])
def test_a_reader_that_leaves_early(format: str, samples: Path) -> None:
    code = f'"{sys.executable}" -m forensics "{samples}/one_oom/one_oom.log" --format {format} | sh -c "exec <&-; sleep 4"; echo "${{PIPESTATUS[0]}}"'
    done = subprocess.run(["bash", "-c", code], capture_output=True, timeout=120, check=False)
    assert done.stderr == b""
    assert done.stdout.strip() == b"1"


@pytest.mark.parametrize("closing", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_closed_descriptors(closing: str, samples: Path) -> None:
    code = f'"{sys.executable}" -m forensics "{samples}/one_oom/one_oom.log" {closing}'
    done = subprocess.run(["bash", "-c", code], capture_output=True, timeout=120, check=False)
    assert b"Traceback" not in done.stderr and b"forensics/cli" not in done.stdout
    assert done.returncode == (4 if closing.startswith(">&-") else 1)
    assert (b"standard output is closed" in done.stderr) == (closing == ">&-")


def test_errors_on_the_terminal_are_harmless(forensics: Run) -> None:
    """A file's name with escapes in it, said back in an error."""
    done = forensics("no\x1b]0;owned\x07\x1b[31m.log")
    assert done.returncode == 4
    assert b"\x1b" not in done.stderr and b"\x07" not in done.stderr


def test_an_error_of_ours_is_a_sentence_and_debug_shows_it(forensics: Run, samples: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['forensics.report.view'] = None\n")
    env = {"PYTHONPATH": f"{tmp_path}:{samples.parent}"}
    calm = forensics(f"{samples}/one_oom/one_oom.log", **env)
    assert b"Traceback" not in calm.stderr and b"an error inside forensics" in calm.stderr and calm.returncode == 4
    loud = forensics(f"{samples}/one_oom/one_oom.log", "--debug", **env)
    assert b"Traceback" in loud.stderr
