"""What serving engines say about their own processes: parents that notice a dead child, watchdogs, waits. In: an intake; out:
LAUNCHER events for consequences, COLLECTIVE_STATE and MESSAGE events for engine watchdogs. Samples:

    [2026-11-29 20:15:50] Received sigquit from a child process. It usually means the child failed.
    -> LAUNCHER type "SIGQUIT", fields {"what": "child_failed", "by": "sglang"}
    [2026-11-29 20:20:20 TP4] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)
    -> COLLECTIVE_STATE fields {"what": "scheduler_watchdog", "seconds": 300}
    No available shared memory broadcast block found in 60 seconds.
    -> COLLECTIVE_STATE fields {"what": "shm_broadcast", "seconds": 60}
    (APIServer) Engine core initialization failed. See root cause above.     -> LAUNCHER fields {"what": "engine_dead", "by": "vllm"}
"""

from __future__ import annotations

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.model.source import Rank
from forensics.parse.launchers import shard_of
from forensics.parse.rows import Row, Table

_L = EventKind.LAUNCHER
_S = EventKind.COLLECTIVE_STATE
_RAISED = ("Error: ", "Exception: ", 'File "', '"Engine', '"Background', '"Initialization', '"Rank')

_TABLE = Table(
    "engines",
    (
        Row(
            "Received sigquit from a child process", _L, type="SIGQUIT", fields={"what": "child_failed", "by": "sglang"}
        ),
        Row("SIGQUIT received. signum=", _L, type="SIGQUIT", fields={"what": "child_failed", "by": "sglang"}),
        Row(
            "Triggering SIGQUIT for cleanup",
            _L,
            r"(?P<message>Triggering SIGQUIT for cleanup.*)$",
            type="SIGQUIT",
            fields={"what": "child_failed", "by": "sglang"},
            unless=("crashed with exit code",),
        ),
        Row(
            "Initialization failed. Please see the error messages above",
            _L,
            fields={"what": "child_failed", "by": "sglang"},
            unless=_RAISED,
        ),
        Row(
            "Failed to select PD pair",
            EventKind.MESSAGE,
            r"(?P<message>Failed to select PD pair.*)$",
            level="ERROR",
            fields={"what": "no_worker"},
        ),
        Row(
            "No available ",
            EventKind.MESSAGE,
            r"(?P<message>No available (?:prefill |decode |regular )?workers\b.*)$",
            level="ERROR",
            fields={"what": "no_worker"},
        ),
        # a C++ library of CPU engines that prints this and exits
        Row("Unable to get JIT kernel for", EventKind.NATIVE, level="ERROR", fields={"what": "no_kernel"}),
        Row(
            " scheduler is dead",
            _L,
            r"(?P<message>Rank (?P<index>\d{1,5}) scheduler is dead.*)$",
            fields={"what": "child_failed", "by": "sglang"},
            unless=_RAISED,
            who=lambda groups, line: Rank(f"rank {groups['index']}", int(groups["index"] or 0)),
        ),
        Row(
            "atchdog timeout (self.watchdog_timeout=",
            _S,
            r"(?P<message>(?P<component>\w{0,40}) ?[Ww]atchdog timeout \(self\.watchdog_timeout=(?P<seconds>\d+).*)$",
            level="ERROR",
            fields={"what": "scheduler_watchdog"},
        ),
        Row(
            "Hang detected on rank ",
            EventKind.MESSAGE,
            r"(?P<message>Hang detected on rank \d{1,6} in PyExecutor.*)$",
            level="ERROR",
            fields={"what": "hang_detector", "by": "tensorrt-llm"},
        ),
        Row(
            "No available shared memory broadcast block found",
            _S,
            r"(?P<message>No available shared memory broadcast block found in (?P<seconds>\d+) seconds?.*)$",
            fields={"what": "shm_broadcast"},
        ),
        Row(
            "Engine core initialization failed",
            _L,
            r"(?P<message>Engine core initialization failed.*)$",
            fields={"what": "engine_dead", "by": "vllm"},
            unless=_RAISED,
        ),
        Row(
            "EngineCore encountered an issue",
            _L,
            r"(?P<message>EngineCore encountered an issue.*)$",
            fields={"what": "engine_dead", "by": "vllm"},
            unless=_RAISED,
        ),
        Row(
            "Engine process failed to start",
            _L,
            r"(?P<message>Engine process failed to start.*)$",
            fields={"what": "engine_dead", "by": "vllm"},
            unless=_RAISED,
        ),
        Row(
            "Background loop has errored already",
            _L,
            r"(?P<message>Background loop has errored already.*)$",
            fields={"what": "engine_dead", "by": "vllm"},
            unless=_RAISED,
        ),
        Row("AsyncLLMEngine has failed, terminating server process", _L, fields={"what": "engine_dead", "by": "vllm"}),
        Row("MQLLMEngine is already dead", _L, fields={"what": "engine_dead", "by": "vllm"}),
        Row("Killing local vLLM worker processes", _L, fields={"what": "closing", "by": "vllm"}),
        Row("Parent process exited, terminating worker", _L, fields={"what": "parent_gone", "by": "vllm"}),
        Row("Health check failed. Server couldn't get a response", _S, fields={"what": "health_check"}),
        Row("Shard complete standard error output", _L, fields={"what": "child_output", "by": "tgi"}),
        Row(
            " failed to start",
            _L,
            r"^(?P<message>Shard (?P<shard>\d{1,4}) failed to start)\s*$",
            fields={"what": "child_failed", "by": "tgi"},
            who=shard_of,
        ),
        Row("ShardCannotStart", _L, fields={"what": "child_failed", "by": "tgi"}),
        Row("Webserver Crashed", _L, fields={"what": "child_failed", "by": "tgi"}),
        Row("WebserverFailed", _L, fields={"what": "child_failed", "by": "tgi"}),
        Row(
            "[TM][FATAL] ",  # LMDeploy's TurboMind, before it aborts
            EventKind.NATIVE,
            r"\[TM\]\[FATAL\] (?:(?P<file>[\w./+-]{1,200})\((?P<line>\d{1,6})\): )?(?P<message>(?:(?P<type>Check failed): )?\S.*)$",
            level="FATAL",
        ),
        Row(
            "Hang detected on rank",
            _S,
            r"(?P<message>Hang detected on rank (?P<rank>\d+).*)$",
            level="ERROR",
            fields={"what": "hang_detector"},
        ),
    ),
)

ANCHORS: tuple[Anchor, ...] = _TABLE.anchors()


def parse(intake: Intake) -> list[Event]:
    """Events of engines about their processes, alike ones folded."""
    return _TABLE.read(intake)
