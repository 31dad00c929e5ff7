# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""The kernel's OOM killer, with who asked for memory and who was killed told apart; earlyoom and systemd-oomd. In: an intake; out:
OOM_KILL events. Samples:

    python3 invoked oom-killer: gfp_mask=0x1100cca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0
    oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=pod1,mems_allowed=0-1,oom_memcg=/kubepods/pod1,task_memcg=/kubepods/pod1/c1,task=pt_data_worker,pid=4711,uid=0
    Memory cgroup out of memory: Killed process 4711 (pt_data_worker) total-vm:9123456kB, anon-rss:8123456kB, file-rss:0kB, shmem-rss:1024kB, UID:0
    -> OOM_KILL type "SIGKILL", message "Memory cgroup out of memory: Killed process 4711 (pt_data_worker) …",
       fields {"victim_pid": 4711, "victim_name": "pt_data_worker", "invoker": "python3", "cgroup": "/kubepods/pod1", "constraint": "CONSTRAINT_MEMCG",
               "rss_bytes": 8319467520, "by": "kernel"}

The invoker only happened to allocate when memory was short: the victim is who died. Where the line of the kill is missing, the facts
name the victim; the table of tasks alone tells of a kill, and not whose. An invocation without any of them is a WARNING.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.model.source import LogLine
from forensics.parse.reading import Lazy, hits, make

_INVOKED = "invoked oom-killer"
_FACTS = "oom-kill:constraint="
#: the head of the table that the kernel prints of all tasks before it kills one
_TABLE = "tgid total_vm"

ANCHORS: tuple[Anchor, ...] = (
    Anchor(b"Killed process ", 4, 2, "oom_killer"),
    Anchor(b"Kill process ", 4, 2, "oom_killer"),
    Anchor(b"killed process ", 4, 2, "oom_killer"),
    Anchor(_INVOKED.encode(), 1, 2, "oom_killer"),
    Anchor(_FACTS.encode(), 1, 3, "oom_killer"),
    Anchor(_TABLE.encode(), 1, 3, "oom_killer"),
    Anchor(b"sending SIG", 1, 1, "oom_killer"),
    Anchor(b"oom_reaper: reaped process", 2, 1, "oom_killer"),
    Anchor(b"systemd-oomd", 0, 1, "oom_killer"),
)

_VICTIM = Lazy(
    r"(?P<message>(?P<how>Memory cgroup out of memory|Out of memory(?: \([^)]{0,80}\))?|Tasks in .{1,300} are going to be killed)?:? ?[Kk]ill(?:ed)? process (?P<pid>\d+) \((?P<name>[^)]{1,60})\).*)$"
)
_TABLE_HEAD = Lazy(r"(?P<message>\[ +pid +\] +uid +tgid total_vm +rss .{0,80})$")
_RSS = Lazy(r"(anon|file|shmem)-rss:(\d+)kB")
_WHO = Lazy(r"(?P<name>[^\s\[\]][^\[\]]{0,60}?) invoked oom-killer")
_PAIR = Lazy(r"(\w+)=([^,]{0,300})")
_EARLY = Lazy(r"sending SIG(?P<signal>TERM|KILL) to process (?P<pid>\d+)(?: uid \d+)? \"?(?P<name>[^\":]{1,60})\"?.*")
_OOMD = Lazy(r"(?P<message>Killed (?P<cgroup>/\S{1,300}) due to memory .*)$")

#: lines between the invocation and the kill (the memory report between them can be long)
_REACH = 600
#: rows of the table of tasks that may stand between its head and the kill
_TASKS = 20_000


