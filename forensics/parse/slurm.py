# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""Slurm: srun, slurmstepd, sbatch, pyxis and enroot. In: an intake; out: PROCESS_EXIT, LAUNCHER, OOM_KILL and MESSAGE events.

    srun: error: gpu001: tasks 2,5: Exited with exit code 1
    -> PROCESS_EXIT type "exit 1", fields {"exit": ProcessExit(1, None, None, "slurm"), "tasks": [1, 3], "node": "gpu001"}
    srun: error: nid3: task 640: Segmentation fault (core dumped)
    -> PROCESS_EXIT type "SIGSEGV", rank 640
    slurmstepd: error: *** JOB 19693242 ON gpu0001 CANCELLED AT 2026-11-04T07:28:53 DUE TO TIME LIMIT ***
    -> LAUNCHER type "SIGTERM", fields {"what": "cancelled", "reason": "time limit", "job": "19693242", "node": "gpu0001", "at": "2026-11-04T07:28:53"}
    slurmstepd: error: Detected 2 oom_kill events in StepId=12345.0. Some of the step tasks have been OOM Killed.
    -> OOM_KILL fields {"by": "slurm", "kills": 2, "step": "12345.0"}
    slurmstepd: error: pyxis: container start failed with error code: 1       (a run of such lines is one event)
    -> MESSAGE fields {"program": "pyxis"}

A task number is the global rank unless torchrun or an engine starts the ranks (then several are in a task, and it stays an axis).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind, ProcessExit
from forensics.model.record import replace
from forensics.model.source import LogLine, Rank
from forensics.parse.desync import ranks_of
from forensics.parse.reading import Lazy, following, hits, make
from forensics.parse.rows import Row, Table
from forensics.parse.signals import exited, signal_in

_TASKS = ("srun: error: ", "task")
_PYXIS = ("pyxis: ", "enroot-", "[ERROR] Could not", "nvidia-container-cli: ")
_STARTERS = (
    *("torch/distributed/elastic", "torch/distributed/run.py", "torch.distributed.elastic", "torchrun"),
    *("(EngineCore", "(APIServer pid=", "server_args=ServerArgs(", "[launch.py:"),
)
#: lines in which they are looked for: what the job's script printed may stand before them
_LOOKED_AT = 20_000


def _reason(groups: Mapping[str, str | None], line: LogLine) -> Mapping[str, Any]:
    reason = (groups.get("reason") or "").strip(" *").lower()
    return {"reason": reason.partition(",")[0] or None}


