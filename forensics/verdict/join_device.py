"""One device failure told twice: by the device, the watchdog, a signal handler, the traceback. In: sightings; out: fewer. Sample:

DEVICE_ASSERT "Assertion `idx < n` failed" + RuntimeError "CUDA error: device-side assert triggered" of the same rank
-> one failure: kind device_assert, frames of the traceback, root_message the assertion
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from forensics.ingest.compiled import pattern_of
from forensics.ingest.pattern import Pattern
from forensics.model.event import Event, EventKind
from forensics.model.verdict import CausalRole
from forensics.parse.signals import FAULTS
from forensics.verdict.sighting import Near, Sighting, close, same_process

#: sightings that are looked at on each side of one
_MOST = 256
_ASSERT_SEEN = Pattern(
    r"device-side assert(?!ions)|unspecified launch failure|illegal instruction|LAUNCH_FAILED|hipErrorLaunchFailure",
    re.I,
)
#: a line with which a program says that it ends itself
_FATAL = pattern_of(r"[Tt]erminating process|[Aa]borting\b|FATAL")
_DEVICE_PHRASES = (
    "illegal memory access",
    "misaligned address",
    "unspecified launch failure",
    "device-side assert",
    "no kernel image",
    "out of memory",
    "illegal instruction",
    "uncorrectable ecc",
    "invalid device function",
    "hardware exception",
)
#: a device error and its traceback are no further apart, by the log's clock
_LATEST_S = 7_200
#: how far below the runtime's own line its caller's traceback can stand
_RAISED_WITHIN = 400
#: signals that end a process by a fault of its own, and how far below its dump they are told, in lines
_FAULTS = FAULTS | {"SIGABRT"}
_DUMP_ABOVE = 60
_STATUS = Pattern(r"^(?:CUDA_ERROR|CUDNN_STATUS|CUBLAS_STATUS|CUSOLVER_STATUS|CUSPARSE_STATUS|cudaError|hipError)")
_SEE_ABOVE = Pattern(r"(?:errors?|log|messages?|output) above|see above", re.I)
#: transports whose kernels print why they give up, and then trap; how such a trap surfaces, and how far below, in lines
_COMPLAINTS = ("deepep",)
_TRAPS = ("unspecified launch failure", "illegal instruction")
_PRINTED_ABOVE = 400
#: how torch's stable C interface logs what it caught, and what its macros raise from the status
_SHIM = "Exception in aoti_torch: "
_STATUS_ONLY = pattern_of(r"\bAPI call failed at \S{1,400}, line \d{1,7}")
_COMPILES = Pattern(r"MLIR|LLVM|\bllvm\b|PassManager|ptxas|Triton|ttgir|[Cc]ompil|nvrtc|ninja|nvcc")


def join_asserts(seen: list[Sighting]) -> list[Sighting]:
    """The assertion printed by the device and the traceback or abort in which it surfaced."""
    asserts = [s for s in seen if s.kind == "device_assert" and not s.chain]
    gone: set[int] = set()
    near = Near(
        s for s in seen if s.kind in ("python", "native") and (s.torn or any(_ASSERT_SEEN.search(t) for t in s.texts))
    )
    for sighting in asserts:
        said = sighting.root_message
        surfaced = [
            s
            for s in near.around(sighting.place, _MOST)
            if s is not sighting and id(s) not in gone and s.kind in ("python", "native") and same_process(s, sighting)
        ]
        surfaced.sort(key=lambda s: (s.kind != "python", abs(s.span.first_line - sighting.span.first_line)))
        if not surfaced:
            continue
        best = surfaced[0]
        best.add(sighting)
        best.kind, best.root_type, best.root_message = "device_assert", "device-side assert", said
        if not best.message:
            best.type, best.message, best.weight = sighting.type, sighting.message, sighting.weight
        best.time = best.time if best.time is not None else sighting.time
        if sighting.place < best.place:
            best.span, best.spans = sighting.span, [sighting.span, *[s for s in best.spans if s != sighting.span]]
        gone.add(id(sighting))
        for repeated in surfaced[1:]:
            repeated.role, repeated.role_why, repeated.rule = (
                CausalRole.CASCADE,
                "the process reports the failed assertion again",
                "assert-again",
            )
    # The same assertion without a home (no traceback anywhere) stays a failure of its own.
    return [s for s in seen if id(s) not in gone]


def _phrase(sighting: Sighting) -> str | None:
    text = " ".join(sighting.texts).lower().replace("device-side assertions", "")
    return next((phrase for phrase in _DEVICE_PHRASES if phrase in text), None)


def _apart(one: float | None, other: float | None) -> bool:
    """Too long between them for one failure: no watchdog reports an error so late."""
    return one is not None and other is not None and abs(one - other) > _LATEST_S


def join_device_errors(seen: list[Sighting]) -> list[Sighting]:
    """The same device error printed by the watchdog, by `terminate` and by the traceback of one process."""
    gone: set[int] = set()
    told = [s for s in seen if (s.kind == "python" or s.typed) and (s.role is None or s.typed)]
    near: dict[str, Near] = {}
    for said in _DEVICE_PHRASES:
        near[said] = Near(s for s in told if _phrase(s) == said)
    for sighting in seen:
        phrase = _phrase(sighting) if sighting.kind == "native" and sighting.role is None else None
        if phrase is None:
            continue
        homes = [
            s for s in near[phrase].around(sighting.place, _MOST) if same_process(s, sighting) and not _apart(s.time, sighting.time)
        ]
        exact = [s for s in homes if s.rank is not None and sighting.rank is not None] or (
            homes if len(homes) == 1 or sighting.rank is None else []
        )
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
    _name_homes(kept)
    return _join_queue_errors(_join_raised_statuses(kept))


def join_complaints(seen: list[Sighting]) -> list[Sighting]:
    """What a kernel printed before it stopped itself, and the launch failure in which that surfaced: the kernel's word is the root."""
    told = [s for s in seen if s.kind == "message" and s.role is None and s.events[0].fields.get("what") in _COMPLAINTS]
    trapped = [s for s in seen if s.role is None and s.weight >= 2 and s not in told and _phrase(s) in _TRAPS] if told else []
    gone: set[int] = set()
    for sighting in trapped:
        line = sighting.span.first_line
        above = [
            t
            for t in told
            if t.span.source == sighting.span.source and 0 < line - t.span.first_line <= _PRINTED_ABOVE and same_process(t, sighting)
        ]
        number = sighting.rank.number if sighting.rank is not None else None
        own = [t for t in above if number is not None and t.events[0].fields.get("waits") == number]
        if not above or sighting.root_message != sighting.message:
            continue
        sighting.root_type, sighting.root_message = None, (own or above)[0].message
        for complaint in own or [t for t in above if id(t) not in gone] or above[:1]:
            sighting.events = [*sighting.events, *complaint.events]
            sighting.spans = [*sighting.spans, *complaint.spans]
        gone.update(id(t) for t in above)
    return [s for s in seen if id(s) not in gone]


