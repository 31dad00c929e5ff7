# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""torchrun's agent: workers that failed, signals it sent, the summary block. In: an intake; out: PROCESS_EXIT events (one a
worker and report) and LAUNCHER events. Samples:

    E1129 20:16:49.666000 2669 torch/distributed/elastic/multiprocessing/api.py:986] failed (exitcode: -6) local_rank: 3 (pid: 2750) of binary: /usr/local/bin/python
    -> PROCESS_EXIT type "exit -6", fields {"exit": ProcessExit(-6, "SIGABRT", 2750, "torchelastic"), "local_rank": 3, "binary": …, "what": "agent"}

    W1129 … Sending process 2747 closing signal SIGTERM     -> LAUNCHER fields {"what": "closing", "pid": 2747, "signal": "SIGTERM"}

    Root Cause (first observed failure):
    [0]:
      time      : 2026-11-29_20:16:49
      host      : localhost
      rank      : 3 (local_rank: 3)
      exitcode  : -6 (pid: 2750)
      error_file: <N/A>
      traceback : Signal 6 (SIGABRT) received by PID 2750
    -> PROCESS_EXIT rank 3, fields {"exit": …, "local_rank": 3, "host": "localhost", "first_observed": True, "what": "summary", "traceback": …, "failed_at": …}

    {"message": {"message": "Signal 9 (SIGKILL) received by PID 2750", "extraInfo": {…}}}          (error.json, a file by itself)
    -> PROCESS_EXIT type "SIGKILL", fields {"exit": …, "what": "error_file"}

The agent's line has only the local rank; where the summary names the same pid it gets the global one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind, ProcessExit
from forensics.model.source import LogLine, Rank
from forensics.parse.reading import Lazy, following, hits, make, preceding
from forensics.parse.rows import Row, Table
from forensics.parse.signals import exited

_AGENT = "failed (exitcode: "
_EXIT = ("exitcode  : ", "  exitcode: ")
_EXTRA = '"extraInfo"'
_ROOT = "Root Cause (first observed failure):"


def _signal(groups: Mapping[str, str | None], line: LogLine) -> Mapping[str, Any]:
    return {"signal": (groups.get("signal") or "").removeprefix("Signals.") or None}


_TABLE = Table(
    "torchelastic",
    (
        Row(
            " closing signal ",
            EventKind.LAUNCHER,
            r"Sending process (?P<pid>\d+) closing signal (?P<signal>[\w.]+)",
            fields={"what": "closing"},
            fill=_signal,
        ),
        Row(
            "Unable to shutdown process",
            EventKind.LAUNCHER,
            r"Unable to shutdown process (?P<pid>\d+) via (?P<signal>[\w.]+), forcefully exiting via (?P<forced>[\w.]+)",
            fields={"what": "forced"},
            fill=_signal,
        ),
        Row(
            " death signal, shutting down workers",
            EventKind.LAUNCHER,
            r"Received (?P<signal>[\w.]+) death signal, shutting down workers",
            fields={"what": "death_signal"},
            fill=_signal,
        ),
        Row(
            "will restart worker group",
            EventKind.LAUNCHER,
            r"Worker group (?P<state>\w+)\. +(?:(?P<left>\d+)/(?P<attempts>\d+) attempts left; )?will restart worker group",
            fields={"what": "restart"},
        ),
        Row(
            "Local worker group finished",
            EventKind.LAUNCHER,
            r"Local worker group finished \((?:WorkerState\.)?(?P<state>\w+)\)",
            fields={"what": "group_finished"},
        ),
        Row("Error waiting on exit barrier", EventKind.LAUNCHER, fields={"what": "exit_barrier"}),
        Row("detected non-zero exit", EventKind.LAUNCHER, fields={"what": "non_zero"}),
        Row("no heartbeat from ", EventKind.LAUNCHER, fields={"what": "rendezvous_heartbeat"}),
        Row(
            "Terminating process ",
            EventKind.LAUNCHER,
            r"Terminating process (?P<pid>\d+) via signal (?P<signal>[\w.]+)",
            fields={"what": "closing"},
            fill=_signal,
        ),
    ),
)

ANCHORS: tuple[Anchor, ...] = (
    Anchor(_AGENT.encode(), 1, 2, "torchelastic"),
    *(Anchor(text.encode(), 6, 10, "torchelastic") for text in _EXIT),
    Anchor(_ROOT.encode(), 4, 12, "torchelastic"),
    Anchor(_EXTRA.encode(), 4, 5, "torchelastic"),
    *_TABLE.anchors(),
)

_FILE = Lazy(r'^\s*\{\s*"message": ?\{\s*"message": ?"(?P<message>(?:[^"\\]|\\.){1,4000})"')
_BY_SIGNAL = Lazy(r"Signal \d+ \((SIG[A-Z]+)\) received by PID (\d+)")
_RAISED = Lazy(r"((?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,80}(?:Error|Exception|Interrupt|Exit)): ([^\n].*)")
_FAILED = Lazy(
    r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<local>\d+) \(pid: (?P<pid>\d+)\) of (?:binary|fn): (?P<binary>.*)$"
)
_CODE = Lazy(r"exitcode *: +(?:<?(?P<code>-?\d+)>?|N/A) \(pid: (?P<pid>\d+)\)")
_WHO = Lazy(r"rank +: +(\d+) \(local_rank: (\d+)\)|\brank: (\d+) \(local_rank: (\d+)\)")
_FIELD = Lazy(r"^[\s*|]*(time|host|error_file|traceback|msg) *: ?(.*?)[\s*|]*$")


