"""Marked regions -> stacks and events, one module a dialect family. Public verbs: `anchors`, `parse`.

In: an `Intake` (retained lines that know their rank and time). Out: `Event`s of one kind each, ordered by (source, first line).
A parser is a module (or folder) of this package with two names: `ANCHORS`, the literals its lines hold, and
`parse(intake) -> list[Event]`. Parsers do not know one another: where two of them read the same lines, the verdict folds them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from forensics.model.source import Note

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
    "trtllm",
    "tvmffi",
    "ggml",
    "rocm",
    "device_assert",
    "device_error",
    "nccl",
    "watchdog",
    "desync",
    "stores",
    "flight_recorder",
    "torchelastic",
    "slurm",
    "mpirun",
    "launchers",
    "shells",
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
)


def _module(name: str) -> Any:
    return import_module(f"{__name__}.{name}")


def anchors() -> list[Anchor]:
    """The literals that all parsers need; literals that several want stand once for each of them."""
    return [anchor for name in PARSERS for anchor in _module(name).ANCHORS]


def parse(intake: Intake) -> list[Event]:
    """All events of all parsers. A parser that fails leaves a `Note` in `intake.notes`; the others go on."""
    events: list[Event] = []
    for name in PARSERS:
        try:
            events += _module(name).parse(intake)
        except Exception as error:  # a hostile log must never become the user's traceback
            intake.notes.append(Note("parse", f"the {name} parser gave up: {type(error).__name__}: {error}"[:500]))
    events.sort(key=lambda e: (e.span.source, e.span.first_line, e.span.last_line))
    return events
