"""Sightings that are one failure told twice. In: sightings of one run in order; out: fewer. Sample:

ERROR "EngineCore failed to start: Free memory …" + ValueError "Free memory …" -> the traceback, with the line as evidence
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.ingest.compiled import pattern_of
from forensics.ingest.pattern import Pattern
from forensics.model.event import Event
from forensics.model.record import replace
from forensics.parse.signals import signal_in
from forensics.verdict.join_communication import (
    explain_communication,
    explain_waiting,
    join_uncaught,
    join_watchdogs,
    name_group_ranks,
    name_warnings,
)
from forensics.verdict.join_device import (
    join_aborts,
    join_asserts,
    join_compilers,
    join_complaints,
    join_device_errors,
    join_dumps,
    join_shims,
    join_signals,
)
from forensics.verdict.order import Order
from forensics.verdict.recorded import join_recorded
from forensics.verdict.sighting import Near, Sighting, close, same_process

#: torch's signal handlers in a data loader's worker
_WORKER_ENDS = Pattern(r"Unexpected (?P<what>bus error|segmentation fault|floating-point exception) encountered in worker")
#: how far below its announcement a traceback begins: the runtime's advice stands between them
_BELOW = 8


def join(seen: Sequence[Sighting], events: Sequence[Event], order: Order) -> list[Sighting]:
    """Folds each failure's several tellings into the one that says most. events: all of the run, for stacks and reports."""
    kept = _absorb_repeated(join_recorded(seen))
    kept = _join_reraised(_join_panics(kept))
    kept = _join_kills(kept)
    kept = _join_step_ends(kept)
    kept = _join_probes(kept)
    kept = _join_loaders(kept)
    _explain_interrupts(kept)
    kept = join_asserts(kept)
    kept = join_device_errors(kept)
    kept = join_complaints(kept)
    kept = join_shims(kept)
    kept = join_compilers(kept)
    kept = join_signals(kept)
    kept = join_aborts(kept)
    kept = join_watchdogs(kept)
    kept = join_uncaught(kept)
    join_dumps(kept, events)
    explain_waiting(kept, events)
    name_group_ranks(kept, events)
    name_warnings(kept)
    explain_communication(kept, order)
    return kept


def _join_panics(seen: list[Sighting]) -> list[Sighting]:
    """A panic in Rust code that Python code had called: pyo3 raises what the panic's handler has just printed."""
    gone: set[int] = set()
    for place, sighting in enumerate(seen):
        if sighting.kind != "python" or not (sighting.type or "").endswith("PanicException"):
            continue
        for before in reversed(seen[max(0, place - 8) : place]):
            if before.kind == "native" and before.type == "panic" and before.message[:60] == sighting.message[:60]:
                sighting.events = [*sighting.events, *before.events]
                sighting.spans = [*sighting.spans, *before.spans]
                gone.add(id(before))
                break
    return [s for s in seen if id(s) not in gone]


def _squeezed(text: str) -> str:
    return pattern_of(r"\s+").sub(" ", text[:4_000]).strip().lower()


def _absorb_repeated(seen: list[Sighting]) -> list[Sighting]:
    """An error line that only repeats what a traceback says (before, inside or after it) belongs to the traceback."""
    strong = Near(s for s in seen if (s.weight >= 3 and s.kind != "native") or (s.weight >= 3 and s.frames))
    told = {span: s for s in reversed(seen) if s.kind == "exit" for span in (s.span, s.last) if span is not None}
    read = {(s.span.source, s.span.first_line): s for s in reversed(seen) if s.kind == "native" and not s.frames}
    texts: dict[int, str] = {}

    def said(sighting: Sighting) -> str:
        if id(sighting) not in texts:
            texts[id(sighting)] = _squeezed("\n".join((*sighting.texts, *sighting.types)))
        return texts[id(sighting)]

    kept = []
    for sighting in seen:
        words = _squeezed(sighting.message)
        around = [s for s in strong.around(sighting.place) if s is not sighting]
        home = None
        if sighting.weight >= 3:
            if sighting.kind == "native":
                home = next((s for s in around if _tells_inside(s, sighting) and words in said(s)), None)
                home = home or next((s for s in around if _announces(sighting, s) and words in said(s)), None)
        elif sighting.span in told and told[sighting.span].weight < sighting.weight:
            home = told[sighting.span]
        elif sighting.kind == "message" and _reads_again(sighting, words, read.get((sighting.span.source, sighting.span.first_line))):
            home = read[(sighting.span.source, sighting.span.first_line)]
        else:
            home = next((s for s in around if _repeats(sighting, s, words, said(s))), None)
        if home is None:
            kept.append(sighting)
        else:
            home.events += sighting.events
            home.rank = home.rank or (sighting.rank if sighting.kind == "native" else None)
    return kept


