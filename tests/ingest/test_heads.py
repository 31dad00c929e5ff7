"""Of a literal a head is searched, and nothing is called found that is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import data
from forensics.ingest import ReadOptions, heads, read
from forensics.ingest.anchors import Anchor
from forensics.ingest.heads import SHORTEST, head_of
from forensics.ingest.marks import marks_of
from forensics.ingest.wants import Wants
from forensics.match import load_signatures
from forensics.model.source import LogLine
from forensics.pipeline import anchors_for

FORMS = data.table("search/forms")["form"]


def _line(number: int, text: str) -> LogLine:
    return LogLine(0, number, text, text)


def test_every_literal_of_the_package_is_searched() -> None:
    anchors = [anchor for anchor in anchors_for(load_signatures([])) if anchor.literal]
    wants = Wants(anchors).heads
    instead = {row["literal"].encode() for row in FORMS if "instead" in row}
    searched = [(head, wants.literals[which]) for which, head in enumerate(wants.heads)]
    assert {literal for _, literals in searched for literal, _, _ in literals} == {anchor.literal for anchor in anchors}
    for head, literals in searched:
        assert all(head in literal or literal in head or literal in instead for literal, _, _ in literals)
        assert len(head) >= min(SHORTEST, *(len(literal) for literal, _, _ in literals))
        for literal, before, after in literals:
            wanted = [anchor for anchor in anchors if anchor.literal == literal]
            assert before >= min(200, max(anchor.before for anchor in wanted))
            assert after >= min(400, max(anchor.after for anchor in wanted))
            assert wants.most_before >= before and wants.most_after >= after


def test_what_stands_in_each_frame_of_a_stack_is_searched_for_no_other_literal() -> None:
    """A frame of a stack that was seen before is passed over: nothing else may be told by it."""
    wants = Wants(anchors_for(load_signatures([]))).heads
    for which, is_frame in enumerate(wants.is_frame):
        assert not is_frame or {literal for literal, _, after in wants.literals[which] if after} <= {b'", line '}


@pytest.mark.parametrize(
    ("literal", "head"),
    [
        (b"CUDA error: ", b"CUDA error: "),
        (b"short", b"short"),
        (b"no kernel image is available for execution", b"no kernel image is available for execu"),
        (b"Timeout at NCCL work: 3", b"Timeout at NCCL work: 3"),
    ],
)
def test_a_head_ends_where_prose_seldom_does(literal: bytes, head: bytes) -> None:
    assert head_of(literal) == head


def test_a_head_alone_is_no_mark() -> None:
    whole = b"no kernel image is available for execution on the device"
    other = b"no kernel image is available for execution of the graph"
    wants = Wants([Anchor(whole), Anchor(other), Anchor(b"device")])
    lines = [_line(1, "no kernel image is available for execution by hand"), _line(2, f"x {whole.decode()}"), _line(3, other.decode())]
    assert marks_of(lines, wants) == {whole: [1], other: [2], b"device": [1]}


@pytest.mark.parametrize("row", FORMS, ids=[row["literal"] for row in FORMS])
def test_a_short_literal_is_searched_with_what_stands_around_it(row: dict[str, str]) -> None:
    literal = row["literal"].encode()
    wants = Wants([Anchor(literal)])
    assert "instead" in row or min(map(len, wants.heads.heads)) > len(literal)
    example, counterexample = row["example"].encode(), row["counterexample"].encode()
    assert literal in example and literal in counterexample
    assert wants.engine.scan(example) and not wants.engine.scan(counterexample)
    assert marks_of([_line(1, row["example"])], wants) == {literal: [0]}


def test_a_users_own_literal_is_found_wherever_it_stands(tmp_path: Path) -> None:
    """What is known of what stands around a literal is known of those of the package."""
    own = [row for row in FORMS if len(row["literal"].encode()) >= 8]
    rows = [
        f"""[[signature]]
