r"""What a rule of redaction is. In: text; out: the places in it that are replaced. Sample:

Rule("user", compiled(r"\buid=\d+\(([a-z][\w-]*)\)"), ("uid=",))      the last group that matched is what goes
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

#: what was replaced already
STAND_IN = re.compile(r"<?(?:secret|user|host|ip|mac|bucket|e-mail|account|prompt)(?:-\d+>?|: [\d,]+ [a-z ]+>)")


class Rule(NamedTuple):
    """kind: what the stand-in is called; pattern: its last matching group goes; needles: one of them is in the lower-cased text
    (empty: always tried); stays: whether a match is not what it looks like."""

    kind: str
    pattern: re.Pattern[str]
    needles: tuple[str, ...] = ()
    stays: Callable[[re.Match[str]], bool] | None = None

    def applied(self, text: str, low: str, stand_in: Callable[[str, str], str]) -> str:
        """The text with every match replaced. low: the text in lower case; stand_in: (kind, found) -> what stands there instead."""
        if self.needles and not any(needle in low for needle in self.needles):
            return text

        def replaced(match: re.Match[str]) -> str:
            group = match.lastindex or 0
            found = match[group]
            if not found or STAND_IN.fullmatch(found) or (self.stays is not None and self.stays(match)):
                return match[0]
            start = match.start(group) - match.start()
            return match[0][:start] + stand_in(self.kind, found) + match[0][start + len(found) :]

        return self.pattern.sub(replaced, text)


def before(match: re.Match[str], count: int = 32) -> str:
    """The characters before what a match replaces."""
    start = match.start(match.lastindex or 0)
    return match.string[max(0, start - count) : start]
