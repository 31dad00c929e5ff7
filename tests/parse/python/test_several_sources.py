"""Tracebacks of several short files."""

from __future__ import annotations

from pathlib import Path

from forensics.ingest.options import ReadOptions
from forensics.ingest.read import read
from forensics.model.event import EventKind
from forensics.parse import python

TEXT = """\
step 1
Traceback (most recent call last):
  File "/j/run.py", line 9, in <module>
    main()
ValueError: file {}
step 2
"""


def test_each_short_file_has_its_own_traceback(tmp_path: Path) -> None:
    paths = []
    for number in range(6):
        paths.append(tmp_path / f"{number}.log")
        paths[-1].write_text(TEXT.format(number), encoding="utf-8")
    events = python.parse(read(paths, python.ANCHORS, ReadOptions()))
    assert [(e.kind, e.span.source, e.message.split("\n")[0]) for e in events] == [(EventKind.PYTHON, n, f"file {n}") for n in range(6)]
