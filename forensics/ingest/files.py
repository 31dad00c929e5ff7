"""The files of a run, one after the other or shared among processes. In: names, bytes; out: `Taken` records in order. Sample:

read_all(["rank_0.log", "rank_1.log", …], wants, options, assembly)
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from forensics.ingest.assemble import Assembly, Taken, take
from forensics.ingest.calm import Calm
from forensics.ingest.inputs import Opened, open_all
from forensics.ingest.news import News
from forensics.ingest.options import ReadOptions
from forensics.ingest.pulse import Pulse
from forensics.ingest.retain import Retainer
from forensics.ingest.scan import scan
from forensics.ingest.wants import Wants
from forensics.model.record import replace
from forensics.model.source import Skipped

#: from here on several processes share a file
BIG = 64 * 1024 * 1024
#: of many inputs each keeps less: bytes of whole small files, lines of heads and tails, in all
_WHOLE_IN_ALL, _EDGES_IN_ALL = 4 * 1024 * 1024, 20_000
#: with more inputs than this one without a hit keeps its last line only
_FEW = 256
_OPENING = 20_000


class Shares:
    """What one of so many inputs may keep: bytes kept whole, lines of its tail, bytes of its regions. common: templates
    that inputs of this process have in common."""

    __slots__ = ("budget", "common", "edges", "few", "whole")

    def __init__(self, options: ReadOptions, inputs: int) -> None:
        inputs = max(inputs, 1)
        self.few = inputs <= _FEW
        self.common: dict[int, int] | None = None if self.few else {}
        self.whole = options.whole_below if inputs == 1 else min(options.whole_below, _WHOLE_IN_ALL // inputs)
        self.edges = options.edge_lines if inputs == 1 else min(options.edge_lines, max(_EDGES_IN_ALL // inputs, 1))
        if not self.few:
            self.edges = min(self.edges, 1)
        self.budget = max(options.budget // inputs, min(options.budget, 64 * 1024))


class _Progress:
    """Adds up what was read of all inputs, for `ReadOptions.on_progress`."""

    def __init__(self, options: ReadOptions, sizes: Sequence[int | None]) -> None:
        self._tell = options.on_progress
        self._total = None if None in sizes else sum(size or 0 for size in sizes)
        self._done = 0

    def add(self, size: int) -> None:
        """So many bytes more."""
        self._done += size
        if self._tell is not None:
            self._tell(self._done, self._total)


def read_all(items: Sequence[str | bytes], wants: Wants, options: ReadOptions, assembly: Assembly) -> None:
    """Reads every input, in order, into the assembly."""
    shares = Shares(options, len(items))
    sizes = [_size(item) for item in items]
    parts = _parts(items, sizes, options)
    progress = _Progress(options, sizes) if options.on_progress is not None else None
    if len(parts) == 1:
        _fill(assembly, items, wants, options, shares, progress.add if progress is not None else None)
        return
    from forensics.ingest.parcel import pack, unpack
    from forensics.ingest.pieces import in_processes

    wants.engine.scan(b"")  # built once, before the fork
    alone = replace(options, processes=1)
    report = (lambda done: progress.add(done * len(parts))) if progress is not None else None

    def apart(part: Sequence[str | bytes]) -> Callable[[], Any]:
        return lambda: pack(_fill(assembly.apart(), part, wants, alone, shares, None))

    jobs = [lambda: _fill(assembly, parts[0], wants, alone, shares, report), *map(apart, parts[1:])]
    for parcel in in_processes(jobs)[1:]:
        unpack(parcel, assembly)


def _fill(
    assembly: Assembly,
    items: Sequence[str | bytes],
    wants: Wants,
    options: ReadOptions,
    shares: Shares,
    progress: Callable[[int], None] | None,
) -> Assembly:
    """Reads inputs into an assembly."""
    for taken in _taken(items, wants, options, shares, assembly.skipped, assembly.blobs, progress):
        _put(assembly, taken)
    return assembly


def _put(assembly: Assembly, taken: Taken) -> None:
    try:
        assembly.add(taken)
    except Exception as error:  # one source that we cannot take must not cost the others
        assembly.skipped.append(_own_error(taken.name, error))


def _own_error(name: str, error: Exception) -> Skipped:
    """What a source made us stumble over, said where it would have been read."""
    if os.environ.get("FORENSICS_DEBUG"):
        raise error
    return Skipped(name, f"an error of its own while reading it: {type(error).__name__}: {error}"[:300])


def _taken(
    items: Sequence[str | bytes],
    wants: Wants,
    options: ReadOptions,
    shares: Shares,
    skipped: list[Skipped],
    blobs: list[tuple[str, bytes]],
    progress: Callable[[int], None] | None,
) -> Iterator[Taken]:
    """What is left of each input, in order; what could not be read goes to `skipped`, side inputs to `blobs`."""
    calm = None if shares.few else Calm(wants, shares.whole)
    for number, item in enumerate(items, 1):
        quiet = calm.taken(item) if calm is not None and isinstance(item, str) else None
        if quiet is not None:
            if progress is not None:
                progress(quiet.size)
            yield quiet
            continue
        for opened in open_all([item], options, skipped, number):
            if opened.blob is not None:
                blobs.append((opened.name, opened.blob))
                continue
            try:
                yield take_one(opened, wants, options, shares, progress)
            except Exception as error:
                skipped.append(_own_error(opened.name, error))


def _size(item: str | bytes) -> int | None:
    """Bytes of a regular file; None where nobody knows."""
    if isinstance(item, bytes):
        return len(item)
    try:
        status = os.stat(item)
    except OSError:
        return 0 if item != "-" else None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _parts(
    items: Sequence[str | bytes], sizes: Sequence[int | None], options: ReadOptions
) -> list[Sequence[str | bytes]]:
    """The inputs cut into one row a process, of about the same work; one row where more do not pay off."""
    if len(items) < 2 or None in sizes or any(isinstance(item, bytes) for item in items):
        return [items]
    from forensics.ingest.pieces import processes_for

    # opening a file costs as much as reading some of it
    works = [(size or 0) + _OPENING for size in sizes]
    total = sum(works)
    # one file that outweighs the others is cut itself
    if max(works) > total * 0.6:
        return [items]
    count = min(processes_for(options, total), len(items))
    parts: list[Sequence[str | bytes]] = []
    start = done = 0
    for index, work in enumerate(works):
        done += work
        if done >= total * (len(parts) + 1) / count and len(parts) < count - 1:
            parts.append(items[start : index + 1])
            start = index + 1
    parts.append(items[start:])
    return [part for part in parts if part]


def take_one(
    opened: Opened,
    wants: Wants,
    options: ReadOptions,
    shares: Shares,
    progress: Callable[[int], None] | None = None,
) -> Taken:
    """Scans one open input."""
    in_pieces = None
    if opened.path is not None and opened.size is not None and opened.size > max(BIG, shares.whole):
        from forensics.ingest.pieces import scan_file

        in_pieces = scan_file(opened.path, opened.size, wants, options, shares.budget, shares.edges, progress)
    if in_pieces is not None:
        scanned, retainer, pulse = in_pieces
    else:
        retainer = Retainer(wants, shares.budget, options.line_cap, common=shares.common)
        pulse = Pulse()
        scanned = scan(
            opened.stream, retainer, wants, whole=shares.whole, head_lines=shares.edges if shares.few else 0, tail_lines=shares.edges,
            pulse=pulse if shares.few else None, progress=progress,
            news=News(wants, options.on_news) if options.on_news is not None and opened.name == "-" else None,
        )  # fmt: skip
    stream = opened.stream
    taken = take(
        opened.name, stream.encoding, stream.compression, scanned, retainer, pulse, scanned.bytes <= shares.whole
    )
    if not shares.few and not taken.whole and not retainer.fold.counts and taken.kept:
        # of one of very many inputs that says nothing: its last sign of life
        return taken._replace(kept=[], sightings=taken.kept[-1:], whole=False)
    return taken