_TABLE = Table(
    "slurm",
    (
        Row(
            "CANCELLED AT ",
            EventKind.LAUNCHER,
            r"(?P<message>\*\*\* (?P<unit>JOB|STEP|Job|Step) ?(?P<job>[\w.+\[\]-]{1,60}) ON (?P<node>[\w.,\[\]-]{1,200}) CANCELLED AT (?P<at>\S{1,40})(?: DUE TO (?P<reason>[^*]{1,200}))?[^\n]{0,200})",
            type="SIGTERM",
            fields={"what": "cancelled"},
            fill=_reason,
        ),
        Row(
            "oom_kill event",
            EventKind.OOM_KILL,
            r"(?P<message>Detected (?P<kills>\d+) oom_kill events? in (?:StepId|step)=?(?P<step>[\w+-]{1,40}(?:\.[\w+-]{1,20})?).*)$",
            type="SIGKILL",
            fields={"by": "slurm"},
        ),
        Row(
            "oom-kill event",
            EventKind.OOM_KILL,
            r"(?P<message>Detected (?P<kills>\d+) oom-kill event\(s\) in (?:StepId|step)[ =](?P<step>[\w.+-]{1,60}).*)$",
            type="SIGKILL",
            fields={"by": "slurm"},
        ),
        Row("Exceeded job memory limit", EventKind.OOM_KILL, type="SIGKILL", fields={"by": "slurm"}),
        Row("Exceeded step memory limit", EventKind.OOM_KILL, type="SIGKILL", fields={"by": "slurm"}),
        Row(
            "exceeded memory limit",
            EventKind.OOM_KILL,
            r"(?P<message>(?:Job|Step|task/cgroup).{0,120}exceeded memory limit.*)$",
            type="SIGKILL",
            fields={"by": "slurm"},
        ),
        Row(
            "Node failure on ",
            EventKind.LAUNCHER,
            r"(?P<message>Node failure on (?P<node>\S{1,120}).*)$",
            fields={"what": "node_failure"},
        ),
        Row("srun: Job step aborted", EventKind.LAUNCHER, fields={"what": "step_aborted"}),
        Row(
            "srun: Terminating ",
            EventKind.LAUNCHER,
            r"srun: (?P<message>Terminating (?:StepId=|job step )(?P<step>\S{1,60}))",
            fields={"what": "terminating"},
        ),
        Row("srun: sending Ctrl-C", EventKind.LAUNCHER, type="SIGINT", fields={"what": "ctrl_c"}),
        Row("srun: interrupt (one more within", EventKind.LAUNCHER, type="SIGINT", fields={"what": "ctrl_c"}),
        Row("srun: forcing job termination", EventKind.LAUNCHER, fields={"what": "forced"}),
        Row("srun: Force Terminated", EventKind.LAUNCHER, fields={"what": "forced"}),
        Row("Timed out waiting for job step", EventKind.LAUNCHER, fields={"what": "step_timeout"}),
        Row("PREEMPTED", EventKind.LAUNCHER, type="SIGTERM", fields={"what": "cancelled", "reason": "preemption"}),
        Row(
            "JobState=",  # scontrol show job
            EventKind.LAUNCHER,
            r"(?P<message>\bJobState=(?:TIMEOUT|DEADLINE)\b(?: Reason=\w{1,60})?)",
            type="SIGTERM",
            fields={"what": "cancelled", "reason": "time limit"},
        ),
        Row("JobState=", EventKind.LAUNCHER, r"(?P<message>\bJobState=NODE_FAIL\b(?: Reason=\w{1,60})?)", fields={"what": "node_failure"}),
        Row("JobState=", EventKind.OOM_KILL, r"(?P<message>\bJobState=OUT_OF_MEMORY\b(?: Reason=\w{1,60})?)", type="SIGKILL", fields={"by": "slurm"}),
        Row(
            "Batch job submission failed",
            EventKind.MESSAGE,
            r"(?P<message>Batch job submission failed.*)$",
            level="ERROR",
            fields={"program": "sbatch"},
        ),
        Row(
            "srun: error: Unable to",
            EventKind.MESSAGE,
            r"srun: error: (?P<message>Unable to .*)$",
            level="ERROR",
            fields={"program": "srun"},
        ),
        Row(
            " launch failed: ",
            EventKind.MESSAGE,
            r"srun: error: (?P<message>task \d+ launch failed: .*)$",
            level="ERROR",
            fields={"program": "srun"},
        ),
        Row(
            "srun: error: Task launch for",
            EventKind.MESSAGE,
            r"srun: error: (?P<message>Task launch for .*)$",
            level="ERROR",
            fields={"program": "srun"},
        ),
        Row(
            "srun: error: Application launch failed",
            EventKind.MESSAGE,
            r"srun: error: (?P<message>Application launch failed.*)$",
            level="ERROR",
            fields={"program": "srun"},
        ),
        Row(
            "srun: fatal:",
            EventKind.MESSAGE,
            r"srun: fatal: (?P<message>.*)$",
            level="FATAL",
            fields={"program": "srun"},
        ),
        Row(
            "slurmstepd: error: execve",
            EventKind.MESSAGE,
            r"slurmstepd: error: (?P<message>execve.*)$",
            level="ERROR",
            fields={"program": "slurmstepd"},
        ),
        Row(
            "slurmstepd: error: couldn't chdir",
            EventKind.MESSAGE,
            r"slurmstepd: error: (?P<message>.*)$",
            level="ERROR",
            fields={"program": "slurmstepd"},
        ),
        Row(
            "slurmstepd: error: Unable to",
            EventKind.MESSAGE,
            r"slurmstepd: error: (?P<message>.*)$",
            level="ERROR",
            fields={"program": "slurmstepd"},
        ),
    ),
)

