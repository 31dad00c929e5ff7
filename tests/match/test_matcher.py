"""What a signature matches: events before lines, never source code or prompts, folded over ranks, with its evidence."""

from __future__ import annotations

from typing import Any

import pytest

from forensics.ingest import read
from forensics.match import anchors, match
from forensics.match.conditions import Context, holds
from forensics.match.engine import _Taken
from forensics.match.subject import Joined, Subject
from forensics.match.trial import facts_from, from_entry, intake_of
from forensics.match.versions import satisfies
from forensics.model.source import Span
from forensics.model.verdict import Finding
from forensics.parse import anchors as parse_anchors
from forensics.parse import parse


def entry(**match_keys: Any) -> dict[str, Any]:
    return {"id": "x.y", "title": "t", "role": "root", "category": "unknown", "why": "w", "match": match_keys}


def found(text: str, given: dict[str, Any] | None = None, **match_keys: Any) -> list[Finding]:
    intake = intake_of(text)
    return [f for f in match(intake, parse(intake), facts_from(given or {}), [from_entry(entry(**match_keys))]) if f.id == "x.y"]


TRACEBACK = '''\
Traceback (most recent call last):
  File "/srv/app/run.py", line 7, in start
    raise ValueError("the flux capacitor is empty")
ValueError: the flux capacitor is full
'''


def test_source_code_of_a_traceback_is_not_what_the_program_said() -> None:
    assert not found(TRACEBACK, literals=["flux capacitor is empty"])
    assert found(TRACEBACK, literals=["flux capacitor is full"])


@pytest.mark.parametrize(("path", "count"), [("/srv/app/run.py", 1), (r"D:\srv\app\run.py", 1), (r"D:\srv\my_app\run.py", 0)])
def test_a_rule_names_files_as_every_system_does(path: str, count: int) -> None:
    assert len(found(TRACEBACK.replace("/srv/app/run.py", path), frame=r"/app/run\.py:start$", literals=["capacitor"])) == count


def test_an_event_and_its_own_lines_count_once() -> None:
    (one,) = found(TRACEBACK, literals=["flux capacitor is full"])
    assert one.count == 1
    assert one.events
    assert one.evidence[0].quote == "ValueError: the flux capacitor is full"
    assert one.evidence[0].span.first_line == 4


@pytest.mark.parametrize(("writer", "line", "covered"), [("TP0", "TP0", True), ("TP0", "TP1", False), ("TP0", "", True), ("", "TP1", True)])
def test_a_line_lies_in_an_event_of_its_own_writer_or_of_an_unknown_one(writer: str, line: str, covered: bool) -> None:
    def subject(stream: str, first: int, last: int) -> Subject:
        return Subject("ValueError: full", "message", Span(0, first, last), stream=stream)

    taken = _Taken([subject("other", 40, 44), subject(writer, 3, 9)])
    assert taken.covers(subject(line, 5, 5)) is covered
    assert not taken.covers(subject(line, 12, 12))


def test_a_line_that_stands_above_a_traceback_too_is_quoted_once() -> None:
    """It is an event of its own, and the traceback's heading."""
    row = "E0512 10:00:4{0} 139 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: {0} (pid: 401{0}) of binary: /usr/bin/python\n"
    (one,) = found(row.format(0) + row.format(1) + TRACEBACK, literals=["failed (exitcode: "])
    assert len(one.events) == 3
    assert [proof.span.first_line for proof in one.evidence] == [1, 2]
    assert one.count == 2


@pytest.mark.parametrize(
    "line",
    [
        "INFO 11-29 20:10:01 [logger.py:43] Received request c-1: prompt: 'the flux capacitor is full', params: x",
        "INFO 11-29 20:10:01 server.py:43] query='is it true that the flux capacitor is full' n=1",
        "[2026-11-29 20:10:03] Receive: obj=GenerateReqInput(rid='c1', text='the flux capacitor is full')",
        '{"messages": [{"role": "user", "content": "the flux capacitor is full"}]}',
    ],
)
def test_quoted_prompts_do_not_match(line: str) -> None:
    assert not found(line, literals=["flux capacitor is full"])
    # what stands behind the whole request is the engine's own
    assert found(line + " ended: the flux capacitor is full", literals=["flux capacitor is full"])


def test_ranks_fold_into_one_finding(tmp_path: Any) -> None:
    log = tmp_path / "run.log"
    log.write_text("".join(f"[2026-11-29 20:11:0{n} TP{n}] flux capacitor overflow at {n} gigawatts\n" for n in range(3)))
    one = from_entry(entry(literals=["flux capacitor overflow"], pattern=r"at (?P<power>\d) gigawatts"))
    intake = read([str(log)], [*parse_anchors(), *anchors([one])])
    (finding,) = match(intake, parse(intake), facts_from({}), [one])
    assert [rank.label for rank in finding.ranks] == ["TP0", "TP1", "TP2"]
    assert finding.count == 3
    assert finding.captures == {"power": "0"}
    assert [span.first_line for span in finding.spans] == [1, 2, 3]
    assert [e.quote for e in finding.evidence] == log.read_text().splitlines()


def test_every_literal_and_one_of_the_alternatives_is_needed() -> None:
    keys: dict[str, Any] = {"literals": ["flux capacitor", "overflow"], "any_literals": ["gigawatts", "megawatts"]}
    assert found("flux capacitor overflow: 3 gigawatts", **keys)
    assert not found("flux capacitor: 3 gigawatts", **keys)
    assert not found("flux capacitor overflow: 3 kilowatts", **keys)


