"""How a report calls things: places, ranks, times, roles. In: an incident; out: short strings. Sample:

Names(incident).ranks([TP0, TP1, TP2, TP3]) -> "TP0–TP3"
Names(incident).place(Span(0, 812, 846))    -> "server.log:812-846"
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from forensics.model.source import Rank, Span
from forensics.model.stack import Frame
from forensics.model.verdict import Incident
from forensics.report.text import clock_time, one_line

#: role or outcome -> (mark, words); no colour is needed to tell them apart
ROLES: dict[str, tuple[str, str]] = {
    "initiating": ("✗", "failed first"),
    "missing": ("?", "missing from the collective"),
    "same": ("=", "failed alike, by itself"),
    "waiting": ("…", "waited"),
    "cascade": ("↳", "failed as a consequence"),
    "teardown": ("·", "was torn down"),
    "unknown": ("~", "failed, role unclear"),
    "silent": ("-", "fell silent"),
    "unobserved": ("-", "how it ended is not known"),
    "ok": ("✓", "did not fail"),
}

STATUS_MARKS = {"crashed": "✗", "hung": "…", "killed": "†", "degraded": "!", "healthy": "✓", "unknown": "?"}

CONFIDENCE = {
    "established": "the log proves it",
    "supported": "strong evidence; another reading is possible",
    "hypothesis": "a reading that fits; not proven",
    "unknown": "the evidence does not say",
}

_NUMBERED = re.compile(r"(.*?)(\d+)$", re.S)


class Names:
    """Names of one incident's sources, ranks and times."""

    def __init__(self, incident: Incident) -> None:
        self.sources = incident.sources or incident.coverage.sources
        self._short = [_short_name(source.name) for source in self.sources]
        if len(set(self._short)) < len(self._short):  # two files of the same name: their folders tell them apart
            self._short = [one_line(source.name, 80) for source in self.sources]

    def source(self, span: Span) -> str:
        """The input's whole name."""
        return self.sources[span.source].name if 0 <= span.source < len(self.sources) else "?"

    def command_line(self) -> str:
        """The inputs as a shell would take them; at most three, so that it can be typed."""
        import shlex

        names = [one_line(source.name, 200) for source in self.sources]
        return shlex.join(names[:3]) + (" …" if len(names) > 3 else "")

    def place(self, span: Span) -> str:
        """ "file:first-last" as editors and people read it."""
        name = self._short[span.source] if 0 <= span.source < len(self._short) else "?"
        lines = f"{span.first_line}" if span.first_line == span.last_line else f"{span.first_line}-{span.last_line}"
        return f"{name}:{lines}"

    def time(self, seconds: float | None, span: Span | None = None) -> str:
        """A time as the log's clock writes it; "" where none was seen."""
        if seconds is None:
            return ""
        return clock_time(seconds, self.clock(span))

    def clock(self, span: Span | None = None) -> str:
        """The kind of clock a source's times are on; the first source's without a span."""
        where = span.source if span else 0
        kind = self.sources[where].clock.kind if 0 <= where < len(self.sources) else "wall"
        return "wall" if kind == "none" else kind

    def rank(self, rank: Rank | None) -> str:
        """ "TP1", with the node where it is known."""
        if rank is None:
            return ""
        label = one_line(rank.label, 60)
        return f"{label} on {one_line(rank.node, 60)}" if rank.node else label

    def ranks(self, ranks: Iterable[Rank], limit: int = 6) -> str:
        """Ranks in few words: neighbours joined ("TP0–TP3, TP6", "ranks 0–6, 9"); only their number where it takes more
        than `limit` groups."""
        labels = list(dict.fromkeys(one_line(rank.label, 60) for rank in ranks))
        groups = _runs(labels)
        if len(groups) > limit:
            return f"{len(labels):,} ranks"
        if len(labels) > 1 and all(group.startswith("rank ") for group in groups):
            return "ranks " + ", ".join(group.removeprefix("rank ") for group in groups)
        return ", ".join(groups)


def frame_place(frame: Frame) -> str:
    """ "deepseek_v4.py:1546", or the library of a native frame."""
    if frame.file:
        name = frame.file.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
        return one_line(f"{name}:{frame.line}" if frame.line is not None else name, 120)
    return one_line((frame.module or "").rsplit("/", 1)[-1], 120)


def _short_name(name: str) -> str:
    """A file's own name; of one in an archive both names: by its own nobody finds it."""
    if name == "-":
        return "stdin"
    names = [part.rstrip("/").rsplit("/", 1)[-1] for part in name.replace("\\", "/").split("!")]
    return one_line("!".join((names[0], names[-1]) if len(names) > 1 else names) or name, 80)


def _runs(labels: Sequence[str]) -> list[str]:
    """Labels of one prefix and neighbouring numbers as ranges, in the order of their first number."""
    numbered: dict[str, list[int]] = {}
    rest: list[str] = []
    for label in dict.fromkeys(labels):
        match = _NUMBERED.match(label)
        if match and len(match[2]) < 10:
            numbered.setdefault(match[1], []).append(int(match[2]))
        else:
            rest.append(label)
    found: list[str] = []
    for prefix, numbers in numbered.items():
        numbers.sort()
        start = last = numbers[0]
        for number in [*numbers[1:], None]:
            if number is not None and number == last + 1:
                last = number
                continue
            if last == start:
                found.append(f"{prefix}{start}")
            elif last == start + 1:
                found += [f"{prefix}{start}", f"{prefix}{last}"]
            else:
                closing = prefix if not prefix.endswith(" ") else ""
                found.append(f"{prefix}{start}–{closing}{last}")
            if number is not None:
                start = last = number
    return found + rest
