"""The console's layout: the same lines as rich's, and nothing lost."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text as RichText

from forensics.report.layout import Text, ansi, beside, cells, plain, table

WORDS = st.lists(st.text("abc/·→✗漢字", min_size=1, max_size=30), min_size=1, max_size=12)


@given(WORDS, st.integers(8, 40))
def test_lines_break_where_rich_breaks_them(words: list[str], width: int) -> None:
    text = " ".join(words)
    theirs = RichText(text).wrap(Console(width=width), width, overflow="fold")
    ours = [line.strip() for line in plain(Text(text).lines(width)).split("\n")[:-1]]
    # where a folded word fills its last line to the edge, rich leaves an empty line, or starts the next one with the blank behind it
    assume(not any(line.plain.startswith(" ") and line.plain.strip() for line in theirs))
    assert ours == [line.plain.strip() for line in theirs if line.plain.strip()]


@given(st.text("ab ✗漢\n", max_size=200), st.integers(2, 30))
def test_nothing_is_lost_and_nothing_sticks_out(text: str, width: int) -> None:
    lines = Text(text).lines(width)
    assert all(sum(cells(part) for part, _ in line) <= width for line in lines)
    assert "".join(plain(lines).split()) == "".join(text.split())


def test_styles_follow_their_words() -> None:
    text = Text("established", "bold white on red")
    text.append(": the log proves it")
    assert text.lines(14) == [
        [("established", "bold white on red"), (": ", "")],
        [("the log proves", "")],
        [("it", "")],
    ]
    assert ansi(text.lines(14)).split("\n")[0] == "\x1b[1;37;41mestablished\x1b[0m: "


def test_a_label_stands_before_the_first_line_only() -> None:
    lines = beside("Sure", Text("one two").lines(4), 6, "bold")
    assert plain(lines) == "Sure  one\n      two\n"
    assert lines[0][0] == ("Sure  ", "bold")


def test_the_widest_column_gives_way() -> None:
    lines = table(("rank", "failure"), (("0", "an illegal memory access"), ("1", "-")), 20)
    assert plain(lines) == "rank  failure\n0     an illegal\n      memory access\n1     -\n"
