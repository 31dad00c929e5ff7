"""Marked regions -> stacks and events, one module a dialect family. Public verbs: `anchors`, `parse`.

In: an `Intake` (retained lines that know their rank and time). Out: `Event`s of one kind each, ordered by (source, first line).
A parser is a module (or folder) of this package with two names: `ANCHORS`, the literals its lines hold, and
`parse(intake) -> list[Event]`. Parsers do not know one another: where two of them read the same lines, the verdict folds them.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from forensics import data
from forensics.model.source import Note, Span

if TYPE_CHECKING:
    from forensics.ingest.anchors import Anchor
    from forensics.ingest.intake import Intake
    from forensics.model.event import Event
    from forensics.model.source import LogLine

__all__ = ["PARSERS", "anchors", "parse"]

#: the parsers, each once: a submodule of this package that has ANCHORS and parse(intake)
PARSERS: tuple[str, ...] = (
    "python",
    "terminate",
    "glog",
    "handlers",
    "debugger",
    "trtllm",
    "triton_server",
    "tvmffi",
    "ggml",
    "rocm",
    "device_assert",
    "device_error",
    "nccl",
    "watchdog",
    "desync",
    "horovod",
    "stores",
    "flight_recorder",
    "torchelastic",
    "slurm",
    "batch",
    "mpirun",
    "launchers",
    "shells",
    "supervisors",
    "kernel_log",
    "oom_killer",
    "kernel_trace",
    "llvm",
    "build",
    "glibc",
    "panics",
    "runtimes",
    "sanitizer",
    "xla",
    "engines",
    "lifecycle",
    "progress",
    "interrupts",
)


#: of what repeats: lines, those first that repeat most; of a source events that stand for several lines; events that may reach over a line
_REPEATED, _FOLDED, _NEAR = 20_000, 200, 64

#: when this process began to import parsers
_BEGAN = time.time()


def _module(name: str) -> Any:
    return import_module(f"{__name__}.{name}")


def anchors() -> list[Anchor]:
    """The literals that all parsers need; literals that several want stand once for each of them."""
    return list(_anchors())


@cache
def _anchors() -> tuple[Anchor, ...]:
    from forensics.ingest.anchors import Anchor

    rows = [row for rows in _literals().values() for row in rows]
    return tuple(Anchor(literal.encode("latin-1"), before, after, owner) for literal, before, after, owner in rows)


def anchors_part() -> tuple[str, Callable[[], dict[str, Any]]]:
    """(key, how to make it): the anchors as a compiled table, for the cache and the wheel."""
    return "parse/anchors", _read_literals


def parse(intake: Intake) -> list[Event]:
    """All events of all parsers. A parser that fails leaves a `Note` in `intake.notes`; the others go on.

    A parser none of whose literals the scan met is not even imported: it would find nothing.
    """
    events: list[Event] = []
    for name in _wanted(intake):
        try:
            events += _module(name).parse(intake)
        except Exception as error:  # a hostile log must never become the user's traceback
            if os.environ.get("FORENSICS_DEBUG"):
                raise
            told = f"the {name} parser gave up: {type(error).__name__}: {error}"[:500]
            intake.notes.append(Note("parse", told, hides=True))
    events.sort(key=lambda e: (e.span.source, e.span.first_line, e.span.last_line))
    return _with_repeats(events, intake) if intake.repeats else events


def _with_repeats(events: list[Event], intake: Intake) -> list[Event]:
    """The same, each counted as often as the line that says it was seen, not only as often as it was kept. Error lines were counted
    so when they were folded."""
    from forensics.model.event import EventKind
    from forensics.model.record import replace

    more = [0] * len(events)
    starts = [(event.span.source, event.span.first_line) for event in events]
    own = [event.kind is not EventKind.MESSAGE or event.parser != "python" for event in events]
    said = [(event.message or event.type or "").partition("\n")[0][:60] for event in events]
    folded: dict[int, list[int]] = {}
    for index, event in enumerate(events):
        if own[index] and event.count > 1 and len(of_source := folded.setdefault(event.span.source, [])) < _FOLDED:
            of_source.append(index)
    for (source, number), times in sorted(intake.repeats.items(), key=lambda item: (-item[1], item[0]))[:_REPEATED]:
        for line in intake.between(Span(source, number, number))[:1]:
            last = bisect_right(starts, (source, number))
            near = (index for index in range(last - 1, max(-1, last - _NEAR), -1) if events[index].span.source == source)
            here = [i for i in near if own[i] and events[i].span.last_line >= number and _says(said[i], events[i], line)]
            alike = [i for i in folded.get(source, ()) if events[i].rank == line.rank and said[i] in line.text]
            saying = [*here, *(index for index in alike if said[index])]
            for index in {events[index].parser: index for index in reversed(saying)}.values():  # one of each parser
                more[index] += times
    return [replace(event, count=event.count + plus) if plus else event for event, plus in zip(events, more, strict=True)]


def _says(said: str, event: Event, line: LogLine) -> bool:
    return event.span.first_line == event.span.last_line or (bool(said) and said in line.text)


def _wanted(intake: Intake) -> list[str]:
    """The parsers that may find something; all of them where the intake was not scanned."""
    if (intake.lines and not intake.scanned) or intake.blobs:
        return list(PARSERS)
    met = {literal.decode("latin-1") for literal in intake.marks}
    every = _literals()
    return [name for name in PARSERS if not every.get(name) or any(row[0] in met for row in every[name])]


@cache
def _literals() -> dict[str, list[list[Any]]]:
    """Parser -> its anchors as [literal, before, after, owner]; from the cache, so that a start imports no parser.

    A parser that cannot be imported is left out: it counts as wanted, and leaves its note when it is asked to parse.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    sources = [os.path.join(top, file) for top, _, files in os.walk(here) for file in files if file.endswith(".py")]
    try:
        if data.edited_since(sources, _BEGAN):  # edited while we run: what was imported may not be what stands there now
            return _read_literals()
        key, build = anchors_part()
        found: dict[str, list[list[Any]]] = data.compiled(key, data.stamp_of(sorted(sources)), build)
        return found
    except Exception:
        if os.environ.get("FORENSICS_DEBUG"):
            raise
        return _readable_literals()


def _read_literals() -> dict[str, Any]:
    return {name: _literals_of(name) for name in PARSERS}


def _readable_literals() -> dict[str, Any]:
    """Those of the parsers that can be imported; never for the cache."""
    found = {}
    for name in PARSERS:
        try:
            found[name] = _literals_of(name)
        except Exception:  # told by `parse`, which asks this parser, too
            continue
    return found


def _literals_of(name: str) -> list[list[Any]]:
    return [[row.literal.decode("latin-1"), row.before, row.after, row.owner] for row in _module(name).ANCHORS]
