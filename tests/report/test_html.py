"""The HTML face: whole without a network or a script, and log text stays text."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

from forensics.model import Evidence, Incident, LogSource, Span
from forensics.report import render
from forensics.report.blocks import Quote, ReproOffer
from forensics.report.html import write
from forensics.report.surroundings import around


class Page(HTMLParser):
    """Every tag with its attributes, the text of script and style, and all visible text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self.words: list[str] = []
        self._in: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._in.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._in and self._in.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        (self.raw[self._in[-1]] if self._in and self._in[-1] in self.raw else self.words).append(data)


def test_nothing_is_loaded(incident: Incident) -> None:
    page = Page(render(incident, "html"))
    for tag, attributes in page.tags:
        assert tag not in ("a", "img", "link", "iframe", "object", "embed", "base", "form"), tag
        assert not {"src", "href", "action", "style", "srcset", "data"} & set(attributes), (tag, attributes)
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)


def test_the_policy_allows_our_own_style_and_script_only(made: dict[str, Incident]) -> None:
    page = Page(render(made["hostile"], "html"))
    policy = next(attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'; base-uri 'none'; form-action 'none'; ")
    for kind in ("style", "script"):
        (text,) = page.raw[kind]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy


def test_hostile_text_is_text(made: dict[str, Incident]) -> None:
    page = Page(render(made["hostile"], "html", redact=False))
    assert sum(tag == "script" for tag, _ in page.tags) == 1
    assert "<script>alert(1)</script>" in "".join(page.words)
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u202e]", render(made["hostile"], "html"))


def test_it_is_whole_without_a_script(made: dict[str, Incident]) -> None:
    """Everything stands in the page itself; only the tools of the script are hidden."""
    page = Page(render(made["crash"], "html"))
    words = " ".join("".join(page.words).split())
    for said in (
        "failed alike, by itself: TP0, TP2, TP3",
        "trtllm_fp4_block_scale_routed_moe",
        "Settings",
        "quantization",
        "the parent reacts",
    ):
        assert said in words, said
    assert [attrs for tag, attrs in page.tags if tag == "nav" and "hidden" in attrs]


def test_the_timeline_is_drawn(made: dict[str, Incident]) -> None:
    page = Page(render(made["256 ranks"], "html"))
    lanes = [attrs["data-rank"] for tag, attrs in page.tags if tag == "g" and attrs.get("class", "").startswith("lane")]  # type: ignore[union-attr]
    assert lanes == [f"rank {n}" for n in range(256)]
    crash = Page(render(made["crash"], "html"))
    assert sum(tag == "circle" for tag, _ in crash.tags) == 4


def test_the_repro_script_is_there(made: dict[str, Incident]) -> None:
    from forensics.report.view import view

    offer = ReproOffer("x", True, None, "print('</script><b>hi')")
    html = write(view(made["crash"], offer), offer)
    assert "print(&#39;&lt;/script&gt;&lt;b&gt;hi&#39;)" in html


def test_surroundings_of_evidence(tmp_path: Path, made: dict[str, Incident]) -> None:
    log = tmp_path / "server.log"
    log.write_text("\n".join(f"line {n}" for n in range(1, 30)) + "\n")

    def quote(first: int, last: int, text: str, source: str = str(log)) -> Quote:
        return Quote("server.log", (text,), "", source, first, last)

    here, edge, changed, gone = around(
        [
            quote(10, 11, "line 10"),
            quote(1, 1, "line 1"),
            quote(5, 5, "was something else"),
            quote(1, 1, "x", "nowhere.log"),
        ],
        2,
    )
    assert (here.before, here.after) == (("line 8", "line 9"), ("line 12", "line 13"))
    assert (edge.before, edge.after) == ((), ("line 2", "line 3"))
    assert (changed.before, changed.after) == ((), ())
    assert (gone.before, gone.after) == ((), ())


def test_surroundings_reach_the_page(tmp_path: Path, made: dict[str, Incident]) -> None:
    from dataclasses import replace

    log = tmp_path / "server.log"
    log.write_text("one\ntwo <b>\nthree\n")
    it = made["crash"]
    evidence = (Evidence(Span(0, 2, 2), "two <b>"),)
    it = replace(it, sources=(LogSource(str(log)),), verdict=replace(it.verdict, evidence=evidence))
    assert '<span class="near">one</span>\ntwo &lt;b&gt;\n<span class="near">three</span>' in render(it, "html")