id = "own.row{number}"
title = "t"
role = "confirmation"
why = "w"
[signature.match]
literals = ['{row["literal"]}']
[[signature.examples]]
text = '{row["counterexample"]}'
"""
        for number, row in enumerate(own)
    ]
    (tmp_path / "own.toml").write_text("\n".join(rows))
    wants = Wants(anchors_for(load_signatures([str(tmp_path)])))
    assert own and all(wants.engine.scan(row["counterexample"].encode()) for row in own)
    assert not any(Wants(anchors_for(load_signatures([]))).engine.scan(row["counterexample"].encode()) for row in own)


@pytest.mark.parametrize(
    ("literal", "line"),
    [
        (b"Error(", "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x9d (0x7f10 in /usr/lib/libc10.so)"),
        (b"Error(", "called unwrap on Json(Error(EOF))"),
        (b"] [E] ", "[11/29/2026-20:15:20] [TRT] [E] IExecutionContext: no memory"),
    ],
)
def test_a_form_leaves_out_nothing_that_a_small_log_is_searched_for(literal: bytes, line: str) -> None:
    """What a log says must not depend on what was read before it: on which search there is already."""
    wants = Wants([Anchor(literal)])
    small = marks_of([_line(1, line)], wants)
    assert wants.engine and marks_of([_line(1, line)], wants) == small == {literal: [0]}


def test_a_form_belongs_to_a_literal_that_somebody_wants() -> None:
    wanted = {anchor.literal for anchor in anchors_for(load_signatures([]))}
    assert not [row["literal"] for row in FORMS if row["literal"].encode() not in wanted]


def test_what_is_chosen_for_a_literal_stands_in_it() -> None:
    rows = data.table("search/heads")["heads"]
    wanted = {anchor.literal for anchor in anchors_for(load_signatures([]))}
    assert len(rows) > 1_000
    for literal, part in rows.items():
        head = literal.encode()[:part] if isinstance(part, int) else part.encode()
        assert head in literal.encode() and head != literal.encode()
        assert len(head) >= SHORTEST or head in wanted


def test_a_literal_that_shares_what_is_searched_keeps_its_own_window(monkeypatch: pytest.MonkeyPatch) -> None:
    wide, narrow = Anchor(b"bus fault: of all", 0, 9), Anchor(b"bus fault: ", 0, 1)
    monkeypatch.setattr(heads, "chosen_heads", lambda: {wide.literal: narrow.literal})
    assert Wants([wide, narrow]).heads.heads == [b"bus fault: "]
    calm = "calm\n" * 20
    assert len(_kept(f"{calm}bus fault: of one\n{calm}", wide, narrow)) == 2
    assert len(_kept(f"{calm}bus fault: of all\n{calm}", wide, narrow)) == 10


@pytest.mark.parametrize("kind", ["hyperscan", "ahocorasick", "find"])
def test_a_literal_of_any_length_and_content_is_searched(kind: str) -> None:
    """hyperscan takes no pattern of more than 16,000 bytes, and none that begins with NUL."""
    long = b"the end of it " * 2_000 + b"all"
    wants = Wants([Anchor(long), Anchor(b"\0 begins"), Anchor(b"begins\0goes on"), Anchor(b"e\n f"), Anchor(b"begins")], kind)
    lines = [_line(1, f"begins {long.decode()}"), _line(2, long[:-1].decode()), _line(3, "goes on")]
    assert marks_of(lines, wants) == {long: [0], b"begins": [0]}


TRACE = Anchor(b"Traceback (most recent call last)", 1, 30)
ENDS = ReadOptions(whole_below=0, edge_lines=0)


def _kept(text: str, *anchors: Anchor) -> list[str]:
    return [line.text for line in read([text.encode()], anchors, ENDS).lines]


@pytest.mark.parametrize("earlier", ["", "no kernel image is available for execution here, "])
def test_what_ends_a_long_line_is_no_quotation_although_its_head_does_not_end_it(earlier: str) -> None:
    """A header glued to progress bars, or behind a long message."""
    stack = "".join(f"  frame {number}\n" for number in range(8))
    calm = "calm\n" * 50
    anchors = (TRACE, Anchor(b"no kernel image is available for execution"))
    kept = _kept(f"{calm}{'step of many ' * 30}{earlier}Traceback (most recent call last):\n{stack}{calm}", *anchors)
    assert [text.strip() for text in kept if "frame" in text] == [f"frame {number}" for number in range(8)]
    quoted = _kept(f"{calm}{'step of many ' * 30}{earlier}Traceback (most recent call last): was his question\n{stack}{calm}", *anchors)
    assert len(quoted) == 1 and "his question" in quoted[0]


def test_what_follows_a_literal_tells_copies_apart_not_what_follows_its_head() -> None:
    """Copies that differ in a number behind the literal only: four more of them are kept than of copies that are the same."""
    literal = "Received a dump signal due to a collective timeout of group"
    assert len(head_of(literal.encode())) + 24 < len(literal)
    counted = [
        len([text for text in _kept("".join(f"{literal} {n if differs else 7}\ncalm\n" for n in range(60)), Anchor(literal.encode())) if "dump" in text])
        for differs in (True, False)
    ]
    assert counted[0] == counted[1] + 3


def test_frames_of_woven_stacks_are_kept_where_each_of_them_was_seen_before() -> None:
    """What repeats is passed over as far as its frames were seen often; a second rank's stack between a known one's lines is new."""

    def stack(name: str, frames: int = 6) -> list[str]:
        return [f'  File "/opt/lib/python3.11/{name}_{chr(97 + n)}.py", line 7, in {name}_{chr(97 + n)}' for n in range(frames)]

    def crash(frames: list[str]) -> list[str]:
        return ["Traceback (most recent call last):", *frames, "RuntimeError: boom", "calm"]

    first, second = stack("north"), stack("south")
    woven = [frame for both in zip(first, second, strict=True) for frame in both]
    lines = [*crash(first) * 40, *crash(second), *crash(first) * 40, *crash(woven), *crash(first) * 400]
    start = 81 * 9
    assert lines[start + 1 : start + 13] == woven
    frame = Anchor(b'", line ', 2, 80)
    kept = {line.number for line in read(["\n".join(lines).encode()], (TRACE, frame, Anchor(b"/python3.")), ENDS).lines}
    assert {start + 1 + n + 1 for n in range(12)} <= kept
    assert len(kept) < len(lines) / 3
