"""How torch names process groups and ranks inside messages. In: a text; out: `Group`. Stands above reading.py. Samples:

    [PG ID 0 PG GUID 0(default_pg) Rank 3]   -> Group(id="0", guid="0", desc="default_pg", rank=3)    torch >= 2.4
    [PG 1 (tp_group) Rank 2]  [PG 1 Rank 2]  -> Group(id="1", desc="tp_group", rank=2)                torch 2.2, 2.3
    [Rank 3]                                 -> Group(rank=3)                                         older

The rank in it is the rank within that group: it is the global rank only for the default group.
"""

from __future__ import annotations

from typing import NamedTuple

from forensics.model.source import LogLine, Rank
from forensics.parse.reading import Lazy


class Group(NamedTuple):
    """A process group as a message names it; rank: within the group. Every part may be missing."""

    id: str | None = None
    guid: str | None = None
    desc: str | None = None
    rank: int | None = None

    @property
    def default(self) -> bool:
        """True where it is the default group, whose ranks are global."""
        if self.desc is not None:
            return self.desc in ("default_pg", "0", "default")
        return self.guid in (None, "0") and self.id in (None, "0")

    @property
    def name(self) -> str | None:
        """What to call it: "0 (default_pg)", "1"."""
        number = self.guid or self.id
        if self.desc and self.desc != "undefined":
            return f"{number} ({self.desc})"
        return number


_NEW = Lazy(r"\[PG ID (\S{1,40}) PG GUID ([^\s(]{1,80})(?:\(([^)]{0,80})\))? Rank (\d+)\]")
_MIDDLE = Lazy(r"\[PG (?:ID )?([^\s\]]{1,80})(?: \(([^)]{0,80})\))? Rank (\d+)\]")
_OLD = Lazy(r"\[Rank (\d+)\]")


def group_in(text: str) -> Group | None:
    """The first process group a text names, or None."""
    if "Rank " not in text:
        return None
    new = _NEW.search(text)
    if new:
        return Group(new[1], new[2], new[3], int(new[4]))
    middle = _MIDDLE.search(text)
    if middle:
        return Group(middle[1], None, middle[2], int(middle[3]))
    old = _OLD.search(text)
    return Group(rank=int(old[1])) if old else None


def rank_in(text: str, line: LogLine) -> Rank | None:
    """The rank a message speaks for: its line's where the prefix says it, else the default group's rank in the text.

    A rank within another group becomes an axis ("group") without a global number."""
    if line.rank is not None and line.rank.number is not None:
        return line.rank
    group = group_in(text)
    if group is None or group.rank is None:
        return line.rank
    if group.default:
        return Rank(f"rank {group.rank}", group.rank, node=line.rank.node if line.rank else None)
    return Rank(f"rank {group.rank} of group {group.name}", None, (("group", group.rank),))