def parse(intake: Intake) -> list[Event]:
    """One event a kill, with the facts printed before it; folded are the two lines older kernels print for one kill."""
    lines = intake.lines
    invoked = [(i, m["name"].strip()) for i in hits(intake, _INVOKED) if (m := _WHO.search(lines[i].text))]
    facts = [(i, dict(_PAIR.findall(lines[i].text))) for i in hits(intake, _FACTS)]
    events: list[Event] = []
    seen: dict[tuple[int, int], int] = {}
    used: set[int] = set()
    for index in hits(intake, "Killed process ", "killed process ", "Kill process "):
        line = lines[index]
        found = _VICTIM.search(line.text) or _VICTIM.search(line.raw)
        if not found:
            continue
        pid = int(found["pid"])
        again = seen.get((line.source, pid))
        if again is not None and line.number - again <= 20:
            continue
        seen[line.source, pid] = line.number
        fields: dict[str, Any] = {"by": "kernel", "victim_pid": pid, "victim_name": found["name"]}
        rss = sum(int(kb) for _, kb in _RSS.findall(line.raw)) * 1024
        if rss:
            fields["rss_bytes"] = rss
        caller = _nearest(lines, invoked, index, used)
        if caller is not None:
            fields["invoker"] = caller
        pairs = next(
            (p for i, p in reversed(facts) if i <= index and index - i <= 40 and p.get("pid") == str(pid)), None
        )
        if pairs:
            fields.update(_place(pairs))
        elif "cgroup" in line.text:
            fields["constraint"] = "CONSTRAINT_MEMCG"
        if line.stream and "=" not in line.stream:
            fields["node"] = line.stream.partition("/")[0]
        events.append(
            make(
                EventKind.OOM_KILL,
                line,
                parser="oom_killer",
                type="SIGKILL",
                message=found["message"],
                fields={k: v for k, v in fields.items() if v is not None},
            )
        )
    events += _unsaid(lines, facts, hits(intake, _TABLE), invoked, used, [(source, number, pid) for (source, pid), number in seen.items()])
    for index, name in invoked:
        if index not in used:
            events.append(
                make(
                    EventKind.WARNING,
                    lines[index],
                    parser="oom_killer",
                    message=f"{name} invoked oom-killer",
                    fields={"what": "oom_invoked", "invoker": name},
                )
            )
    return events + _userspace(intake)


def _place(pairs: dict[str, str]) -> dict[str, Any]:
    return {"constraint": pairs.get("constraint"), "cgroup": pairs.get("oom_memcg") or pairs.get("task_memcg")}


def _unsaid(
    lines: list[LogLine],
    facts: list[tuple[int, dict[str, str]]],
    tables: list[int],
    invoked: list[tuple[int, str]],
    used: set[int],
    kills: list[tuple[int, int, int]],
) -> list[Event]:
    """Kills whose own line the log does not hold. kills: (source, line, pid) of those that it holds."""
    events = []
    named = {(source, pid) for source, _, pid in kills}
    told = [(source, number) for source, number, _ in kills]
    for index, pairs in facts:
        line, pid, name = lines[index], pairs.get("pid", ""), pairs.get("task")
        if not pid.isdigit() or not name or (line.source, int(pid)) in named:
            continue
        fields = {"by": "kernel", "victim_pid": int(pid), "victim_name": name, "invoker": _nearest(lines, invoked, index, used), **_place(pairs)}
        events.append(_kill(line, line.text[line.text.find(_FACTS) :], fields))
        told.append((line.source, line.number))
    told.sort()
    for index in tables:
        line = lines[index]
        found = _TABLE_HEAD.search(line.text)
        place = bisect_left(told, (line.source, line.number))
        below = told[place] if place < len(told) else (-1, 0)
        if found and not (below[0] == line.source and below[1] - line.number <= _TASKS):
            events.append(_kill(line, found["message"], {"by": "kernel", "invoker": _nearest(lines, invoked, index, used)}))
    return events


def _kill(line: LogLine, message: str, fields: dict[str, Any]) -> Event:
    known = {key: value for key, value in fields.items() if value is not None}
    return make(EventKind.OOM_KILL, line, parser="oom_killer", type="SIGKILL", message=message, fields=known)


def _nearest(lines: list[LogLine], invoked: list[tuple[int, str]], index: int, used: set[int]) -> str | None:
    for at, name in reversed(invoked):
        if at <= index and lines[at].source == lines[index].source:
            if lines[index].number - lines[at].number > _REACH:
                return None
            used.add(at)
            return name
    return None


def _userspace(intake: Intake) -> list[Event]:
    """earlyoom and systemd-oomd."""
    events = []
    for index in hits(intake, "sending SIG", "systemd-oomd"):
        line = intake.lines[index]
        early, oomd = _EARLY.search(line.raw), _OOMD.search(line.raw)
        if early and ("earlyoom" in line.raw or "badness" in line.raw or "VmRSS" in line.raw):
            fields: dict[str, Any] = {
                "by": "earlyoom",
                "victim_pid": int(early["pid"]),
                "victim_name": early["name"].strip(),
            }
            events.append(
                make(
                    EventKind.OOM_KILL,
                    line,
                    parser="oom_killer",
                    type=f"SIG{early['signal']}",
                    message=early[0],
                    fields=fields,
                )
            )
        elif oomd:
            events.append(
                make(
                    EventKind.OOM_KILL,
                    line,
                    parser="oom_killer",
                    type="SIGKILL",
                    message=oomd["message"],
                    fields={"by": "systemd-oomd", "cgroup": oomd["cgroup"]},
                )
            )
    return events