def join_shims(seen: list[Sighting]) -> list[Sighting]:
    """torch's stable C interface gives its callers no more than a status; the exception behind it is logged by the same rank."""
    logged = [s for s in seen if s.kind == "message" and s.message.startswith(_SHIM)][:_MOST]
    gone: set[int] = set()
    for sighting in seen if logged else ():
        if sighting.root_message != sighting.message or not _STATUS_ONLY.search(sighting.message[:2_000]):
            continue
        own = [s for s in logged if same_process(s, sighting)]
        if own:
            sighting.root_type, sighting.root_message = None, own[0].message.removeprefix(_SHIM)
            sighting.events = [*sighting.events, *own[0].events]
            sighting.spans = [*sighting.spans, *own[0].spans]
            gone.update(id(s) for s in own)
    return [s for s in seen if id(s) not in gone]


def _name_homes(seen: list[Sighting]) -> None:
    """A traceback without a rank is that of the only rank whose watchdog tells the same device error."""
    for sighting in seen:
        if sighting.kind != "python" or sighting.rank is not None or len(sighting.events) < 2:
            continue
        told = {e.rank.key: e.rank for e in sighting.events[1:] if e.rank is not None and e.rank.number is not None}
        if len(told) == 1 and _phrase(sighting) is not None:
            sighting.rank = next(iter(told.values()))
    # Nor does a library sign what it prints before it ends the process.
    unsigned = [s for s in seen if s.kind == "native" and s.rank is None and not s.stream and _phrase(s)]
    ranked = [s for s in seen if s.rank is not None and s.rank.number is not None] if unsigned else []
    for sighting in unsigned:
        alike = {s.rank.key: s.rank for s in ranked if s.rank and _phrase(s) == _phrase(sighting) and close(s, sighting)}
        if len(alike) == 1:
            sighting.rank = next(iter(alike.values()))


