"""The files of a run, one after the other or shared among processes. In: names, bytes; out: `Taken` records in order. Sample:

read_all(["rank_0.log", "rank_1.log", …], wants, options, assembly)
"""

from __future__ import annotations

import os
import stat
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, islice, pairwise
from typing import Any

from forensics.ingest.assemble import Assembly, Taken, take
from forensics.ingest.inputs import Opened, open_all
from forensics.ingest.news import News
from forensics.ingest.options import ReadOptions
from forensics.ingest.pulse import Pulse
from forensics.ingest.retain import Retainer
from forensics.ingest.scan import scan
from forensics.ingest.shares import Shares
from forensics.ingest.small import LISTED, Small
from forensics.ingest.wants import Wants
from forensics.model.record import replace
from forensics.model.source import Skipped

#: from here on several processes share a file
BIG = 64 * 1024 * 1024
_OPENING = 60_000
#: of very many files so many are read before their lines are made: each of the two finds the processor's caches as it left them
_BATCH = 256

#: from so many files on the sizes of some tell how to share them: asking each takes as long as reading three of a hundred
_MANY, _SAMPLED = 1_024, 16

#: an input, and its bytes where it is a regular file, or LISTED
Sized = tuple[str | bytes, int | None]


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


def read_all(
    items: Sequence[str | bytes], wants: Wants, options: ReadOptions, assembly: Assembly, listed: bool = False
) -> None:
    """Reads every input, in order, into the assembly. listed: all are plain files that were just listed in their folders."""
    shares = Shares(options, len(items))
    sampled = listed and len(items) >= _MANY and options.on_progress is None
    sizes: Sequence[int | None] = _sampled(items) if sampled else [_size(item) for item in items]
    sized: list[Sized] = [(item, LISTED) for item in items] if sampled else list(zip(items, sizes, strict=True))
    parts = _parts(sized, sizes, options)
    progress = _Progress(options, sizes) if options.on_progress is not None else None
    if len(parts) == 1:
        _fill(assembly, sized, wants, options, shares, progress.add if progress is not None else None)
        return
    from forensics.ingest.parcel import pack, unpack
    from forensics.ingest.pieces import in_processes

    wants.engine.scan(b"")  # built once, before the fork
    # a giant that the sample has missed is still shared by several
    alone = replace(options, processes=options.processes if sampled else 1, meanwhile=None)
    report = (lambda done: progress.add(done * len(parts))) if progress is not None else None

    def apart(part: Sequence[Sized]) -> Callable[[], Any]:
        return lambda: pack(_fill(assembly.apart(), part, wants, alone, shares, None))

    jobs = [lambda: _fill(assembly, parts[0], wants, alone, shares, report), *map(apart, parts[1:])]
    for parcel in in_processes(jobs, options.meanwhile)[1:]:
        unpack(parcel, assembly)


def _fill(
    assembly: Assembly,
    items: Sequence[Sized],
    wants: Wants,
    options: ReadOptions,
    shares: Shares,
    progress: Callable[[int], None] | None,
) -> Assembly:
    """Reads inputs into an assembly."""
    found = _taken(items, wants, options, shares, assembly.skipped, assembly.blobs, progress)
    while batch := list(islice(found, 1 if shares.few else _BATCH)):
        for taken in batch:
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
    items: Sequence[Sized],
    wants: Wants,
    options: ReadOptions,
    shares: Shares,
    skipped: list[Skipped],
    blobs: list[tuple[str, bytes]],
    progress: Callable[[int], None] | None,
) -> Iterator[Taken]:
    """What is left of each input, in order; what could not be read goes to `skipped`, side inputs to `blobs`."""
    small = None if shares.few else Small(wants, shares, options.line_cap)
    for number, (item, size) in enumerate(items, 1):
        if small is not None and isinstance(item, str):
            try:
                taken = small.taken(item, size)
            except Exception as error:
                skipped.append(_own_error(item, error))
                continue
            if taken is not None:
                if progress is not None:
                    progress(taken.size)
                yield taken
                continue
        for opened in open_all([item], options, skipped, number, size is not None):
            if opened.blob is not None:
                blobs.append((opened.name, opened.blob))
                continue
            try:
                taken = take_one(opened, wants, options, shares, progress)
            except Exception as error:
                skipped.append(_own_error(opened.name, error))
                continue
            if opened.size is not None and taken.size < opened.size:
                said = f"it became shorter while it was read: {taken.size:,} of its {opened.size:,} bytes were left"
                skipped.append(Skipped(opened.name, said, opened.size - taken.size))
            yield taken


def _size(item: str | bytes) -> int | None:
    """Bytes of a regular file; None where nobody knows."""
    if isinstance(item, bytes):
        return len(item)
    try:
        status = os.stat(item)
    except OSError:
        return 0 if item != "-" else None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _sampled(items: Sequence[str | bytes]) -> Sequence[int | None]:
    """For each input the bytes of one of its neighbours in the list, or its own."""
    return [size for item in items[::_SAMPLED] for size in [_size(item) or 0] * _SAMPLED][: len(items)]


def _parts(items: Sequence[Sized], sizes: Sequence[int | None], options: ReadOptions) -> list[Sequence[Sized]]:
    """The inputs cut into one row a process, of about the same work, less for the first where it has something else to do; one row where
    more do not pay off."""
    if len(items) < 2 or None in sizes or any(isinstance(item, bytes) for item, _ in items):
        return [items]
    from forensics.ingest.pieces import MEANWHILE, processes_for

    # opening a file costs as much as reading some of it
    works = [(size or 0) + _OPENING for size in sizes]
    done = list(accumulate(works))
    total = done[-1]
    # one file that outweighs the others is cut itself
    if max(works) > total * 0.6:
        return [items]
    count = min(processes_for(options, total), len(items))
    # what the first process does besides, as if it had been read
    ahead = min(MEANWHILE, total // (4 * count)) if options.meanwhile is not None else 0
    cuts = [bisect_left(done, (total + ahead) * number / count - ahead) + 1 for number in range(1, count)]
    return [items[start:stop] for start, stop in pairwise([0, *cuts, len(items)]) if start < stop]


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
