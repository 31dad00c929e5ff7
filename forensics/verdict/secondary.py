"""Lines that cannot be the cause, whatever they say. In: joined sightings of one run; out: fewer, the secondary ones with a role. Samples:

"Engine is already dead, terminating" ... "Engine is alr"        -> the torn repeat belongs to the whole line
EngineDeadError: ..., then ERROR "Shutdown initiated"             -> cascade: an engine had been seen dead before
"Shutdown initiated", then "Worker proc W-0 died unexpectedly"    -> teardown: the engine takes its workers along
UCX ERROR Transport retry count exceeded, then NIXL_ERR_BACKEND   -> the transport's error is the exception's root
Xid 79 in dmesg, and rank 5's "CUDA error: unknown error"          -> cascade: the device was gone
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from forensics.ingest.compiled import pattern_of
from forensics.ingest.pattern import Pattern
from forensics.model.event import Event, EventKind
from forensics.model.source import Rank
from forensics.model.verdict import CausalRole
from forensics.verdict.hardware import fault_of
from forensics.verdict.order import Order
from forensics.verdict.sighting import Sighting, close, same_process

#: a repeat shorter than this may be of any line
_LEAST = 8
_TRANSPORTS = frozenset(("ucx", "nvshmem", "ib", "mooncake", "libfabric"))
_SEVERE = frozenset(("ERROR", "FATAL", "E", "F"))
#: a transport's error by its words, where no transport's own format shows it
_BROKEN = Pattern(
    r"\bUCX\b.{0,80}(?:[Ff]ail|[Ee]rror)|NIXL_ERR_|\bmlx5(?:dv)?_\w+|\bibv_\w+|[Ff]ailed to modify QP|[Tt]ransport retry count"
    r"|Process failed for slice|[Ff]ailed to (?:get|retrieve|find|open) segment|nvshmem\w* .{0,40}fail"
)
#: exceptions and lines of those who use a transport
_USES = Pattern(
    r"\b(?:ucx|ucp|MPI_\w+|nixl|mooncake|nvshmem|rdma|libfabric|deep_?ep|ibverbs)|NIXL_|(?:kv|prefill|decode).{0,20}transfer|kvtransfer"
    r"|transfer(?:ring)? .{0,60}fail|\btransport (?:error|fail|retry)",
    re.IGNORECASE,
)
_MOST = 512
_DIED = Pattern(r"^Worker proc \S{1,80} died unexpectedly")
#: what the runtime says where a device does not answer any more: no more than that
_LOST = Pattern(
    r"(?:CUDA|HIP|cuda|hip)\w* (?:error|failure)?:? ?(?:unknown error|unspecified launch failure|hardware (?:exception|error))"
    r"|cudaErrorUnknown|CUDA_ERROR_UNKNOWN|GPU is lost|uncorrectable ECC|no (?:CUDA|HIP)[ -]?(?:capable|GPUs?)"
    r"|device(?:\(s\))? (?:is|are) lost"
)


def subordinate(seen: Sequence[Sighting], order: Order, events: Sequence[Event] = ()) -> list[Sighting]:
    """The sightings without torn repeats; what only follows a dead engine, a broken transport or an engine's own shutdown (among the
    run's events) gets its role."""
    kept = _without_torn_repeats(list(seen))
    _behind_shutdowns(kept, events)
    _behind_ended_workers(kept, events)
    kept = _behind_transports(kept, order)
    _behind_hardware(kept)
    _behind_the_dead(kept, order)
    return kept


def _loose(sighting: Sighting) -> bool:
    """True for a printed line that nothing speaks for: no exception, no role."""
    return sighting.kind == "message" and sighting.weight == 2 and sighting.role is None and not sighting.typed


def _raised(sighting: Sighting) -> bool:
    return not sighting.torn and (sighting.weight >= 3 or sighting.typed)


def _squeezed(text: str) -> str:
    return pattern_of(r"\s+").sub(" ", text[:4_000]).strip()


def _behind_hardware(seen: Sequence[Sighting]) -> None:
    """What a program's runtime says of a device that its driver had lost follows from that; the only rank that says so had it."""
    faults = [s for s in seen if s.kind == "hardware" and s.role is None and _by_the_driver(s)]
    lost: dict[tuple[str, str | None], Rank] = {}
    for sighting in seen if faults else ():
        if sighting.kind not in ("python", "native") or sighting.role is not None or not any(_LOST.search(text) for text in sighting.texts):
            continue
        told = [f.time for f in faults if f.time is not None]
        if sighting.time is not None and told and sighting.time < min(told):
            continue
        sighting.role, sighting.conditional, sighting.rule = CausalRole.CASCADE, True, "device-lost"
        sighting.role_why = "the driver had lost the device"
        if sighting.rank is not None:
            lost[sighting.rank.key] = sighting.rank
    names = {fault.device for f in faults if (fault := fault_of(f.events[0])) is not None and fault.device}
    devices = {name.removesuffix(".0") for name in names}
    if len(lost) == 1 and len(devices) == 1:
        for fault_seen in faults:
            fault_seen.rank = fault_seen.rank or next(iter(lost.values()))


def _by_the_driver(sighting: Sighting) -> bool:
    fault = fault_of(sighting.events[0])
    return fault is not None and fault.kind in ("xid", "sxid")


