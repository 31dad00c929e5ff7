"""The whole analysis on one page: read -> parse -> know -> match -> judge. In: inputs as the user names them (paths,
folders, globs, "-"); out: an `Incident`. Sample:

    analyze(["crash.log"]).verdict.category -> Category.ARCH_MISMATCH

Every stage is isolated: one that fails, or takes longer than its budget, leaves a `Note` and an empty result, and the next ones
say what can still be said: a failure where one is found, else "unknown", never "healthy". Only `ForensicsError` (unreadable
input, wrong usage) leaves this function. FORENSICS_DEBUG=1 lets other errors through.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from forensics.errors import ForensicsError, UsageError
from forensics.ingest.intake import Intake
from forensics.model.knowledge import Facts
from forensics.model.source import Note

if TYPE_CHECKING:
    from forensics.ingest.anchors import Anchor
    from forensics.model.event import Event
    from forensics.model.verdict import Contradiction, Finding, Incident

T = TypeVar("T")

#: processor time a stage behind the reading may take; what it had not done by then is missing from the report, which says so
STAGE_SECONDS = 120.0
#: times of logs without a year lie below (1970 to 1972)
_YEARS = 3 * 366 * 86_400
#: a crash of which nothing is kept
_REHEARSED = """\
[2026-11-29 20:15:01] server_args=ServerArgs(model_path='m', tp_size=2, moe_runner_backend='auto', attention_backend='triton')
[2026-11-29 20:15:03 TP0] Init torch distributed begin.
[2026-11-29 20:15:09 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=22.10 GB
[2026-11-29 20:15:20 TP1] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/managers/scheduler.py", line 3011, in run_scheduler_process
    scheduler.event_loop_overlap()
  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/models/deepseek_v2.py", line 612, in forward
    return self.experts(hidden_states, topk_output)
RuntimeError: CUDA error: an illegal memory access was encountered
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.

[rank0]:[E1129 20:25:20.000001 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=71, \
OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600001 milliseconds before timing out.
[2026-11-29 20:25:21] Child process 4711 exited with code -9
[2026-11-29 20:25:22] Received sigquit from a child process. It usually means the child failed.
node1:71:98 [0] misc/socket.cc:71 NCCL WARN Call to connect returned Connection refused, retrying
Traceback (most recent call last):
Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/models/deepseek_v2.py", line 612, in forward
  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/layers/moe.py", line 71, in apply
    return self.experts(hidden_states, topk_output)
    return self.runner(hidden_states)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 79.11 GiB
ValueError: no rows are left
"""


class OutOfTime(Exception):
    """A stage, or one parser of it, took all of the stage's time."""


def analyze(
    inputs: Sequence[Any],
    *,
    gpu: Any = None,
    rank: str | int | None = None,
    since: float | None = None,
    until: float | None = None,
    signatures: Sequence[Any] = (),
    incident: int | None = None,
    read_options: Any = None,
    on_progress: Callable[..., None] | None = None,
    on_rehearsal: Callable[[Incident], object] | None = None,
) -> Incident:
    """Reads logs and says what failed first, and why.

    gpu: a name, "sm_120" or "local" where the log does not say; rank: only this rank's lines (label or global number);
    since, until: only lines of that time (seconds on the log's clock, or of the day; lines without a time stay); signatures: folders with
    the user's own signatures; incident: which of several incidents to report (1-based, in the log's order), None chooses;
    read_options, on_progress: handed to `forensics.ingest.read`; on_rehearsal: called with what a short sample log gives where this
    process waits for others that still read: what it does with an incident loads what the real one will need. Raises ForensicsError. In
    the main thread each stage has STAGE_SECONDS of processor time.
    """
    notes: list[Note] = []
    known: list[Any] = _stage("match", notes, [], lambda: _signatures(signatures))
    wanted = _anchors(known, notes)
    intake = _stage("ingest", notes, Intake(), lambda: _read(inputs, wanted, known, read_options, on_progress, on_rehearsal), limited=False)
    intake = _narrow(intake, rank, since, until)
    return _judged(intake, notes, known, gpu, incident)


def anchors_for(signatures: Sequence[Any]) -> list[Anchor]:
    """What has to be read for these signatures and for everything else, where the caller reads by itself (`ingest.follow`)."""
    return _anchors(signatures, [])


def analyze_intake(
    intake: Intake,
    *,
    signatures: Sequence[Any],
    gpu: Any = None,
    rank: str | int | None = None,
    since: float | None = None,
    until: float | None = None,
    incident: int | None = None,
) -> Incident:
    """`analyze` for lines that were read already, by the anchors of `anchors_for`. signatures: loaded ones, not folders."""
    notes: list[Note] = []
    _anchors(signatures, notes)  # a stage that could not say what it wants had its lines let go
    return _judged(_narrow(intake, rank, since, until), notes, signatures, gpu, incident)


def _judged(intake: Intake, notes: list[Note], known: Sequence[Any], gpu: Any, incident: int | None) -> Incident:
    """The stages behind the reading."""
    events: list[Event] = _stage("parse", notes, [], lambda: _parse(intake))
    facts: Facts = _stage("knowledge", notes, Facts(), lambda: _collect(intake, events, gpu))
    findings: list[Finding] = _stage("match", notes, [], lambda: _match(intake, events, facts, known))
    against: list[Contradiction] = _stage("match", notes, [], lambda: _contradictions(intake, events, facts))
    _stage("match", notes, None, lambda: _name_unusable(notes))
    intake.notes.extend(notes)

    def judged() -> Incident:
        from forensics.verdict import judge

        return judge(intake, events, facts, findings, against, incident=incident)

    late: list[Note] = []
    found = _stage("verdict", late, None, judged) or _without_verdict(intake, facts, findings, late)
    return found if all(not source.turn for source in intake.sources) else _in_file_order(found, intake)


def _in_file_order(found: Incident, intake: Intake) -> Incident:
    """The incident with the lines' numbers in files whose newest lines come first."""
    from forensics.ingest.newest import in_file_order

    turned: Incident = in_file_order(found, intake.sources)
    return turned


def _name_unusable(notes: list[Note]) -> None:
    """Shipped signatures that could not be loaded, as one note: what they know is missing."""
    from forensics.match import unusable

    if wrong := unusable():
        text = f"{len(wrong)} shipped signature(s) could not be loaded and what they know is missing: {wrong[0]}"
        notes.append(Note("match", text[:500], hides=True))


def _without_verdict(intake: Intake, facts: Facts, findings: Sequence[Finding], late: Sequence[Note]) -> Incident:
    """What is left where no verdict could be had: "unknown", with the reason and what the stages before it found."""
    from forensics.model.verdict import Category, Confidence, Coverage, Incident, Status, Verdict

    read, notes = intake.sources, (*intake.notes, *late)
    why = f"No verdict could be had: {late[0].text if late else 'the last stage gave none'}."
    return Incident(
        status=Status.UNKNOWN,
        verdict=Verdict(Category.UNKNOWN, "No verdict could be had", why, Confidence.UNKNOWN),
        primary=None, failures=(), contradictions=(), collective=None, hardware=(), facts=facts, ranks=(), others=(),
        findings=tuple(findings),
        coverage=Coverage(sum(s.bytes for s in read), sum(s.lines for s in read), 0, read, intake.skipped, notes),
        sources=read,
    )  # fmt: skip


def _signatures(folders: Sequence[Any]) -> list[Any]:
    from forensics.match import load_signatures

    return list(load_signatures([os.fspath(folder) for folder in folders]))


def _anchors(known: Sequence[Any], notes: list[Note]) -> list[Anchor]:
    """The literals of every stage that will want lines; a stage that cannot name its own goes without."""

    def of_parse() -> list[Anchor]:
        from forensics.parse import anchors

        return list(anchors())

    def of_knowledge() -> list[Anchor]:
        from forensics.knowledge import anchors

        return list(anchors())

    def of_match() -> list[Anchor]:
        from forensics.match import anchors

        return list(anchors(known))

    wanted: list[Anchor] = []
    for stage, ask in (("parse", of_parse), ("knowledge", of_knowledge), ("match", of_match)):
        wanted += _stage(stage, notes, [], ask)
    return wanted


def _read(
    inputs: Sequence[Any],
    anchors: list[Anchor],
    known: Sequence[Any],
    options: Any,
    on_progress: Callable[..., None] | None,
    on_rehearsal: Callable[[Incident], object] | None,
) -> Intake:
    from forensics.ingest import from_text, read
    from forensics.ingest.options import DEFAULT
    from forensics.model.record import replace

    def meanwhile() -> None:
        """Half of what a small log costs is the loading of modules and tables: it is done while other processes still read. What goes
        wrong in it goes wrong again, and is told, where it counts."""
        with suppress(Exception):
            found = analyze_intake(from_text(_REHEARSED, anchors=anchors), signatures=known)
            if on_rehearsal is not None:
                on_rehearsal(found)

    options = replace(options or DEFAULT, meanwhile=meanwhile)
    return read(inputs, anchors, replace(options, on_progress=on_progress) if on_progress is not None else options)


def _parse(intake: Intake) -> list[Event]:
    from forensics.parse import parse

    return list(parse(intake))


def _collect(intake: Intake, events: Sequence[Event], gpu: Any) -> Facts:
    from forensics.knowledge import collect

    return collect(intake, events, gpu=gpu)


def _match(intake: Intake, events: Sequence[Event], facts: Facts, known: Sequence[Any]) -> list[Finding]:
    from forensics.match import match

    return list(match(intake, events, facts, known))


def _contradictions(intake: Intake, events: Sequence[Event], facts: Facts) -> list[Contradiction]:
    from forensics.match import contradictions

    return list(contradictions(intake, events, facts))


def _stage(name: str, notes: list[Note], empty: T, work: Callable[[], T], *, limited: bool = True) -> T:
    """Runs one stage; what goes wrong inside becomes a note, so that the report can say what is missing from it."""
    stop = _start_clock() if limited else None
    try:
        return work()
    except ForensicsError:
        raise
    except OutOfTime:
        notes.append(Note(name, f"this stage took more than {STAGE_SECONDS:g} s and was stopped; what it finds is missing", hides=True))
        return empty
    except Exception as error:
        if os.environ.get("FORENSICS_DEBUG"):
            raise
        notes.append(Note(name, f"this stage stopped at an error of its own: {type(error).__name__}: {error}"[:500], hides=True))
        return empty
    finally:
        if stop is not None:
            stop()


def _start_clock() -> Callable[[], None] | None:
    """Raises `OutOfTime` in here after STAGE_SECONDS of processor time, and again after as many more; returns what stops it.
    None where signals are not ours: outside the main thread, on other systems, where someone uses this one already."""
    try:
        import _signal as signals  # the plain module: `signal` costs an import of enum

        if signals.getsignal(signals.SIGVTALRM) != signals.SIG_DFL:
            return None
        signals.signal(signals.SIGVTALRM, _late)
    except (ImportError, AttributeError, ValueError):
        return None
    signals.setitimer(signals.ITIMER_VIRTUAL, STAGE_SECONDS, STAGE_SECONDS)

    def stop() -> None:
        signals.setitimer(signals.ITIMER_VIRTUAL, 0)
        signals.signal(signals.SIGVTALRM, signals.SIG_DFL)

    return stop


def _late(*_: object) -> None:
    raise OutOfTime(f"more than {STAGE_SECONDS:g} s of processor time")


def _narrow(intake: Intake, rank: str | int | None, since: float | None, until: float | None) -> Intake:
    """Keeps the lines of one rank (and those of nobody in particular) and of one stretch of time; UsageError where none is left."""
    if rank is None and since is None and until is None:
        return intake
    wanted = None if rank is None else str(rank).lower()
    kept: list[int] = []
    time: float | None = None
    owner: Any = None
    source = -1
    ranks = {row.rank.label: wanted in rank_names(row.rank) for row in intake.activity}
    timed = in_time = False
    dated, yearless = (since, until), (_yearless(since), _yearless(until))
    for index, line in enumerate(intake.lines):
        # A line without a stamp belongs to the stamped line above it (a traceback's frames).
        stamped = line.time is not None or line.rank is not None or line.source != source
        time = line.time if line.time is not None or line.source != source else time
        owner = line.rank if stamped else owner
        source = line.source
        if owner is not None and owner.label not in ranks:
            ranks[owner.label] = wanted in rank_names(owner)
        timed = timed or time is not None
        no_year = time is not None and time < _YEARS and intake.sources[source].clock.kind == "wall_no_year"
        bounds = yearless if no_year else dated
        if _before(time, bounds[0]) or _before(bounds[1], time):
            continue
        in_time = in_time or time is not None
        if wanted is not None and owner is not None and wanted not in rank_names(owner):
            continue
        kept.append(index)
    # What no line fits is no log without a failure.
    if wanted is not None and not any(ranks.values()):
        told = f"its ranks are {', '.join([*ranks][:16])}{', …' if len(ranks) > 16 else ''}" if ranks else "no line names a rank"
        raise UsageError(f"no line is of rank {rank}", why=told, help="write a rank as the log does, or its global number")
    if timed and not in_time:
        raise UsageError(
            "no line is of that time",
            why="all of the log is before --since or after --until",
            help="leave one of them out: the report shows the log's times",
        )
    place = {old: new for new, old in enumerate(kept)}
    marks = {literal: [place[i] for i in where if i in place] for literal, where in intake.marks.items()}
    return Intake(
        sources=intake.sources,
        lines=[intake.lines[i] for i in kept],
        marks={literal: where for literal, where in marks.items() if where},
        activity=tuple(row for row in intake.activity if wanted is None or wanted in rank_names(row.rank)),
        skipped=intake.skipped,
        notes=intake.notes,
        blobs=intake.blobs,
        repeats=intake.repeats,
        scanned=intake.scanned,
        left_out=" and ".join(name for name, given in (("--rank", rank), ("--since", since), ("--until", until)) if given is not None),
    )


def _before(one: float | None, other: float | None) -> bool:
    """Whether one time is before another; a bound below a day is a time of day, whatever the date."""
    if one is None or other is None:
        return False
    if min(one, other) < 86_400 <= max(one, other):
        one, other = one % 86_400, other % 86_400
    return one < other


def _yearless(bound: float | None) -> float | None:
    """A date and time on the clock of a log that prints no year; a time of day stays."""
    if bound is None or bound < 86_400:
        return bound
    from time import gmtime, strftime

    from forensics.ingest.clock import moment

    told = moment(strftime("%m-%d %H:%M:%S", gmtime(bound)))
    return told[0] + bound % 1 if told is not None else bound


def rank_names(rank: Any) -> set[str]:
    """How a user may call a rank: its label, with or without spaces, and its global number; in lower case."""
    label = rank.label.lower()
    return {label, label.replace(" ", ""), *([str(rank.number)] if rank.number is not None else [])}
