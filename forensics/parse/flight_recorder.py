"""torch's flight recorder dumps, pickle or JSON. In: `Intake.blobs` and JSON dumps inside the log; out: one COLLECTIVE_STATE
event a dump (a rank), for the verdict to compare. Sample (one entry of a dump named nccl_trace_rank_1):

    {"record_id": 4, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": 5, "p2p_seq_id": 0, "op_id": 5,
     "profiling_name": "nccl:all_reduce", "input_sizes": [[4194304]], "input_dtypes": ["BFloat16"], "state": "completed", …}
    -> Event(COLLECTIVE_STATE, rank=Rank("rank 1", 1), fields={"what": "flight_recorder", "dump": "nccl_trace_rank_1",
         "version": "2.10", "groups": {"0": {"desc": "default_pg", "ranks": (0, 1, 2, 3)}},
         "status": {"0": {"enqueued": 5, "started": None, "completed": 5}},
         "entries": (DumpEntry(…), …)})

Entries are in the order recorded; the last MAX_ENTRIES of each group are kept. The format, schema 2.0 to 2.10, JSON and pickle:
torch/csrc/distributed/c10d/FlightRecorder.hpp. What differs: `seq_id` before 2.3, no `p2p_seq_id` before 2.2, no frames
with stack traces off, `started` missing for Gloo, whose entries stay "scheduled" with `retired` true when done.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.ingest.pattern import Pattern
from forensics.model.event import Event, EventKind
from forensics.model.source import Note, Rank, Span
from forensics.model.stack import Frame
from forensics.parse import restricted_pickle
from forensics.parse.reading import hits

_JSON = '"pg_config"'

ANCHORS: tuple[Anchor, ...] = (Anchor(_JSON.encode(), 0, 0, "flight_recorder"),)

#: entries kept of each process group (the recorder itself keeps 2,000 by default)
MAX_ENTRIES = 2_000
_RANK = Pattern(r"rank[_-]?(\d{1,7})(?:\D{0,20})?$|(\d{1,7})(?:\.(?:json|pickle|pkl|bin))?$", re.I)
_NUMBERS = Pattern(r"\d{1,7}")


class DumpEntry(NamedTuple):
    """One collective or point-to-point operation as a rank recorded it.

    group: name of the process group; op: "all_reduce"; peer: "1->2" of a send or receive; sequence: of the group's collectives,
    or of its point-to-point operations where is_p2p; op_id: counts both; state: scheduled, started, completed (done: completed,
    or retired by a recorder that does not track states); sizes: shapes as printed; numel_*: elements summed, None where no
    sizes were recorded; times: nanoseconds since the epoch; frames: outermost first; coalesced: part of a coalesced operation."""

    group: str
    desc: str
    op: str
    backend: str
    sequence: int | None
    op_id: int | None
    record_id: int | None
    state: str
    done: bool
    is_p2p: bool
    peer: str | None
    sizes_in: tuple[tuple[int, ...], ...]
    sizes_out: tuple[tuple[int, ...], ...]
    dtypes_in: tuple[str, ...]
    dtypes_out: tuple[str, ...]
    numel_in: int | None
    numel_out: int | None
    created_ns: int | None
    started_ns: int | None
    completed_ns: int | None
    timeout_ms: int | None
    coalesced: bool
    frames: tuple[Frame, ...]


def parse(intake: Intake) -> list[Event]:
    """One event a readable dump; what cannot be read leaves a Note."""
    events = []
    names = [source.name for source in intake.sources]
    for name, content in intake.blobs:
        try:
            dump = read_dump(content)
        except ValueError as error:
            intake.notes.append(Note("parse", f"{name} is no flight recorder dump that can be read: {error}"[:400], hides=True))
            continue
        source = names.index(name) if name in names else -1
        events.append(event_of(name, dump, Span(source, 1, 1)))
    for index in hits(intake, _JSON):
        line = intake.lines[index]
        if line.raw.lstrip().startswith("{") and '"entries"' in line.raw:
            try:
                dump = read_dump(line.raw.encode())
            except ValueError:
                continue
            name = names[line.source] if line.source < len(names) else ""
            events.append(event_of(name, dump, Span(line.source, line.number, line.number), line.rank))
    return events


def read_dump(content: bytes) -> dict[str, Any]:
    """The dump as plain data. Raises ValueError where it is neither JSON nor a plain pickle, or has no entries."""
    data: Any
    if content.lstrip()[:1] == b"{":
        import json

        try:
            data = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"broken JSON: {error}") from error
    else:
        try:
            data = restricted_pickle.loads(content)
        except restricted_pickle.UnsafePickle as error:
            raise ValueError(f"the pickle {error}") from error
    if not isinstance(data, dict) or not isinstance(data.get("entries"), (list, tuple)):
        raise ValueError("it holds no entries")
    return data


def event_of(name: str, dump: Mapping[str, Any], span: Span, rank: Rank | None = None) -> Event:
    """The event of one dump. name: of its file, which says the rank."""
    number = _rank_in(name, dump)
    if rank is None and number is not None:
        rank = Rank(f"rank {number}", number)
    entries = _last_of_each_group(_entry(row) for row in dump["entries"] if isinstance(row, Mapping))
    # pg_status is keyed by the recorder's own number of a group, entries by its name
    names = {
        _text(row.get("pg_id")): _pair(row.get("process_group"), None)[0]
        for row in dump["entries"]
        if isinstance(row, Mapping)
    }
    fields = {
        "what": "flight_recorder",
        "dump": name,
        "version": _text(dump.get("version")),
        "groups": _groups(dump.get("pg_config")),
        "status": _status(dump.get("pg_status"), names),
        "entries": entries,
        "library": _text(dump.get("comm_lib_version") or dump.get("nccl_version")) or None,
    }
    unfinished = [e for e in entries if not e.done]
    words = f"flight recorder: {len(entries)} operations, {len(unfinished)} unfinished"
    return Event(
        EventKind.COLLECTIVE_STATE,
        span,
        rank,
        None,
        None,
        words,
        (),
        None,
        None,
        1,
        "flight_recorder",
        rank.label if rank else "",
        fields,
    )


def _entry(row: Mapping[str, Any]) -> DumpEntry:
    group, desc = _pair(row.get("process_group"), row.get("pg_name") or row.get("pg_id"))
    backend, _, rest = _text(row.get("profiling_name")).rpartition(":")
    op, _, peer = rest.partition(" ")
    p2p = bool(row.get("is_p2p")) or op in ("send", "recv")
    sequence = (
        row.get("p2p_seq_id")
        if p2p and row.get("p2p_seq_id") is not None
        else row.get("collective_seq_id", row.get("seq_id"))
    )
    sizes_in, sizes_out = _sizes(row.get("input_sizes")), _sizes(row.get("output_sizes"))
    state = _text(row.get("state"))
    tracked = backend != "gloo"
    return DumpEntry(
        group,
        desc,
        op,
        backend,
        _int(sequence),
        _int(row.get("op_id")),
        _int(row.get("record_id")),
        state,
        state == "completed" or (bool(row.get("retired")) and not tracked),
        p2p,
        peer or None,
        sizes_in,
        sizes_out,
        _words(row.get("input_dtypes")),
        _words(row.get("output_dtypes")),
        _numel(sizes_in),
        _numel(sizes_out),
        _int(row.get("time_created_ns", row.get("time_created_us"))),
        _int(row.get("time_discovered_started_ns")),
        _int(row.get("time_discovered_completed_ns")),
        _int(row.get("timeout_ms")),
        "coalesced" in rest.lower(),
        _frames(row.get("frames")),
    )


def _last_of_each_group(entries: Iterable[DumpEntry]) -> tuple[DumpEntry, ...]:
    kept = list(entries)
    counts: dict[str, int] = {}
    out = []
    for entry in reversed(kept):
        counts[entry.group] = counts.get(entry.group, 0) + 1
        if counts[entry.group] <= MAX_ENTRIES:
            out.append(entry)
    return tuple(reversed(out))


def _groups(config: Any) -> dict[str, dict[str, Any]]:
    """Process groups with their global ranks; keyed as the entries name them where that can be told."""
    groups: dict[str, dict[str, Any]] = {}
    if isinstance(config, Mapping):
        for key, value in list(config.items())[:20_000]:
            if isinstance(value, Mapping):
                ranks = value.get("ranks")
                numbers = (
                    tuple(int(n) for n in _NUMBERS.findall(ranks))
                    if isinstance(ranks, str)
                    else tuple(_int(r) for r in ranks or ())
                )
                groups[_text(key)] = {"desc": _text(value.get("desc")), "ranks": numbers}
    return groups


def _status(status: Any, names: Mapping[str, str]) -> dict[str, dict[str, int | None]]:
    """Last collective enqueued, started and completed of each group, by name; None for -1, "never"."""
    out: dict[str, dict[str, int | None]] = {}
    if isinstance(status, Mapping):
        for key, value in list(status.items())[:20_000]:
            if isinstance(value, Mapping):
                out[names.get(_text(key), _text(key))] = {
                    k: _seen(value.get(f"last_{k}_collective")) for k in ("enqueued", "started", "completed")
                }
    return out


def _text(value: Any) -> str:
    """A name in a dump. Containers are none: a few bytes of pickle can make a list whose text fills the memory."""
    return str(value)[:2_000] if isinstance(value, str | bool | float) or _int(value) is not None else ""


def _seen(value: Any) -> int | None:
    number = _int(value)
    return number if number is not None and number >= 0 else None


def _rank_in(name: str, dump: Mapping[str, Any]) -> int | None:
    own = _int(dump.get("rank"))
    if own is not None:
        return own
    found = _RANK.search(name.rsplit("/", 1)[-1])
    return int(found[1] or found[2]) if found else None


def _pair(value: Any, fallback: Any) -> tuple[str, str]:
    if isinstance(value, (list, tuple)) and value:
        return _text(value[0]), _text(value[1]) if len(value) > 1 else ""
    return _text(value if value is not None else fallback), ""


def _sizes(value: Any) -> tuple[tuple[int, ...], ...]:
    if not isinstance(value, (list, tuple)):
        return ()
    return tuple(
        tuple(n for n in shape[:64] if _int(n) is not None) for shape in value[:4096] if isinstance(shape, (list, tuple))
    )


def _numel(sizes: tuple[tuple[int, ...], ...]) -> int | None:
    if not sizes:
        return None
    total = 0
    for shape in sizes:
        product = 1
        for n in shape[:16]:
            product *= n
        total += product
    return total if total < 1 << 63 else None


def _words(value: Any) -> tuple[str, ...]:
    return tuple(_text(v) for v in value[:4096]) if isinstance(value, (list, tuple)) else ()


def _frames(value: Any) -> tuple[Frame, ...]:
    """Recorded innermost first; outermost first here."""
    if not isinstance(value, (list, tuple)):
        return ()
    rows = [f for f in value[:200] if isinstance(f, Mapping)]
    return tuple(
        Frame(_text(f.get("name")) or "?", _text(f.get("filename")) or None, _int(f.get("line"))) for f in reversed(rows)
    )


def _int(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if -(1 << 63) <= value < 1 << 64 else None
    return int(value) if isinstance(value, str) and value.lstrip("-").isdigit() and len(value) < 20 else None
