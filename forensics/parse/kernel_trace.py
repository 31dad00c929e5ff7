# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""What the kernel says of programs and of itself: segfault lines, traps, oopses, hung tasks, lockups, with their call traces. In:
an intake; out: FATAL_SIGNAL events for programs, HARDWARE (kind "kernel") or WARNING events for the kernel. Samples:

    python3[4711]: segfault at 10 ip 00007f2ab1c2d3e4 sp 00007ffd1c2d3e50 error 4 in libnccl.so.2.21.5[7f2ab1b00000+4000000]
    -> FATAL_SIGNAL type "SIGSEGV", fields {"pid": 4711, "process": "python3", "address": "0x10", "module": "libnccl.so.2.21.5", "by": "kernel"}
    traps: python3[99] trap invalid opcode ip:7f00 sp:7f01 error:0 in libcublas.so.12[…]        -> SIGILL
    BUG: kernel NULL pointer dereference, address: 0000000000000008     then "Call Trace:" and " nvidia_ioctl+0x12/0x40 [nvidia]"
    sshd[812]: segfault at 0 ip …                                       -> WARNING: a service of the host, not of the job
    INFO: task python3:4711 blocked for more than 122 seconds.          -> WARNING fields {"what": "hung_task", …}
"""

from __future__ import annotations

from functools import lru_cache

from forensics.data import table
from forensics.ingest.anchors import Anchor
from forensics.ingest.compiled import pattern_of
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind, HardwareFault
from forensics.parse.calltrace import call_trace
from forensics.parse.reading import Lazy, fold, hits, make, stack_of

_TRAPS = "traps: "
_BUGS = (
    "BUG: ",
    "Oops: ",
    "Kernel panic - not syncing",
    "general protection fault",
    "Unable to handle kernel",
    "watchdog: BUG: soft lockup",
    "NMI watchdog: ",
    "rcu: INFO: rcu_sched self-detected stall",
    "kernel BUG at ",
)
_HUNG = "blocked for more than "
_TRACE = "Call Trace:"

ANCHORS: tuple[Anchor, ...] = (
    Anchor(b": segfault at ", 0, 2, "kernel_trace"),
    Anchor(b"traps: ", 0, 1, "kernel_trace"),
    *(Anchor(text.encode(), 1, 60, "kernel_trace") for text in _BUGS if text != "BUG: "),
    Anchor(b"BUG: kernel", 1, 60, "kernel_trace"),
    Anchor(b"BUG: unable", 1, 60, "kernel_trace"),
    Anchor(_HUNG.encode(), 0, 40, "kernel_trace"),
    Anchor(_TRACE.encode(), 10, 40, "kernel_trace"),
)

_SEGV = Lazy(
    r"(?P<name>[^\s\[]{1,40})\[(?P<pid>\d+)\]: segfault at (?P<address>[0-9a-fx()nul]{1,20}) ip (?P<ip>\S{1,20}) sp \S{1,20} error (?P<error>\w{1,8})(?: (?:cpu \d+ )?in (?P<module>[^\[\s]{1,200})\[)?"
)
_TRAP = Lazy(
    r"traps: (?P<name>[^\s\[]{1,40})\[(?P<pid>\d+)\] (?:trap )?(?P<what>[\w -]{1,60}?) ip:(?P<ip>\S{1,20}) sp:\S{1,20} error:\w{1,8}(?: in (?P<module>[^\[\s]{1,200})\[)?"
)
_TASK = Lazy(r"task (?P<name>[^:\s]{1,40}):(?P<pid>\d+) blocked for more than (?P<seconds>\d+) seconds")
_BUG = Lazy(
    r"(?P<message>(?:BUG: (?:kernel|unable|soft lockup|workqueue|scheduling)|Oops: |Kernel panic - not syncing|general protection fault|Unable to handle kernel|watchdog: BUG: soft lockup|rcu: INFO: rcu_sched self-detected stall|kernel BUG at ).*)$"
)

_TRAPS_BY_NAME = {
    "invalid opcode": "SIGILL",
    "divide error": "SIGFPE",
    "general protection": "SIGSEGV",
    "general protection fault": "SIGSEGV",
    "int3": "SIGTRAP",
    "stack segment": "SIGBUS",
    "alignment check": "SIGBUS",
}


@lru_cache(maxsize=1)
def _services() -> tuple[frozenset[str], tuple[str, ...]]:
    """Names of the host's services, and patterns of whole names (signatures/facts/host_services.toml)."""
    rows = table("facts/host_services")["service"]
    names = frozenset(name for row in rows for name in row.get("names", ()))
    return names, tuple(row["pattern"] for row in rows if row.get("pattern"))


def is_host_service(process: str) -> bool:
    """True for a service of the host: no job dies of its faults. process: its name as the kernel tells it."""
    names, patterns = _services()
    return process in names or any(pattern_of(pattern).fullmatch(process) for pattern in patterns)


def parse(intake: Intake) -> list[Event]:
    """Programs that the kernel stopped, and the kernel's own troubles."""
    lines = intake.lines
    events: list[Event] = []
    for index in hits(intake, ": segfault at ", _TRAPS):
        line = lines[index]
        found = _SEGV.search(line.raw) or _TRAP.search(line.raw)
        if found:
            groups = found.groupdict()
            kind = _TRAPS_BY_NAME.get((groups.get("what") or "").strip(), "SIGSEGV")
            fields = {"by": "kernel", "process": groups["name"], "pid": int(groups["pid"]), "ip": groups["ip"]}
            if groups.get("module"):
                fields["module"] = groups["module"]
            if groups.get("address"):
                fields["address"] = (
                    groups["address"] if groups["address"].startswith("0x") else f"0x{groups['address']}"
                )
            level = EventKind.WARNING if is_host_service(groups["name"]) else EventKind.FATAL_SIGNAL
            events.append(make(level, line, parser="kernel_trace", type=kind, message=found[0], fields=fields))
    for index in hits(intake, _HUNG):
        found = _TASK.search(lines[index].raw)
        if found:
            frames = call_trace(intake, index)
            events.append(
                make(
                    EventKind.WARNING,
                    lines[index],
                    lines[frames[-1][0]] if frames else None,
                    parser="kernel_trace",
                    message=found[0],
                    stacks=stack_of(intake, frames),
                    fields={
                        "what": "hung_task",
                        "process": found["name"],
                        "pid": int(found["pid"]),
                        "seconds": int(found["seconds"]),
                    },
                )
            )
    for index in hits(intake, *(b for b in _BUGS if b != "BUG: "), "BUG: kernel", "BUG: unable"):
        found = _BUG.search(lines[index].text) or _BUG.search(lines[index].raw)
        if found and "Error" not in lines[index].text[:40]:
            frames = call_trace(intake, index)
            fault = HardwareFault("kernel", message=found["message"][:400])
            events.append(
                make(
                    EventKind.HARDWARE,
                    lines[index],
                    lines[frames[-1][0]] if frames else None,
                    parser="kernel_trace",
                    type="kernel",
                    message=found["message"],
                    stacks=stack_of(intake, frames),
                    fields={"fault": fault},
                )
            )
    return fold(events)
