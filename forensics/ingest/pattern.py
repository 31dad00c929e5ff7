"""Regular expressions that are compiled when first used: a start on a small log needs few of them. Sample:

Pattern(r"rank(\\d+)").search("rank3")[1] -> "3"
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, AnyStr, Generic


class Pattern(Generic[AnyStr]):
    """Like `re.Pattern`, with the methods that are used here."""

    def __init__(self, source: AnyStr, flags: int = 0) -> None:
        self._source: AnyStr = source
        self._flags = flags

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """On first use: compiles, and puts the compiled pattern's methods in place."""
        if name.startswith("_"):
            raise AttributeError(name)
        compiled = re.compile(self._source, self._flags)
        for method in ("match", "search", "fullmatch", "findall", "finditer", "sub", "subn", "split"):
            setattr(self, method, getattr(compiled, method))
        method_wanted: Callable[..., Any] = getattr(compiled, name)
        return method_wanted
