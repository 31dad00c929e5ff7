"""Sightings that are one failure told twice. In: sightings of one run in order; out: fewer. Sample:

    DEVICE_ASSERT "Assertion `idx < n` failed" + RuntimeError "CUDA error: device-side assert triggered" of the same rank
    -> one failure: kind device_assert, frames of the traceback, root_message the assertion
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from forensics.model.event import Event, EventKind
from forensics.model.verdict import CausalRole
from forensics.verdict.order import Order
from forensics.verdict.sighting import Sighting

_ASSERT_SEEN = re.compile(r"device-side assert(?!ions)|unspecified launch failure|illegal instruction|LAUNCH_FAILED|hipErrorLaunchFailure", re.I)
_DEVICE_PHRASES = (
    "illegal memory access", "misaligned address", "unspecified launch failure", "device-side assert", "no kernel image", "out of memory",
    "illegal instruction", "uncorrectable ecc", "invalid device function", "hardware exception",
)
_COMMUNICATION = re.compile(r"NCCL|RCCL|DistBackendError|ncclSystemError|ncclInternalError|ncclUnhandledCudaError", re.I)
_COMPILES = re.compile(r"MLIR|LLVM|\bllvm\b|PassManager|ptxas|Triton|ttgir|[Cc]ompil|nvrtc|ninja|nvcc")
#: how far apart two tellings of one crash can stand, in lines
_NEAR = 4_000


def same_process(one: Sighting, other: Sighting) -> bool:
    """True where nothing says that two sightings are of different processes."""
    if one.rank is not None and other.rank is not None:
        if one.rank.number is not None and other.rank.number is not None:
            return one.rank.number == other.rank.number and (one.rank.node or other.rank.node) == (other.rank.node or one.rank.node)
        return one.rank.key == other.rank.key
    if one.stream and other.stream:
        return one.stream == other.stream
    return True


def join(seen: Sequence[Sighting], events: Sequence[Event], order: Order) -> list[Sighting]:
    """Folds each failure's several tellings into the one that says most. events: all of the run, for stacks and reports."""
    kept = _absorb_repeated(list(seen))
    kept = _join_reraised(kept)
    kept = _join_asserts(kept)
    kept = _join_device_errors(kept)
    kept = _join_compilers(kept)
    kept = _join_signals(kept)
    kept = _join_aborts(kept)
    kept = _join_watchdogs(kept)
    _explain_waiting(kept, events)
    _explain_communication(kept, order)
    return kept


def _squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text[:4_000]).strip().lower()


def _absorb_repeated(seen: list[Sighting]) -> list[Sighting]:
    """An error line that only repeats what a traceback says (before, inside or after it) belongs to the traceback."""
    strong = [s for s in seen if s.weight >= 3 and s.kind != "native" or s.weight >= 3 and s.frames]
    told = [s for s in seen if s.kind == "exit"]
    said = [(s, _squeezed("\n".join((*s.texts, *s.types)))) for s in strong]
    kept = []
    for sighting in seen:
        words = _squeezed(sighting.message)
        if sighting.weight >= 3:
            home = next((o for o, text in said if o is not sighting and o.span.contains(sighting.span) and o.span != sighting.span and sighting.kind == o.kind == "native" and words in text), None)
            if home is None:
                kept.append(sighting)
            else:
                home.events += sighting.events
            continue
        home = next((o for o in told if o is not sighting and o.weight < sighting.weight and o.span == sighting.span), None)
        if home is not None:
            home.events += sighting.events
            continue
        for other, text in said:
            if other.span.contains(sighting.span) and other.span.first_line == sighting.span.first_line:
                home = other
            elif sighting.weight == 2 and len(words) > 12 and (words[:160] in text or _tail(words) in text) and _close(sighting, other):
                home = other
            elif sighting.weight == 2 and other.span.contains(sighting.span) and same_process(sighting, other):
                home = other
            if home is not None:
                break
        if home is None:
            kept.append(sighting)
        else:
            home.events += sighting.events
    return kept


def _tail(words: str) -> str:
    """What stands behind the first colon: "engine core failed to start: free memory …"."""
    rest = words.split(": ", 1)[-1]
    return rest[:160] if len(rest) > 20 else "\0"


def _close(one: Sighting, other: Sighting) -> bool:
    return one.span.source == other.span.source and abs(one.span.first_line - other.span.first_line) < _NEAR


def _join_reraised(seen: list[Sighting]) -> list[Sighting]:
    """An exception whose message repeats an earlier one's behind a prefix was raised from it, though the log lost the link."""
    gone: set[int] = set()
    python = [s for s in seen if s.kind == "python" and s.chain and s.role is None]
    for place, outer in enumerate(python):
        words = _squeezed(outer.message)
        for inner in reversed(python[max(0, place - 8) : place]):
            said = _squeezed(inner.message)[:200]
            if id(inner) in gone or len(said) < 20 or not same_process(inner, outer) or not _close(inner, outer):
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


