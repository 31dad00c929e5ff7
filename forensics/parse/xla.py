# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""JAX and XLA: failed executions, rendezvous that wait for devices, the coordination service. In: an intake; out: NATIVE,
COLLECTIVE_STATE, COMMUNICATION and MESSAGE events. Samples:

    F1129 20:15:45.1 811 rendezvous.cc:127] Termination timeout for `AllReduce` of 40 seconds exceeded. Exiting to ensure a consistent program state. Expected 8 threads to join the rendezvous, but only 7 of them arrived on time.
    -> COLLECTIVE_STATE fields {"what": "rendezvous", "operation": "AllReduce", "expected": 8, "arrived": 7, "seconds": 40}
    Execution of replica 0 failed: INTERNAL: Failed to launch CUDA kernel     -> MESSAGE level ERROR fields {"replica": 0}
    Exception in device=TPU:1: … Check failed: …              -> MESSAGE level ERROR fields {"device": "TPU:1"}
    /job:jax_worker/replica:0/task:3 heartbeat timeout. …    -> COMMUNICATION rank "task 3", fields {"what": "coordination", "task": 3}
    The following tasks are unhealthy (stopped sending heartbeats):\n/job:jax_worker/replica:0/task:5        -> the same, of task 5
    W … bfc_allocator.cc:501] Allocator (GPU_0_bfc) ran out of memory trying to allocate 12.50GiB (rounded to …)requested by op
    -> MESSAGE fields {"what": "allocator", "allocator": "GPU_0_bfc"}; of the dump below it alone, "allocator_dump"
