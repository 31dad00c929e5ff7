"""Build hook: compiles the tables of signatures/ and the parsers' literals into forensics/_compiled, so that a start never parses TOML."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompileTables(BuildHookInterface[Any]):
    """Runs before a wheel is packed; an editable install reads signatures/ directly."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or version == "editable":
            return
        root = Path(self.root)
        target = root / "forensics" / "_compiled"
        shutil.rmtree(target, ignore_errors=True)
        sys.path.insert(0, str(root))
        try:
            from forensics.data import write_compiled
            from forensics.match.load import compile_all
            from forensics.parse import anchors_part

            compile_all(str(target))
            write_compiled(str(target), [anchors_part()])
        finally:
            sys.path.remove(str(root))
