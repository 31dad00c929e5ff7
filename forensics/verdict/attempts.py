"""Runs that torchrun itself keeps apart, each in a folder of its own. In: events, lines, sources; out: runs, or None. Sample:

    run/attempt_0/2/stderr.log   OSError: [Errno 5] Input/output error
    run/attempt_1/2/stderr.log   torch.OutOfMemoryError: CUDA out of memory …
    -> two runs: the second one ended the job

torchrun --log-dir writes DIR/RUN/attempt_N/LOCAL_RANK/stderr.log, N from 0 (torch.distributed.elastic.multiprocessing.api, 2.7).
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.ingest.attempts import place_of
from forensics.model.event import Event
from forensics.model.source import LogSource, Span
from forensics.verdict.incidents import Run


def attempts(events: Sequence[Event], sources: Sequence[LogSource]) -> list[Run] | None:
    """One run an attempt, in order; None where there are not several, or something failed in another file: the agent's, say, which is
    about all of them."""
    number_of = {index: place.attempt for index, source in enumerate(sources) if (place := place_of(source)) is not None}
    numbers = sorted(set(number_of.values()))
    if len(numbers) < 2 or any(event.span.source not in number_of for event in events):
        return None
    runs = []
    for number in numbers:
        own = [index for index, other in number_of.items() if other == number]
        begins = tuple(Span(index, 1, 1) for index in own) if number != numbers[0] else ()
        runs.append(Run(begins, [e for e in events if number_of[e.span.source] == number], others=frozenset(number_of) - frozenset(own)))
    return runs
