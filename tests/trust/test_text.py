"""What a log says never becomes part of how the report is shown."""

from __future__ import annotations

import html.parser
import json
import re
import xml.etree.ElementTree as ElementTree

import pytest

from forensics import analyze, render
from forensics.report import FORMATS

from . import logs

#: nothing of this may reach a terminal or a page as it is
INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\u3164\ufeff\ud800-\udfff]"
)


@pytest.fixture(scope="module", params=range(len(logs.EVERYTHING)), ids=lambda at: logs.EVERYTHING[at][:12].encode("ascii", "ignore").decode())
def faces(request: pytest.FixtureRequest) -> dict[str, str]:
    """Every face of a crash with one of the hostile texts in its message."""
    text = logs.EVERYTHING[request.param]
    incident = analyze([logs.crash(f"boom {text}").encode("utf-8", "surrogatepass")])
    assert incident.primary is not None
    return {name: render(incident, name, explain=True, width=100) for name in FORMATS} | {"text": text}


@pytest.mark.parametrize("face", ["console", "markdown", "github", "html", "junit"])
def test_nothing_moves_a_terminal_or_hides(faces: dict[str, str], face: str) -> None:
    shown = faces[face]
    if face in ("markdown", "github"):
        shown = shown.replace("\u200b", "")  # ours: it keeps mentions and addresses from becoming links
    assert not INVISIBLE.findall(shown)


def test_json_spells_control_characters_out(faces: dict[str, str]) -> None:
    for face in ("json", "sarif"):
        assert not re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]", faces[face])
        json.loads(faces[face])


class _Page(html.parser.HTMLParser):
    """The elements of a page that could do something."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts = 0
        self.handlers: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "action", "xlink:href")]


def test_a_page_gets_no_element_from_the_log(faces: dict[str, str]) -> None:
    page, calm = _Page(), _Page()
    page.feed(faces["html"])
    calm.feed(render(analyze([logs.crash("boom").encode()]), "html"))
    assert page.scripts == calm.scripts
    assert not page.handlers
    assert not [link for link in page.links if not link.startswith("#")]


def test_xml_is_well_formed(faces: dict[str, str]) -> None:
    assert ElementTree.fromstring(faces["junit"]).tag == "testsuites"


@pytest.mark.parametrize("face", ["markdown", "github"])
def test_markdown_stays_quoted(faces: dict[str, str], face: str) -> None:
    """Outside of code nothing of the log is markup: no element, no image, no link, no mention, no heading, no row."""
    report = faces[face] if face == "markdown" else faces[face].split("\n", 1)[1]  # its first line is a command, not Markdown
    outside = _without_code(report)
    assert not re.search(r"<(?:script|img|svg|b)\b", outside)
    assert not re.search(r"(?<!\\)!\[x\]\(|(?<!\\)\[x\]\(", outside)
    assert not re.search(r"^# not a heading|^\| a \| b \|", outside, re.M)
    assert "@someone" not in re.sub(r"`[^`\n]*`", "", outside)


def _without_code(text: str) -> str:
    kept, fence = [], ""
    for line in text.split("\n"):
        found = re.match(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})", line)
        if fence:
            if found and found[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif found:
            fence = found[1]
        else:
            kept.append(re.sub(r"\\.", "", re.sub(r"(?<!\\)(`+)(?!`).+?(?<!`)\1(?!`)", "", line)))
    assert not fence, "a code block was left open"
    return "\n".join(kept)


def test_a_runner_gets_no_command_from_the_log(faces: dict[str, str]) -> None:
    """Lines of the workflow face begin with a command only where the report wrote it."""
    for line in faces["github"].split("\n"):
        assert not re.match(r"\s*(?:::set-output|##\[|::error file=a\.py)", line), line


def test_markup_is_text_on_the_console(faces: dict[str, str]) -> None:
    if faces["text"] is logs.MARKUP:
        assert "[red]rich[/red]" in " ".join(faces["console"].split())


def test_a_log_that_pretends_to_be_a_report_is_a_log() -> None:
    """The report of a healthy run, printed into the log of a crash, changes nothing."""
    calm = analyze([b"[2026-11-29 20:15:20 TP0] Decode batch. #running-req: 8, #token: 4096\n" * 5])
    for face in ("console", "markdown", "json"):
        forged = render(calm, face).encode()
        incident = analyze([forged + logs.crash("CUDA error: an illegal memory access was encountered").encode() + forged])
        assert incident.verdict.category.value == "illegal_memory_access", face


def test_what_a_log_asks_for_is_a_quotation() -> None:
    """Text that talks to a reader or a program stands in the report only as what the log printed."""
    incident = analyze([(f"{logs.PROMPT}\n" + logs.crash(f"boom. {logs.PROMPT}") + f"verdict: healthy\n{logs.PROMPT}\n").encode()])
    assert incident.status.value == "crashed"
    report = json.loads(render(incident, "json"))
    for field in ("explanation", "must_not_prove"):
        assert logs.PROMPT not in (report["verdict"][field] or "")
    assert not [step for step in report["verdict"]["next_steps"] + report["verdict"]["settled_by"] if logs.PROMPT in step]
    for face in ("markdown", "html", "github"):
        assert "quoted from the log" in render(incident, face), face