def _join_raised_statuses(seen: list[Sighting]) -> list[Sighting]:
    """What a runtime logged of a call that failed, and the exception that its caller then raised over it: the exception is what
    the user saw; where its own text does not name the status ("look at the errors above"), the status is its root."""
    gone: set[int] = set()
    raised = Near(s for s in seen if s.kind == "python" and s.role is None)
    for sighting in seen:
        status = sighting.type or ""
        if sighting.kind != "native" or sighting.role is not None or not _STATUS.match(status):
            continue
        for home in reversed(raised.before((sighting.place[0], sighting.place[1] + _RAISED_WITHIN), 8)):
            if max(s.last_line for s in home.spans) <= sighting.span.last_line or not same_process(home, sighting):
                continue
            named = any(status in text for text in home.texts)
            if not named and not any(_SEE_ABOVE.search(text) for text in home.texts):
                continue
            home.events += sighting.events
            home.spans += sighting.spans
            gone.add(id(sighting))
            break
    return [s for s in seen if id(s) not in gone]


def _join_queue_errors(seen: list[Sighting]) -> list[Sighting]:
    """The runtime's word on an aborted queue and the program's abort over it: one failure, whose root is the runtime's word."""
    gone: set[int] = set()
    faults = [s for s in seen if s.type == "Memory access fault" and s.role is None][:_MOST]
    aborts = Near(s for s in seen if s.type == "SIGABRT" and s.kind == "native")
    for sighting in seen:
        queue = sighting.kind == "native" and (sighting.type or "").startswith("HSA_STATUS")
        fault = next((f for f in faults if same_process(f, sighting) and close(f, sighting)), None) if queue else None
        if fault is not None:
            # The queue was aborted because of the fault, whichever of the two was printed first.
            fault.add(sighting)
            gone.add(id(sighting))
            continue
        if (
            not (sighting.type or "").startswith(("HSA_STATUS", "hipError", "cudaError", "CUDA_ERROR"))
            or sighting.kind != "native"
            or sighting.role is not None
        ):
            continue
        abort = next(
            (
                s
                for s in aborts.around(sighting.place)
                if s is not sighting and s.place > sighting.place and same_process(s, sighting) and close(s, sighting)
            ),
            None,
        )
        if abort is not None:
            abort.root_type, abort.root_message = sighting.root_type, sighting.root_message
            abort.span, abort.events, abort.spans = (
                sighting.span,
                [*sighting.events, *abort.events],
                [*sighting.spans, *abort.spans],
            )
            abort.role, abort.role_why, abort.rule, abort.conditional = None, "", "", False
            gone.add(id(sighting))
    return [s for s in seen if id(s) not in gone]