ANCHORS: tuple[Anchor, ...] = (
    Anchor(b"srun: error: ", 1, 2, "slurm"),
    Anchor(b"error: pyxis: ", 1, 20, "slurm"),
    Anchor(b"enroot-", 1, 4, "slurm"),
    Anchor(b"nvidia-container-cli: ", 1, 2, "slurm"),
    *_TABLE.anchors(),
)

_EXIT = Lazy(r"srun: error: (?P<node>[\w.\[\],-]{1,200}): tasks? (?P<tasks>[\d,-]{1,2000}): (?P<how>.+?)\s*$")
_CODE = Lazy(r"[Ee]xited with exit code (\d+)")
_PYXIS_LINE = Lazy(r"(?:slurmstepd: error: |spank: )?pyxis: (.*)$")
_CONTAINER = Lazy(r"(?P<message>(?:enroot-[\w-]{1,40}|nvidia-container-cli): .*)$")


def parse(intake: Intake) -> list[Event]:
    """Exits of tasks, cancellations, memory kills, container start failures."""
    elastic = bool(hits(intake, "failed (exitcode: ", "exitcode  : ")) or any(
        any(word in line.raw for word in _STARTERS) for line in intake.lines[:_LOOKED_AT]
    )
    events = []
    for index in hits(intake, _TASKS[0]):
        line = intake.lines[index]
        found = _EXIT.search(line.raw)
        if found:
            events.append(_task_exit(line, found["node"], ranks_of(found["tasks"]), found["how"], elastic))
    return events + _pyxis(intake) + [_of_no_task(event) for event in _TABLE.read(intake)]


def _of_no_task(event: Event) -> Event:
    """What Slurm's daemons say, without the task that `srun -l` puts before it: they write where the node's first task does."""
    labelled = event.rank is not None and any(name == "task" for name, _ in event.rank.axes)
    return replace(event, rank=None) if labelled else event


def _task_exit(line: LogLine, node: str, tasks: list[int], how: str, elastic: bool) -> Event:
    code = _CODE.search(how)
    signal = None if code else "SIGKILL" if "Out Of Memory" in how else signal_in(how)
    made = exited(int(code[1]), "slurm") if code else ProcessExit(None, signal, None, "slurm")
    rank = None
    if len(tasks) == 1:
        task = tasks[0]
        rank = Rank(f"task {task}" if elastic else f"rank {task}", None if elastic else task, (("task", task),), node)
    kind = EventKind.OOM_KILL if "Out Of Memory" in how else EventKind.PROCESS_EXIT
    fields: dict[str, Any] = {"exit": made, "tasks": tasks, "node": node, "how": how, "by": "slurm"}
    return make(
        kind,
        line,
        parser="slurm",
        type=made.signal or (f"exit {made.code}" if made.code is not None else None),
        message=line.raw[line.raw.find(_TASKS[0]) :],
        rank=rank,
        fields=fields,
        level="ERROR",
    )


def _pyxis(intake: Intake) -> list[Event]:
    """A run of pyxis lines is one message; enroot's and nvidia-container-cli's lines stand alone."""
    events = []
    done: set[int] = set()
    for index in hits(intake, "error: pyxis: ", "spank: pyxis: "):
        if index in done:
            continue
        words, last = [], intake.lines[index]
        block = [(index, intake.lines[index]), *following(intake, index, 40)]
        for at, line in block:
            found = _PYXIS_LINE.search(line.raw)
            if not found:
                break
            done.add(at)
            last = line
            text = found[1].strip()
            if text and text not in words:
                words.append(text)
        if words:
            events.append(
                make(
                    EventKind.MESSAGE,
                    intake.lines[index],
                    last,
                    parser="slurm",
                    message="\n".join(words),
                    level="ERROR",
                    fields={"program": "pyxis"},
                )
            )
    for index in hits(intake, "enroot-", "nvidia-container-cli: "):
        found = _CONTAINER.search(intake.lines[index].raw)
        if found and index not in done:
            events.append(
                make(
                    EventKind.MESSAGE,
                    intake.lines[index],
                    parser="slurm",
                    message=found["message"],
                    level="ERROR",
                    fields={"program": "enroot"},
                )
            )
    return events
