# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""DeepSpeed, Lightning, Ray and engines that start workers: how processes ended as their starters say. In: an intake; out: PROCESS_EXIT,
OOM_KILL and LAUNCHER events. Samples:

    [2026-11-29 20:15:45,123] [ERROR] [launch.py:322:sigkill_handler] ['/usr/bin/python', '-u', 'train.py', '--local_rank=3'] exits with return code = -9
    -> PROCESS_EXIT type "SIGKILL", no rank, fields {"exit": ProcessExit(-9, "SIGKILL", None, "deepspeed")}
    [rank: 1] Child process with PID 77 terminated with code 1. Forcefully terminating all other processes
    -> PROCESS_EXIT type "exit 1", rank 1
    (raylet) node_manager.cc:3193: 2 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed …
    -> OOM_KILL fields {"by": "ray", "kills": 2}
    Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file.
    -> PROCESS_EXIT fields {"exit_type": "SYSTEM_ERROR", "detail": …}
    ERROR:composer.cli.launcher:Rank 3 crashed with exit code -7.  -> PROCESS_EXIT type "SIGBUS", rank 3
"""

from __future__ import annotations

from collections.abc import Mapping

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind, ProcessExit
from forensics.model.record import replace
from forensics.model.source import LogLine, Rank, Span
from forensics.parse.exits import Groups, exit_of, with_exit_type
from forensics.parse.reading import Lazy, hits
from forensics.parse.rows import Row, Table
from forensics.parse.signals import signal_of_exit

_X = EventKind.PROCESS_EXIT


def _rank(groups: Groups, line: LogLine) -> Rank | None:
    number = groups.get("rank")
    if number is not None:
        return Rank(f"rank {number}", int(number), pid=int(groups["pid"] or 0) if groups.get("pid") else None)
    local = groups.get("local_rank")
    # DeepSpeed's launcher prints the command of the process that it started last, whichever ended: a name only where it started one
    if local is None or int(local):
        return line.rank
    # it starts several nodes through pdsh, which puts the host before every line: without it this is the only node
    alone = line.raw.lstrip().startswith("[")
    return Rank("rank 0" if alone else "local rank 0", 0 if alone else None, (("local", 0),))


def _vllm_worker(groups: Groups, line: LogLine) -> Rank | None:
    """vLLM names a worker process after its rank in its engine; with several engines that is not the job's rank."""
    name = groups.get("name") or ""
    number = name.removeprefix("VllmWorker-")
    if number == name or not number.isdigit() or _OTHER_ENGINE.search(line.stream):
        return line.rank
    return Rank(f"rank {int(number)}", int(number))


def shard_of(groups: Groups, line: LogLine) -> Rank | None:
    """TGI's shards are numbered by rank."""
    number = groups.get("shard") or groups.get("index")
    return Rank(f"rank {number}", int(number)) if number is not None else line.rank


_OTHER_ENGINE = Lazy(r"EngineCore_(?:DP)?[1-9]")

