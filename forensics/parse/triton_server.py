"""Triton Inference Server: the table of models at start, whose rows say which could not be loaded. In: an intake; out: MESSAGE events.
Sample:

    +----------+---------+----------------------------------------------------------+
    | Model    | Version | Status                                                   |
    +----------+---------+----------------------------------------------------------+
    | resnet   | 1       | READY                                                    |
    | encoder  | 1       | UNAVAILABLE: Internal: unable to create TensorRT engine: |
    |          |         | no such file                                             |
    -> MESSAGE "unable to create TensorRT engine: no such file", fields {"model": "encoder", "version": "1", "status": "Internal"}
    E1129 20:15:20.250000 71 model_lifecycle.cc:621] failed to load 'm' version 1: Invalid argument: no such output
    -> MESSAGE "no such output", fields {"model": "m", "version": "1", "status": "Invalid argument"}
    error: creating server: Invalid argument - load failed for model 'm': version 1 is at UNAVAILABLE state: Internal: no such file;
    -> MESSAGE "no such file;", fields {"model": "m", "version": "1", "status": "Internal"}

The server leaves by itself unless --exit-on-error=false; that it does is told elsewhere ("error: creating server: …").
"""

from __future__ import annotations

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.model.source import LogLine
from forensics.parse.reading import Lazy, fold, following, hits, make

_STATUS = "| UNAVAILABLE: "
_STATE = " is at UNAVAILABLE state: "
_LIFECYCLE = "failed to load '"
_SUCCESS = "successfully loaded '"

ANCHORS: tuple[Anchor, ...] = (
    Anchor(_STATUS.encode(), 0, 60, "triton_server"),
    Anchor(_STATE.encode(), 0, 1, "triton_server"),
    Anchor(_LIFECYCLE.encode(), 0, 1, "triton_server"),
    Anchor(_SUCCESS.encode(), 0, 0, "triton_server"),
)

_CODE = r"(?:(?P<status>Internal|Not found|Invalid argument|Unavailable|Unsupported|Already exists|Unknown): )?"
_ROW = Lazy(r"^\s*\| (?P<model>[\w./<>@-]{1,200}) *\| (?P<version>-?\d{1,10}) *\| UNAVAILABLE: " + _CODE + r"(?P<message>[^|]*)")
_LOADED = Lazy(
    r"load failed for model '(?P<model>[^']{1,200})': version (?P<version>-?\d{1,10}) is at UNAVAILABLE state: "
    + _CODE
    + r"(?P<message>\S.*)$"
)
_UNLOADED = Lazy(r"failed to load '(?P<model>[^']{1,200})' version (?P<version>-?\d{1,10}): " + _CODE + r"(?P<message>\S.*)$")
_MADE = Lazy(r"successfully loaded '(?P<model>[^']{1,200})'")
_MORE = Lazy(r"^\s*\| +\| +\| (?P<message>.*?) *\|?\s*$")
#: rows that a wrapped status may go on for
_MOST_ROWS = 60


def parse(intake: Intake) -> list[Event]:
    """One event a model that could not be loaded, alike ones folded."""
    events = []
    for index in hits(intake, _STATUS):
        line = intake.lines[index]
        row = _ROW.search(line.text)
        if row is None:
            continue
        said, last = [row["message"].strip()], line
        for _, after in following(intake, index, _MOST_ROWS):
            more = _MORE.match(after.text)
            if more is None:
                break
            said.append(more["message"])
            last = after
        fields = {"model": row["model"], "version": row["version"]}
        if row["status"]:
            fields["status"] = row["status"]
        events.append(
            make(
                EventKind.MESSAGE,
                line,
                last,
                parser="triton_server",
                message="\n".join(said).strip(),
                fields=fields,
                level="ERROR",
            )
        )
    # the last word on each model: one that was loaded in the end is none that could not be
    loaded = {found["model"]: index for index in hits(intake, _SUCCESS) if (found := _MADE.search(intake.lines[index].text))}
    for literal, pattern in ((_STATE, _LOADED), (_LIFECYCLE, _UNLOADED)):
        for index in hits(intake, literal):
            event = _refused(intake.lines[index], pattern)
            if event is not None and loaded.get(event.fields["model"], -1) < index:
                events.append(event)
    return fold(events)


def _refused(line: LogLine, pattern: Lazy) -> Event | None:
    """A line of the server with the model's status inside of it: the words before it name no cause."""
    found = pattern.search(line.text)
    if found is None:
        return None
    fields = {name: found[name] for name in ("model", "version", "status") if found[name]}
    return make(EventKind.MESSAGE, line, parser="triton_server", message=found["message"], fields=fields, level="ERROR")
