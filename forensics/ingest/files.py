"""The files of a run, one after the other or shared among processes. In: names, bytes; out: `Taken` records in order. Sample:

read_all(["rank_0.log", "rank_1.log", …], wants, options, assembly)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from forensics.ingest.assemble import Assembly, Taken, take
from forensics.ingest.inputs import Opened, open_all
from forensics.ingest.options import ReadOptions
from forensics.ingest.pieces import in_processes, processes_for, scan_file
from forensics.ingest.pulse import Pulse
from forensics.ingest.retain import Retainer
from forensics.ingest.scan import scan
from forensics.ingest.wants import Wants
from forensics.model.source import Skipped

#: from here on several processes share a file
BIG = 64 * 1024 * 1024
#: of many inputs each keeps less: bytes of whole small files, lines of heads and tails, in all
_WHOLE_IN_ALL, _EDGES_IN_ALL = 4 * 1024 * 1024, 20_000
#: with more inputs than this one without a hit keeps its last line only
_FEW = 256


class Shares:
    """What one of so many inputs may keep: bytes kept whole, lines of its tail, bytes of its regions."""

    __slots__ = ("budget", "edges", "few", "whole")

    def __init__(self, options: ReadOptions, inputs: int) -> None:
        inputs = max(inputs, 1)
        self.few = inputs <= _FEW
        self.whole = options.whole_below if inputs == 1 else min(options.whole_below, _WHOLE_IN_ALL // inputs)
        self.edges = options.edge_lines if inputs == 1 else min(options.edge_lines, max(_EDGES_IN_ALL // inputs, 3))
        self.budget = max(options.budget // inputs, min(options.budget, 64 * 1024))


def read_all(items: Sequence[str | bytes], wants: Wants, options: ReadOptions, assembly: Assembly) -> None:
    """Reads every input, in order, into the assembly."""
    shares = Shares(options, len(items))
    parts = _parts(items, options)
    if len(parts) == 1:
        for opened in open_all(items, options, assembly.skipped):
            if opened.blob is not None:
                assembly.blobs.append((opened.name, opened.blob))
            else:
                assembly.add(take_one(opened, wants, options, shares))
        return
    wants.engine.scan(b"")  # built once, before the fork
    for taken, skipped, blobs in in_processes([_job(part, wants, options, shares) for part in parts]):
        for plain in taken:
            assembly.add(Taken(*plain))
        assembly.skipped.extend(Skipped(*plain) for plain in skipped)
        assembly.blobs.extend(blobs)


def _job(part: Sequence[str | bytes], wants: Wants, options: ReadOptions, shares: Shares) -> Callable[[], Any]:
    def work() -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]], list[tuple[str, bytes]]]:
        skipped: list[Skipped] = []
        taken, blobs = [], []
        for opened in open_all(part, options, skipped):
            if opened.blob is not None:
                blobs.append((opened.name, opened.blob))
            else:
                taken.append(tuple(take_one(opened, wants, options, shares)))
        return taken, [(s.name, s.why, s.bytes) for s in skipped], blobs

    return work


def _parts(items: Sequence[str | bytes], options: ReadOptions) -> list[Sequence[str | bytes]]:
    """The inputs cut into one row a process, of about the same number of bytes; one row where more do not pay off."""
    if len(items) < 2 or any(isinstance(item, bytes) or item == "-" for item in items):
        return [items]
    sizes = []
    for item in items:
        try:
            sizes.append(os.stat(item).st_size + 20_000)
        except OSError:
            sizes.append(0)
    total = sum(sizes)
    # one file that outweighs the others is cut itself
    if max(sizes) > total * 0.6:
        return [items]
    count = min(processes_for(options, total), len(items))
    parts: list[Sequence[str | bytes]] = []
    start = done = 0
    for index, size in enumerate(sizes):
        done += size
        if done >= total * (len(parts) + 1) / count and len(parts) < count - 1:
            parts.append(items[start : index + 1])
            start = index + 1
    parts.append(items[start:])
    return [part for part in parts if part]


def take_one(opened: Opened, wants: Wants, options: ReadOptions, shares: Shares) -> Taken:
    """Scans one open input."""
    in_pieces = None
    if opened.path is not None and opened.size is not None and opened.size > BIG:
        in_pieces = scan_file(opened.path, opened.size, wants, options, shares.budget, shares.whole, shares.edges)
    if in_pieces is not None:
        scanned, retainer, pulse = in_pieces
    else:
        retainer = Retainer(wants, shares.budget, options.line_cap, shares.whole)
        pulse = Pulse()
        scanned = scan(
            opened.stream, retainer, wants, options, tail_lines=shares.edges, pulse=pulse if shares.few else None
        )
    stream = opened.stream
    taken = take(
        opened.name, stream.encoding, stream.compression, scanned, retainer, pulse, scanned.bytes <= shares.whole
    )
    if not shares.few and not retainer.fold.counts and taken.kept:
        return taken._replace(kept=taken.kept[-1:], whole=False)
    return taken