def join_compilers(seen: list[Sighting]) -> list[Sighting]:
    """What a compiler printed before the exception that says that it failed."""
    gone: set[int] = set()
    near = Near(
        s for s in seen if s.kind == "python" and s.role is None and any(_COMPILES.search(t[:4_000]) for t in s.texts)
    )
    for sighting in seen:
        if (
            sighting.kind != "native"
            or sighting.role is not None
            or not _COMPILES.search(f"{sighting.type} {sighting.message[:400]} {sighting.events[0].parser}")
        ):
            continue
        home = next(
            (
                s
                for s in near.around(sighting.place)
                if s.place > sighting.place and same_process(s, sighting) and close(s, sighting)
            ),
            None,
        )
        if home is not None:
            home.events += sighting.events
            home.spans += sighting.spans
            gone.add(id(sighting))
    return [s for s in seen if id(s) not in gone]


def join_signals(seen: list[Sighting]) -> list[Sighting]:
    """One signal told by two handlers: UCX with the native stack, faulthandler with the Python one."""
    kept: list[Sighting] = []
    signals: list[Sighting] = []
    for sighting in seen:
        home = None
        if sighting.kind == "fatal_signal":
            home = next(
                (
                    k
                    for k in signals[-_MOST:]
                    if k.type == sighting.type
                    and same_process(k, sighting)
                    and close(k, sighting)
                    and not _both_complete(k, sighting)
                ),
                None,
            )
        if home is None:
            kept.append(sighting)
            if sighting.kind == "fatal_signal":
                signals.append(sighting)
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


def join_dumps(seen: list[Sighting], events: Sequence[Event]) -> None:
    """A fault that a shell or a launcher reports gets the stack that the dying process printed right above, where faulthandler's
    first line is missing: its dump marks the current thread, and nobody had asked for it."""
    dumps = [
        e for e in events if e.kind is EventKind.STACK and e.stacks and e.fields.get("current") == 0 and not e.fields.get("reason")
    ]
    for sighting in seen if dumps else ():
        if sighting.frames or sighting.kind not in ("exit", "fatal_signal") or sighting.type not in _FAULTS:
            continue
        above = [
            e
            for e in dumps
            if e.span.source == sighting.span.source
            and 0 < sighting.span.first_line - e.span.last_line <= _DUMP_ABOVE
            and (e.rank is None or sighting.rank is None or e.rank.number == sighting.rank.number)
        ]
        if above:
            sighting.frames = above[-1].stacks[0].frames
            sighting.events = [*sighting.events, above[-1]]
            sighting.spans = [*sighting.spans, above[-1].span]


def _from_debugger(signal: Sighting) -> bool:
    return signal.rank is None and signal.events[0].parser == "debugger"


def join_aborts(seen: list[Sighting]) -> list[Sighting]:
    """The signal or exit that ends a process after it has told its failure: the failure keeps the signal's name as its root type
    only where it had raised nothing (an assertion macro ends in SIGABRT)."""
    kept: list[Sighting] = []
    told = [s for s in seen if s.kind == "native" and s.type == "SIGABRT" and s.message]
    for sighting in seen:
        if sighting.kind == "fatal_signal" and sighting.type == "SIGABRT":
            # a debugger's session is pasted above what the program itself had said: one abort, told by its words
            if len(told) == 1 and told[0] not in kept and _from_debugger(sighting) and same_process(told[0], sighting):
                told[0].add(sighting)
                continue
            home = next(
                (
                    k
                    for k in kept[: -_MOST - 1 : -1]
                    if same_process(k, sighting)
                    and (
                        (k.kind in ("native", "device_assert") and (k.role is None or k.rule == "cascade.abort-after"))
                        or (k.kind == "message" and _FATAL.search(k.message[:400]) and close(k, sighting))
                    )
                ),
                None,
            )
            if home is not None:
                if not home.frames:
                    home.frames = sighting.frames
                elif (
                    sighting.frames
                    and any(f.file and f.file.endswith(".py") for f in sighting.frames)
                    and home.kind == "native"
                ):
                    home.frames = (*sighting.frames, *home.frames)
                home.add(sighting)
                continue
        kept.append(sighting)
    for sighting in kept:
        if sighting.type == "GGML_ASSERT" and sighting.root_type == "GGML_ASSERT":
            sighting.root_type = "SIGABRT"
    return kept
