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
