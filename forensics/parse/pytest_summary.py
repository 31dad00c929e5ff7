"""Tests that failed, known from pytest's summary alone. In: an intake; out: PYTHON events without frames. Sample:

    =========================== short test summary info ============================
    FAILED tests/test_moe.py::test_fused_moe[fp8-128] - ValueError: bad head size
    ERROR tests/test_ops.py - ImportError: libcudart.so.12: cannot open shared object file
    ======================== 1 failed, 13 passed, 1 error in 82.11s =========================

Where the same source shows the failures themselves ("=== FAILURES ===") they are read there, by `python/pytest_style.py`. Format: pytest 8,
_pytest/terminal.py, short_test_summary: a reason is cut to the terminal's width.
"""

from __future__ import annotations

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.model.source import LogLine, Span
from forensics.model.stack import ExceptionChain, RaisedException
from forensics.parse.python.shapes import raised
from forensics.parse.reading import Lazy, hits

_HEADING = " short test summary info ="
#: lines behind the heading that are read
_MOST = 200

ANCHORS: tuple[Anchor, ...] = (Anchor(_HEADING.encode(), 1, _MOST, "pytest_summary"),)

_ROW = Lazy(r"^(?P<what>FAILED|ERROR) (?P<test>\S{1,400}?\.py(?:::.{1,400}?)?)(?: - (?P<reason>.{0,2000}))?\s*$")
_SHOWN = Lazy(r"^={3,200} (?:FAILURES|ERRORS) ={3,200}$")
_ENDS = Lazy(r"^=.{0,300}=$")


def parse(intake: Intake) -> list[Event]:
    """One event a test that failed, in sources that do not show how."""
    events: list[Event] = []
    lines = intake.lines
    for index in hits(intake, _HEADING):
        source = lines[index].source
        if any(line.source == source and line.text.startswith("===") and _SHOWN.search(line.text) for line in lines[:index]):
            continue
        for line in lines[index + 1 : index + 1 + _MOST]:
            if line.source != source or _ENDS.search(line.text[:400]):
                break
            if (row := _ROW.search(line.text)) is not None:
                events.append(_event(line, row["what"], row["test"], row["reason"] or ""))
    return events


def _event(line: LogLine, what: str, test: str, reason: str) -> Event:
    span = Span(line.source, line.number, line.number)
    found = raised(reason)
    # an assert that pytest took apart is told without its type
    name, message = found if found is not None else ("AssertionError" if reason.startswith("assert ") else None, reason)
    told = message or f"{test} failed"
    if name is None:
        return Event(
            EventKind.MESSAGE, span, rank=line.rank, time=line.time, message=told, parser="pytest_summary", stream=line.stream,
            fields={"level": "ERROR", "test": test},
        )  # fmt: skip
    chain = ExceptionChain((RaisedException(name, told, (), None, span),), span, line.rank, line.time, test, stream=line.stream)
    return Event(
        EventKind.PYTHON, span, rank=line.rank, time=line.time, type=name, message=told, chain=chain, parser="pytest_summary",
        stream=line.stream, fields={"style": "pytest", "test": test, "what": what},
    )  # fmt: skip
