"""What a request quotes opens no window; what an engine says itself does, however deep in its line."""

from __future__ import annotations

from typing import Any

import pytest

from forensics import analyze, data
from forensics.ingest import Anchor, ReadOptions, read
from forensics.ingest.asked import asked_in, is_asked
from forensics.ingest.hits import SHALLOW, is_quoted
from forensics.ingest.marks import marks_of
from forensics.ingest.wants import Wants
from forensics.match import load_signatures
from forensics.match.subject import quotes_a_user, shows_a_user
from forensics.model.source import LogLine
from forensics.model.verdict import Status
from forensics.pipeline import anchors_for

WANTS = Wants(anchors_for(load_signatures([])))
ROWS: list[dict[str, Any]] = [row for _, content in data.folder("dialects") for row in content.get("request", ())]
PARAMETERS = ", params: SamplingParams(n=1, presence_penalty=0.0, frequency_penalty=0.0, temperature=0.7, top_p=1.0)" * 3
STACK = "".join(f"  frame {number}\n" for number in range(12))


def _is_quoted(line: str) -> bool:
    buf = bytearray(line.encode() + b"\n")
    hits = WANTS.engine.scan(buf)
    assert hits, "nothing is wanted of this line"
    return hits[0][0] > SHALLOW and is_quoted(WANTS.heads, buf, 0, 0, len(buf) - 1, hits, 0)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_what_stands_behind_a_requests_beginning_is_quoted(row: dict[str, Any]) -> None:
    assert row["examples"] and row["counterexamples"] and row["source"]
    assert row.get("inside") or row["literal"][-1] in "'\"([{", "what would end the text?"
    for line in row["examples"]:
        assert row["literal"] in line
        assert _is_quoted(line)
    for line in row["counterexamples"]:
        assert not _is_quoted(line)


def _kept(line: str) -> list[str]:
    text = "calm\n" * 60 + line + "\n" + STACK + "calm\n" * 60
    anchors = [Anchor(b"Traceback (most recent call last)", 0, 12)]
    return [kept.text.strip() for kept in read([text.encode()], anchors, ReadOptions(whole_below=0, edge_lines=0)).lines]


def test_a_quoted_traceback_keeps_its_line_only() -> None:
    asked = "[2026-11-29 20:15:20] Receive: obj=GenerateReqInput(text='what is a Traceback (most recent call last): in it'" + PARAMETERS
    assert len(_kept(asked)) == 1


@pytest.mark.parametrize(
    "line",
    [
        "[2026-11-29 20:15:20 TP0] ERROR aborted GenerateReqInput(text='a long one, of many words and more') " + "x" * 40 + " Traceback (most recent call last):",
        "[2026-11-29 20:15:20 TP0] GenerateReqInput(text='x') is invalid: Traceback (most recent call last):",
        "[2026-11-29 20:15:20 TP0] Scheduler hit an exception while it was at the batch of five: Traceback (most recent call last):" + " " * 90,
    ],
    ids=["severe", "short", "no request"],
)
def test_what_an_engine_says_itself_keeps_its_window(line: str) -> None:
    assert "frame 11" in _kept(line)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_what_a_request_quotes_is_no_mark(row: dict[str, Any]) -> None:
    """Parsers, knowledge and signatures start from marks: of a quoted failure none of them hears."""
    for line in row["examples"]:
        marks = marks_of([LogLine(0, 1, line, line)], WANTS)
        assert all(line.find(mark.decode()) < line.find(row["literal"]) for mark in marks)
    for line in row["counterexamples"]:
        assert marks_of([LogLine(0, 1, line, line)], WANTS)


#: lines that show a whole request and then tell of a failure of their own
BEHIND = (
    '{"request": {"model": "m", "prompt": "hello"}, "level": "error", "detail": "FAILED"}',
    '{"model":"an-instructed-one-of-70b-parameters","prompt":"hello","messages":[{"role":"user","content":"why?"},{"role":"assistant","content":"so: {"}],"detail":"FAILED"}',
    '{"request": {"role": "user", "content": "hello"}, "level": "warning", "detail": "FAILED"}',
    "WARNING 11-29 20:15:20 [serving.py:43] Request cmpl-71 (prompt: 'what\\'s new, and don't ask', params: SamplingParams(n=1)): FAILED",
    '2026-11-29 20:15:20 worker 7: it was at generate(prompt="is that so?", max_tokens=16): FAILED',
    "[2026-11-29 20:15:20 TP0] failed at obj=GenerateReqInput(rid='9f0c', text='a :) b', sampling_params={'n': 1}): FAILED",
    'time=2026-11-29T20:15:20.000Z level=WARN source=routes.go:1500 msg="chat request" prompt="say \\"hi\\"" err="FAILED"',
    "2026-11-29 20:15:20 worker: {'messages': [{'role': 'user', 'content': 'hello'}]} ended with FAILED",
)


