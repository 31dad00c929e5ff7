"""Alike failures become one. In: sightings in order; out: groups with a fingerprint. Sample:

    four ranks, one traceback, other addresses and line numbers -> one group of four ranks, fingerprint "5f2c…"

The fingerprint is made of the kind, the type, the message without numbers, addresses and paths, and the innermost frames by
file and function: it is the same on every rank, in every run and after an unrelated edit of the sources.
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.callpath import is_plumbing
from forensics.ingest.compiled import pattern_of
from forensics.model.record import draft, field
from forensics.model.source import Rank
from forensics.model.stack import Frame
from forensics.verdict.recorded import is_first, is_recorded
from forensics.verdict.sighting import Sighting

try:  # the same function; hashlib loads all of OpenSSL for it
    from _sha1 import sha1
except ImportError:
    from hashlib import sha1

_FRAMES = 6
_NOISE = (
    # where there is no room it is any rank's next file
    (pattern_of(r"(\[Errno (?:28|122)\] [\w ]{1,40}): '[^'\n]{1,1000}'?"), r"\1"),
    (pattern_of(r"0x[0-9a-fA-F]+"), "0x"),
    (pattern_of(r"(?:/[\w.+@-]+)+/([\w.+@-]+)"), r"\1"),
    (pattern_of(r"[A-Za-z]:\\[\w\\.+@-]+"), "path"),
    (pattern_of(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "id"),
    (pattern_of(r"\b[0-9a-f]{12,}\b"), "id"),
    (pattern_of(r"\d+(?:\.\d+)*"), "N"),
    (pattern_of(r"\s+"), " "),
)


@draft
class Group:
    """Alike failures. first: the one that came first; ranks: in the order of their coming, each once; members: all."""

    first: Sighting
    fingerprint: str
    members: list[Sighting] = field(default_factory=list)

    @property
    def ranks(self) -> tuple[Rank, ...]:
        """Each rank once."""
        found: dict[tuple[str, str | None], Rank] = {}
        for member in self.members:
            if member.rank is not None:
                found.setdefault(member.rank.key, member.rank)
        return tuple(found.values())

    @property
    def count(self) -> int:
        """How often it was seen."""
        return sum(member.count for member in self.members)


def plain(text: str) -> str:
    """A message without what differs between ranks and runs."""
    for pattern, put in _NOISE:
        text = pattern.sub(put, text[:2_000])
    return text.strip().lower()


def fingerprint(kind: str, type_: str | None, message: str, frames: Sequence[Frame]) -> str:
    """Sixteen hexadecimal digits."""
    telling = [frame for frame in frames if not is_plumbing(frame)][-_FRAMES:]
    where = [
        f"{(f.path or (f.module or '').replace(chr(92), '/')).rsplit('/', 1)[-1]}:{_bare(f.function)}" for f in telling
    ]
    name = (type_ or "").rsplit(".", 1)[-1]
    text = "\n".join((kind, name, plain(message.split("\n", 1)[0] if kind == "python" else message), *where))
    return str(sha1(text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()[:16])


def _bare(function: str) -> str:
    return pattern_of(r"\+0x[0-9a-f]+|\(.*|<.*").sub("", function)[:120]


def fold(seen: Sequence[Sighting]) -> list[Group]:
    """Groups in the order of their first members."""
    groups: dict[tuple[str, bool], Group] = {}
    for sighting in seen:
        # Where a process waited differs by the moment at which it was asked; what it waited for does not.
        frames = () if sighting.kind in ("collective_timeout", "message") else sighting.frames
        mark = fingerprint(sighting.kind, sighting.root_type, sighting.root_message, frames)
        # A consequence never shares a group with a cause.
        key = (mark, sighting.role is None)
        group = groups.get(key)
        if group is None:
            groups[key] = group = Group(sighting, mark)
        group.members.append(sighting)
    found = list(groups.values())
    for group in found:
        _lead(group)
    return found


def _lead(group: Group) -> None:
    """Of exits that a launcher lists in one summary, and of the tracebacks that it shows there, the one that it saw first leads."""
    if is_recorded(group.first) or (group.first.kind == "exit" and group.first.events[0].fields.get("what") == "summary"):
        seen = next((m for m in group.members if is_first(m)), None)
        if seen is not None and seen is not group.first:
            group.first = seen
            group.members = [seen, *(m for m in group.members if m is not seen)]
