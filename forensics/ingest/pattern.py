"""Regular expressions that are compiled when first used: a start on a small log needs few of them. Sample:

Pattern(r"rank(\\d+)").search("rank3")[1] -> "3"
Pattern(r"disk (?:full|quota)", needles=("disk ",)).search("all is well") -> None, and nothing was compiled
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, AnyStr, Generic

from forensics.ingest.compiled import pattern_of


class Pattern(Generic[AnyStr]):
    """Like `re.Pattern`, with the methods that are used here. needles: lower-case words of which every match holds one."""

    def __init__(self, source: AnyStr, flags: int = 0, needles: Sequence[str] | None = None) -> None:
        self._source: AnyStr = source
        self._flags = flags
        if needles:
            self.search = self._gated(tuple(needles))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """On first use: compiles, and puts the compiled pattern's methods in place."""
        if name.startswith("_"):
            raise AttributeError(name)
        compiled = pattern_of(self._source, self._flags)
        for method in ("match", "search", "fullmatch", "findall", "finditer", "sub", "split"):
            if method not in self.__dict__:
                setattr(self, method, getattr(compiled, method))
        method_wanted: Callable[..., Any] = getattr(compiled, name)
        return method_wanted

    def _gated(self, needles: tuple[str, ...]) -> Callable[..., Any]:
        compiled: list[re.Pattern[Any]] = []

        def search(text: str, *bounds: int) -> re.Match[Any] | None:
            low = text.lower()
            for needle in needles:
                if needle in low:
                    break
            else:
                return None
            if not compiled:
                compiled.append(pattern_of(self._source, self._flags))
            return compiled[0].search(text, *bounds)

        return search
