"""Files that are none, that change while they are read, that may not be read, and disks without room."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

from forensics import ForensicsError, analyze
from forensics.ingest import ReadOptions, read

from . import logs

CRASH = logs.crash("CUDA error: an illegal memory access was encountered").encode()


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom", "/dev/full"])
def test_devices_are_refused_by_name(device: str) -> None:
    with pytest.raises(ForensicsError, match="device"):
        analyze([device])


def test_an_endless_pipe_ends_with_an_interrupt() -> None:
    """`yes | forensics` reads as long as one lets it, in bounded memory, and Ctrl-C ends it."""
    code = "import resource; resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30)); from forensics.cli.main import main; raise SystemExit(main(['-']))"
    with open("/dev/zero", "rb") as zero:
        feed = subprocess.Popen(["head", "-c", "200000000"], stdin=zero, stdout=subprocess.PIPE)
        done = subprocess.run([sys.executable, "-c", code], stdin=feed.stdout, capture_output=True, timeout=100, check=False)
        feed.wait()
    assert b"Traceback" not in done.stderr
    assert done.returncode in (3, 4)


def test_sockets_and_pipes_in_a_folder_do_not_block(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(CRASH)
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        intake = read([str(tmp_path)], ())
    assert [source.name for source in intake.sources] == [str(tmp_path / "a.log")]
    assert {Path(one.name).name for one in intake.skipped} == {"pipe", "socket"}


class Moving:
    """A raw file that shrinks, grows or fails after its first block."""

    def __init__(self, end: Any) -> None:
        self._blocks: list[Any] = [CRASH, end]

    def read(self, size: int) -> bytes:
        if not self._blocks:
            return b""
        block = self._blocks.pop(0)
        if isinstance(block, Exception):
            raise block
        return bytes(block[:size])


@pytest.mark.parametrize("end", [b"", b"tail without end", OSError(5, "Input/output error"), OSError(116, "Stale file handle"), ValueError("closed")])
def test_what_fails_while_it_is_read_keeps_what_was_read(end: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(CRASH)
    (tmp_path / "b.log").write_bytes(CRASH)
    from forensics.ingest import inputs

    plain = inputs.Plain
    monkeypatch.setattr(inputs, "Plain", lambda raw, limit: plain(Moving(end) if raw.name == str(path) else raw, limit))
    incident = analyze([tmp_path])
    assert incident.verdict.category.value == "illegal_memory_access"
    assert bool(incident.coverage.skipped) == isinstance(end, Exception)


def test_a_file_that_shrinks_or_vanishes_while_it_is_read(tmp_path: Path) -> None:
    """Truncated and unlinked by somebody else in the middle of it, in several processes too: never a traceback."""
    for number in range(6):
        path = tmp_path / f"{number}.log"
        path.write_bytes((b"x" * 100 + b"\n") * 200_000 + CRASH)
        done = threading.Event()

        def cut(path: Path = path, number: int = number, done: threading.Event = done) -> None:
            done.wait(0.003 * number)
            with open(path, "r+b") as file:
                file.truncate(1_000 * number)
            path.unlink()

        other = threading.Thread(target=cut)
        other.start()
        try:
            analyze([path, __file__], read_options=ReadOptions(processes=2))
        finally:
            done.set()
            other.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs another user")
def test_what_may_not_be_read_is_said() -> None:
    """As a user without rights (a child gives them up where the tests run as root)."""
    with tempfile.TemporaryDirectory() as place:
        _check_rights(Path(place))


def _check_rights(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "open.log").write_bytes(CRASH)
    (tmp_path / "closed.log").write_bytes(CRASH)
    (tmp_path / "closed.log").chmod(0)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "in.log").write_bytes(CRASH)
    (tmp_path / "folder").chmod(0)
    analyze([tmp_path / "open.log"])  # what is imported late may lie where the other user may not read
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if os.geteuid() == 0:
                os.setuid(65534)
            names = {Path(one.name).name: one.why for one in analyze([tmp_path]).coverage.skipped}
            code = 0 if names.get("closed.log") == "permission denied" else 3
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    (tmp_path / "folder").chmod(0o700)


def _with_a_small_disk(code: str, tmp_path: Path, room: int = 65536) -> subprocess.CompletedProcess[bytes]:
    """Runs Python with files limited to so many bytes: a write beyond fails as on a full disk."""
    start = f"import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room}))\n"
    env = {**os.environ, "TMPDIR": str(tmp_path), "FORENSICS_CACHE_DIR": str(tmp_path / "cache")}
    return subprocess.run([sys.executable, "-c", start + code], capture_output=True, env=env, timeout=120, check=False)


def test_a_full_disk_while_spooling(tmp_path: Path) -> None:
    """Unpacking for the screen fails with the system's reason and leaves nothing behind."""
    import gzip

    log = tmp_path / "big.log.gz"
    log.write_bytes(gzip.compress(CRASH * 2_000))
    done = _with_a_small_disk(
        f"from forensics.tui.spooling import spooled\ntry:\n    spooled({str(log)!r})\nexcept OSError as error:\n    print(error.errno)", tmp_path
    )
    assert done.stdout.strip() == b"27", done.stderr
    assert not list(tmp_path.glob("forensics-*"))


def test_a_full_disk_costs_the_cache_not_the_report(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(CRASH)
    done = _with_a_small_disk(f"from forensics.cli.main import main; raise SystemExit(main([{str(log)!r}]))", tmp_path)
    assert done.returncode == 1 and b"illegal" in done.stdout, done.stderr
    assert not [path for path in (tmp_path / "cache").iterdir() if path.suffix == ".part"]


def test_a_full_disk_keeps_the_old_report(tmp_path: Path) -> None:
    log, out = tmp_path / "a.log", tmp_path / "out.json"
    log.write_bytes(b"".join(logs.crash(f"boom {n} " + "x" * 900, n).encode() for n in range(60)))
    out.write_text("old")
    done = _with_a_small_disk(
        f"from forensics.cli.main import main; raise SystemExit(main([{str(log)!r}, '-o', {str(out)!r}, '--format', 'json']))", tmp_path, 4096
    )
    assert done.returncode == 4 and b"cannot write the report" in done.stderr and b"Traceback" not in done.stderr
    assert out.read_text() == "old" and sorted(path.name for path in tmp_path.iterdir()) == ["a.log", "cache", "out.json"]