_TABLE = Table(
    "launchers",
    (
        Row(
            "exits with return code = ",
            _X,
            r"--local_rank=(?P<local_rank>\d+).{0,5000}?(?P<message>exits with return code = (?P<code>-?\d+))",
            fill=exit_of("deepspeed"),
            who=_rank,
        ),
        Row(
            "exits with return code = ",
            _X,
            r"(?P<message>exits with return code = (?P<code>-?\d+))",
            fill=exit_of("deepspeed"),
        ),
        Row(
            "] Killing subprocess ",
            EventKind.LAUNCHER,
            r"(?P<message>Killing subprocess (?P<pid>\d+))",
            fields={"what": "closing", "by": "deepspeed"},
        ),
        Row(
            "ssh exited with exit code",
            _X,
            r"(?P<message>pdsh@\S{1,80}: (?P<node>\S{1,80}): ssh exited with exit code (?P<code>\d+))",
            fill=exit_of("pdsh"),
        ),
        Row(
            "Child process with PID ",
            _X,
            r"(?P<message>(?:\[rank: (?P<rank>\d+)\] )?Child process with PID (?P<pid>\d+) terminated with code (?P<code>-?\d+))",
            fill=exit_of("lightning"),
            who=_rank,
        ),
        Row(
            "] Received SIGTERM: ",
            EventKind.LAUNCHER,
            r"\[rank: (?P<rank>\d+)\] (?P<message>Received SIGTERM: 15)",
            type="SIGTERM",
            fields={"what": "signal", "by": "lightning"},
            who=_rank,
        ),
        Row(
            "killed due to memory pressure (OOM)",
            EventKind.OOM_KILL,
            r"(?P<message>(?P<kills>\d+) Workers \(tasks / actors\) killed due to memory pressure \(OOM\).*)$",
            type="SIGKILL",
            fields={"by": "ray"},
            unless=("Error: ",),
        ),
        Row(
            "Workers crashed due to other reasons", EventKind.LAUNCHER, fields={"what": "workers_crashed", "by": "ray"}
        ),
        Row(
            "A worker died or was killed while executing a task",
            _X,
            r"(?P<message>A worker died or was killed while executing a task.{0,4000}?(?:Worker PID: (?P<pid>\d+).{0,400}?)?(?:Worker exit type: (?P<exit_type>\w{1,60})(?:[. ]+Worker exit detail: (?P<detail>.*))?)?)$",
            fill=exit_of("ray"),
            unless=("Error: ",),
            after=6,
        ),
        Row(
            "Worker exit type: ",
            _X,
            r"Worker PID: (?P<pid>\d+) {1,4}(?P<message>Worker exit type: (?P<exit_type>\w{1,60})(?:[. ]+Worker exit detail: (?P<detail>.*))?)$",
            fill=exit_of("ray"),
        ),
        Row(
            "Worker exit type: ",
            _X,
            r"(?P<message>Worker exit type: (?P<exit_type>\w{1,60})(?:[. ]+Worker exit detail: (?P<detail>.*))?)$",
            fill=exit_of("ray"),
        ),
        Row(
            "The actor died unexpectedly",
            _X,
            r"(?P<message>The actor died unexpectedly.*)$",
            fill=exit_of("ray"),
            unless=("Error: ",),
            after=14,
        ),
        Row("has been marked dead because the detector", EventKind.LAUNCHER, fields={"what": "node_dead", "by": "ray"}),
        Row(
            "Raylet is terminated",
            EventKind.LAUNCHER,
            r"(?P<message>\[?Raylet is terminated.*)$",
            fields={"what": "raylet", "by": "ray"},
        ),
        Row("raylet has died", EventKind.LAUNCHER, fields={"what": "raylet", "by": "ray"}),
        Row(
            "was sent SIG",
            _X,
            r"(?P<message>Worker \(pid:(?P<pid>\d+)\) was sent (?P<words>SIG[A-Z]{3,5})!.*)$",
            fields={"by": "gunicorn"},
            fill=lambda g, line: {"exit": ProcessExit(None, g["words"], None, "gunicorn")},
        ),
        Row(
            "[CRITICAL] WORKER TIMEOUT",
            EventKind.LAUNCHER,
            r"(?P<message>WORKER TIMEOUT \(pid:(?P<pid>\d+)\))",
            fields={"what": "worker_timeout", "by": "gunicorn"},
        ),
        Row(
            "process was signaled to ",
            _X,
            r"(?P<message>Shard (?:(?P<shard>\d{1,5}) )?process was signaled to (?:shutdown|terminate) with signal (?P<signal_number>\d{1,2})(?: rank=(?P<index>\d{1,5}))?.*)$",
            fields={"by": "tgi"},
            fill=lambda g, line: {
                "exit": ProcessExit(None, signal_of_exit(-int(g["signal_number"] or 0)), None, "tgi")
            },
            who=shard_of,
        ),
        Row(
            "llama runner process has terminated",
            _X,
            r"(?P<message>llama runner process has terminated: (?P<words>[^\"]{1,300}).*)$",
            fill=exit_of("ollama"),
        ),
        Row(
            "llama runner terminated",
            _X,
            r"(?P<message>llama runner terminated\"? error=\"?(?P<words>exit status [\w]{1,40}|signal[^\"]{1,60}))",
            fill=exit_of("ollama"),
        ),
        Row(
            "died unexpectedly",
            _X,
            r"(?P<message>(?:Worker proc|Engine core proc|Subprocess|APIServer|Process) ?(?P<name>[\w-]{0,80}) ?(?:\(pid[ =:]*(?P<pid>\d+)\) )?died unexpectedly(?: \(exit code: (?P<code>-?\d+)\))?.*)$",
            fill=exit_of("vllm"),
            who=_vllm_worker,
            unless=("Error: ",),
        ),
        Row(
            " died, exit code: ",
            _X,
            r"(?P<message>Worker (?P<name>\S{1,80}) pid (?P<pid>\d+) died, exit code: (?P<code>-?\d+))",
            fill=exit_of("vllm"),
        ),
        Row(
            "Exit code: -",  # SGLang, below "scheduler is dead"
            _X,
            r"^(?P<message>Exit code: (?P<code>-\d{1,3}))\s*$",
            fill=exit_of("sglang"),
        ),
        Row(
            "Scheduler or DataParallelController ",  # SGLang, on a node other than the first (srt/entrypoints/engine.py)
            _X,
            r"(?P<message>Scheduler or DataParallelController (?P<pid>\d+) terminated with (?P<code>-?[1-9]\d{0,2}))\s*$",
            fill=exit_of("sglang"),
        ),
        Row(
            "scheduler died during initialization",
            _X,
            r"(?P<message>Rank (?P<name>\d{1,5}) scheduler died during initialization \(exit code: (?P<code>-?\d{1,3})\))",
            fill=exit_of("sglang"),
        ),
        Row(
            "crashed with exit code",
            _X,
            r"(?P<message>Subprocess (?P<name>\S{1,80}) \(pid=(?P<pid>\d+)\) crashed with exit code (?P<code>-?\d+).*)$",
            fill=exit_of("sglang"),
        ),
        Row(
            "crashed with exit code",
            _X,
            r"^(?:[A-Z]{4,8}:[\w.]{1,60}:)?(?P<message>Rank (?P<rank>\d{1,6}) crashed with exit code (?P<code>-?\d{1,3})\b)",
            fill=exit_of("composer"),
            who=_rank,
        ),
        Row(
            ") exited with code ",
            _X,
            r"(?P<message>Global rank (?P<rank>\d{1,6}) \(PID (?P<pid>\d+)\) exited with code (?P<code>-?\d{1,3}))\b",
            fill=exit_of("composer"),
            who=_rank,
        ),
        Row(
            " status failed cmd [",
            _X,
            r"(?P<message>Container rank (?P<rank>\d{1,6}) status failed cmd \[[^\]]{0,2000}\] code (?P<code>-?\d{1,3})\b)",
            fill=exit_of("paddle"),
            who=_rank,
        ),
        Row(
            "ABORT!!! ",
            _X,
            r"(?P<message>ABORT!!! Out of all \d{1,6} trainers, the trainer process with rank=\[(?P<rank>\d{1,6})[\d, ]{0,4000}\] was aborted)",
            fill=exit_of("paddle"),
            who=_rank,
        ),
        Row(
            "not registered within the timeout. The process is dead",
            _X,
            r"(?P<message>Some workers of the worker process\((?P<pid>\d+)\) have not registered within the timeout\. The process is dead\b.*)$",
            fill=exit_of("ray"),
        ),
    ),
)

