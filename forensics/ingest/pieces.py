"""One big file in several processes, put together as if it had been one pass. In: a path; out: a retainer. Sample:

    scan_file("8gpu.log", 1073741824, wants, options, …) -> (Scanned(bytes=1073741824, …), retainer, pulse)

Each process scans a range of bytes cut at a line feed and hands back what it kept. Putting together is the same retainer once
more, fed with just these lines: what a second piece kept because it did not know the first is folded now.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from forensics.ingest.options import ReadOptions
from forensics.ingest.pulse import Pulse
from forensics.ingest.retain import Retainer
from forensics.ingest.scan import Scanned, scan
from forensics.ingest.streams import Headed
from forensics.ingest.wants import Wants

#: less than this a process is not worth its start
PIECE = 48 * 1024 * 1024
_MOST_PROCESSES = 8
#: bytes that are read while the first process does something else
MEANWHILE = 64 * 1024 * 1024
#: a line feed is searched this far; a longer line is not cut
_SEARCH = 32 * 1024 * 1024


def processes_for(options: ReadOptions, work: int, unit: int = PIECE) -> int:
    """How many processes pay off for `work` bytes."""
    if not hasattr(os, "fork") or _has_threads():
        return 1
    if options.processes:
        return max(1, min(options.processes, work // 4096))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, _MOST_PROCESSES, work // unit))


def _has_threads() -> bool:
    """A fork beside running threads may copy a held lock."""
    threading = sys.modules.get("threading")
    return threading is not None and threading.active_count() > 1


def in_processes(jobs: Sequence[Callable[[], Any]], meanwhile: Callable[[], None] | None = None) -> list[Any]:
    """Results of all jobs, in order: the first is done here, then `meanwhile`, the others in forked children. A result is what marshal
    takes; a child's job that failed is done again here."""
    children = [_start(job) for job in jobs[1:]]
    results = []
    try:
        results.append(jobs[0]())
        if meanwhile is not None:
            meanwhile()
    finally:
        for job, (pid, pipe) in zip(jobs[1:], children, strict=True):
            with os.fdopen(pipe, "rb") as reader:
                data = reader.read()
            _, status = os.waitpid(pid, 0)
            if results:
                results.append(marshal.loads(data) if status == 0 and data else job())
    return results


def _start(job: Callable[[], Any]) -> tuple[int, int]:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    code = 1
    try:
        os.close(reader)
        with os.fdopen(writer, "wb") as file:
            marshal.dump(job(), file)
        code = 0
    except BaseException:  # a child must end here: the parent does its job again and then sees the error itself
        code = 1
    finally:
        os._exit(code)
    raise AssertionError("not reached")


def cuts(path: str, size: int, pieces: int, less: int = 0) -> list[int]:
    """Offsets from 0 to `size`, each behind a line feed; fewer pieces where lines are too long. less: bytes by which the first is
    smaller than others, as far as that is a quarter of it."""
    found = [0]
    first = size // pieces
    first -= min(less, first // 4)
    with open(path, "rb", buffering=0) as file:
        for index in range(pieces - 1):
            at = max(first + (size - first) * index // (pieces - 1), found[-1])
            end = at + _SEARCH
            while at < min(end, size):
                block = os.pread(file.fileno(), 1 << 18, at)
                if not block:
                    break
                feed = block.find(b"\n")
                if feed >= 0:
                    if found[-1] < at + feed + 1 < size:
                        found.append(at + feed + 1)
                    break
                at += len(block)
    return [*found, size]


def scan_file(
    path: str,
    size: int,
    wants: Wants,
    options: ReadOptions,
    budget: int,
    edge_lines: int,
    progress: Callable[[int], None] | None = None,
) -> tuple[Scanned, Retainer, Pulse] | None:
    """The whole file by several processes; None where it is not worth it."""
    count = processes_for(options, size)
    if count < 2:
        return None
    edges = cuts(path, size, count, MEANWHILE if options.meanwhile is not None else 0)
    count = len(edges) - 1
    if count < 2:
        return None
    wants.engine.scan(b"")  # built once, before the fork

    def job(index: int) -> Callable[[], Any]:
        return lambda: _piece(
            path, edges[index], edges[index + 1] - edges[index], index == count - 1,
            wants, options, budget, edge_lines,
            # the pieces are of one size: what this process has done, the others have, too
            (lambda done: progress(done * count)) if progress is not None and index == 0 else None,
        )  # fmt: skip

    return _together(in_processes([job(index) for index in range(count)], options.meanwhile), wants, options, budget, edge_lines)


def _piece(
    path: str,
    start: int,
    size: int,
    is_last: bool,
    wants: Wants,
    options: ReadOptions,
    budget: int,
    edge_lines: int,
    progress: Callable[[int], None] | None,
) -> dict[str, Any]:
    """One piece scanned, as plain values."""
    retainer = Retainer(wants, budget, options.line_cap, is_piece=not is_last)
    pulse = Pulse()
    with open(path, "rb", buffering=0) as file:
        file.seek(start)
        scanned = scan(
            Headed(file, 0), retainer, wants,
            # at an inner end: lines into which a window of the other piece may reach
            head_lines=wants.heads.most_after if start else edge_lines,
            tail_lines=edge_lines if is_last else wants.heads.most_before,
            pulse=pulse, limit=size, progress=progress,
        )  # fmt: skip
    return {
        "scanned": (scanned.bytes, scanned.lines, scanned.long_lines),
        "tail": retainer.tail,
        "kept": retainer.dump(),
        "pulse": (pulse.first, pulse.last),
    }


def _together(
    pieces: list[dict[str, Any]], wants: Wants, options: ReadOptions, budget: int, edge_lines: int
) -> tuple[Scanned, Retainer, Pulse]:
    merged = Retainer(wants, budget, options.line_cap)
    merged.owe(edge_lines)
    pulse = Pulse()
    total = Scanned()
    spans: list[tuple[int, bytes]] = []
    tail: tuple[int, bytes] | None = None
    for index, piece in enumerate(pieces):
        before = total.lines
        size, lines, long_lines = piece["scanned"]
        total.bytes, total.lines, total.long_lines = total.bytes + size, before + lines, total.long_lines + long_lines
        kept = piece["kept"]
        spans.extend((first + before, data) for first, data in kept["spans"])
        if piece["tail"] is not None:
            first, data = piece["tail"]
            if index < len(pieces) - 1:
                spans.append((first + before, data))
            else:
                tail = (first + before, data)
        merged.adopt(kept, before)
        later = Pulse()
        later.first, later.last = piece["pulse"]
        pulse.merge(later, before)
    for first, data in _runs(spans):
        merged.feed(data, 0, 0, len(data), first, wants.engine.scan(data), True)
    merged.fold.settle()
    if tail is not None:
        merged.keep_lines(*tail)
    return total, merged, pulse


def _runs(spans: list[tuple[int, bytes]]) -> list[tuple[int, bytearray]]:
    """Spans that overlap or touch, joined; each line once."""
    runs: list[tuple[int, bytearray]] = []
    following = -1  # number of the line after the last run
    for first, data in sorted(spans, key=lambda span: span[0]):
        lines = data.count(b"\n") + (not data.endswith(b"\n"))
        if first > following or not runs:
            runs.append((first, bytearray(data)))
            following = first + lines
            continue
        at = 0
        for _ in range(min(following - first, lines)):
            at = data.find(b"\n", at) + 1 or len(data)
        if at < len(data):
            run = runs[-1][1]
            if run and run[-1] != 10:
                run += b"\n"
            run += data[at:]
        following = max(following, first + lines)
    return runs
