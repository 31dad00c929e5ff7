"""One failed communication told twice: by the library, the watchdog, the traceback. In: sightings and events; out: fewer. Sample:

NCCL WARN "Error while creating shared memory segment …" + DistBackendError "unhandled system error"
-> one failure whose root_message is the library's own word
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from forensics.ingest.compiled import pattern_of
from forensics.ingest.pattern import Pattern
from forensics.model.event import Event, EventKind
from forensics.model.source import Rank
from forensics.verdict.order import Order
from forensics.verdict.sighting import Near, Sighting, close, same_process

_COMMUNICATION = Pattern(r"NCCL|RCCL|DistBackendError|ncclSystemError|ncclInternalError|ncclUnhandledCudaError", re.I)
#: time-outs that are looked at when an abort seeks its own
_MOST = 512
#: a warning shorter than this may be quoted by anybody
_TELLING = 24
#: sightings between a process's words and the exception that ends it
_BEHIND = 8
_FAILS = Pattern(r"[Ee]rror|[Ff]ail|[Tt]imed? ?out|refused|unreachable|mismatch|No such|denied")


def join_watchdogs(seen: list[Sighting]) -> list[Sighting]:
    """A collective's time-out and the abort that the watchdog makes of it."""
    timeouts = [s for s in seen if s.kind == "collective_timeout"][:_MOST]
    gone: set[int] = set()
    for sighting in seen:
        if sighting.kind not in ("native", "python", "fatal_signal", "message") or sighting.role is not None:
            continue
        text = " ".join(sighting.texts)
        if "collective operation timeout" not in text and "ollective operation" not in text:
            continue
        home = next((t for t in timeouts if same_process(t, sighting)), None)
        if home is None:
            continue
        if sighting.kind == "python" and sighting.chain:
            # A traceback says where the process waited; it keeps its own words and becomes the time-out's way.
            home.chain = home.chain or sighting.chain
            home.type = home.type or sighting.type
            home.root_type = home.root_type or sighting.root_type
        home.type = home.type or (sighting.type if sighting.kind == "native" else None)
        home.frames = home.frames or sighting.frames
        home.add(sighting)
        gone.add(id(sighting))
    return [s for s in seen if id(s) not in gone]


def join_uncaught(seen: list[Sighting]) -> list[Sighting]:
    """The words that a process logged, and right behind them the C++ exception of the same words that nobody caught: it has the type."""
    gone: set[int] = set()
    for place, sighting in enumerate(seen):
        words = sighting.message.partition("\n")[0].strip()
        if sighting.kind != "native" or "::" not in (sighting.type or "") or len(words) < _TELLING:
            continue
        for before in reversed(seen[max(0, place - _BEHIND) : place]):
            if before.kind == "message" and not before.typed and before.message.strip() == words and close(before, sighting):
                if same_process(before, sighting):
                    before.kind, before.weight = sighting.kind, sighting.weight
                    before.type, before.root_type, before.frames = sighting.type, sighting.root_type, sighting.frames
                    before.add(sighting)
                    gone.add(id(sighting))
                    break
    return [s for s in seen if id(s) not in gone]


def explain_waiting(seen: list[Sighting], events: Sequence[Event]) -> None:
    """Where a time-out has no stack of its own: the stack printed of the failed collective; a desync report is its root."""
    stacks = [e for e in events if e.kind is EventKind.STACK and e.fields.get("of") == "failed_collective" and e.stacks]
    report = next((e for e in events if e.fields.get("what") == "desync" and e.message), None)
    for sighting in seen:
        if sighting.kind != "collective_timeout":
            continue
        if not sighting.frames:
            own = [
                e for e in stacks if e.rank is None or sighting.rank is None or e.rank.number == sighting.rank.number
            ]
            sighting.frames = own[0].stacks[0].frames if own else ()
        if report is not None:
            sighting.root_message = report.message
            sighting.spans = [*sighting.spans, report.span]
            sighting.events = [*sighting.events, report]


_GROUP_NAME = pattern_of(r"\[PG (?:ID )?[^\]\n]{1,160} Rank \d{1,6}\]")


