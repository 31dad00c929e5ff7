"""The kernel's call traces. In: an intake and the line before the trace; out: frames, innermost first as printed. Sample:

[  812.3] Call Trace:
[  812.5]  nv_open_device+0x12/0x40 [nvidia]
[  812.6]  ? do_syscall_64+0x5c/0x90
-> [(2, Frame("nv_open_device", module="nvidia"))]          ("?": the unwinder was not sure, left out)
"""

from __future__ import annotations

from forensics.ingest.intake import Intake
from forensics.model.stack import Frame
from forensics.parse.reading import Lazy, following

_CALL = Lazy(r"(?:^|[\]\s])(\? )?([\w.]{2,120})\+0x[0-9a-f]+/0x[0-9a-f]+(?: \[([\w-]{1,60})\])?\s*$")

#: what ends a trace, or begins another report
_END = ("---[ end trace", "blocked for more than ", "NVRM: Xid")


def call_trace(intake: Intake, index: int, reach: int = 60) -> list[tuple[int, Frame]]:
    """The frames of the first call trace within `reach` lines after `index`; empty without one."""
    frames: list[tuple[int, Frame]] = []
    for at, line in following(intake, index, reach):
        found = _CALL.search(line.text)
        if found and not found[1]:
            frames.append((at, Frame(found[2], module=found[3], log_line=line.number)))
        elif (frames and "</TASK>" in line.text) or any(text in line.text for text in _END):
            break
    return frames
