"""Ascend's own error reports, as CANN prints them outside of any Python exception. In: an intake; out: MESSAGE events. Samples:

    EE1002: 2026-11-29-20:15:45.100.200 Stream synchronize timeout. rtStreamSynchronize execute failed, reason=[stream sync timeout]
    -> MESSAGE level ERROR, fields {"code": "EE1002"}
    EH9999: Inner Error!
            rtDeviceSynchronize execute failed, reason=[task timeout][FUNC:FuncErrorReason][FILE:error_message_manage.cc][LINE:53]
    -> MESSAGE level ERROR, message from "rtDeviceSynchronize" on, fields {"reason": "task timeout"}
"""

from __future__ import annotations

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.parse.rows import Row, Table

#: collectives and links, the runtime, the driver: codes that say what happened
_CODES = ("EI0002", "EI0004", "EI0006", "EI9999", "EJ0001", "EJ0002", "EL0004", "EE1002")
_SAYS = r"(?P<message>\b(?P<code>E[A-Z]\d{4}): (?:\[PID: ?\d{1,10}\] )?(?:\d{4}-\d\d-\d\d-[\d:.]{8,20} +)?(?!Inner Error)\S.*)$"

_TABLE = Table(
    "ascend",
    (
        *(Row(f"{code}: ", EventKind.MESSAGE, _SAYS, level="ERROR", unless=("Error: ",), after=6) for code in _CODES),
        Row(
            " execute failed, reason=[",
            EventKind.MESSAGE,
            r"(?P<message>\brt[A-Z]\w{2,40} execute failed, reason=\[(?P<reason>[^\]]{1,80})\].*)$",
            level="ERROR",
            unless=("Error: ",),
        ),
    ),
)

ANCHORS: tuple[Anchor, ...] = _TABLE.anchors()


def parse(intake: Intake) -> list[Event]:
    """Error reports of CANN, alike ones folded."""
    return _TABLE.read(intake)
