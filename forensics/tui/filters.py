"""One line that says what to look at. In: words as typed; out: a `Filter` that rows and lines pass or not. Sample:

parse("rank:TP1 role:cascade /out of mem\\w+/") -> Filter(ranks=("tp1",), roles=("cascade",), regex=…)
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from forensics.errors import UsageError

ROLES = ("initiating", "same", "cascade", "teardown", "unknown", "root", "confirmation", "advice")
LEVELS = {
    "debug": ("DEBUG",),
    "info": ("INFO",),
    "warning": ("WARN", "WARNING"),
    "error": ("ERROR", "ERR", "Error", "error:", "Exception", "Traceback"),
    "fatal": ("FATAL", "CRITICAL", "Fatal"),
}
HELP = "words, /regex/, rank:TP1, role:cascade, level:error; all of them must hold"


@dataclass(frozen=True, slots=True)
class Filter:
    """Everything named must hold; several ranks, roles or levels are alternatives. Texts are lower case."""

    words: tuple[str, ...] = ()
    ranks: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    regex: re.Pattern[str] | None = None
    typed: str = ""

    def __bool__(self) -> bool:
        return bool(self.words or self.ranks or self.roles or self.levels or self.regex)

    def passes(self, text: str, *, ranks: tuple[str, ...] | None = None, role: str | None = None) -> bool:
        """Whether a row passes. ranks, role: what the row says of itself; where None, the text is asked for the rank."""
        low = text.lower()
        if self.roles and role is not None and role not in self.roles:
            return False
        if self.ranks:
            if ranks is not None:
                if not {one.lower().replace(" ", "") for one in ranks} & set(self.ranks):
                    return False
            elif not any(_names_rank(one, low) for one in self.ranks):
                return False
        if self.levels and not any(word in text for level in self.levels for word in LEVELS[level]):
            return False
        return all(word in low for word in self.words) and (self.regex is None or bool(self.regex.search(text)))


def _names_rank(rank: str, low: str) -> bool:
    """Whether a line of lower case names the rank as a word of its own: "rank3" is "rank 3" too, "tp1" is not "tp12"."""
    spaced = re.sub(r"(?<=[a-z])(?=\d)", "[ ]?", re.escape(rank))
    return re.search(rf"(?<![a-z0-9]){spaced}(?!\d)", low) is not None


def parse(typed: str) -> Filter:
    """Reads a filter. Raises UsageError: a broken regular expression, an unknown role or level."""
    regex: re.Pattern[str] | None = None
    rest = typed
    if (match := re.search(r"(?:^|\s)/(.+)/(?:\s|$)", typed)) is not None:
        try:
            regex = re.compile(match[1], re.IGNORECASE)
        except re.error as error:
            raise UsageError("this regular expression cannot be read", why=str(error), where=match[1]) from None
        rest = typed[: match.start()] + " " + typed[match.end() :]
    try:
        parts = shlex.split(rest)
    except ValueError:
        parts = rest.split()
    kept: dict[str, list[str]] = {"rank": [], "role": [], "level": [], "": []}
    for part in parts:
        key, colon, value = part.partition(":")
        if not colon or key.lower() not in ("rank", "role", "level", "severity"):
            kept[""].append(part.lower())
            continue
        key = "level" if key.lower() == "severity" else key.lower()
        known = {"role": ROLES, "level": tuple(LEVELS)}.get(key)
        values = [one for one in value.lower().replace(" ", "").split(",") if one]
        for one in values:
            if known is not None and one not in known:
                raise UsageError(
                    f"there is no {key} {one!r}",
                    why="it is none of those that are told apart",
                    help=f"one of {', '.join(known)}",
                )
        kept[key] += values
    return Filter(tuple(kept[""]), tuple(kept["rank"]), tuple(kept["role"]), tuple(kept["level"]), regex, typed.strip())
