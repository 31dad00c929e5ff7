"""Batch systems besides Slurm: PBS, Torque and Moab, LSF, Grid Engine, HTCondor. In: an intake; out: LAUNCHER and OOM_KILL events.

    =>> PBS: job killed: walltime 259217 exceeded limit 259200
    -> LAUNCHER type "SIGTERM", fields {"what": "cancelled", "reason": "time limit", "limit": 259200}
    =>> PBS: job killed: mem 9000000kb exceeded limit 8388608kb
    -> OOM_KILL type "SIGKILL", fields {"by": "pbs"}
    TERM_RUNLIMIT: job killed after reaching LSF run time limit.
    TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.
    failed       37  : qmaster enforced h_rt, h_cpu, or h_vmem limit        (qacct)
    job 5512 exceeded hard wallclock time - initiate terminate method       (execd's messages, source/daemons/execd/execd_ck_to_do.c)

They say what ended the job and no rank: the job as a whole was ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forensics.model.event import EventKind
from forensics.parse.rows import Row, Table

if TYPE_CHECKING:
    from forensics.ingest.anchors import Anchor
    from forensics.ingest.intake import Intake
    from forensics.model.event import Event

_TIME = {"what": "cancelled", "reason": "time limit"}
_STOPPED = {"what": "cancelled"}


def _time(literal: str, pattern: str) -> Row:
    return Row(literal, EventKind.LAUNCHER, f"(?P<message>{pattern})", type="SIGTERM", fields=_TIME)


def _stopped(literal: str, pattern: str, reason: str) -> Row:
    fields = {**_STOPPED, "reason": reason}
    return Row(literal, EventKind.LAUNCHER, f"(?P<message>{pattern})", type="SIGTERM", fields=fields)


def _memory(literal: str, pattern: str, by: str) -> Row:
    return Row(literal, EventKind.OOM_KILL, f"(?P<message>{pattern})", type="SIGKILL", fields={"by": by})


_TABLE = Table(
    "batch",
    (
        _time(
            "PBS: job killed: ",
            r"(?:=>> )?PBS: job killed: (?:walltime|cput|ncpus|cpupercent) [\d.]+ exceeded limit (?P<limit>[\d.]+).*",
        ),
        _memory("PBS: job killed: ", r"(?:=>> )?PBS: job killed: p?v?mem \S{1,30} exceeded limit .*", "pbs"),
        _stopped(
            "PBS: job killed: ", r"(?:=>> )?PBS: job killed: node \d+ .*requested job (?:terminate|die).*", "node"
        ),
        _time("Job exceeded its walltime limit", r"Job exceeded its walltime limit.*"),
        _memory("Job exceeded its memory limit", r"Job exceeded its memory limit.*", "pbs"),
        _memory("Job exceeded a memory resource limit", r"Job exceeded a memory resource limit.*", "pbs"),
        _time("job exceeded wallclock limit", r"(?:MOAB_INFO: +)?job exceeded wallclock limit.*"),
        _time("TERM_RUNLIMIT: ", r"TERM_RUNLIMIT: job killed.*"),
        _memory("TERM_MEMLIMIT: ", r"TERM_MEMLIMIT: job killed.*", "lsf"),
        _memory("TERM_SWAP: ", r"TERM_SWAP: job killed.*", "lsf"),
        _stopped("TERM_OWNER: ", r"TERM_OWNER: job killed by owner.*", "owner"),
        _stopped("TERM_PREEMPT: ", r"TERM_PREEMPT: job killed.*", "preemption"),
        _stopped("TERM_ADMIN: ", r"TERM_ADMIN: job killed.*", "administrator"),
        _time("hard wallclock time", r"job \d+(?:\.\d+)? exceeded hard wallclock time.*"),
        _time("qmaster enforced h_rt", r"qmaster enforced h_rt, h_cpu,? or h_vmem limit.*"),
        _memory("Job has gone over memory limit of ", r"Job has gone over memory limit of .*", "htcondor"),
        _memory("memory usage exceeded request_memory", r".{0,200}memory usage exceeded request_memory.*", "htcondor"),
    ),
)

ANCHORS: tuple[Anchor, ...] = _TABLE.anchors()


def parse(intake: Intake) -> list[Event]:
    """What a batch system said of the job that it ended."""
    return _TABLE.read(intake)