def _join_asserts(seen: list[Sighting]) -> list[Sighting]:
    """The assertion printed by the device and the traceback or abort in which it surfaced."""
    asserts = [s for s in seen if s.kind == "device_assert" and not s.chain]
    gone: set[int] = set()
    for sighting in asserts:
        said = sighting.root_message
        surfaced = [s for s in seen if s is not sighting and id(s) not in gone and s.kind in ("python", "native") and same_process(s, sighting) and any(_ASSERT_SEEN.search(t) for t in s.texts)]
        surfaced.sort(key=lambda s: (s.kind != "python", abs(s.span.first_line - sighting.span.first_line)))
        if not surfaced:
            continue
        best = surfaced[0]
        best.add(sighting)
        best.kind, best.root_type, best.root_message = "device_assert", "device-side assert", said
        best.time = best.time if best.time is not None else sighting.time
        if sighting.place < best.place:
            best.span, best.spans = sighting.span, [sighting.span, *[s for s in best.spans if s != sighting.span]]
        gone.add(id(sighting))
        for repeated in surfaced[1:]:
            repeated.role, repeated.role_why, repeated.rule = CausalRole.CASCADE, "the process reports the failed assertion again", "assert-again"
    # The same assertion without a home (no traceback anywhere) stays a failure of its own.
    return [s for s in seen if id(s) not in gone]


def _phrase(sighting: Sighting) -> str | None:
    text = " ".join(sighting.texts).lower().replace("device-side assertions", "")
    return next((phrase for phrase in _DEVICE_PHRASES if phrase in text), None)


def _join_device_errors(seen: list[Sighting]) -> list[Sighting]:
    """The same device error printed by the watchdog, by `terminate` and by the traceback of one process."""
    gone: set[int] = set()
    told = [(s, _phrase(s)) for s in seen if (s.kind in ("python", "device_assert") or s.typed) and (s.role is None or s.typed)]
    for sighting in seen:
        phrase = _phrase(sighting) if sighting.kind == "native" and sighting.role is None else None
        if phrase is None:
            continue
        homes = [s for s, said in told if said == phrase and s.kind != "device_assert" and same_process(s, sighting)]
        exact = [s for s in homes if s.rank is not None and sighting.rank is not None] or (homes if len(homes) == 1 or sighting.rank is None else [])
        if exact:
            # The frames that tell the way are the traceback's; when it was first printed is the earlier of both.
            home = min(exact, key=lambda s: abs(s.span.first_line - sighting.span.first_line))
            if sighting.place < home.place and home.rank is not None:
                home.time = sighting.time if sighting.time is not None else home.time
            if home.typed:
                home.role, home.conditional, home.weight = None, False, 3
            home.events += sighting.events
            home.spans += sighting.spans
            gone.add(id(sighting))
    kept = [s for s in seen if id(s) not in gone]
    return _join_queue_errors(kept)


def _join_queue_errors(seen: list[Sighting]) -> list[Sighting]:
    """The runtime's word on an aborted queue and the program's abort over it: one failure, whose root is the runtime's word."""
    gone: set[int] = set()
    for sighting in seen:
        if not (sighting.type or "").startswith(("HSA_STATUS", "hipError", "cudaError", "CUDA_ERROR")) or sighting.kind != "native" or sighting.role is not None:
            continue
        abort = next((s for s in seen if s is not sighting and s.type == "SIGABRT" and s.kind == "native" and s.place > sighting.place and same_process(s, sighting) and _close(s, sighting)), None)
        if abort is not None:
            abort.root_type, abort.root_message = sighting.root_type, sighting.root_message
            abort.span, abort.events, abort.spans = sighting.span, [*sighting.events, *abort.events], [*sighting.spans, *abort.spans]
            abort.role, abort.role_why, abort.rule, abort.conditional = None, "", "", False
            gone.add(id(sighting))
    return [s for s in seen if id(s) not in gone]


def _join_compilers(seen: list[Sighting]) -> list[Sighting]:
    """What a compiler printed before the exception that says that it failed."""
    gone: set[int] = set()
    for sighting in seen:
        if sighting.kind != "native" or sighting.role is not None or not _COMPILES.search(f"{sighting.type} {sighting.message[:400]} {sighting.events[0].parser}"):
            continue
        home = next((s for s in seen if s.kind == "python" and s.role is None and s.place > sighting.place and same_process(s, sighting) and _close(s, sighting) and any(_COMPILES.search(t[:4_000]) for t in s.texts)), None)
        if home is not None:
            home.events += sighting.events
            home.spans += sighting.spans
            gone.add(id(sighting))
    return [s for s in seen if id(s) not in gone]


def _join_signals(seen: list[Sighting]) -> list[Sighting]:
    """One signal told by two handlers: UCX with the native stack, faulthandler with the Python one."""
    kept: list[Sighting] = []
    for sighting in seen:
        home = None
        if sighting.kind == "fatal_signal":
            home = next(
                (k for k in kept if k.kind == "fatal_signal" and k.type == sighting.type and same_process(k, sighting) and _close(k, sighting) and not _both_complete(k, sighting)),
                None,
            )
        if home is None:
            kept.append(sighting)
            continue
        if sighting.frames and home.frames:
            python_first = any(f.file and f.file.endswith(".py") for f in sighting.frames)
            home.frames = (*sighting.frames, *home.frames) if python_first else (*home.frames, *sighting.frames)
        else:
            home.frames = home.frames or sighting.frames
        if len(sighting.message) > len(home.message):
            home.message = home.root_message = sighting.message
        home.add(sighting)
    return kept


