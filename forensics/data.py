"""Finds and loads the shipped data (`signatures/`). In: a table's name; out: plain dicts and lists. Sample:

    table("facts/gpus") -> {"gpu": [{"sm": "sm_120", "names": ["RTX PRO 6000 Blackwell", …], …}, …]}
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any


def root() -> Path:
    """The folder that holds facts/, rules/, dialects/ and frames/: inside the installed package, else beside it."""
    here = Path(__file__).parent
    shipped = here / "_data"
    return shipped if shipped.is_dir() else here.parent / "signatures"


def table(name: str) -> dict[str, Any]:
    """One TOML table by its path below `signatures/`, without ".toml". Raises FileNotFoundError, tomllib.TOMLDecodeError."""
    return tomllib.loads((root() / f"{name}.toml").read_text(encoding="utf-8"))


def folder(name: str) -> list[tuple[str, dict[str, Any]]]:
    """All TOML files below a folder, as (path below `signatures/`, content), sorted by path."""
    base = root()
    found = []
    for top, _, files in sorted(os.walk(base / name)):
        for file in sorted(files):
            if file.endswith(".toml"):
                path = Path(top) / file
                found.append((str(path.relative_to(base)), tomllib.loads(path.read_text(encoding="utf-8"))))
    return found