def _tells_inside(outer: Sighting, inner: Sighting) -> bool:
    """True where a native failure stands inside the lines of a larger one."""
    return outer.kind == "native" and outer.span != inner.span and outer.span.contains(inner.span)


def _announces(line: Sighting, raised: Sighting) -> bool:
    """True where a logger printed a device error, or an engine its own with the native stack, and the traceback of it right below."""
    below = raised.span.first_line - line.span.last_line
    return (
        raised.kind == "python"
        and line.events[0].parser in ("device_error", "trtllm")
        and bool(line.level)
        and raised.span.source == line.span.source
        and 0 <= below <= _BELOW
        and same_process(raised, line)
    )


def _reads_again(sighting: Sighting, words: str, native: Sighting | None) -> bool:
    """True for one line that two parsers read, of which one read the lines below it, too."""
    if native is None:
        return False
    said = _squeezed(native.message)
    if native.span == sighting.span and native.span.first_line == native.span.last_line:
        return said in words
    return native.span.contains(sighting.span) and said.startswith(words.removeprefix("error: "))


def _repeats(sighting: Sighting, other: Sighting, words: str, text: str) -> bool:
    """True where a printed line says nothing that the stronger sighting does not say. words, text: what they say, squeezed."""
    if other.span.first_line == sighting.span.first_line and other.span.source == sighting.span.source:
        said = _squeezed(other.message)
        if other.span.contains(sighting.span) or (len(said) > 12 and said in words):
            return True
    if sighting.weight != 2:
        return False
    if other.span.contains(sighting.span) and same_process(sighting, other):
        return True
    if sighting.typed and not same_process(sighting, other):
        return False  # another rank that raised the same
    return len(words) > 12 and (words[:160] in text or _tail(words) in text) and close(sighting, other)


def _tail(words: str) -> str:
    """What stands behind the first colon: "engine core failed to start: free memory …"."""
    rest = words.split(": ", 1)[-1]
    return rest[:160] if len(rest) > 20 else "\0"


def _join_reraised(seen: list[Sighting]) -> list[Sighting]:
    """An exception whose message repeats an earlier one's behind a prefix was raised from it, though the log lost the link."""
    gone: set[int] = set()
    python = [s for s in seen if s.kind == "python" and s.chain and s.role is None]
    for place, outer in enumerate(python):
        words = _squeezed(outer.message)
        for inner in reversed(python[max(0, place - 8) : place]):
            said = _squeezed(inner.message.split("\n", 1)[0])[:200]
            if id(inner) in gone or len(said) < 20 or not same_process(inner, outer) or not close(inner, outer):
                continue
            if said in words and not words.startswith(said):
                first, rest = outer.chain[0], outer.chain[1:]
                outer.chain = (*inner.chain, replace(first, link=first.link or "context"), *rest)
                outer.root_type, outer.root_message, outer.frames = inner.root_type, inner.root_message, inner.frames
                outer.span, outer.time = inner.span, inner.time if inner.time is not None else outer.time
                outer.heading = outer.heading or inner.heading
                outer.rank = outer.rank or inner.rank
                outer.events = [*inner.events, *outer.events]
                outer.spans = [*inner.spans, *outer.spans]
                gone.add(id(inner))
                break
    return [s for s in seen if id(s) not in gone]


