"""What an engine's watchdogs tell: which of them kept quiet, and where a process stood. In: a hang's verdict and its cast; sightings
and dumps; out: a sentence more; frames. Samples:

"Watchdog timeout (self.watchdog_timeout=300)" of TP0, TP1 and TP3, while TP2 had been seen at work before
-> "3 of 4 ranks report it; TP2 does not: …"

"Watchdog timeout (…)" of TP0, and py-spy's dump of its process below -> the main thread's frames; where that one only waits for
another thread of the process, those of the thread that runs the model

"Watchdog timeout (…)", then "Fatal Python error: Aborted"  -> the abort is the watchdog's own act

That names where to look, not whose fault it is: the rank stays unnamed in the verdict.
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.callpath import runs_a_model
from forensics.ingest.compiled import pattern_of
from forensics.model.event import Event, EventKind
from forensics.model.record import replace
from forensics.model.source import Rank, RankActivity
from forensics.model.stack import Frame
from forensics.model.verdict import CausalRole, Verdict
from forensics.verdict.hang import Hang
from forensics.verdict.roles import Cast, is_watchdog, is_watchdogs_word
from forensics.verdict.sighting import Sighting, same_process

#: lines below a watchdog's word in which its dump may end another process's
_BELOW = 600
#: seconds in which a watchdog ends its process, with the dumps that it makes before
_SOON = 120.0
_SAYS_NO_MORE = pattern_of(r"\W{0,8}(?:Fatal Python error: )?Aborted\W{0,8}(?:\(core dumped\))?\s{0,4}$")
#: how a program's own thread is known where the dump does not name it
_PROGRAM = "<module>"
#: outermost frames among which that one stands, below those of the interpreter
_OUTER = 40
#: modules in which one thread of a process waits for another
_BETWEEN_THREADS = ("threading.py", "queue.py", "_base.py")
_AXIS = pattern_of(r"(?<![A-Za-z0-9])[A-Z]{1,4}P\d{1,5}(?![A-Za-z0-9])")


def with_quiet_rank(verdict: Verdict, cast: Cast, hang: Hang | None, activity: Sequence[RankActivity]) -> Verdict:
    """The verdict with the ranks whose watchdog said nothing, where most of the job's said that it ran out."""
    if hang is not None or cast.primary is None or not is_watchdog(cast.primary):
        return verdict
    told = {r.number for g in cast.groups if is_watchdog(g) for r in g.ranks if r.number is not None}
    quiet: dict[int, Rank] = {}
    for one in activity:
        if one.rank.number is not None and one.rank.number not in told:
            quiet.setdefault(one.rank.number, one.rank)
    if not quiet or len(told) < 2 or len(quiet) * 2 > len(told):
        return verdict
    names = ", ".join(quiet[number].label for number in sorted(quiet)[:8])
    does = "does" if len(quiet) == 1 else "do"
    note = (
        f"{len(told)} of {len(told) + len(quiet)} ranks report it; {names} {does} not: look there first, "
        "the others may only have waited."
    )
    return replace(verdict, explanation=f"{verdict.explanation} {note}".strip())


def mark_aborts(seen: Sequence[Sighting]) -> None:
    """An engine's watchdog ends its own process: the abort right below its word is what it did about the hang, and no failure."""
    told = [s for s in seen if s.role is None and is_watchdogs_word(s.message)]
    for sighting in seen if told else ():
        if sighting.kind != "fatal_signal" or sighting.type != "SIGABRT" or (sighting.role is not None and not sighting.conditional):
            continue
        if any(_ends(word, sighting) for word in told):
            sighting.role, sighting.conditional, sighting.rule = CausalRole.TEARDOWN, True, "watchdogs-abort"
            sighting.role_why = "the watchdog ended the process that made no progress"


def _ends(word: Sighting, abort: Sighting) -> bool:
    """True where an abort stands below a watchdog's word that may be of the same process; one that has a message of its own says why."""
    below = abort.span.source == word.span.source and 0 < abort.span.first_line - word.span.last_line <= _BELOW
    late = word.time is not None and abort.time is not None and not 0 <= abort.time - word.time <= _SOON
    return below and not late and same_process(word, abort) and _SAYS_NO_MORE.match(abort.message) is not None


def add_dumps(seen: Sequence[Sighting], events: Sequence[Event], activity: Sequence[RankActivity] = ()) -> None:
    """Gives a watchdog's word the frames that tell where its process stood, from the dump that stands below it. activity: a dump that
    names no process is that of the only one there is."""
    alone = len({one.rank.key for one in activity}) <= 1
    told = [s for s in seen if s.kind == "message" and not s.frames and is_watchdogs_word(s.message)]
    dumps = [(e, frames) for e in events if e.kind is EventKind.STACK and "tool" in e.fields and (frames := telling(e))] if told else []
    for sighting in told if dumps else ():
        below = [(e, frames) for e, frames in dumps if _stands_below(e, sighting)]
        named = [one for one in below if _is_of(one[0], sighting.rank)]
        if not named and len(told) == 1 and alone:
            named = [one for one in below[:1] if one[0].rank is None and not _axes(one[0])]
        if named:
            chosen = named[0]
            sighting.frames = chosen[1]
            sighting.events = [*sighting.events, chosen[0]]
            sighting.spans = [*sighting.spans, chosen[0].span]


def telling(event: Event) -> tuple[Frame, ...]:
    """Of a dump the frames of the program's own thread, outermost first; where it waits for another one, of that which runs the model."""
    own = next((s for s in event.stacks if s.thread == "MainThread"), None)
    own = own or next((s for s in event.stacks if any(frame.function == _PROGRAM for frame in s.frames[:_OUTER])), None)
    if own is None:
        return ()
    if own.frames and _waits_for_a_thread(own.frames[-1]):
        others = (s.frames for s in event.stacks if s is not own and s.frames and not _waits_for_a_thread(s.frames[-1]))
        return next((frames for frames in others if runs_a_model(frames)), own.frames)
    return own.frames


def _waits_for_a_thread(frame: Frame) -> bool:
    return frame.path.rsplit("/", 1)[-1] in _BETWEEN_THREADS


def _stands_below(event: Event, sighting: Sighting) -> bool:
    return event.span.source == sighting.span.source and 0 < event.span.first_line - sighting.span.last_line <= _BELOW


def _is_of(event: Event, rank: Rank | None) -> bool:
    """True for the dump of a rank's process: its lines say so, or the process's name."""
    if rank is None:
        return False
    return event.rank.key == rank.key if event.rank is not None else _axes(event) == set(_AXIS.findall(rank.label)) != set()


def _axes(event: Event) -> set[str]:
    """The parallel axes in the name of a dump's process ("sglang::scheduler_DP1_TP3")."""
    return set(_AXIS.findall(str(event.fields.get("reason", ""))))
