"""How a row of a table becomes a `ProcessExit`. In: the groups of a row's pattern; out: fields, and an event with its type. Sample:

exit_of("deepspeed")({"code": "-9"}, line) -> {"exit": ProcessExit(-9, "SIGKILL", None, "deepspeed"), "by": "deepspeed"}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from forensics.model.event import Event, ProcessExit
from forensics.model.record import replace
from forensics.model.source import LogLine
from forensics.parse.signals import signal_in, signal_of_exit

Groups = Mapping[str, str | None]

#: groups that say the same as the ProcessExit made of them
_SPENT = ("words", "code", "signal_number")


def exit_of(by: str) -> Callable[[Groups, LogLine], Mapping[str, Any]]:
    """A row's `fill`: a ProcessExit from the groups `code`, `pid` and `words` (the signal in words)."""

    def fill(groups: Groups, line: LogLine) -> Mapping[str, Any]:
        code = int(groups["code"] or 0) if groups.get("code") else None
        pid = int(groups["pid"] or 0) if groups.get("pid") else None
        words = groups.get("words")
        signal = signal_in(words) if words else signal_of_exit(code) if code is not None else None
        return {"exit": ProcessExit(code, signal, pid, by), "by": by}

    return fill


def with_exit_type(event: Event) -> Event:
    """The event with its signal or "exit N" as type."""
    made = event.fields.get("exit")
    if event.type is not None or not isinstance(made, ProcessExit):
        return event
    kind = made.signal or (f"exit {made.code}" if made.code is not None else None)
    return replace(event, type=kind, fields={k: v for k, v in event.fields.items() if k not in _SPENT})
