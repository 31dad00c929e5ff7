"""The stage's verb. In: paths, "-", bytes; anchors; options. Out: `Intake`. Sample:

    read(["logs/", "-"], anchors)  ->  Intake(sources=(LogSource("logs/a.log", …), …), lines=[…], marks={…}, …)
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from forensics.errors import ForensicsError
from forensics.ingest.anchors import Anchor
from forensics.ingest.assemble import Assembly
from forensics.ingest.inputs import Opened, names_of, open_all
from forensics.ingest.intake import Intake
from forensics.ingest.options import DEFAULT, ReadOptions
from forensics.ingest.pulse import Pulse
from forensics.ingest.ranks import rank_of_name
from forensics.ingest.retain import Retainer
from forensics.ingest.scan import scan
from forensics.ingest.wants import Wants
from forensics.model.source import LogSource, Skipped

#: of many inputs each keeps less: these many bytes of whole small files and lines of heads and tails in all
_WHOLE_IN_ALL, _EDGES_IN_ALL = 4 * 1024 * 1024, 20_000


def shares(options: ReadOptions, inputs: int) -> tuple[int, int, int]:
    """(whole_below, edge_lines, budget) of one of so many inputs."""
    inputs = max(inputs, 1)
    whole = options.whole_below if inputs == 1 else min(options.whole_below, max(_WHOLE_IN_ALL // inputs, 2_000))
    edges = options.edge_lines if inputs == 1 else min(options.edge_lines, max(_EDGES_IN_ALL // inputs, 3))
    return whole, edges, max(options.budget // inputs, min(options.budget, 64 * 1024))


def read(
    inputs: Iterable[str | bytes | os.PathLike[str]], anchors: Iterable[Anchor], options: ReadOptions = DEFAULT
) -> Intake:
    """Reads everything and keeps what the anchors ask for.

    inputs: paths of files, folders and archives, glob patterns, "-" for standard input, or bytes. What cannot be read is named
    in `Intake.skipped`. Raises ForensicsError (exit code 4) where nothing at all can be read.
    """
    wants = Wants(anchors, options.engine)
    assembly = Assembly(wants.literals, options)
    given = list(inputs)
    missed: list[Skipped] = []
    names = names_of([item for item in given if not isinstance(item, bytes)], missed)
    ordered: list[str | bytes | os.PathLike[str]] = [item for item in given if isinstance(item, bytes)]
    ordered.extend(names)
    whole, edges, budget = shares(options, len(ordered))
    for opened in open_all(ordered, options, assembly.skipped):
        _read_one(opened, names, wants, options, assembly, whole, edges, budget)
    assembly.skipped.extend(missed)
    if not assembly.sources and not assembly.blobs and assembly.skipped:
        first = assembly.skipped[0]
        raise ForensicsError(
            f"cannot read {first.name}",
            why=first.why,
            help="give a file, a folder, an archive, a quoted pattern, or pipe the log in",
        )
    return assembly.intake()


def _read_one(
    opened: Opened, names: list[str], wants: Wants, options: ReadOptions, assembly: Assembly, whole: int, edges: int, budget: int
) -> None:
    if opened.blob is not None:
        assembly.blobs.append((opened.name, opened.blob))
        return
    retainer = Retainer(wants, budget, options.line_cap, whole)
    pulse = Pulse()
    scanned = scan(opened.stream, retainer, wants, options, tail_lines=edges, pulse=pulse)
    stream = opened.stream
    rank = rank_of_name(opened.name, names)
    source = LogSource(opened.name, scanned.bytes, scanned.lines, stream.encoding, stream.compression, rank)
    is_whole = scanned.bytes <= whole
    assembly.add(source, retainer, None if is_whole else pulse, is_whole)


def from_text(text: str, name: str = "log", anchors: Iterable[Anchor] = ()) -> Intake:
    """Every line of a text, for tests and for callers that have the text already. marks for the given anchors."""
    options = ReadOptions(whole_below=1 << 62)
    wants = Wants(anchors, options.engine)
    assembly = Assembly(wants.literals, options)
    for opened in open_all([text.encode("utf-8", "surrogateescape")], options, assembly.skipped):
        opened.name = name
        _read_one(opened, [name], wants, options, assembly, options.whole_below, 0, options.budget)
    return assembly.intake()
