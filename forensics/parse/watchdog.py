# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""torch's ProcessGroupNCCL (and its relatives for other chips): time-outs, what each rank had enqueued and completed, the
heartbeat monitor. In: an intake; out: COLLECTIVE_TIMEOUT, COLLECTIVE_STATE, COMMUNICATION and STACK events. Sample:

    [rank2]:[E1129 20:15:45.33 ProcessGroupNCCL.cpp:689] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=6, OpType=ALLREDUCE, NumelIn=4194304, NumelOut=4194304, Timeout(ms)=15000) ran for 15017 milliseconds before timing out.
    -> COLLECTIVE_TIMEOUT rank 2, fields {"collective": Collective(op="ALLREDUCE", sequence=6, numel_in=4194304, numel_out=4194304, timeout_ms=15000, elapsed_ms=15017), "group_rank": 2}

    … failure detected by watchdog at work sequence id: 6 PG status: last enqueued work: 6, last completed work: 5
    … Timeout at NCCL work: 6, last enqueued NCCL work: 7, last completed NCCL work: 5.
    … Received a dump signal due to a collective timeout from  rank 2 and … Last enqueued NCCL work: 5, last completed NCCL work: 5.
    -> COLLECTIVE_STATE, fields {"collective": Collective(last_enqueued=5, last_completed=5), "what": "dump_signal", "signalled_by": 2}

fields["what"]: failure, timeout_at, dump_signal, observed_dump, first_to_signal, last_enqueued; for COMMUNICATION: corrupted, taking_down,
watchdog_exception, heartbeat, gil, abort. Ranks in the text are ranks within the group: see groups.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Collective, Event, EventKind
from forensics.model.record import replace
from forensics.model.source import LogLine, Rank
from forensics.model.stack import StackTrace
from forensics.parse.frames import captured_frame
from forensics.parse.groups import group_in, rank_in
from forensics.parse.reading import Lazy, clipped, fold, following, hits, make, numbered_stacks, span_of
from forensics.parse.rows import Row, Table

_TIMEOUT = "collective operation timeout: Work"
_STACK = "Stack trace of the failed collective"

_COUNTERS = frozenset(("sequence", "enqueued", "started", "completed"))
_WORK = Lazy(r"timeout: Work\w{2,12}\((?P<body>[^\n]{1,1500}?)\) ran for (?P<elapsed>\d+) milliseconds")
_TORN = Lazy(r"terminated with exception: \[Rank \d{1,6}\] Watchdog(?: caught(?: coll[a-z ]{0,28})?)?\s*$")
_PAIR = Lazy(r"(\w+(?:\(ms\))?)=(\[[^\]]{0,400}\]|[^,]{1,80})")


def _state(groups: Mapping[str, str | None], line: LogLine) -> Mapping[str, Any]:
    """Group and counters of a line, as a Collective."""
    text = clipped(line.raw, "Rank ")
    group = group_in(text)
    number = {k: int(v) for k, v in groups.items() if v is not None and v.isdigit()}
    made = Collective(
        op=groups.get("op"),
        sequence=number.get("sequence"),
        process_group=group.name if group else None,
        last_enqueued=number.get("enqueued"),
        last_started=number.get("started"),
        last_completed=number.get("completed"),
    )
    fields: dict[str, Any] = (
        {"collective": made}
        if number.keys() & _COUNTERS or groups.get("op")
        else {"process_group": group.name if group else None}
    )
    if group is not None and group.rank is not None:
        fields["group_rank"] = group.rank
    by = (groups.get("by") or "").strip().removeprefix("rank ")
    if by:
        fields["signalled_by"] = int(by) if by.isdigit() else by
    return {**fields, **dict.fromkeys(("sequence", "enqueued", "started", "completed", "by"))}


def _spoken(groups: Mapping[str, str | None], line: LogLine) -> Rank | None:
    return rank_in(clipped(line.raw, "Rank "), line)


def _row(literal: str, kind: EventKind, what: str, pattern: str = "") -> Row:
    return Row(literal, kind, pattern, fields={"what": what}, unless=("what():",), fill=_state, who=_spoken)