def test_nearby_literals_are_looked_for_in_the_window_only() -> None:
    keys: dict[str, Any] = {"literals": ["flux capacitor"], "nearby": ["current device"], "window": 2}
    assert found("flux capacitor\na\ncurrent device: 1", **keys)
    assert not found("flux capacitor\na\nb\nc\ncurrent device: 1", **keys)


def test_exception_type_fits_whole_or_by_its_last_part() -> None:
    assert found("my.pkg.FluxError: capacitor is full", literals=["capacitor is full"], exception="FluxError")
    assert not found("my.pkg.OtherError: capacitor is full", literals=["capacitor is full"], exception="FluxError")


def test_frames_are_asked_of_events_only() -> None:
    keys: dict[str, Any] = {"literals": ["flux capacitor is full"], "frame": r"run\.py:start"}
    assert found(TRACEBACK, **keys)
    assert not found("ValueError: the flux capacitor is full", **keys)


def test_a_users_runaway_pattern_is_stopped() -> None:
    one = from_entry(entry(literals=["aaaaaaaaaa"], pattern=r"(a+)+$"), trusted=False)
    intake = intake_of("a" * 4000 + "b")
    assert match(intake, [], facts_from({}), [one]) == []
    assert "x.y gave up: TimeoutError: its pattern took more than 0.1 s" in intake.notes[0].text


def test_a_failing_signature_leaves_a_note_and_the_others_match() -> None:
    bad = from_entry({**entry(literals=["flux capacitor"]), "role": "no such role"})
    good = from_entry({**entry(literals=["flux capacitor"]), "id": "x.good"})
    intake = intake_of("flux capacitor")
    assert [f.id for f in match(intake, [], facts_from({}), [bad, good])] == ["x.good"]
    assert "x.y" in intake.notes[0].text


@pytest.mark.parametrize(
    ("table", "given", "answer"),
    [
        ({"sm": ["sm_12x"]}, {"gpu": "sm_121"}, True),
        ({"sm": ["sm_12x"]}, {"gpu": "sm_100"}, False),
        ({"sm": ["sm_12x"]}, {}, None),
        ({"sm": ["gfx9*"]}, {"gpu": "gfx942"}, True),
        ({"vendor": "amd"}, {"gpu": "gfx1100"}, True),
        ({"engine": ["vllm"]}, {"engine": "sglang"}, False),
        ({"versions": {"flashinfer": ">=0.6.7,<0.6.16"}}, {"versions": {"flashinfer": "0.6.9"}}, True),
        ({"versions": {"flashinfer": "<0.6.16"}}, {"versions": {"flashinfer": "0.6.16"}}, False),
        ({"versions": {"flashinfer": "<0.6.16"}}, {}, None),
        ({"settings": {"quantization": "None|auto"}}, {"settings": {"quantization": "None"}}, True),
        ({"sm": ["sm_90"], "engine": ["vllm"]}, {"gpu": "sm_90"}, None),
        ({"sm": ["sm_100"], "engine": ["vllm"]}, {"gpu": "sm_90"}, False),
    ],
)
def test_conditions_are_true_false_or_not_known(table: dict[str, Any], given: dict[str, Any], answer: bool | None) -> None:
    assert holds(table, facts_from(given), Context()) is answer


@pytest.mark.parametrize(
    ("target", "gpu", "fits"), [("sm100f", "sm_120", True), ("sm100f", "sm_103", False), ("sm_90a", "sm_100", True)]
)
def test_cannot_run_asks_the_cubin_rules(target: str, gpu: str, fits: bool) -> None:
    context = Context(captures={"arch": target})
    assert holds({"cannot_run": "arch"}, facts_from({"gpu": gpu}), context) is fits
    assert holds({"cannot_run": "arch"}, facts_from({}), context) is None


def test_versions_that_cannot_be_read_decide_nothing() -> None:
    assert satisfies("main", "<1.0") is None
    assert satisfies("1.0", "fresh") is None
    assert satisfies("2.11.0+cu130", ">=2.11,<2.12") is True


def test_of_very_many_hits_the_last_events_are_quoted_too() -> None:
    (finding,) = found((TRACEBACK + "at sea\n") * 12, literals=["flux capacitor is full"])
    assert [one.span.last_line for one in finding.evidence] == [4, 9, 14, 19, 24, 49, 54, 59]
    (fewer,) = found((TRACEBACK + "at sea\n") * 8, literals=["flux capacitor is full"])
    assert [one.span.last_line for one in fewer.evidence] == [4, 9, 14, 19, 24, 29, 34, 39]


def test_texts_that_differ_in_digits_are_searched_as_one_and_still_told_apart() -> None:
    texts = ["exit code 139 of rank 7", "exit code 137 of rank 9", "all is well", "exit code 139 of rank 12"]
    joined = Joined(texts, "\0")
    assert joined.holding("code 139") == [0, 1, 3] and joined.holding("rank 12") == [3]  # those that may hold it
    assert joined.holding("code", word="code") == [0, 1, 3] and joined.holding("code", word="rank7") == []
    assert joined.holding("code", most=2) == [0, 1] and Joined([], "\0").holding("code") == []
    crashed = TRACEBACK.replace("the flux capacitor is full", "worker 3 ended with code 137")
    assert found(crashed, literals=["code 137"]) and not found(crashed, literals=["code 139"])