def _without_torn_repeats(seen: list[Sighting]) -> list[Sighting]:
    """A log's last line may be cut: where it begins as a whole one before it does, it is that one again."""
    of_source: dict[int, list[Sighting]] = {}
    for sighting in seen:
        of_source.setdefault(sighting.span.source, []).append(sighting)
    gone: set[int] = set()
    for members in of_source.values():
        torn = max(reversed(members), key=lambda member: member.span.first_line)
        words = _squeezed(torn.message) if len(members) > 1 and _loose(torn) else ""
        if len(words) < _LEAST:
            continue
        for whole in reversed(members):
            said = _squeezed(whole.message) if whole is not torn else ""
            if len(said) > len(words) and said.startswith(words):
                whole.events += torn.events
                gone.add(id(torn))
                break
    return [s for s in seen if id(s) not in gone]


def _may_share(one: Sighting, other: Sighting) -> bool:
    """True where two may be of one process: a library names its pid, the engine above it its rank."""
    if (one.rank is None) != (other.rank is None) and (one if one.rank is None else other).stream.startswith("pid="):
        return True
    return same_process(one, other)


def _breaks(sighting: Sighting) -> bool:
    """True for a transport's own error."""
    return _loose(sighting) and _is_broken(sighting.events[0])


def _is_broken(event: Event) -> bool:
    if event.kind is EventKind.COMMUNICATION and event.fields.get("what") in _TRANSPORTS:
        return event.level in _SEVERE
    severe = event.kind is EventKind.MESSAGE and event.level in (*_SEVERE, None) and event.type is None
    return severe and _BROKEN.search(event.message[:2_000]) is not None


def _take_root(sighting: Sighting, home: Sighting | None) -> bool:
    """Gives an exception of one link the transport's error as its root: the one that stands at its head, or home's."""
    if len(sighting.chain) > 1 or sighting.root_message != sighting.message or not _uses(sighting):
        return False
    if home is not None:
        sighting.root_message = home.message
        sighting.events = [*sighting.events, *home.events]
        sighting.spans = [*sighting.spans, *home.spans]
        return True
    at_its_head = next((event for event in sighting.events[1:8] if _is_broken(event)), None)
    if at_its_head is not None:
        sighting.root_message = at_its_head.message
    return False


def _uses(sighting: Sighting) -> bool:
    """True where a transport's user speaks: by its words or by the files of its innermost frames."""
    said = [*sighting.types, *(text[:2_000] for text in sighting.texts if text != sighting.heading)]
    said += [f"{frame.path} {frame.function}" for frame in sighting.frames[-4:]]
    return any(_USES.search(text) for text in said)


def _behind_transports(seen: list[Sighting], order: Order) -> list[Sighting]:
    """What a transport's users raise and print after its first error follows from it: that error becomes the root."""
    firsts: list[Sighting] = []
    rooted: set[int] = set()
    for sighting in sorted(seen, key=lambda s: s.place):
        if sighting.role is not None or order.backwards(sighting.span.source):
            continue
        home = next((f for f in firsts[:_MOST] if close(f, sighting) and _may_share(f, sighting)), None)
        if _raised(sighting) and sighting.kind in ("python", "message"):
            if _take_root(sighting, home):
                rooted.add(id(home))
        elif home is None:
            if _breaks(sighting):
                firsts.append(sighting)
        elif _loose(sighting) and (_breaks(sighting) or _uses(sighting)):
            sighting.role, sighting.conditional, sighting.rule = CausalRole.CASCADE, True, "transport-broken"
            sighting.role_why = "the transport had failed before"
    return [s for s in seen if id(s) not in rooted]


def _behind_shutdowns(seen: Sequence[Sighting], events: Sequence[Event]) -> None:
    """A parent that had begun to shut down says of its workers that they died: it takes them along."""
    begun: dict[tuple[int, str], int] = {}
    for event in events:
        if event.kind is EventKind.LIFECYCLE and event.fields.get("phase") == "shutdown" and event.stream:
            begun.setdefault((event.span.source, event.stream), event.span.last_line)
    for sighting in seen if begun else ():
        since = begun.get((sighting.span.source, sighting.stream))
        if since is not None and sighting.span.first_line > since and _DIED.search(sighting.message[:300]):
            sighting.role, sighting.conditional, sighting.rule = CausalRole.TEARDOWN, False, "teardown.own-shutdown"
            sighting.role_why = "the process that tells it had begun to shut down"


def _behind_ended_workers(seen: Sequence[Sighting], events: Sequence[Event]) -> None:
    """An engine gave up for a worker that said nothing, and ended the others: what these raise below that is none of the reason."""
    gave_up = {s.span.source: s for s in seen if s.rule == "cascade.worker-init"}
    for source, engine in gave_up.items():
        lines = [e.span.first_line for e in events if e.fields.get("phase") == "workers_ended" and e.span.source == source]
        raised = [s for s in seen if s.kind == "python" and s.role is None and s.span.source == source and s.stream != engine.stream]
        if not lines or any(s.span.first_line < lines[0] for s in raised):
            continue
        for sighting in raised:
            sighting.role, sighting.conditional, sighting.rule = CausalRole.TEARDOWN, False, "teardown.ended-workers"
            sighting.role_why = "the engine had given up and was ending its workers"


def _behind_the_dead(seen: list[Sighting], order: Order) -> None:
    """Where the log shows only that something had died, what is printed after that explains nothing."""
    if any(s.role is None and _raised(s) for s in seen):
        return
    dead = [order.key(s.span, s.time) for s in seen if s.outside and s.role is CausalRole.CASCADE and not s.torn]
    if not dead:
        return
    first = min(dead)
    for sighting in seen:
        said = sighting.events[0].fields
        names = said.get("what") == "coordination" and ("task" in said or "tasks" in said)
        if _loose(sighting) and not names and order.key(sighting.span, sighting.time) > first:
            sighting.role, sighting.conditional, sighting.rule = CausalRole.CASCADE, True, "behind-the-dead"
            sighting.role_why = "printed after another process had been seen dead"
