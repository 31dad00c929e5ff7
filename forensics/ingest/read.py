"""The stage's verb. In: paths, "-", bytes; anchors; options. Out: `Intake`. Sample:

    read(["logs/", "-"], anchors)  ->  Intake(sources=(LogSource("logs/a.log", …), …), lines=[…], marks={…}, …)
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from forensics.errors import ForensicsError
from forensics.ingest.activity import activity_of
from forensics.ingest.anchors import Anchor
from forensics.ingest.decode import guess_encoding, text_of
from forensics.ingest.intake import Intake
from forensics.ingest.lines import LineMaker, settle
from forensics.ingest.marks import marks_of
from forensics.ingest.options import DEFAULT, ReadOptions
from forensics.ingest.ranks import rank_of_name
from forensics.model.source import LogSource


def read(inputs: Iterable[str | bytes | os.PathLike[str]], anchors: Iterable[Anchor], options: ReadOptions = DEFAULT) -> Intake:
    """Reads everything and keeps what the anchors ask for. Raises ForensicsError where nothing at all can be read."""
    sources: list[LogSource] = []
    lines = []
    for item in inputs:
        if isinstance(item, bytes):
            name, data = f"input {len(sources) + 1}", item
        elif item == "-":
            name, data = "-", sys.stdin.buffer.read()
        else:
            name = os.fspath(item)
            try:
                with open(name, "rb") as file:
                    data = file.read()
            except OSError as error:
                raise ForensicsError(f"cannot read {name}", why=error.strerror or "") from error
        encoding = guess_encoding(data)
        texts = data.decode(encoding, "replace").split("\n") if encoding != "utf-8" else [text_of(x) for x in data.split(b"\n")]
        if texts and not texts[-1]:
            texts.pop()
        maker = LineMaker(len(sources), rank_of_name(name), texts[:400])
        for number, text in enumerate(texts, 1):
            maker.add(number, text)
        lines.extend(settle(maker.lines, maker.watch))
        sources.append(
            LogSource(name, len(data), len(texts), encoding, default_rank=rank_of_name(name), clock=maker.watch.clock())
        )
    intake = Intake(sources=tuple(sources), lines=lines)
    intake.marks = marks_of(lines, (anchor.literal for anchor in anchors), options.engine)
    intake.activity = activity_of(lines)
    return intake


def from_text(text: str, name: str = "log", anchors: Iterable[Anchor] = ()) -> Intake:
    """Every line of a text, for tests and for callers that have the text already. marks for the given anchors."""
    intake = read([text.encode("utf-8", "surrogateescape")], anchors, ReadOptions(whole_below=1 << 62))
    first = intake.sources[0] if intake.sources else LogSource(name)
    default = rank_of_name(name)
    renamed = LogSource(name, first.bytes, first.lines, first.encoding, default_rank=default, clock=first.clock)
    intake.sources = (renamed,)
    if default is not None:
        intake.lines = [
            line._replace(rank=default, stream=default.label) if line.rank is None and not line.stream else line
            for line in intake.lines
        ]
    return intake
