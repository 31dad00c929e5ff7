"""Redaction: what goes, what stays, and that the same thing is called the same everywhere."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.model import Evidence, Incident, LogSource, Rank, RankRow, Setting, Span
from forensics.redact import Redactor
from forensics.report import render

TOKEN = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWx"


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        (f"HF_TOKEN={TOKEN}", "HF_TOKEN=<secret-1>"),
        ("api_key='s3cr3t-value-1'", "api_key='<secret-1>'"),
        ("--api-key s3cr3t99", "--api-key <secret-1>"),
        ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer <secret-1>"),
        ("AWS_SECRET_ACCESS_KEY=wJal/K7MD+ENG", "AWS_SECRET_ACCESS_KEY=<secret-1>"),
        ("curl -H 'X-Auth: Bearer abcdefghijklmnop'", "curl -H 'X-Auth: Bearer <secret-1>'"),
        (f"told of {TOKEN[:12]}…", "told of <secret-1>…"),
        ("https://bob:hunter22@proxy/x", "https://<secret-1>@proxy/x"),
        ("/home/alice/train.py", "/home/user-1/train.py"),
        ("C:\\Users\\Alice\\x.py", "C:\\Users\\user-1\\x.py"),
        ("mail alice@example.org now", "mail e-mail-1 now"),
        ("s3://corp-models/llama/7b", "s3://bucket-1/…"),
        ("tcp://10.4.0.17:29500", "tcp://ip-1:29500"),
        ("fe80::1ff:fe23:4567:890a up", "ip-1 up"),
        ("mac 0c:42:a1:5e:00:11", "mac mac-1"),
        ("gpu-node-17:88121:88204 [0] NCCL INFO x", "host-1:88121:88204 [0] NCCL INFO x"),
        ("  host      : worker-3.hpc", "  host      : host-1"),
        ("from gpu-17.corp.internal", "from host-1"),
        ("prompt: 'please fix my code for me', params", "prompt: <prompt: 25 characters>, params"),
        ("input_ids=[1, 2, 3, 4]", "input_ids=<prompt: 4 token ids>"),
    ],
)
def test_what_goes(text: str, redacted: str) -> None:
    assert Redactor().text(text) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "Decode batch. #token: 4096, token usage: 0.01, gen throughput (token/s): 531.70",
        "eos_token_id=151645 max_num_batched_tokens=8192 tokenizer_path='/models/x' api_key=None",
        "cudnn 9.1.0.70, version 12.8.0.4, torch==2.11.0.1",
        "PCI 0000:3b:00.0 at 20:15:20.333 in c10::Error torch.distributed.run",
        "/home/ubuntu/x /root/y /opt/conda/lib",
        "127.0.0.1:30000 localhost 0.0.0.0",
        "bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x8x256u2_s5_sm100f",
        "Invalid token at position 12345; password is required",
        'File "/usr/lib/python3.12/secrets.py", line 3, in token_hex',
    ],
)
def test_what_stays(text: str) -> None:
    assert Redactor().text(text) == text


def test_the_same_thing_has_the_same_name() -> None:
    redactor = Redactor()
    assert redactor.text("/home/alice/a /home/bob/b /home/alice/c") == "/home/user-1/a /home/user-2/b /home/user-1/c"
    assert redactor.text("alice and bob; alice_run, not malice") == "user-1 and bob; user-1_run, not malice"
    assert redactor.summary() == "2 users replaced"
    assert Redactor().summary() == "nothing was replaced"


def private(incident: Incident) -> Incident:
    """An incident whose log tells who, where and with which token."""
    assert incident.primary is not None
    text = f"File /home/alice/train.py on gpu-17 with {TOKEN} from 10.4.0.17"
    quote = Evidence(Span(0, 5, 5), text, "alice at work")
    rank = Rank("TP1", 1, node="gpu-17")
    return replace(
        incident,
        primary=replace(incident.primary, root_message=text, message=text, evidence=(quote,), rank=rank),
        verdict=replace(incident.verdict, evidence=(quote,), explanation=text, rank=rank),
        ranks=tuple(RankRow(replace(row.rank, node="gpu-17"), row.outcome, row.activity) for row in incident.ranks),
        sources=(LogSource("/home/alice/run.log"),),
        coverage=replace(incident.coverage, sources=(LogSource("/home/alice/run.log"),)),
    )


def test_a_secret_goes_wherever_it_stands_whole_or_cut() -> None:
    told = ("--api-key=supersecret123", "supersecret123", "key superse…", "key super … et123 b")
    assert Redactor().value(told) == ("--api-key=<secret-1>", "<secret-1>", "key <secret-1>…", "key <secret-1> … <secret-1> b")


def test_a_setting_is_known_by_its_name(made: dict[str, Incident]) -> None:
    incident = next(iter(made.values()))
    setting = Setting("api_key", "supersecret123", "asked", Span(0, 1, 1))
    incident = replace(incident, facts=replace(incident.facts, settings=(setting,)))
    assert Redactor(incident).value(("api_key", "supersecret123")) == ("api_key", "<secret-1>")


@pytest.mark.parametrize("format", ["markdown", "html", "github"])
def test_public_faces_are_redacted(made: dict[str, Incident], format: str) -> None:
    text = render(private(made["crash"]), format, explain=True)
    for told in ("alice", "gpu-17", TOKEN, "10.4.0.17"):
        assert told not in text, told
    assert "user-1" in text
    assert "1 host, 1 ip, 1 secret, 1 user replaced" in text
    assert TOKEN in render(private(made["crash"]), format, explain=True, redact=False)


@pytest.mark.parametrize("format", ["console", "json", "sarif", "junit"])
def test_the_others_when_asked(made: dict[str, Incident], format: str) -> None:
    told = render(private(made["crash"]), format, width=110)
    kept = render(private(made["crash"]), format, width=110, redact=True)
    assert TOKEN in "".join(told.split()).replace("│", "")
    assert TOKEN not in "".join(kept.split()).replace("│", "")
    if format == "json":
        assert json.loads(kept)["coverage"]["sources"][0]["name"] == "/home/user-1/run.log"


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_taken(text: str) -> None:
    """No crash, and a second pass changes nothing more."""
    redactor = Redactor()
    once = redactor.text(text)
    assert redactor.text(once) == once


@pytest.mark.parametrize(
    "text", ["a" * 50_000, "prompt: '" + "x" * 50_000, ("a." * 20_000), ":".join(["ab"] * 10_000), "token=" * 8_000]
)
def test_no_pattern_explodes(text: str) -> None:
    Redactor().text(text)
