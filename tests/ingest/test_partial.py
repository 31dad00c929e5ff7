"""Lines that a container runtime wrote in parts."""

from __future__ import annotations

from forensics.ingest import from_text
from tests.verdict.conftest import Told, primary, told

__all__ = ["told"]


def _cri(*parts: tuple[str, str, str]) -> str:
    return "".join(f"2026-11-29T20:15:20.{n:09d}Z {stream} {tag} {text}\n" for n, (stream, tag, text) in enumerate(parts))


def _lines(text: str) -> list[tuple[int, str]]:
    return [(line.number, line.text) for line in from_text(text).lines]


def test_parts_are_one_line_under_the_first_ones_number(told: Told) -> None:
    full = ("stderr", "F", "starting"), ("stderr", "P", "RuntimeError: CUDA out of mem"), ("stderr", "P", "ory. Tried to allo"), ("stderr", "F", "cate 2.00 GiB")
    text = _cri(*full, ("stderr", "F", "  bye"))
    assert _lines(text) == [(1, "starting"), (2, "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"), (5, "  bye")]
    assert primary(told(text)).message.endswith("out of memory. Tried to allocate 2.00 GiB")


def test_a_part_keeps_the_blanks_that_it_begins_with() -> None:
    assert _lines(_cri(("stdout", "P", "a"), ("stdout", "F", "  b"))) == [(1, "a  b")]


def test_a_part_that_the_log_ends_in_stays() -> None:
    assert _lines(_cri(("stdout", "F", "a"), ("stdout", "P", "b"))) == [(1, "a"), (2, "b")]
    assert _lines(_cri(("stdout", "P", "a")) + "torn\n") == [(1, "a"), (2, "torn")]


def test_what_only_looks_so_is_left_alone() -> None:
    text = "time stderr P is full\n" + _cri(("stdout", "P", "a"), ("stdout", "F", "b"))
    assert len(_lines(text)) == 3


def test_a_line_of_very_many_parts_is_cut() -> None:
    text = _cri(*[("stdout", "P", "x")] * 200, ("stdout", "F", "y"))
    assert [len(text) for _, text in _lines(text)] == [64, 64, 64, 9]


def test_what_srun_read_in_two_goes_is_one_line() -> None:
    whole = "RuntimeError: /src/ops/fused_kernel.cu:41 in function f: it refuses"
    text = f"0: [rank1]: {whole}\n0: [rank2]: {whole[:30]}\n1: [rank8]: {whole}\n0: {whole[30:]}\n0: [rank2]: end\n"
    lines = from_text(text).lines
    assert [(line.number, line.text) for line in lines] == [(1, whole), (2, whole), (3, whole), (5, "end")]
    assert lines[1].rank is not None and lines[1].rank.number == 2


def test_a_tag_in_which_a_read_ended_is_put_together() -> None:
    for cut in range(1, len("[default1]:[rank25]:")):
        tag = "[default1]:[rank25]:"
        if tag[cut - 1] == ":":
            continue
        lines = from_text(f"6: [default0]:a\n6: {tag[:cut]}\n5: [default0]:b\n6: {tag[cut:]} words\n").lines
        assert [line.text for line in lines] == ["a", "words", "b"], cut
        assert lines[1].rank is not None and lines[1].rank.number == 25


def test_a_tasks_own_words_go_on_with_no_ranks_line() -> None:
    text = "0: [rank1]: RuntimeError: it refuses\n0: the launcher ends the others\n0: [rank2]: RuntimeError: it refuses\n"
    assert len(_lines(text)) == 3
    assert len(_lines("0: [\n0: 1, 2]\n0: [rank1]: x\n")) == 3  # a list that a program printed
    assert len(_lines("12: 30 is lunch\n12: [x]\n")) == 2