_LAST = r"[Ll]ast enqueued NCCL work: (?P<enqueued>\d+), last completed NCCL work: (?P<completed>\d+)"
_TABLE = Table(
    "watchdog",
    (
        _row(
            "failure detected by watchdog at work sequence id",
            EventKind.COLLECTIVE_STATE,
            "failure",
            r"failure detected by watchdog at work sequence id: (?P<sequence>\d+)(?: PG status: last enqueued work: (?P<enqueued>-?\d+), last completed work: (?P<completed>-?\d+))?",
        ),
        _row(
            "detected by watchdog at work:",
            EventKind.COLLECTIVE_STATE,
            "failure",
            r"detected by watchdog at work: (?P<sequence>\d+)(?:, " + _LAST + ")?",
        ),
        _row(
            "Timeout at NCCL work:",
            EventKind.COLLECTIVE_STATE,
            "timeout_at",
            r"Timeout at NCCL work: (?P<sequence>\d+)(?:, " + _LAST + ")?",
        ),
        _row(
            "Received a dump signal due to a collective timeout",
            EventKind.COLLECTIVE_STATE,
            "dump_signal",
            r"Received a dump signal due to a collective timeout from (?P<by>this local rank| {0,2}rank \d+)? ?(?:and|this).{0,120}?[Ll]ast enqueued NCCL work: (?P<enqueued>-?\d+), last completed NCCL work: (?P<completed>-?\d+)",
        ),
        _row("Received a dump signal", EventKind.COLLECTIVE_STATE, "dump_signal"),
        _row("Observed flight recorder dump signal", EventKind.COLLECTIVE_STATE, "observed_dump"),
        _row("First PG on this rank to signal dumping", EventKind.COLLECTIVE_STATE, "first_to_signal"),
        _row("First PG on this rank that detected no heartbeat", EventKind.COMMUNICATION, "heartbeat"),
        _row("ast enqueued NCCL work:", EventKind.COLLECTIVE_STATE, "last_enqueued", _LAST),
        _row("Some NCCL operations have failed or timed out", EventKind.COMMUNICATION, "corrupted"),
        _row("To avoid data inconsistency", EventKind.COMMUNICATION, "taking_down"),
        _row(
            "atchdog thread terminated with exception",
            EventKind.COMMUNICATION,
            "watchdog_exception",
            r"(?P<message>(?:Process group|NCCL|XCCL|HCCL)? ?watchdog thread terminated with exception.*)$",
        ),
        _row(
            "watchdog got stuck for",
            EventKind.COMMUNICATION,
            "heartbeat",
            r"(?P<message>\S{0,60} ?watchdog got stuck for (?P<seconds>\d+) seconds.*)$",
        ),
        _row("Heartbeat monitor timed out", EventKind.COMMUNICATION, "heartbeat"),
        _row(
            "due to ProcessGroupNCCL watchdog hang",
            EventKind.COMMUNICATION,
            "heartbeat",
            r"(?P<message>Terminating the process after .*)$",
        ),
        _row("Could not acquire GIL within", EventKind.COMMUNICATION, "gil"),
        _row(
            "due to GIL deadlock or",
            EventKind.COMMUNICATION,
            "gil",
            r"(?P<message>(?:Potential|possible).{0,80}GIL.*)$",
        ),
        _row("[abort] NCCL communicator", EventKind.COMMUNICATION, "abort"),
    ),
)

ANCHORS: tuple[Anchor, ...] = (
    Anchor(_TIMEOUT.encode(), 1, 8, "watchdog"),
    Anchor(_STACK.encode(), 1, 60, "watchdog"),
    *_TABLE.anchors(),
)


def parse(intake: Intake) -> list[Event]:
    """Events of the watchdog; a time-out that is printed again inside the exception's text counts once."""
    timeouts, told = _timeouts(intake), [_tidy(e) for e in _TABLE.read(intake)]
    late = {_speaker(e) for e in timeouts}
    told = [e if _speaker(e) in late else _as_timeout(e) for e in told]
    if not timeouts and not any(e.kind is EventKind.COLLECTIVE_TIMEOUT for e in told):
        told = [*_heard_of(told), *told]
    return timeouts + told + _stacks(intake)


def _speaker(event: Event) -> tuple[Any, ...]:
    return event.span.source, event.rank.key if event.rank else None


