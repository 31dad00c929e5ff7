"""The Markdown face: a quotation stays a quotation."""

from __future__ import annotations

from markdown_it import MarkdownIt

from forensics.model import Incident
from forensics.report import render
from forensics.report.markdown import code, escape, fence


def test_log_text_makes_no_markup(made: dict[str, Incident]) -> None:
    """Read by a real parser, hostile text yields no HTML of its own, no link, no heading, no mention."""
    text = render(made["hostile"], "markdown", explain=True)
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(text)
    inner = [child for token in tokens for child in (token.children or [])]
    assert not [t for t in inner if t.type in ("link_open", "image")]
    html = [t.content for t in tokens + inner if t.type in ("html_block", "html_inline")]
    assert not [one for one in html if not one.strip().startswith(("<details>", "</details>"))]
    assert "@maintainer" not in "".join(t.content for t in inner if t.type == "text")
    headings = [tokens[place + 1].content for place, token in enumerate(tokens) if token.type == "heading_open"]
    assert [one for one in headings if one.startswith("✗ crashed: ")] == headings[:1]


def test_a_fence_cannot_be_closed_from_inside() -> None:
    lines = fence(["```", "````text", "x"])
    assert lines[0] == "`````text"
    assert lines[-2] == "`````"


def test_code_spans_hold_backticks() -> None:
    assert code("a `b` c") == "``a `b` c``"
    assert code("`b`") == "`` `b` ``"
    assert code("") == "` `"


def test_escaped_text_reads_the_same() -> None:
    spoken = MarkdownIt().renderInline(escape("a_b*c* [x](http://y) <b> # 1 `q` @me"))
    assert spoken == "a_b*c* [x](http:\u200b//y) &lt;b&gt; # 1 `q` @\u200bme"


def test_it_tells_the_story(made: dict[str, Incident]) -> None:
    text = render(made["crash"], "markdown")
    assert text.startswith("## ✗ crashed: A trtllm-gen MoE kernel")
    for said in (
        "`arch_mismatch`",
        "`nextn` (engine) → `mlp` (engine)",
        "### What to do",
        "### Why",
        "<details><summary>Evidence",
    ):
        assert said in text, said
