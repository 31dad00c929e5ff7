"""Marked regions -> stacks and events, one module a dialect family. Public verbs: `anchors`, `parse`.

In: an `Intake` (retained lines that know their rank and time). Out: `Event`s of one kind each, ordered by (source, first line).
A parser is a module (or folder) of this package with two names: `ANCHORS`, the literals its lines hold, and
`parse(intake) -> list[Event]`. Parsers do not know one another: where two of them read the same lines, the verdict folds them.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left, bisect_right
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

__all__ = ["PARSERS", "anchors", "parse"]

#: the parsers, each once: a submodule of this package that has ANCHORS and parse(intake)
PARSERS: tuple[str, ...] = (
    "python",
    "terminate",
    "glog",
    "handlers",
    "debugger",
    "pystack",
    "trtllm",
    "triton_server",
    "tvmffi",
    "ggml",
    "rocm",
    "accelerators",
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
    "clouds",
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
    "pytest_summary",
)


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
    """The same, each counted as often as it was seen, not only as often as it was kept. What was let go is counted at the last copy
    that was kept, and that is where an event ends into which its copies were folded. Error lines were counted so when they were read."""
    from forensics.model.event import EventKind
    from forensics.model.record import replace

    told: dict[int, list[int]] = {}
    for source, number in sorted(intake.repeats):
        told.setdefault(source, []).append(number)
    taken: set[tuple[str, int, int]] = set()  # several parsers may count a line, each once
    found = []
    for event in events:
        where, more = event.last or event.span, 0
        numbers = told.get(where.source, ()) if event.kind is not EventKind.MESSAGE or event.parser != "python" else ()
        for number in numbers[bisect_left(numbers, where.first_line) : bisect_right(numbers, where.last_line)]:
            if (event.parser, where.source, number) not in taken and _says(event, where, number, intake):
                taken.add((event.parser, where.source, number))
                more = max(more, intake.repeats[where.source, number])
        found.append(replace(event, count=event.count + more) if more else event)
    return found


def _says(event: Event, where: Span, number: int, intake: Intake) -> bool:
    """True where a line is what the event is about: all of its lines, or the one with its words."""
    said = (event.message or event.type or "").partition("\n")[0][:60]
    lines = intake.between(Span(where.source, number, number))
    return where.first_line == where.last_line or any(said and said in line.text for line in lines)


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
