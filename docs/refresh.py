"""Renews what is made from the code: the report in README.md and its picture, and the JSON Schema that ships with the package.

python docs/refresh.py
"""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from forensics.pipeline import analyze
from forensics.report import render
from forensics.report.contract import schema

ROOT = Path(__file__).parent.parent
SCHEMA = ROOT / "forensics" / "report" / "forensics-report.schema.json"
LOG = "sample_logs/founding_case/founding_case.log"
BLOCK = re.compile(r"(<!-- report -->\n```text\n).*?(```\n<!-- /report -->)", re.S)
#: the picture uses fonts that are there; it loads none
FONT = re.compile(r"@font-face \{\{.*?\}\}\s*", re.S)


def main() -> None:
    """All of them."""
    SCHEMA.write_text(json.dumps(schema(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    found = analyze([LOG])
    readme = ROOT / "README.md"
    text = render(found, "console", width=100)
    readme.write_text(BLOCK.sub(lambda m: m[1] + text + m[2], readme.read_text(encoding="utf-8")), encoding="utf-8")
    console = Console(file=io.StringIO(), record=True, width=100, highlight=False, markup=False, emoji=False)
    console.print(Text.from_ansi(render(found, "console", width=100, color=True)))
    plain = FONT.sub("", CONSOLE_SVG_FORMAT)
    svg = console.export_svg(title="forensics server.log", theme=DIMMED_MONOKAI, code_format=plain, unique_id="report")
    (ROOT / "docs" / "report.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