def parse(intake: Intake) -> list[Event]:
    """Exits of workers, joined by pid with their global ranks, and what the agent did."""
    summary = [e for i in hits(intake, *_EXIT) if (e := _entry(intake, i)) is not None]
    ranks = {e.fields["exit"].pid: e.rank for e in summary if e.fields["exit"].pid}
    agent = []
    for index in hits(intake, _AGENT):
        line = intake.lines[index]
        found = _FAILED.search(line.text) or _FAILED.search(line.raw)
        if found is None:  # hard-wrapped where it was pasted
            found = _FAILED.search(line.raw + "".join(more.raw for _, more in following(intake, index, 1)))
        if found:
            pid, local = int(found["pid"]), int(found["local"])
            rank = ranks.get(pid) or Rank(f"local rank {local}", None, (("local", local),), pid=pid)
            agent.append(
                _exit(
                    line,
                    line,
                    int(found["code"]),
                    pid,
                    rank,
                    found[0],
                    {"what": "agent", "local_rank": local, "binary": found["binary"].strip()},
                )
            )
    return agent + summary + _error_files(intake) + _TABLE.read(intake)


def _error_files(intake: Intake) -> list[Event]:
    """error.json of a worker that left no traceback in it (one that did is read as a traceback)."""
    events = []
    for index in hits(intake, _EXTRA):
        line = intake.lines[index]
        whole = line.raw.lstrip().startswith("{")
        before = [] if whole else [l for _, l in preceding(intake, index, 3)][::-1]
        text = "\n".join(l.raw for l in (*before, line, *(l for _, l in following(intake, index, 4))))[:20_000]
        found = None if "Traceback (most recent call last)" in text else _FILE.match(text)
        if found is None:
            continue
        said = found["message"].replace("\\n", "\n").replace('\\"', '"')
        signal, raised = _BY_SIGNAL.match(said), _RAISED.match(said)
        made = ProcessExit(None, signal[1], int(signal[2]), "torchelastic") if signal else None
        events.append(
            make(
                EventKind.PROCESS_EXIT if made else EventKind.MESSAGE,
                before[0] if before else line,
                line,
                parser="torchelastic",
                type=made.signal if made else raised[1] if raised else None,
                message=raised[2] if raised and not made else said,
                fields={"exit": made, "what": "error_file"} if made else {"what": "error_file"},
                level="ERROR",
            )
        )
    return events


def _entry(intake: Intake, index: int) -> Event | None:
    """One failure of the summary block."""
    line = intake.lines[index]
    code = _CODE.search(line.text)
    if not code:
        return None
    first, last = line, line
    fields: dict[str, Any] = {"what": "summary", "first_observed": False}
    rank: Rank | None = None
    near = [
        *((at, l, True) for at, l in preceding(intake, index, 7)),
        *((at, l, False) for at, l in following(intake, index, 3)),
    ]
    above = True
    for _, other, before in near:
        text = other.text
        if before:
            if not above:
                continue
            who = _WHO.search(text)
            if who:
                number, local = int(who[1] or who[3]), int(who[2] or who[4])
                rank = Rank(f"rank {number}", number, (("local", local),), pid=int(code["pid"]))
                fields["local_rank"] = local
            if "Root Cause" in text:
                fields["first_observed"] = True
                first = other
                above = False
            elif _EXIT[0] in text or _EXIT[1] in text or "traceback :" in text or "-----" in text:
                above = False
                continue
            elif text.strip(" *|"):
                first = other
        elif text.lstrip(" *|").startswith(("[", "=====", "-----")):
            break
        field = _FIELD.match(text)
        if field:
            key = {"time": "failed_at", "msg": "traceback"}.get(field[1], field[1])
            fields.setdefault(key, field[2].strip())
            if not before:
                last = other
    if rank is None:
        return None
    host = fields.get("host")
    if host:
        rank = Rank(rank.label, rank.number, rank.axes, host, rank.pid)
    words = str(fields.get("traceback", ""))
    if words.lstrip('"').startswith(("To enable traceback see", "Traceback (most recent call last)")):  # the last: it stands below
        words = ""
    return _exit(first, last, int(code["code"]) if code["code"] else None, int(code["pid"]), rank, words, fields)


def _exit(
    first: LogLine, last: LogLine, code: int | None, pid: int, rank: Rank, message: str, fields: dict[str, Any]
) -> Event:
    made = exited(code, "torchelastic", pid) if code is not None else ProcessExit(None, None, pid, "torchelastic")
    return make(
        EventKind.PROCESS_EXIT,
        first,
        last,
        parser="torchelastic",
        type=f"exit {code}" if code is not None else None,
        message=message or f"exit code {code}",
        rank=rank,
        fields={"exit": made, **fields},
    )