#: how the raylet tells of a dead worker, what stands at the end of it, and in how many pieces a terminal may have broken it
_DIED, _MOST_PIECES = "A worker died or was killed while executing a task", 12
_OF_DEAD = Lazy(r"Worker exit type: (?P<exit_type>\w{1,60})(?:[. ]+Worker exit detail: (?P<detail>.*))?$")
_SENT = Lazy(r"The process receives a (SIG[A-Z]{3,5})\b")
#: what tells the rank of a process that Ray speaks of: its controller's list of those it started, and what it says before a worker's end
_STARTED, _OF_WORKER = ") world_rank=", "DistributedContext(world_rank="
_WORLD_RANK = Lazy(r"DistributedContext\(world_rank=(\d{1,6}),")
_ABOVE = 12
#: how Paddle lists ranks
_LISTED = Lazy(r"process with rank=\[(\d{1,6}(?:, ?\d{1,6}){1,4000})[\],]")
_MOST_LISTED = 256

ANCHORS: tuple[Anchor, ...] = (
    *_TABLE.anchors(),
    Anchor(_STARTED.encode(), 0, 0, "launchers"),
    Anchor(_OF_WORKER.encode(), 8, 8, "launchers"),
)


def parse(intake: Intake) -> list[Event]:
    """Exits as reported by whoever started the process."""
    read = (_with_signal(_unwrapped(intake, event)) for event in _TABLE.read(intake))
    events = [one for event in read for one in _of_each(with_exit_type(event))]
    told = {(intake.lines[index].source, intake.lines[index].number): index for index in hits(intake, _OF_WORKER)}
    return [_of_rays_worker(intake, event, told) if told and event.fields.get("by") == "ray" else event for event in events]


