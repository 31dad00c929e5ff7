# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""Those who keep a service running and start it again: systemd, docker compose, supervisord, Ray Train, Lightning on Slurm. In: an
intake; out: PROCESS_EXIT, OOM_KILL and LAUNCHER events. Samples:

    systemd[1]: llm.service: Main process exited, code=killed, status=9/KILL
    -> PROCESS_EXIT type "SIGKILL", fields {"exit": ProcessExit(None, "SIGKILL", None, "systemd"), "unit": "llm.service"}
    systemd[1]: llm.service: Scheduled restart job, restart counter is at 2.
    -> LAUNCHER fields {"what": "restart", "by": "systemd", "counter": 2}
    llm-1 exited with code 1 (restarting)
    -> PROCESS_EXIT type "exit 1", fields {"exit": …, "restarts": True}
    2026-11-29 20:15:45,123 WARN exited: llm (exit status 1; not expected)
    -> PROCESS_EXIT type "exit 1", fields {"exit": …, "restarts": True}
    (TrainController pid=91) [State Transition] RUNNING -> RESTARTING.
    -> LAUNCHER fields {"what": "restart", "by": "ray"}

SIGHUP, SIGINT, SIGTERM and SIGPIPE are a clean end to systemd (systemd.service(5), SuccessExitStatus=), and so they are here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind, ProcessExit
from forensics.model.source import LogLine
from forensics.parse.exits import Groups, exit_of, with_exit_type
from forensics.parse.rows import Row, Table
from forensics.parse.signals import signal_name

_X = EventKind.PROCESS_EXIT
#: a unit's name, with systemd's escapes
_UNIT = r"(?P<unit>[\w@:.\\-]{1,200}\.(?:service|scope))"


def _of_systemd(groups: Groups, line: LogLine) -> Mapping[str, Any]:
    """status=1/FAILURE is an exit code, status=9/KILL the number of a signal."""
    number = int(groups["number"] or 0)
    code = number if groups["how"] == "exited" else None
    return {"exit": ProcessExit(code, None if code is not None else signal_name(number), None, "systemd"), "by": "systemd"}


def _signalled(groups: Groups, line: LogLine) -> Mapping[str, Any]:
    return {"exit": ProcessExit(None, groups.get("signal"), None, "supervisord"), "by": "supervisord", "restarts": True}


def _restart(by: str) -> Mapping[str, Any]:
    return {"what": "restart", "by": by}


_TABLE = Table(
    "supervisors",
    (
        Row(
            "Main process exited, code=",
            _X,
            rf"(?P<message>{_UNIT}: Main process exited, code=(?P<how>exited|killed|dumped), status=(?P<number>[1-9]\d{{0,2}})/(?!HUP|INT|TERM|PIPE)\w{{1,40}})",
            fill=_of_systemd,
        ),
        Row(
            "of this unit has been killed by the OOM killer",
            EventKind.OOM_KILL,
            rf"(?P<message>{_UNIT}: A process of this unit has been killed by the OOM killer)",
            type="SIGKILL",
            fields={"by": "systemd"},
        ),
        Row(
            " operation timed out. Terminating",
            EventKind.LAUNCHER,
            rf"(?P<message>{_UNIT}: (?:start|start-pre|start-post|reload) operation timed out\. Terminating)",
            type="SIGTERM",
            fields={"what": "cancelled", "reason": "time limit", "by": "systemd"},
        ),
        Row(
            "Failed with result 'timeout'",
            EventKind.LAUNCHER,
            rf"(?P<message>{_UNIT}: Failed with result 'timeout')",
            type="SIGTERM",
            fields={"what": "cancelled", "reason": "time limit", "by": "systemd"},
        ),
        Row(
            "systemd-oomd killed ",
            EventKind.OOM_KILL,
            rf"(?P<message>{_UNIT}: systemd-oomd killed (?P<killed>\d{{1,6}}) process\(es\) in this unit)",
            type="SIGKILL",
            fields={"by": "systemd-oomd"},
        ),
        Row(
            "Killed /",
            EventKind.OOM_KILL,
            r"(?P<message>Killed (?P<unit>/[^\s]{1,400}) due to (?:memory used \(|memory pressure for )[^\n]{1,300})",
            type="SIGKILL",
            fields={"by": "systemd-oomd"},
        ),
        Row(
            "Scheduled restart job, restart counter is at ",
            EventKind.LAUNCHER,
            rf"(?P<message>{_UNIT}: Scheduled restart job, restart counter is at (?P<counter>\d{{1,9}}))",
            fields=_restart("systemd"),
        ),
        Row(
            "Start request repeated too quickly",
            EventKind.LAUNCHER,
            rf"(?P<message>{_UNIT}: Start request repeated too quickly)",
            fields={"what": "gave_up", "by": "systemd"},
        ),
        Row(
            " (restarting)",
            _X,
            r"^(?P<message>(?P<name>[\w./-]{1,120}) exited with code (?P<code>[1-9]\d{0,2}) \(restarting\))\s*$",
            fields={"restarts": True},
            fill=exit_of("docker"),
        ),
        Row(
            " (restarting)",
            EventKind.LAUNCHER,
            r"^(?P<message>(?P<name>[\w./-]{1,120}) exited with code 0 \(restarting\))\s*$",
            fields=_restart("docker"),
        ),
        Row(
            "exited: ",
            _X,
            r"\b(?P<message>exited: (?P<name>[\w.:-]{1,120}) \(exit status (?P<code>[1-9]\d{0,2}); not expected\))",
            fields={"restarts": True},
            fill=exit_of("supervisord"),
        ),
        Row(
            "exited: ",
            _X,
            r"\b(?P<message>exited: (?P<name>[\w.:-]{1,120}) \(terminated by (?P<signal>SIG[A-Z0-9]{2,8})(?: \(core dumped\))?; not expected\))",
            fill=_signalled,
        ),
        Row(
            "entered FATAL state, ",
            EventKind.LAUNCHER,
            r"\b(?P<message>gave up: (?P<name>[\w.:-]{1,120}) entered FATAL state, .{1,200})",
            fields={"what": "gave_up", "by": "supervisord"},
        ),
        Row(
            "[State Transition] ",
            EventKind.LAUNCHER,
            r"(?P<message>\[State Transition\] [A-Z]{1,20} -> RESTARTING\b)",
            fields=_restart("ray"),
        ),
        Row(
            " restart attempts left; ",
            EventKind.LAUNCHER,
            r"(?P<message>(?P<left>\d{1,9})/(?P<attempts>\d{1,9}) restart attempts left; restarting worker group)",
            fields=_restart("ft_launcher"),
        ),
        Row(
            "Requeued SLURM job",
            EventKind.LAUNCHER,
            r"(?P<message>Requeued SLURM job:? \d{1,12})",
            fields=_restart("lightning"),
        ),
    ),
)

ANCHORS: tuple[Anchor, ...] = _TABLE.anchors()


def parse(intake: Intake) -> list[Event]:
    """Exits, and that the service is started again, as told by whoever keeps it."""
    return [with_exit_type(event) for event in _TABLE.read(intake, folded=False)]
