"""A rank's traceback that the log cuts off, beside the same one of another rank, whole. In: joined sightings; out: the torn ones take
what the whole ones say. Sample:

    [rank1]: Traceback … main() … model(x)                                          (the log goes on with another rank)
    [rank0]: Traceback … main() … model(x) … torch.cat(…) · RuntimeError: Sizes …   -> rank 1 failed in the same way

All ranks run the same code: where a stack is the beginning of another's, call for call and line for line, and nothing else begins so,
it is the same failure. That the line of the exception itself is missing for this rank is told with it. So it is with the exception that
the log's first line says, of a traceback that was cut off above it.
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.model.record import replace
from forensics.model.stack import Frame
from forensics.verdict.sighting import Sighting, close

#: calls that a torn traceback must at least have shown; fewer are how any program begins
_LEAST = 3
#: torn tracebacks of a run that are looked at
_MOST = 512
WHY = "its traceback is cut off; as far as it goes it is that of the others, call for call"


def finish(seen: Sequence[Sighting]) -> None:
    """Completes the torn tracebacks of ranks from those of other ranks."""
    torn = [s for s in seen if s.torn and s.rank is not None and s.role is None and len(s.frames) >= _LEAST][:_MOST]
    whole: dict[tuple[object, ...], list[Sighting]] = {}
    for one in seen if torn else ():
        if one.kind == "python" and not one.torn and one.rank is not None:
            for link in one.chain:
                if len(link.frames) >= _LEAST:
                    whole.setdefault(_calls(link.frames[:_LEAST]), []).append(one)
    _begun_above(seen)
    for sighting in torn:
        calls = _calls(sighting.frames)
        alike = [one for one in whole.get(calls[:_LEAST], ()) if close(one, sighting) and _begins(one, calls)]
        if alike and len({(one.root_type, one.root_message.partition("\n")[0][:40], one.role) for one in alike}) == 1:
            if all(one.rank is not None and sighting.rank is not None and one.rank.key != sighting.rank.key for one in alike):
                _take(sighting, alike[0])


def _begun_above(seen: Sequence[Sighting]) -> None:
    """Completes the exception that the log begins with, whose traceback stood above it, from the same one of another rank."""
    first = seen[0] if seen else None
    if first is None or first.rank is None or not first.typed or first.role is not None or first.span.first_line != 1:
        return
    said, key = (first.type, first.message), first.rank.key
    alike = [one for one in seen[1:_MOST] if one.kind == "python" and one.rank is not None and (one.type, one.message) == said]
    if alike and all(close(one, first) and one.rank is not None and one.rank.key != key for one in alike):
        first.kind = "python"
        _take(first, alike[0])


def _calls(frames: Sequence[Frame]) -> tuple[object, ...]:
    return tuple((frame.path, frame.line, frame.function) for frame in frames)


def _begins(whole: Sighting, calls: tuple[object, ...]) -> bool:
    return any(_calls(link.frames[: len(calls)]) == calls for link in whole.chain)


def _take(torn: Sighting, whole: Sighting) -> None:
    torn.type, torn.message, torn.root_type, torn.root_message = whole.type, whole.message, whole.root_type, whole.root_message
    torn.chain, torn.frames, torn.weight = whole.chain, whole.frames, whole.weight
    torn.role, torn.rule, torn.conditional, torn.outside, torn.inner = whole.role, whole.rule, whole.conditional, whole.outside, whole.inner
    torn.role_why = whole.role_why
    torn.events = [replace(torn.events[0], fields={**torn.events[0].fields, "finished": True}), *torn.events[1:], whole.events[0]]
