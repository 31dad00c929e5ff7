"""No network call, ever: not by an analysis, not by a report, not by a script."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WATCH = """
import sys
def watch(event, args):
    if event.startswith(("socket.", "urllib.", "http.client.", "ftplib.", "smtplib.")) and event not in ("socket.gethostname",):
        if event == "socket.__new__" and getattr(args[1], "name", "") == "AF_UNIX":
            return
        print("NETWORK", event, args, file=sys.stderr, flush=True)
        raise PermissionError(event)
sys.addaudithook(watch)
"""


@pytest.mark.parametrize(
    "words",
    [
        "[LOG]", "[LOG, '--format', 'json']", "[LOG, '--format', 'html', '--explain']", "[LOG, '--format', 'github']",
        "[LOG, '--format', 'sarif']", "['repro', LOG]", "['signatures', 'list']", "['gpu', 'H100']", "['schema']", "[FOLDER]",
    ],
)  # fmt: skip
def test_no_socket_is_opened(words: str, samples: Path) -> None:
    log = samples / "one_oom" / "one_oom.log"
    code = f"LOG, FOLDER = {str(log)!r}, {str(samples / 'one_oom')!r}\n{WATCH}\nfrom forensics.cli.main import main\nraise SystemExit(main({words}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=120, check=False)
    assert b"NETWORK" not in done.stderr, done.stderr
    assert done.returncode in (0, 1, 2, 125), done.stderr


def test_the_watch_sees_a_connection() -> None:
    """The test above can fail."""
    code = WATCH + "import socket\nsocket.create_connection(('127.0.0.1', 9))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
    assert b"NETWORK" in done.stderr
