"""The view: sections in order, names for ranks and places."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path as FilePath

from forensics import analyze, render
from forensics.model import Incident, Rank, Span
from forensics.model.record import replace
from forensics.model.verdict import RankRow
from forensics.report.blocks import Path, Quotes, ReproOffer, Stack, Strip, Table, Timeline
from forensics.report.naming import Names
from forensics.report.view import view


def test_order(made: dict[str, Incident]) -> None:
    ids = [section.id for section in view(made["crash"]).sections]
    assert ids == [
        "what", "path", "ranks", "machine", "why", "contradictions", "actions", "evidence", "certainty", "incidents", "unread",
        "timeline", "failures", "stacks", "settings", "software", "coverage",
    ]  # fmt: skip


def test_empty_sections_are_left_out(made: dict[str, Incident]) -> None:
    assert [section.id for section in view(made["unknown"]).sections] == ["read", "certainty", "coverage"]


def test_names_of_ranks(made: dict[str, Incident]) -> None:
    names = Names(made["crash"])

    def ranks(*numbers: int) -> list[Rank]:
        return [Rank(f"rank {n}", n) for n in numbers]

    assert names.ranks([Rank(f"TP{n}", n) for n in (0, 1, 2, 3, 6)]) == "TP0–TP3, TP6"
    assert names.ranks(ranks(3, 1, 2, 9, 10)) == "ranks 1–3, 9, 10"
    assert names.ranks(ranks(4)) == "rank 4"
    assert names.ranks(ranks(*range(0, 40, 2))) == "20 ranks"
    assert names.ranks([Rank("driver"), Rank("TP0", 0)]) == "TP0, driver"
    assert names.ranks([]) == ""


def test_ranks_that_were_seen_of_all(made: dict[str, Incident]) -> None:
    unknown = made["unknown"]

    def told(seen: int, world: int | None) -> str:
        rows = tuple(RankRow(Rank(f"rank {n}", n), "ok", None) for n in range(seen))
        sections = view(replace(unknown, ranks=rows, facts=replace(unknown.facts, world_size=world))).sections
        section = next(one for one in sections if one.id == "read")
        return section.blocks[0].text.rsplit(", ", 1)[-1]  # type: ignore[union-attr]

    assert told(1, 4) == "1 of 4 ranks"
    assert told(4, 4) == "4 ranks" and told(1, None) == "1 rank"


def test_places(made: dict[str, Incident]) -> None:
    names = Names(made["crash"])
    assert names.place(Span(0, 88, 100)) == "server.log:88-100"
    assert names.place(Span(0, 7, 7)) == "server.log:7"
    assert names.place(Span(9, 7, 7)) == "?:7"


def test_blocks(made: dict[str, Incident]) -> None:
    it = view(made["crash"])

    def only(id: str) -> object:
        section = it.section(id)
        assert section is not None
        return section.blocks[0]

    path = only("path")
    assert isinstance(path, Path)
    assert [(step.label, step.place) for step in path.steps][1] == ("mlp", "deepseek_v4.py:1546")
    strip = only("ranks")
    assert isinstance(strip, Strip)
    assert [cell.mark for cell in strip.cells] == ["=", "✗", "=", "="]
    assert strip.legend[0] == ("✗", "failed first", "TP1")
    quotes = only("evidence")
    assert isinstance(quotes, Quotes)
    assert [quote.place for quote in quotes.quotes] == ["server.log:2", "server.log:88-100"]
    stacks = it.section("stacks")
    assert stacks is not None
    assert [block.link for block in stacks.blocks if isinstance(block, Stack)] == ["", "context"]
    failures = only("failures")
    assert isinstance(failures, Table)
    assert failures.rows[1][0] == "↳ cascade"


def test_lanes_have_the_ranks_own_role(made: dict[str, Incident]) -> None:
    section = view(made["crash"]).section("timeline")
    assert section is not None
    timeline = section.blocks[0]
    assert isinstance(timeline, Timeline)
    assert [lane.marks[0].role for lane in timeline.lanes] == ["same", "initiating", "same", "same"]
    assert timeline.end - timeline.start == 60


def test_a_repro_is_offered(made: dict[str, Incident]) -> None:
    it = view(made["crash"], ReproOffer("flashinfer-fp4-moe", True, None))
    actions = it.section("actions")
    assert actions is not None
    assert "forensics repro run/server.log" in str(actions)
    assert it.section("repro") is not None


def test_no_text_of_the_view_is_dangerous(made: dict[str, Incident]) -> None:
    """Every string of the hostile view is printable: a face cannot forget."""
    for text in _strings(view(made["hostile"])):
        assert text.replace("\n", "").isprintable(), repr(text)


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, tuple):
        return [text for one in value for text in _strings(one)]
    slots = getattr(type(value), "__slots__", ())
    return [text for name in slots for text in _strings(getattr(value, name))]


def test_a_line_of_a_file_in_an_archive_is_found_by_the_archives_name(tmp_path: FilePath) -> None:
    log = b"[rank0]: Traceback (most recent call last):\n[rank0]:   File \"a.py\", line 3, in <module>\n[rank0]: KeyError: 'x'\n"
    with tarfile.open(tmp_path / "run.tar", "w") as packed:
        member = tarfile.TarInfo("logs/node1/out.log")
        member.size = len(log)
        packed.addfile(member, io.BytesIO(log))
    text = render(analyze([tmp_path / "run.tar"]), "console", explain=True)
    assert "run.tar!out.log:3" in text
    assert "run.tar!logs/node1/out.log:" in text.replace("\n", "").replace(" ", "")


def test_very_many_inputs_are_not_named_one_by_one(tmp_path: FilePath) -> None:
    for number in range(70):
        (tmp_path / f"rank_{number}.log").write_text("step 1 loss 2.0\n")
        (tmp_path / f"rank_{number}.zip").write_bytes(b"PK\x03\x04 torn")
    text = render(analyze([tmp_path]), "console", explain=True)
    assert text.count("rank_") < 110 and text.count("and 20 more") == 2