def _join_kills(seen: list[Sighting]) -> list[Sighting]:
    """One kill told by the kernel, by the scheduler and for the task: the one that came first, with the rank that any names."""
    kept: list[Sighting] = []
    for sighting in seen:
        home = next((k for k in kept if k.kind == "oom_kill"), None) if sighting.kind == "oom_kill" else None
        if home is None or not same_process(home, sighting):
            kept.append(sighting)
        else:
            home.add(sighting)
    return kept


def _join_step_ends(seen: list[Sighting]) -> list[Sighting]:
    """srun says that the step ends, slurmstepd who ended it and why, in either order: the one that knows more is the failure."""
    said = {id(s): s.events[0].fields.get("what") for s in seen if s.kind == "exit" and s.events}
    ends = [s for s in seen if said.get(id(s)) == "cancelled"]
    if not ends:
        return seen
    for sighting in seen:
        if said.get(id(sighting)) == "step_aborted":
            home = min(ends, key=lambda s: abs(s.span.first_line - sighting.span.first_line))
            home.events += sighting.events
            home.spans += sighting.spans
    told = _steps_of_jobs(ends)
    return [s for s in seen if said.get(id(s)) != "step_aborted" and id(s) not in told]


def _steps_of_jobs(ends: list[Sighting]) -> set[int]:
    """Which ends of a step are told again, with a reason, for the whole job: the job's line takes them in."""
    jobs = {
        str(s.events[0].fields.get("job")): s
        for s in ends
        if s.events[0].fields.get("reason") and str(s.events[0].fields.get("unit", "")).lower() == "job"
    }
    told: set[int] = set()
    for end in ends:
        fields = end.events[0].fields
        home = jobs.get(str(fields.get("job", "")).partition(".")[0])
        if home is None or home is end or fields.get("reason") or not same_process(home, end):
            continue
        home.events += end.events
        home.spans += end.spans
        told.add(id(end))
    return told


def _join_probes(seen: list[Sighting]) -> list[Sighting]:
    """The failed probes for which the kubelet ended a container belong to that end."""
    said = {id(s): s.events[0].fields.get("what") for s in seen if s.kind == "exit" and s.events}
    end = next((s for s in seen if said.get(id(s)) == "probe_killed"), None)
    probes = [s for s in seen if said.get(id(s)) == "liveness"] if end is not None else []
    for probe in probes:
        assert end is not None
        end.events += probe.events
        end.spans += probe.spans
    gone = {id(s) for s in probes}
    return [s for s in seen if id(s) not in gone]


def _join_loaders(seen: list[Sighting]) -> list[Sighting]:
    """What a data loader's worker says when a signal ends it (torch's handlers), and the exception of the rank that misses it: the
    signal is the root."""
    told = [s for s in seen if s.kind == "message" and s.role is None and _WORKER_ENDS.search(s.message[:400])]
    gone: set[int] = set()
    for line in told:
        found = _WORKER_ENDS.search(line.message[:400])
        after = [s for s in seen if s.kind == "python" and s.rule == "cascade.dataloader" and s.place > line.place and close(s, line)]
        home = min(after, key=lambda s: s.place, default=None)
        if home is None or found is None or len(home.chain) > 1:
            continue
        home.role, home.role_why, home.rule, home.conditional, home.outside = None, "", "", False, False
        home.root_type, home.root_message = signal_in(found["what"]), line.message
        home.events = [*home.events, *line.events]
        home.spans = [*home.spans, *line.spans]
        gone.add(id(line))
    return [s for s in seen if id(s) not in gone]


def _explain_interrupts(seen: list[Sighting]) -> None:
    """A KeyboardInterrupt beside an exit with 124 is how `timeout` and test runners end what took too long."""
    limit = next((s for s in seen if s.type == "exit 124"), None)
    if limit is None:
        return
    for sighting in seen:
        if sighting.type == "KeyboardInterrupt" and close(sighting, limit):
            sighting.root_type, sighting.root_message = limit.type, limit.message
            sighting.events = [*sighting.events, *limit.events]
            sighting.spans = [*sighting.spans, *limit.spans]