@pytest.mark.parametrize("line", BEHIND, ids=range(len(BEHIND)))
def test_what_stands_behind_a_whole_request_is_the_writers_own(line: str) -> None:
    own = line.replace("FAILED", "CUDA error: an illegal memory access was encountered")
    assert b"CUDA error" in marks_of([LogLine(0, 1, own, own)], WANTS)
    assert not _is_quoted(own)
    assert analyze([(own + "\n").encode()]).status is not Status.HEALTHY
    for calm in ("hello", "what\\'s", "is that so", "a :)", "why?"):
        quoted = line.replace("FAILED", "done").replace(calm, "why CUDA error: an illegal memory access was encountered")
        if quoted != line.replace("FAILED", "done"):
            assert b"CUDA error" not in marks_of([LogLine(0, 1, quoted, quoted)], WANTS)


def test_requests_without_end_cost_no_more_than_their_line() -> None:
    for line in (b'{"role": "user"},' * 20_000, b'{"role": "user", "content": "' + b"\\" * 200_000, b"ReqInput(" * 20_000, b"prompt: '" * 20_000, b"prompt: 'a'b" * 20_000):
        assert asked_in(line, len(line))[0][0] <= 17
        assert is_asked(line, 0, len(line)) == (asked_in(line, len(line))[-1][1] == len(line))


ASKED = "time=2026-11-29T20:15:{n:02d}.000Z level=DEBUG source=routes.go:1500 msg=\"chat request\" images=0 prompt=\"what is it: {text}\"\n"
FAILURES = (
    "Out of memory: Killed process 4711 (python) total-vm:1kB, anon-rss:1kB",
    "NVRM: Xid (PCI:0000:3b:00): 79, pid=123, GPU has fallen off the bus.",
    "Segmentation fault (core dumped)",
    "[rank3]:[E1129 20:15:34.123 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8)",
)


@pytest.mark.parametrize("failure", FAILURES, ids=lambda text: text[:20])
def test_a_server_that_is_asked_about_failures_has_none(failure: str) -> None:
    log = "".join(ASKED.format(n=n, text=failure) for n in range(9))
    assert analyze([log.encode()]).status is Status.HEALTHY
    assert analyze([(log + failure + "\n").encode()]).status is not Status.HEALTHY


@pytest.mark.parametrize("asks", ['INFO chat: user asked: "{}"', "INFO 2026-11-29 20:15:20 server.py:8] query=\"{}\"", "answering question=\"{}\" n=1"])
@pytest.mark.parametrize("failure", ["CUDA error: an illegal memory access was encountered", "terminate called after throwing an instance of 'c10::Error'", *FAILURES[:2]], ids=lambda text: text[:20])
def test_a_question_in_quotes_is_nobodys_failure(failure: str, asks: str) -> None:
    calm = '10.0.0.7:40 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n' * 4
    asked = asks.format(failure)
    assert analyze([(calm + asked + "\n" + calm).encode()]).status is Status.HEALTHY
    own = asks.format("why?") + " ERROR " + failure
    assert analyze([(calm + own + "\n" + calm).encode()]).status is not Status.HEALTHY


@pytest.mark.parametrize("is_severe", [True, False])
def test_of_many_requests_that_quote_alike_few_are_kept_and_a_failure_keeps_its_window(is_severe: bool) -> None:
    """However many requests quote it: a line that complains does not quote, nor does what stands behind a whole request."""
    asked = "[2026-11-29 20:15:20] Receive: obj=GenerateReqInput(text='what is a Traceback (most recent call last): in it'" + PARAMETERS
    own = asked.replace("] Receive", "] ERROR failed").replace(": in it'" + PARAMETERS, ":")
    if not is_severe:
        own = asked.replace("what is a Traceback (most recent call last): in it", "x" * 150) + ") ended by Traceback (most recent call last):"
    text = "calm\n" * 60 + (asked + "\n") * 400 + own + "\n" + STACK + "calm\n" * 60
    anchors = [Anchor(b"Traceback (most recent call last)", 0, 12)]
    intake = read([text.encode()], anchors, ReadOptions(whole_below=0, edge_lines=0))
    kept = [line.text.strip() for line in intake.lines]
    assert sum("GenerateReqInput" in line for line in kept) + sum(intake.repeats.values()) == 401
    assert sum("Receive" in line for line in kept) < 40
    assert "frame 11" in kept


OTHERS: list[dict[str, Any]] = [row for kind in ("field", "mark") for _, content in data.folder("dialects") for row in content.get(kind, ())]


@pytest.mark.parametrize("row", OTHERS, ids=lambda row: row["id"])
def test_what_stands_behind_a_field_or_a_mark_was_written_by_somebody(row: dict[str, Any]) -> None:
    assert row["examples"] and row["counterexamples"]
    for line in row["examples"]:
        assert shows_a_user(line) and quotes_a_user(line, line.find(_failure_in(line)) + 1)
    for line in row["counterexamples"]:
        assert not quotes_a_user(line, line.find(_failure_in(line)) + 1)


def _failure_in(line: str) -> str:
    return next(text for text in ("CUDA error", "Segmentation fault") if text in line)