def name_warnings(seen: Sequence[Sighting]) -> None:
    """A library's warning names a process, not a rank: the only rank whose exception quotes its words had it."""
    warned = [s for s in seen if s.kind == "message" and (s.rank is None or s.rank.number is None) and _warns(s)]
    warned = [s for s in warned if s.events[0].kind is EventKind.COMMUNICATION and len(s.message) >= _TELLING][:_MOST]
    if not warned:
        return
    texts: list[tuple[str, Rank]] = []
    above: Sighting | None = None
    for sighting in seen[:_MOST]:
        rank = sighting.rank
        if rank is None and sighting.count == 1 and above is not None and _goes_on(sighting, above):
            rank = above.rank
        if rank is not None and rank.number is not None:
            texts += [(text, rank) for text in sighting.texts]
        above = sighting
    for sighting in warned:
        words = sighting.message[:200]
        told = {rank.key: rank for text, rank in texts if words in text}
        if len(told) == 1:
            rank = next(iter(told.values()))
            own = sighting.rank
            sighting.rank = Rank(rank.label, rank.number, rank.axes, rank.node or (own.node if own else None), own.pid if own else None)


def name_group_ranks(seen: Sequence[Sighting], events: Sequence[Event]) -> None:
    """A process that names itself by its rank in a group ("[PG ID 5 PG GUID 49 Rank 0]") is the only rank whose line, with its own
    prefix, carries the same name."""
    nameless = [s for s in seen if s.rank is not None and s.rank.number is None and s.rank.axis("group") is not None]
    if not nameless:
        return
    known: dict[str, dict[int, Rank]] = {}
    for event in events:
        if event.rank is not None and event.rank.number is not None and "[PG " in event.message[:200]:
            for name in _GROUP_NAME.findall(event.message[:300]):
                known.setdefault(name, {}).setdefault(event.rank.number, event.rank)
    for sighting in nameless:
        for name in _GROUP_NAME.findall(sighting.message[:300])[:1]:
            told = known.get(name, {})
            if len(told) == 1:
                sighting.rank = next(iter(told.values()))


def _goes_on(sighting: Sighting, above: Sighting) -> bool:
    """True for c10d's explanation right below its message, in lines without the prefix."""
    if not (sighting.type or "").startswith("nccl"):
        return False
    return sighting.span.source == above.span.source and sighting.span.first_line - above.span.last_line == 1


def explain_communication(seen: list[Sighting], order: Order) -> None:
    """An NCCL exception that only says "unhandled system error" gets the library's own words as its root: its warning before, or
    the lines behind (in a newest-first log: above)."""
    warnings = Near(s for s in seen if s.events[0].kind is EventKind.COMMUNICATION and _warns(s))
    lines = {(s.span.source, n): s for s in seen if s.kind == "message" and s.weight == 2 for n in _numbers(s)}
    for sighting in seen:
        if (sighting.role is not None and not sighting.conditional) or not (
            sighting.kind in ("python", "native") or sighting.typed
        ):
            continue
        if not any(_COMMUNICATION.search(text) for text in (*sighting.types, *sighting.texts)):
            continue
        if sighting.root_message != sighting.message and sighting.root_message not in ("", "None"):
            continue
        said = _continuation(sighting, lines, order)
        message = "\n".join(dict.fromkeys(s.message for s in said[:4]))
        if not said:
            before = [w for w in warnings.before(sighting.place, 128) if w.place < sighting.place]
            own = [w for w in before if w.message and same_process(w, sighting)]
            # The first warning of the process is the one that the others follow from.
            said = own[-1:]
            message = said[0].message if said else ""
        if said:
            sighting.root_message = message
            for other in said[:4]:
                sighting.events += other.events
                sighting.spans += other.spans


def _warns(sighting: Sighting) -> bool:
    return sighting.kind == "message" and sighting.role is None and sighting.level in (None, "WARN", "WARNING", "ERROR")


def _numbers(sighting: Sighting) -> range:
    return range(sighting.span.first_line, min(sighting.span.last_line, sighting.span.first_line + 16) + 1)


def _continuation(sighting: Sighting, lines: Mapping[tuple[int, int], Sighting], order: Order) -> list[Sighting]:
    """Loose error lines that go on where the exception's line ends."""
    backwards = order.backwards(sighting.span.source)
    found: list[Sighting] = []
    place = sighting.span.first_line if backwards else sighting.span.last_line
    for step in range(1, 7):
        line = lines.get((sighting.span.source, place - step if backwards else place + step))
        if line is None or line is sighting:
            continue
        if line.role is not None or (line.typed and not (line.type or "").startswith("nccl")):
            break
        if "Last error" not in line.message and len(line.message.strip("{} ")) > 10 and line not in found:
            found.append(line)
    told = [s for s in found if not (s.type or "").startswith("nccl") and _FAILS.search(s.message)]
    return told or [s for s in found if (s.type or "").startswith("nccl")]
