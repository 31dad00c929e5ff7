"""Which engine or framework wrote the log. In: frames and the first lines; out: a name. Sample:

    File "/usr/lib/python3/dist-packages/sglang/srt/managers/scheduler.py", line 2500, in run_scheduler_process  -> "sglang"

Each engine's pattern (signatures/facts/engines.toml) is tried on the head of every source and on the files of all frames; the
heaviest wins, and an engine's frames inside one that wraps it do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from forensics.data import table
from forensics.ingest.compiled import pattern_of
from forensics.ingest.intake import Intake
from forensics.ingest.needles import needles_of_table
from forensics.model import Event
from forensics.model.record import record

_MAX_TEXTS = 6_000
_HEAD = 300


@record
class Engine:
    """A row of the table."""

    name: str
    title: str
    weight: int
    pattern: re.Pattern[str]
    wraps: tuple[str, ...]


@cache
def engines() -> tuple[Engine, ...]:
    """The engines of the table."""
    return tuple(
        Engine(row["name"], row["title"], row["weight"], pattern_of(row["pattern"]), tuple(row.get("wraps", ())))
        for row in table("facts/engines")["engine"]
    )


def engine(intake: Intake, events: Sequence[Event]) -> str | None:
    """The engine's name as in the table ("sglang"), None where nothing shows one."""
    texts = list(_texts(intake, events))
    small = [text.lower() for text in texts]
    words = "\n".join(small)
    seen: dict[str, int] = {}
    for row, needles in zip(engines(), needles_of_table("facts/engines", "engine", ("pattern",)), strict=True):
        wanted = needles["pattern"]
        if wanted is None:
            where: Iterable[str] = texts
        elif any(word in words for word in wanted):
            where = _holding(wanted, texts, small)
        else:
            continue  # most engines are nowhere named
        if count := sum(row.pattern.search(text) is not None for text in where):
            seen[row.name] = count
    if not seen:
        return None
    wrapped = {name for row in engines() if row.name in seen for name in row.wraps}
    rows = [row for row in engines() if row.name in seen and row.name not in wrapped] or [
        r for r in engines() if r.name in seen
    ]
    return max(rows, key=lambda row: (row.weight * min(seen[row.name], 50), row.weight)).name


def _holding(wanted: Sequence[str], texts: Sequence[str], small: Sequence[str]) -> Iterator[str]:
    """The texts that hold a wanted word; small: the same in small letters."""
    return (text for text, low in zip(texts, small, strict=True) if any(word in low for word in wanted))


def _texts(intake: Intake, events: Iterable[Event]) -> Iterator[str]:
    """First lines of every source, then files and modules of all frames, each text once."""
    budget = _MAX_TEXTS
    lines = intake.lines
    share = min(_HEAD, max(30, _MAX_TEXTS // max(1, 2 * len(intake.sources))))
    shown = {index for index, line in enumerate(lines) if line.number <= share} or set(range(min(len(lines), share)))
    for index in sorted(shown)[: _MAX_TEXTS // 2]:
        budget -= 1
        yield lines[index].raw[:600]
    once: set[str] = set()
    for event in events:
        chain = event.chain.exceptions if event.chain else ()
        stacks = [*(e.frames for e in chain), *(s.frames for s in event.stacks)]
        for text in (
            event.message[:300],
            *(f.path or f.module or f.function for frames in stacks for f in frames[:80]),
        ):
            if text and text not in once:
                once.add(text)
                budget -= 1
                yield text
        if budget <= 0:
            return
