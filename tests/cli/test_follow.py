"""`--follow`: failures as they come, the verdict at rest, the report at the end."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from forensics.cli.main import main
from forensics.cli.ticker import Ticker
from forensics.match import load_signatures
from forensics.model.source import LogLine, Rank

CALM = "[2026-11-29 20:15:1{n} TP0] Decode batch. #running-req: 3, #token: 900, gen throughput (token/s): 41.2, #queue-req: 0\n"
OOM = "[2026-11-29 20:15:20 TP1] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 1 has a total capacity of 79.11 GiB\n"
FORENSICS = [sys.executable, "-m", "forensics"]


def _take_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def _running(*words: str, **how: Any) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([*FORENSICS, *words], text=True, stdout=subprocess.PIPE, preexec_fn=_take_interrupts, **how) as child:
        try:
            yield child
        finally:
            child.kill()


def _line_with(child: subprocess.Popen[str], word: str) -> str:
    assert child.stdout is not None
    return next((line for line in child.stdout if word in line), "")


def test_a_file_is_watched_until_ctrl_c(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("".join(CALM.format(n=n) for n in range(5)))
    with _running("--follow", str(log)) as child:
        assert "Nothing failed" in _line_with(child, "healthy")
        with log.open("a") as file:
            file.write(OOM)
        assert _line_with(child, "[torch.cuda-out-of-memory]").startswith("20:15:20  TP1  line 6: torch.OutOfMemoryError")
        assert "oom_gpu" in _line_with(child, "crashed")
        child.send_signal(signal.SIGINT)
        rest = child.stdout.read() if child.stdout is not None else ""
        assert "CRASHED" in rest and "server.log:6" in rest
        assert child.wait(60) == 1


def test_a_pipe_tells_before_it_ends_and_reports_what_one_pass_reports(tmp_path: Path) -> None:
    with _running("--follow", stdin=subprocess.PIPE) as child:
        assert child.stdin is not None and child.stdout is not None
        child.stdin.write("".join(CALM.format(n=n) for n in range(8)) + OOM)
        child.stdin.flush()
        assert "TP1  line 9:" in _line_with(child, "[torch.cuda-out-of-memory]")
        child.stdin.close()
        followed = child.stdout.read()
        assert child.wait(60) == 1
    once = subprocess.run(FORENSICS, input="".join(CALM.format(n=n) for n in range(8)) + OOM, text=True, capture_output=True, check=False)
    assert followed == once.stdout


def test_ctrl_c_ends_a_pipe_that_is_followed_with_the_report(tmp_path: Path) -> None:
    with _running("--follow", stdin=subprocess.PIPE) as child:
        assert child.stdin is not None and child.stdout is not None
        child.stdin.write("".join(CALM.format(n=n) for n in range(8)) + OOM)
        child.stdin.flush()
        assert "TP1  line 9:" in _line_with(child, "[torch.cuda-out-of-memory]")
        child.send_signal(signal.SIGINT)  # the writer keeps the pipe open
        assert "oom_gpu" in _line_with(child, "CRASHED")
        child.stdout.read()
        assert child.wait(60) == 1


def test_a_report_for_programs_stays_clean(tmp_path: Path) -> None:
    log = "".join(CALM.format(n=n) for n in range(8)) + OOM
    done = subprocess.run([*FORENSICS, "--follow", "--format", "json"], input=log, text=True, capture_output=True, check=False)
    assert json.loads(done.stdout)["verdict"]["category"] == "oom_gpu"
    assert "[torch.cuda-out-of-memory]" in done.stderr


def test_at_a_terminal_a_pipe_tells_without_being_asked() -> None:
    ours, theirs = pty.openpty()
    with _running(stdin=subprocess.PIPE, stderr=theirs) as child:
        os.close(theirs)
        assert child.stdin is not None
        child.stdin.write("".join(CALM.format(n=n) for n in range(8)) + OOM)
        child.stdin.flush()
        said = b""
        while b"[torch.cuda-out-of-memory]" not in said:
            said += os.read(ours, 4096)
        child.stdin.close()
        assert b"line 9:" in said and child.wait(60) == 1
    os.close(ours)


SECRET = "hf_" + "aB3dE6gH9jK2mN5pQ8sT" * 2
TOLD = OOM.rstrip() + f"; /home/alice/run.py HF_TOKEN={SECRET}\n"


@pytest.mark.parametrize("words", [["--redact"], ["--format", "github"]])
def test_what_is_told_is_redacted_where_the_report_is(tmp_path: Path, words: list[str]) -> None:
    log = tmp_path / "server.log"
    log.write_text(TOLD)
    with _running("--follow", str(log), *words, stderr=subprocess.STDOUT) as child:
        said = _line_with(child, "[torch.cuda-out-of-memory]") + _line_with(child, "crashed")
        child.send_signal(signal.SIGINT)
        said += child.stdout.read() if child.stdout is not None else ""
    assert said.startswith("20:15:20  TP1  line 1: torch.OutOfMemoryError") and SECRET[:12] not in said and "alice" not in said


def test_half_a_secret_is_not_told() -> None:
    said: list[str] = []
    text = OOM.split("] ", 1)[1].rstrip() + " token="
    Ticker(load_signatures(), said.append, hide=True).told([_line(3, text.ljust(150, ".") + f" HF_TOKEN={SECRET}", "TP1")])
    assert len(said) == 1 and "hf_" not in said[0]


def test_a_named_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with _running("--follow", str(pipe)) as child, pipe.open("w") as writer:
        writer.write("".join(CALM.format(n=n) for n in range(5)) + OOM)
        writer.flush()
        assert "line 6:" in _line_with(child, "[torch.cuda-out-of-memory]")
        assert "oom_gpu" in _line_with(child, "crashed")
        writer.close()
        assert "CRASHED" in _line_with(child, "CRASHED") and child.wait(60) == 1


@pytest.mark.parametrize("words", [["a.log", "b.log"], ["."]])
def test_several_inputs_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--follow", *words]) == 2
    assert "--follow takes one file, or standard input" in capsys.readouterr().err


def _line(number: int, text: str, rank: str) -> LogLine:
    return LogLine(0, number, text, text, rank, Rank(rank))


def test_a_known_failure_is_told_once_for_each_rank() -> None:
    said: list[str] = []
    ticker = Ticker(load_signatures(), said.append)
    text = OOM.split("] ", 1)[1].rstrip()
    ticker.told([_line(3, text, "TP1"), _line(4, text, "TP1"), _line(5, text, "TP2")])
    ticker.told([_line(9, text, "TP2")])
    assert [row.split(":")[0] for row in said] == ["TP1  line 3", "TP2  line 5"]


def test_what_no_signature_knows_is_left_to_the_report() -> None:
    said: list[str] = []
    Ticker(load_signatures(), said.append).told([_line(3, "INFO: error budget is fine", "TP1")])
    assert said == []


def test_nothing_a_log_says_moves_the_terminal() -> None:
    said: list[str] = []
    text = OOM.split("] ", 1)[1].rstrip() + "\x1b]52;c;aGk=\x07"
    Ticker(load_signatures(), said.append).told([_line(3, text, "TP\x1b[2J1")])
    assert len(said) == 1 and "\x1b" not in said[0] and "\x07" not in said[0]


def test_what_is_told_is_redacted_where_that_is_asked_for() -> None:
    log = "".join(CALM.format(n=n) for n in range(8)) + OOM.replace("CUDA out", "/home/alice/run.py: CUDA out")
    done = subprocess.run([*FORENSICS, "--follow", "--redact"], input=log, text=True, capture_output=True, check=False)
    assert "[torch.cuda-out-of-memory]" in done.stdout and "alice" not in done.stdout + done.stderr


def test_ctrl_c_at_a_terminal_reports_and_the_jobs_last_words_are_in_it() -> None:
    ours, theirs = pty.openpty()
    with _running(stdin=subprocess.PIPE, stderr=theirs) as child:
        os.close(theirs)
        assert child.stdin is not None and child.stdout is not None
        child.stdin.write("".join(CALM.format(n=n) for n in range(8)) + OOM)
        child.stdin.flush()
        said = b""
        while b"[torch.cuda-out-of-memory]" not in said:
            said += os.read(ours, 4096)
        child.send_signal(signal.SIGINT)
        child.stdin.write(OOM.replace("TP1", "TP3").replace("20:15:20", "20:15:21"))  # a rank that dies of the same Ctrl-C
        child.stdin.close()
        report = child.stdout.read()
        assert child.wait(60) == 1 and "TP1 first" in report and "TP3" in report
    os.close(ours)


def test_a_rank_that_has_not_come_yet_is_waited_for(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(OOM.replace("TP1", "TP2"))
    with _running("--follow", "--rank", "TP1", str(log)) as child:
        with log.open("a") as file:
            file.write(CALM.format(n=1) * 3)
            file.flush()
            time.sleep(0.5)  # the log comes to rest without a line of TP1
            file.write(OOM)
        assert "  TP1  line 5:" in _line_with(child, "[torch.cuda-out-of-memory]") and _line_with(child, "crashed")
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 1


def test_a_file_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    with _running("--follow", str(log), stderr=subprocess.PIPE) as child:
        assert child.stderr is not None and "is not there yet" in child.stderr.readline()
        log.write_text(OOM)
        assert "line 1:" in _line_with(child, "[torch.cuda-out-of-memory]") and _line_with(child, "crashed")
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 1


def test_rotation_is_said_in_the_report(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(CALM.format(n=1) * 3)
    with _running("--follow", "--format", "json", str(log), stderr=subprocess.PIPE) as child:
        assert child.stderr is not None and "Nothing failed" in child.stderr.readline()
        log.rename(tmp_path / "server.log.1")
        log.write_text(OOM)
        assert any("line 4:" in line for line in iter(child.stderr.readline, ""))
        assert any("crashed" in line for line in iter(child.stderr.readline, ""))
        child.send_signal(signal.SIGINT)
        report = json.loads(child.stdout.read() if child.stdout is not None else "")
    assert any("rotated or truncated 1 time" in note["text"] for note in report["coverage"]["notes"])
