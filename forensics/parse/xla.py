# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""JAX and XLA: failed executions, rendezvous that wait for devices, the coordination service. In: an intake; out: NATIVE,
COLLECTIVE_STATE, COMMUNICATION and MESSAGE events. Samples:

    F1129 20:15:45.1 811 rendezvous.cc:127] Termination timeout for `AllReduce` of 40 seconds exceeded. Exiting to ensure a consistent program state. Expected 8 threads to join the rendezvous, but only 7 of them arrived on time.
    -> COLLECTIVE_STATE fields {"what": "rendezvous", "operation": "AllReduce", "expected": 8, "arrived": 7, "seconds": 40}
    Execution of replica 0 failed: INTERNAL: Failed to launch CUDA kernel     -> MESSAGE level ERROR fields {"replica": 0}
    /job:jax_worker/replica:0/task:3 heartbeat timeout. …                       -> COMMUNICATION fields {"what": "coordination", "task": 3}
"""

from __future__ import annotations

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.parse.rows import Row, Table

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
            "JAX distributed service detected fatal errors",
            EventKind.COMMUNICATION,
            r"(?P<message>Terminating process because the JAX distributed service detected fatal errors.*)$",
            fields={"what": "coordination"},
        ),
        Row(
            "heartbeat timeout",
            EventKind.COMMUNICATION,
            r"(?P<message>[^\n]{0,200}task:(?P<task>\d+)[^\n]{0,80}heartbeat timeout.*)$",
            fields={"what": "coordination"},
        ),
        Row(
            "tasks are unhealthy",
            EventKind.COMMUNICATION,
            r"(?P<message>The following tasks are unhealthy.*)$",
            fields={"what": "coordination"},
        ),
        Row(
            "Shutdown barrier in coordination service has failed",
            EventKind.COMMUNICATION,
            fields={"what": "coordination"},
        ),
        Row("Polled an error from coordination service", EventKind.COMMUNICATION, fields={"what": "coordination"}),
        Row("reported by the coordination service", EventKind.COMMUNICATION, fields={"what": "coordination"}),
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

ANCHORS: tuple[Anchor, ...] = _TABLE.anchors()


def parse(intake: Intake) -> list[Event]:
    """Events of XLA's run time, alike ones folded."""
    return _TABLE.read(intake)