def _unwrapped(intake: Intake, event: Event) -> Event:
    """What Ray's raylet says of a dead worker, put together where a terminal broke the line: into pieces of one width, each in a line."""
    if not event.message.startswith(_DIED) or "exit_type" in event.fields:
        return event
    index = next((i for i in hits(intake, _DIED) if intake.lines[i].number == event.span.first_line), None)
    if index is None or intake.lines[index].source != event.span.source:
        return event
    width, text, last = len(intake.lines[index].raw), event.message, intake.lines[index]
    for line in intake.lines[index + 1 : index + 1 + _MOST_PIECES]:
        if line.number != last.number + 1 or line.source != last.source or not 0 < len(line.raw) <= width:
            break
        text, last = text + line.raw, line
        if len(line.raw) < width:
            break
    found = _OF_DEAD.search(text)
    if found is None or last.number == event.span.first_line:
        return event
    said = {key: value for key, value in found.groupdict().items() if value}
    fields = {**event.fields, **said}
    return replace(event, message=text.rstrip(), span=Span(event.span.source, event.span.first_line, last.number), fields=fields)


def _with_signal(event: Event) -> Event:
    """A worker's end with the signal that the worker itself says it was sent (core_worker.cc: "The process receives a SIGTERM.")."""
    sent = _SENT.search(str(event.fields.get("detail", "")))
    made = event.fields.get("exit")
    if sent is None or not isinstance(made, ProcessExit) or made.signal is not None:
        return event
    return replace(event, fields={**event.fields, "exit": replace(made, signal=sent[1])})


def _of_each(event: Event) -> list[Event]:
    """Paddle's launcher names all ranks that it saw end in one line: an end for each."""
    listed = _LISTED.search(event.message) if event.fields.get("by") == "paddle" else None
    if listed is None:
        return [event]
    numbers = dict.fromkeys(int(number) for number in listed[1].split(",")[:_MOST_LISTED] if number.strip().isdigit())
    return [replace(event, rank=Rank(f"rank {number}", number), fields={**event.fields, "rank": number}) for number in numbers]


def _of_rays_worker(intake: Intake, event: Event, told: Mapping[tuple[int, int], int]) -> Event:
    """A worker's end with the rank that Ray Train names above it."""
    if event.rank is not None and event.rank.number is not None:
        return event
    for number in range(event.span.first_line - 1, event.span.first_line - _ABOVE, -1):
        index = told.get((event.span.source, number))
        if index is not None and (found := _WORLD_RANK.search(intake.lines[index].text)) is not None:
            return replace(event, rank=Rank(f"rank {int(found[1])}", int(found[1])))
    return event
