"""The HTML face: one self-contained page that opens offline, readable and printable without JavaScript. In: a `View`; out: HTML.

    write(view) -> '<!doctype html>…<meta http-equiv="Content-Security-Policy" content="default-src \\'none\\'; …'

The template escapes every value (autoescape); the page's own style and script are allowed by their hashes, nothing else is.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from forensics.model.record import replace
from forensics.report.blocks import Lane, Quotes, ReproOffer, Section, Timeline, View
from forensics.report.naming import ROLES
from forensics.report.surroundings import around

if TYPE_CHECKING:
    from forensics.redact import Redactor

_PAGE = FilePath(__file__).parent / "page"
#: of the timeline's drawing, in its own units
WIDE, LANE, LEFT = 1000, 18, 110
#: lanes drawn; the strip and the tables have all ranks
MOST_LANES = 512


def write(view: View, repro: ReproOffer | None = None, redactor: Redactor | None = None) -> str:
    """The page. repro: its script is shown with a button to copy it; redactor: goes over everything, surroundings too."""
    style, script = _asset("report.css"), _asset("report.js")
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    )
    view = replace(view, sections=tuple(_with_surroundings(section) for section in view.sections))
    script_text = repro.script if repro else None
    if redactor is not None:
        view = redactor.value(view)
        script_text = redactor.text(script_text) if script_text else None
    template = _environment().get_template("report.html.j2")
    return template.render(
        view=view,
        answer=[section for section in view.sections if not section.detail],
        details=[section for section in view.sections if section.detail],
        policy=policy,
        style=Markup(style),  # our own file, not a value
        script=Markup(script),
        repro_script=script_text,
        redacted=redactor.summary() if redactor else None,
        ranks=_ranks(view),
    )


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_PAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.tests["block"] = lambda value, name: type(value).__name__ == name
    made.globals["draw"] = _drawn
    made.globals["words"] = lambda role: ROLES.get(role, ("~", role))[1]
    return made


def _asset(name: str) -> str:
    return (_PAGE / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _with_surroundings(section: Section) -> Section:
    if section.id != "evidence":
        return section
    blocks = tuple(Quotes(around(block.quotes)) if isinstance(block, Quotes) else block for block in section.blocks)
    return Section(section.id, section.title, blocks, section.short, section.detail)


def _ranks(view: View) -> list[str]:
    """The labels that the rank filter offers."""
    section = view.section("ranks")
    return [cell.label for block in section.blocks for cell in getattr(block, "cells", ())] if section else []


def _drawn(timeline: Timeline) -> dict[str, Any]:
    """Where everything of a timeline stands, in the drawing's units."""
    span = (timeline.end - timeline.start) or 1.0

    def x(at: float) -> float:
        return round(LEFT + (at - timeline.start) / span * (WIDE - LEFT - 20), 1)

    def lane(index: int, one: Lane) -> dict[str, Any]:
        bar = (x(one.first), x(one.last)) if one.first is not None and one.last is not None else None
        return {
            "lane": one,
            "y": 14 + index * LANE,
            "bar": bar,
            "marks": [
                {"mark": mark, "x": x(mark.at), "sign": ROLES.get(mark.role, ("~", ""))[0]} for mark in one.marks[:200]
            ],
        }

    shown = timeline.foremost(MOST_LANES)
    return {
        "width": WIDE,
        "height": len(shown) * LANE + 44,
        "lanes": [lane(index, one) for index, one in enumerate(shown)],
        "left_out": len(timeline.lanes) - len(shown),
        "ticks": [{"x": x(at), "text": text} for at, text in timeline.ticks[::2]],
    }
