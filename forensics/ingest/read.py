"""The stage's verb. In: paths, "-", bytes; anchors; options. Out: `Intake`. Sample:

read(["logs/", "-"], anchors)  ->  Intake(sources=(LogSource("logs/a.log", …), …), lines=[…], marks={…}, …)
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from forensics.errors import ForensicsError
from forensics.ingest.anchors import Anchor
from forensics.ingest.assemble import Assembly
from forensics.ingest.files import read_all, take_one
from forensics.ingest.inputs import names_of, open_all
from forensics.ingest.intake import Intake
from forensics.ingest.options import DEFAULT, ReadOptions
from forensics.ingest.shares import Shares
from forensics.ingest.wants import wants_of
from forensics.model.source import Skipped


def read(
    inputs: Iterable[str | bytes | os.PathLike[str]], anchors: Iterable[Anchor], options: ReadOptions = DEFAULT
) -> Intake:
    """Reads everything and keeps what the anchors ask for.

    inputs: paths of files, folders and archives, glob patterns, "-" for standard input, or bytes. What cannot be read is named
    in `Intake.skipped`. Raises ForensicsError (exit code 4) where nothing at all can be read.
    """
    wants = wants_of(tuple(anchors), options.engine)
    given = list(inputs)
    missed: list[Skipped] = []
    names = names_of([item for item in given if not isinstance(item, bytes)], missed)
    contents = [item for item in given if isinstance(item, bytes)]
    assembly = Assembly(wants, names)
    assembly.skipped.extend(missed)
    read_all([*contents, *names], wants, options, assembly, listed=names.listed and not contents)
    if not assembly.sources and not assembly.blobs and assembly.skipped:
        first = assembly.skipped[0]
        raise ForensicsError(
            f"cannot read {first.name}",
            why=first.why,
            help="give a file, a folder, an archive, a quoted pattern, or pipe the log in",
        )
    return assembly.intake()


def from_text(text: str, name: str = "log", anchors: Iterable[Anchor] = ()) -> Intake:
    """Every line of a text, for tests and for callers that have the text already. marks for the given anchors."""
    options = ReadOptions(whole_below=1 << 62)
    wants = wants_of(tuple(anchors), options.engine)
    assembly = Assembly(wants, [name])
    for opened in open_all([text.encode("utf-8", "surrogateescape")], options, assembly.skipped):
        opened.name = name
        assembly.add(take_one(opened, wants, options, Shares(options, 1)))
    return assembly.intake()