"""

from __future__ import annotations

from collections.abc import Mapping

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.model.record import replace
from forensics.model.source import Rank, Span
from forensics.parse.reading import Lazy, hits
from forensics.parse.rows import Row, Table

#: so many tasks are read below the line that calls them unhealthy
_MOST_TASKS = 16
_NAMED = Lazy(r"^\s*(?P<name>/job:[\w.-]{1,80}/replica:\d{1,6}/task:(?P<task>\d{1,6}))\s*$")
_INLINE = Lazy(r"(/job:[\w.-]{1,80}/replica:\d{1,6}/task:(\d{1,6}))\b")
_LISTS = "(stopped sending heartbeats)"


def _task(number: int) -> Rank:
    """A process of the job, as the coordination service calls it."""
    return Rank(f"task {number}", number)


_TABLE = Table(
    "xla",
    (
        Row(
            "to join the rendezvous",
            EventKind.COLLECTIVE_STATE,
            r"(?P<message>(?:(?:Termination timeout for|This thread has been waiting for) `?(?P<operation>.{1,1500}?)`?(?: of| for) (?P<seconds>\d+) seconds.{0,300}?)?Expected (?P<expected>\d+) threads to join the rendezvous, but (?:only (?P<arrived>\d+)|not all) of them.*)$",
            fields={"what": "rendezvous"},
        ),
        Row(
            "NCCL operation ",
            EventKind.MESSAGE,
            r"(?P<message>NCCL operation (?P<operation>\w{1,40})(?:\([^()]{0,300}\))? failed: [^\n;]{1,400}?)(?:; current tracing scope.{0,2000}|: while running replica.{0,400})?$",
            level="ERROR",
            fields={"what": "nccl_operation"},
        ),
        Row(
            "Execution of replica ",
            EventKind.MESSAGE,
            r"(?P<message>Execution of replica (?P<replica>\d+) failed: .*)$",
            level="ERROR",
        ),
        Row(
            "Exception in device=",  # torch_xla's multiprocessing, above a traceback where Python raised
            EventKind.MESSAGE,
            r"(?P<message>Exception in device=(?P<device>[\w:]{1,40}): \S.*)$",
            level="ERROR",
        ),
        Row(
            "!!!! FATAL ERROR !!!!",  # a TPU's driver
            EventKind.MESSAGE,
            r"(?P<message>!!!! FATAL ERROR !!!! for \[(?P<device>[^\]]{1,100})\].*)$",
            level="ERROR",
        ),
        Row(
            "JAX distributed service detected fatal errors",
            EventKind.COMMUNICATION,
            r"(?P<message>Terminating process because the JAX distributed service detected fatal errors.*)$",
            fields={"what": "coordination"},
            after=_MOST_TASKS,
        ),
        Row(
            "heartbeat timeout",
            EventKind.COMMUNICATION,
            r"^(?P<message>[^\n]{0,400}?(?:task:|\b[Tt]ask )(?P<task>\d{1,6})[^\n]{0,80}heartbeat timeout.*)$",
            fields={"what": "coordination"},
            who=lambda groups, _: _task(int(groups["task"] or 0)),
        ),
        Row(
            "heartbeat has timed out for",
            EventKind.COMMUNICATION,
            r"(?P<message>(?:Stopping coordination service as )?heartbeat has timed out for [^\n]{0,120}/task:(?P<task>\d{1,6})\b.*)$",
            fields={"what": "coordination"},
            who=lambda groups, _: _task(int(groups["task"] or 0)),
        ),
        Row(
            "ran out of memory trying to allocate",
            EventKind.MESSAGE,
            r"(?P<message>Allocator \((?P<allocator>[\w.:-]{1,60})\) ran out of memory trying to allocate .*)$",
            fields={"what": "allocator"},
            unless=("not a failure",),
        ),
        Row(
            "BFCAllocator dump for ",
            EventKind.MESSAGE,
            r"(?P<message>BFCAllocator dump for (?P<allocator>[\w.:-]{1,60}).*)$",
            fields={"what": "allocator_dump"},
        ),
        Row(
            "Sum Total of in-use chunks: ",
            EventKind.MESSAGE,
            r"(?P<message>Sum Total of in-use chunks: .*)$",
            fields={"what": "allocator_dump"},
        ),
        Row(
            "tasks are unhealthy",
            EventKind.COMMUNICATION,
            r"(?P<message>The following tasks are unhealthy.*)$",
            fields={"what": "coordination"},
            after=_MOST_TASKS,
        ),
        Row(
            "Shutdown barrier in coordination service has failed",
            EventKind.COMMUNICATION,
            fields={"what": "coordination"},
        ),
        Row(
            "tried to connect with a different incarnation",
            EventKind.COMMUNICATION,
            r"(?P<message>/job:[\w.-]{1,80}/replica:\d{1,6}/task:(?P<task>\d{1,6}) unexpectedly tried to connect with a different incarnation.*)$",
            level="ERROR",
            fields={"what": "coordination"},
            who=lambda groups, _: _task(int(groups["task"] or 0)),
        ),
        Row("Polled an error from coordination service", EventKind.COMMUNICATION, fields={"what": "coordination"}),
        Row("reported by the coordination service", EventKind.COMMUNICATION, fields={"what": "coordination"}),
        Row("service as cluster registration failed", EventKind.COMMUNICATION, r"(?P<message>Stopping coordination service as cluster registration failed.*)$", level="ERROR", fields={"what": "coordination"}),
        Row(
            "DEADLINE_EXCEEDED: Barrier timed out",
            EventKind.MESSAGE,
            r"(?P<message>DEADLINE_EXCEEDED: Barrier timed out.*)$",
            level="ERROR",
            unless=("Error: ",),
        ),
        Row("BarrierError: ", EventKind.COMMUNICATION, fields={"what": "coordination"}),
        Row(
            "RESOURCE_EXHAUSTED: ",
            EventKind.MESSAGE,
            r"(?P<message>RESOURCE_EXHAUSTED: .*)$",
            level="ERROR",
            unless=("Error: ",),
        ),
    ),
)

ANCHORS: tuple[Anchor, ...] = (*_TABLE.anchors(), Anchor(_LISTS.encode(), 0, _MOST_TASKS, "xla"))


def parse(intake: Intake) -> list[Event]:
    """Events of XLA's run time, alike ones folded."""
    events = _without_dumps(_TABLE.read(intake))
    if not any(_LISTS in event.message for event in events):
        return events
    places = {(intake.lines[index].source, intake.lines[index].number): index for index in hits(intake, _LISTS)}
    return [_with_tasks(event, intake, places) if _LISTS in event.message else event for event in events]


def _without_dumps(events: list[Event]) -> list[Event]:
    """The events, with an allocator's dump only where neither the line above it was kept, nor an earlier part of it."""
    kept: list[Event] = []
    told: set[int] = set()
    for event in events:
        if event.fields.get("what") in ("allocator", "allocator_dump"):
            if event.fields["what"] == "allocator_dump" and event.span.source in told:
                continue
            told.add(event.span.source)
        kept.append(event)
    return kept


def _with_tasks(event: Event, intake: Intake, places: Mapping[tuple[int, int], int]) -> Event:
    """A line that calls tasks unhealthy, with the list below it; where it is one task, the line is about that one."""
    found = list(_INLINE.findall(event.message))[:_MOST_TASKS]
    last = event.span.last_line
    index = places.get((event.span.source, event.span.first_line))
    for line in intake.lines[index + 1 : index + 1 + _MOST_TASKS] if index is not None and not found else ():
        match = _NAMED.search(line.text) if line.source == event.span.source else None
        if match is None:
            break
        found.append((match["name"], match["task"]))
        last = max(last, line.number)
    if not found:
        return event
    numbers = tuple(dict.fromkeys(int(number) for _, number in found))
    listed = "" if found[0][0] in event.message else "".join(f"\n{name}" for name, _ in found)
    return replace(
        event,
        message=event.message.rstrip() + listed,
        span=Span(event.span.source, event.span.first_line, last),
        rank=_task(numbers[0]) if len(numbers) == 1 else event.rank,
        fields={**event.fields, "tasks": numbers},
    )
