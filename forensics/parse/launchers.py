"""DeepSpeed, Lightning, Ray, Kubernetes, docker, shells and make: how processes ended as their keepers say. In: an intake; out:
PROCESS_EXIT, OOM_KILL and LAUNCHER events. Samples:

    [2026-11-29 20:15:45,123] [ERROR] [launch.py:322:sigkill_handler] ['/usr/bin/python', '-u', 'train.py', '--local_rank=3'] exits with return code = -9
    -> PROCESS_EXIT type "SIGKILL", fields {"exit": ProcessExit(-9, "SIGKILL", None, "deepspeed"), "local_rank": 3}
    [rank: 1] Child process with PID 77 terminated with code 1. Forcefully terminating all other processes
    -> PROCESS_EXIT type "exit 1", rank 1
    (raylet) node_manager.cc:3193: 2 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed …
    -> OOM_KILL fields {"by": "ray", "kills": 2}
    Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file.
    -> PROCESS_EXIT fields {"exit_type": "SYSTEM_ERROR", "detail": …}
        Reason:       OOMKilled
        Exit Code:    137
    -> OOM_KILL fields {"by": "kubernetes"}; PROCESS_EXIT type "SIGKILL"
    ./run.sh: line 12:  4711 Killed                  python train.py
    -> PROCESS_EXIT type "SIGKILL", fields {"exit": ProcessExit(None, "SIGKILL", 4711, "shell"), "command": "python train.py"}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind, ProcessExit
from forensics.model.source import LogLine, Rank
from forensics.parse.rows import Row, Table
from forensics.parse.signals import signal_in, signal_of_exit

_X = EventKind.PROCESS_EXIT
_Fields = Mapping[str, str | None]


def _exit(by: str) -> Any:
    """fill: a ProcessExit from the groups code, pid and words."""

    def fill(groups: _Fields, line: LogLine) -> Mapping[str, Any]:
        code = int(groups["code"] or 0) if groups.get("code") else None
        pid = int(groups["pid"] or 0) if groups.get("pid") else None
        words = groups.get("words")
        signal = signal_in(words) if words else signal_of_exit(code) if code is not None else None
        return {"exit": ProcessExit(code, signal, pid, by), "by": by}

    return fill


def _rank(groups: _Fields, line: LogLine) -> Rank | None:
    number = groups.get("rank")
    if number is not None:
        return Rank(f"rank {number}", int(number), pid=int(groups["pid"] or 0) if groups.get("pid") else None)
    local = groups.get("local_rank")
    if not local:
        return line.rank
    # DeepSpeed starts several nodes through pdsh, which puts the host before every line: without it this is the only node
    alone = line.raw.lstrip().startswith("[")
    return Rank(f"rank {local}" if alone else f"local rank {local}", int(local) if alone else None, (("local", int(local)),))


_SIGNAL_WORDS = r"(?P<words>Killed|Segmentation fault|Aborted|Bus error|Illegal instruction|Floating point exception|Terminated|Trace/breakpoint trap|IOT instruction|Hangup|Quit|User defined signal \d)"

_TABLE = Table("launchers", (
    Row("exits with return code = ", _X, r"--local_rank=(?P<local_rank>\d+).{0,5000}?(?P<message>exits with return code = (?P<code>-?\d+))", fill=_exit("deepspeed"), who=_rank),
    Row("exits with return code = ", _X, r"(?P<message>exits with return code = (?P<code>-?\d+))", fill=_exit("deepspeed")),
    Row("] Killing subprocess ", EventKind.LAUNCHER, r"(?P<message>Killing subprocess (?P<pid>\d+))", fields={"what": "closing", "by": "deepspeed"}),
    Row("ssh exited with exit code", _X, r"(?P<message>pdsh@\S{1,80}: (?P<node>\S{1,80}): ssh exited with exit code (?P<code>\d+))", fill=_exit("pdsh")),
    Row("Child process with PID ", _X, r"(?P<message>(?:\[rank: (?P<rank>\d+)\] )?Child process with PID (?P<pid>\d+) terminated with code (?P<code>-?\d+))", fill=_exit("lightning"), who=_rank),
    Row("] Received SIGTERM: ", EventKind.LAUNCHER, r"\[rank: (?P<rank>\d+)\] (?P<message>Received SIGTERM: 15)", type="SIGTERM", fields={"what": "signal", "by": "lightning"}, who=_rank),
    Row("killed due to memory pressure (OOM)", EventKind.OOM_KILL, r"(?P<message>(?P<kills>\d+) Workers \(tasks / actors\) killed due to memory pressure \(OOM\).*)$", type="SIGKILL", fields={"by": "ray"}, unless=("Error: ",)),
    Row("Workers crashed due to other reasons", EventKind.LAUNCHER, fields={"what": "workers_crashed", "by": "ray"}),
    Row("Worker exit type: ", _X, r"(?P<message>Worker exit type: (?P<exit_type>\w{1,60})(?:[. ]+Worker exit detail: (?P<detail>.*))?)$", fill=_exit("ray")),
    Row("A worker died or was killed while executing a task", _X, r"(?P<message>A worker died or was killed while executing a task.*)$", fill=_exit("ray"), unless=("Error: ",), after=6),
    Row("The actor died unexpectedly", _X, r"(?P<message>The actor died unexpectedly.*)$", fill=_exit("ray"), unless=("Error: ",), after=14),
    Row("has been marked dead because the detector", EventKind.LAUNCHER, fields={"what": "node_dead", "by": "ray"}),
    Row("Raylet is terminated", EventKind.LAUNCHER, r"(?P<message>\[?Raylet is terminated.*)$", fields={"what": "raylet", "by": "ray"}),
    Row("raylet has died", EventKind.LAUNCHER, fields={"what": "raylet", "by": "ray"}),
    Row("OOMKilled", EventKind.OOM_KILL, r"(?P<message>(?:[Rr]eason\"?: *\"?)?OOMKilled.*)$", type="SIGKILL", fields={"by": "kubernetes"}, unless=('OOMKilled":false', 'OOMKilled": false')),
    Row("Exit Code: ", _X, r"^\s*(?P<message>Exit Code: +(?P<code>[1-9]\d*))\s*$", fill=_exit("kubernetes"), before=6, after=4),
    Row("command terminated with exit code", _X, r"(?P<message>command terminated with exit code (?P<code>\d+))", fill=_exit("kubernetes")),
    Row("The node was low on resource", EventKind.LAUNCHER, r"(?P<message>The node was low on resource: (?P<resource>[\w-]+).*)$", type="SIGTERM", fields={"what": "evicted", "by": "kubernetes"}),
    Row("Back-off restarting failed container", EventKind.LAUNCHER, fields={"what": "crash_loop", "by": "kubernetes"}),
    Row("CrashLoopBackOff", EventKind.LAUNCHER, fields={"what": "crash_loop", "by": "kubernetes"}),
    Row("ImagePullBackOff", EventKind.LAUNCHER, fields={"what": "image_pull", "by": "kubernetes"}),
    Row("Liveness probe failed", EventKind.LAUNCHER, fields={"what": "liveness", "by": "kubernetes"}),
    Row("Pod was evicted", EventKind.LAUNCHER, type="SIGTERM", fields={"what": "evicted", "by": "kubernetes"}),
    Row("Preempted by ", EventKind.LAUNCHER, type="SIGTERM", fields={"what": "preempted", "by": "kubernetes"}, unless=("PreemptionMode",)),
    Row("has exceeded the maximum execution time", EventKind.LAUNCHER, fields={"what": "cancelled", "reason": "time limit", "by": "github"}),
    Row("The operation was canceled", EventKind.LAUNCHER, fields={"what": "cancelled", "by": "github"}),
    Row("execution took longer than", EventKind.LAUNCHER, fields={"what": "cancelled", "reason": "time limit", "by": "gitlab"}),
    Row("returning 124", EventKind.LAUNCHER, r"(?P<message>[^\n]{0,300}returning 124.*)$", type="exit 124", fields={"what": "cancelled", "reason": "time limit", "by": "timeout"}),
    Row("+ Timeout +", EventKind.LAUNCHER, fields={"what": "test_timeout", "by": "pytest"}),
    Row(" exited with code ", _X, r"^(?P<message>(?P<name>[\w./-]{1,120}) exited with code (?P<code>[1-9]\d{0,2}))\s*$", fill=_exit("docker")),
    Row("Shard process was signaled to shutdown", _X, r"(?P<message>Shard process was signaled to shutdown with signal (?P<signal_number>\d+).*)$", fields={"by": "tgi"}, fill=lambda g, line: {"exit": ProcessExit(None, signal_of_exit(-int(g["signal_number"] or 0)), None, "tgi")}),
    Row("llama runner process has terminated", _X, r"(?P<message>llama runner process has terminated: (?P<words>[^\"]{1,300}).*)$", fill=_exit("ollama")),
    Row("llama runner terminated", _X, r"(?P<message>llama runner terminated\"? error=\"?(?P<words>exit status [\w]{1,40}|signal[^\"]{1,60}))", fill=_exit("ollama")),
    Row("died unexpectedly", _X, r"(?P<message>(?:Worker proc|Engine core proc|Subprocess|APIServer|Process) ?(?P<name>[\w-]{0,80}) ?(?:\(pid[ =:]*(?P<pid>\d+)\) )?died unexpectedly(?: \(exit code: (?P<code>-?\d+)\))?.*)$", fill=_exit("vllm"), unless=("Error: ",)),
    Row("crashed with exit code", _X, r"(?P<message>Subprocess (?P<name>\S{1,80}) \(pid=(?P<pid>\d+)\) crashed with exit code (?P<code>-?\d+).*)$", fill=_exit("sglang")),
    Row("Command terminated by signal", _X, r"(?P<message>Command terminated by signal (?P<signal_number>\d+))", fill=lambda g, line: {"exit": ProcessExit(None, signal_of_exit(-int(g["signal_number"] or 0)), None, "time")}),
    Row("timeout: the monitored command dumped core", _X, fields={"by": "timeout"}),
    Row("returned a non-zero code: ", _X, r"(?P<message>The command .{1,600}returned a non-zero code: (?P<code>\d+))", fill=_exit("docker")),
    Row("did not complete successfully: exit code", _X, r"(?P<message>process .{1,2000}did not complete successfully: exit code: (?P<code>\d+))", fill=_exit("docker")),
    Row("Process completed with exit code", _X, r"(?P<message>Process completed with exit code (?P<code>\d+))", fill=_exit("github")),
    Row("make: *** [", _X, r"make(?:\[\d+\])?: \*\*\* \[(?P<target>[^\]]{1,200})\] (?P<message>Error (?P<code>\d+)|Killed|Segmentation fault.*|Terminated)", fill=_exit("make")),
    Row(": line ", _X, r"^(?P<message>\S{1,200}: line \d+: +(?P<pid>\d+) " + _SIGNAL_WORDS + r"(?: \(core dumped\))? +(?P<command>.*))$", fill=_exit("shell")),
    Row("(core dumped)", _X, r"^(?P<message>(?:\w{2,8}: |\[\d+\]\s{1,4}[-+]?\s*(?:(?P<pid>\d+) )?)?" + _SIGNAL_WORDS + r" ?\(core dumped\)(?: +(?P<command>\S.*))?)$", fill=_exit("shell")),
    Row("core dumped", _X, r"^(?P<message>(?:zsh: |\[\d+\] +)?(?:(?P<pid>\d+) +)?(?P<words>IOT instruction|abort|segmentation fault|bus error|illegal hardware instruction|floating point exception) +\(core dumped\) +(?P<command>\S.*))$", fill=_exit("shell")),
    Row("zsh: killed", _X, r"^(?P<message>zsh: killed +(?P<command>.*))$", type="SIGKILL", fields={"by": "shell", "exit": ProcessExit(None, "SIGKILL", None, "shell")}),
    Row("Killed", _X, r"^\s*(?:[\w./-]{1,60}: line \d+: )?(?P<message>(?P<words>Killed))\s*$", fill=_exit("shell")),
    Row("Segmentation fault", _X, r"^\s*(?P<message>(?P<words>Segmentation fault))\s*$", fill=_exit("shell")),
    Row("Bus error", _X, r"^\s*(?P<message>(?P<words>Bus error))\s*$", fill=_exit("shell")),
    Row("Aborted", _X, r"^\s*(?P<message>(?P<words>Aborted))\.?\s*$", fill=_exit("shell")),
    Row("Terminated", _X, r"^\s*(?P<message>(?P<words>Terminated))\s*$", fill=_exit("shell")),
))

ANCHORS: tuple[Anchor, ...] = _TABLE.anchors()


def parse(intake: Intake) -> list[Event]:
    """Exits as reported by whoever started the process."""
    return [_typed(event) for event in _TABLE.read(intake)]


def _typed(event: Event) -> Event:
    """With the signal or "exit N" as type, from its ProcessExit."""
    made = event.fields.get("exit")
    if event.type is not None or not isinstance(made, ProcessExit):
        return event
    kind = made.signal or (f"exit {made.code}" if made.code is not None else None)
    fields = {k: v for k, v in event.fields.items() if k not in ("words", "code", "signal_number")}
    return Event(
        event.kind, event.span, event.rank, event.time, kind, event.message, event.stacks, None, event.level, event.count, event.parser,
        event.stream, fields,
    )