def _as_timeout(event: Event) -> Event:
    """ "Timeout at NCCL work: 7" of a rank whose longer sentence is not in the log says the same; so does the exception's text that is
    torn behind its first word, which begins no other sentence."""
    what = event.fields.get("what")
    if what == "timeout_at" or (what == "watchdog_exception" and _TORN.search(event.message)):
        return replace(event, kind=EventKind.COLLECTIVE_TIMEOUT)
    return event


def _heard_of(told: list[Event]) -> list[Event]:
    """The time-out that another rank's signal to dump tells of, where nothing else of it is in the log."""
    heard = next((e for e in told if e.fields.get("what") == "dump_signal" and "signalled_by" in e.fields), None)
    if heard is None:
        return []
    by = heard.fields["signalled_by"]
    rank = Rank(f"rank {by}", by) if isinstance(by, int) else heard.rank
    made: Collective | None = heard.fields.get("collective")
    group = Collective(process_group=made.process_group if made is not None else None)
    return [replace(heard, kind=EventKind.COLLECTIVE_TIMEOUT, rank=rank, fields={"what": "dump_signal", "collective": group})]


def _tidy(event: Event) -> Event:
    """Without the counters that now stand in the Collective."""
    return replace(event, message=event.message[:400], fields={k: v for k, v in event.fields.items() if v is not None})


def _timeouts(intake: Intake) -> list[Event]:
    events = []
    for index in hits(intake, _TIMEOUT):
        line = intake.lines[index]
        text = clipped(line.raw, _TIMEOUT)
        found = _WORK.search(text)
        if not found:
            # hard-wrapped where it was pasted
            text += "".join(more.raw for _, more in following(intake, index, 2))
            found = _WORK.search(text)
        if not found:
            continue
        pairs = dict(_PAIR.findall(found["body"]))
        # the group's prefix stands before the words, the old "[Rank 2]" right before them
        group = group_in(text)
        made = Collective(
            op=pairs.get("OpType"),
            sequence=_number(pairs.get("SeqNum")),
            process_group=group.name if group else None,
            numel_in=_number(pairs.get("NumelIn")),
            numel_out=_number(pairs.get("NumelOut")),
            timeout_ms=_number(pairs.get("Timeout(ms)")),
            elapsed_ms=int(found["elapsed"]),
        )
        fields: dict[str, Any] = {"collective": made}
        if group is not None and group.rank is not None:
            fields["group_rank"] = group.rank
        if pairs.get("TensorShape"):
            fields["tensor_shape"] = pairs["TensorShape"]
        events.append(
            make(
                EventKind.COLLECTIVE_TIMEOUT,
                line,
                parser="watchdog",
                message=_sentence(text, found.end()),
                rank=rank_in(text, line),
                fields=fields,
            )
        )
    return _once(events)


def _sentence(text: str, end: int) -> str:
    """From "Watchdog caught" to the end of the sentence."""
    start = max(text.find("Watchdog caught"), 0)
    stop = text.find("timing out.", end, end + 60)
    return text[start : stop + 11 if stop > 0 else end]


def _once(events: list[Event]) -> list[Event]:
    """One event a rank, group, operation, sequence number and elapsed time."""
    seen: dict[tuple[Any, ...], Event] = {}
    for item in events:
        made: Collective = item.fields["collective"]
        key = (item.span.source, item.rank.key if item.rank else None, made.op, made.sequence, made.elapsed_ms)
        seen.setdefault(key, item)
    return fold(seen.values())


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.strip().lstrip("-").isdigit() else None


def _stacks(intake: Intake) -> list[Event]:
    """`#0 all_reduce from file.py:12`, innermost first: where each rank called the failed collective."""
    headers = [i for i in hits(intake, _STACK) if "not found" not in intake.lines[i].text]
    stacks = numbered_stacks(intake, headers, captured_frame, 60)
    events = []
    for header in headers:
        frames = stacks[header]
        if not frames:
            continue
        line, last = intake.lines[header], intake.lines[frames[-1][0]]
        complete = int(frames[0][1].log_line or 0) - line.number <= 2
        trace = StackTrace(
            tuple(f for _, f in reversed(frames)), span_of(intake.lines[frames[0][0]], last), None, "python", complete
        )
        events.append(
            make(
                EventKind.STACK,
                line,
                last,
                parser="watchdog",
                message="Stack trace of the failed collective",
                rank=_spoken({}, line),
                stacks=(trace,),
                fields={"of": "failed_collective"},
            )
        )
    return events