def _both_complete(one: Sighting, other: Sighting) -> bool:
    """Two Python stacks are two processes (or one process told twice, which folding sees)."""

    def python(sighting: Sighting) -> bool:
        return any(f.file and f.file.endswith(".py") for f in sighting.frames)

    return python(one) and python(other)


def _join_aborts(seen: list[Sighting]) -> list[Sighting]:
    """The signal or exit that ends a process after it has told its failure: the failure keeps the signal's name as its root type
    only where it had raised nothing (an assertion macro ends in SIGABRT)."""
    kept: list[Sighting] = []
    for sighting in seen:
        if sighting.kind == "fatal_signal" and sighting.type == "SIGABRT":
            home = next((k for k in reversed(kept) if k.kind in ("native", "device_assert") and k.role is None and same_process(k, sighting)), None)
            if home is not None:
                if not home.frames:
                    home.frames = sighting.frames
                elif sighting.frames and any(f.file and f.file.endswith(".py") for f in sighting.frames) and home.kind == "native":
                    home.frames = (*sighting.frames, *home.frames)
                home.add(sighting)
                continue
        kept.append(sighting)
    for sighting in kept:
        if sighting.type == "GGML_ASSERT" and sighting.root_type == "GGML_ASSERT":
            sighting.root_type = "SIGABRT"
    return kept


def _join_watchdogs(seen: list[Sighting]) -> list[Sighting]:
    """A collective's time-out and the abort that the watchdog makes of it."""
    timeouts = [s for s in seen if s.kind == "collective_timeout"]
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
        home.frames = home.frames or sighting.frames
        home.add(sighting)
        gone.add(id(sighting))
    return [s for s in seen if id(s) not in gone]


def _explain_waiting(seen: list[Sighting], events: Sequence[Event]) -> None:
    """Where a time-out has no stack of its own: the stack printed of the failed collective; a desync report is its root."""
    stacks = [e for e in events if e.kind is EventKind.STACK and e.fields.get("of") == "failed_collective" and e.stacks]
    report = next((e for e in events if e.fields.get("what") == "desync" and e.message), None)
    for sighting in seen:
        if sighting.kind != "collective_timeout":
            continue
        if not sighting.frames:
            own = [e for e in stacks if e.rank is None or sighting.rank is None or e.rank.number == sighting.rank.number]
            sighting.frames = own[0].stacks[0].frames if own else ()
        if report is not None:
            sighting.root_message = report.message
            sighting.spans = [*sighting.spans, report.span]
            sighting.events = [*sighting.events, report]


def _explain_communication(seen: list[Sighting], order: Order) -> None:
    """An NCCL exception that only says "unhandled system error" gets the library's own words as its root: its warning before, or
    the lines behind (in a newest-first log: above)."""
    warnings = [s for s in seen if s.kind == "message" and s.events[0].kind is EventKind.COMMUNICATION and s.role is None and s.level in (None, "WARN", "WARNING", "ERROR")]
    for sighting in seen:
        if sighting.role is not None or not (sighting.kind in ("python", "native") or sighting.typed):
            continue
        if not any(_COMMUNICATION.search(text) for text in (*sighting.types, *sighting.texts)):
            continue
        if sighting.root_message != sighting.message and sighting.root_message not in ("", "None"):
            continue
        said = _continuation(sighting, seen, order) or [w for w in warnings if same_process(w, sighting) and w.place < sighting.place and w.message]
        if said:
            sighting.root_message = "\n".join(s.message for s in said[:4]) if said[0] not in warnings else said[0].message
            for other in said[:4]:
                sighting.events += other.events
                sighting.spans += other.spans


def _continuation(sighting: Sighting, seen: Sequence[Sighting], order: Order) -> list[Sighting]:
    """Loose error lines that go on where the exception's line ends."""
    backwards = order.backwards(sighting.span.source)
    found = []
    place = sighting.span.first_line if backwards else sighting.span.last_line
    for step in range(1, 7):
        number = place - step if backwards else place + step
        line = next((s for s in seen if s.kind == "message" and s.weight == 2 and s.span.source == sighting.span.source and s.span.first_line <= number <= s.span.last_line), None)
        if line is None or line.typed and not (line.type or "").startswith("nccl"):
            break
        if line is not sighting and "Last error" not in line.message and line.message.strip("{} ") and line not in found:
            if any(word in line.message for word in ("Received sig", "Traceback")):
                break
            found.append(line)
    told = [s for s in found if not (s.type or "").startswith("nccl")]
    return (told or found) if any((s.type or "").startswith("nccl") for s in found) else []
