"""Did the job go on? In: the lines behind a failure; out: what they show. Sample:

Traceback … torch.OutOfMemoryError      (logged as a WARNING)
pass                                     -> the job went on and ended in order
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import floor

from forensics.callpath import owner_of
from forensics.ingest.compiled import pattern_of
from forensics.ingest.intake import Intake
from forensics.ingest.pattern import Pattern
from forensics.model.record import record
from forensics.model.source import LogLine, Span
from forensics.model.verdict import Owner
from forensics.verdict.progress import said_in
from forensics.verdict.quotes import Quotes
from forensics.verdict.requests import QUOTED
from forensics.verdict.sighting import SHOWN, TAUGHT, Sighting, is_work_text

_MOST_LINES = 20_000
#: lines above a failure in which its time and step are sought
_ABOVE = 400
#: seconds by which stamps of one clock in two forms differ at most
_ONE_CLOCK = 1_500.0
#: lines in which a job ends that ends in order
_LAST_LINES = 60
_DEALT_WITH = Pattern(
    r"\b(?:[Ff]all(?:ing|s)? ?back|[Ff]allback|[Ss]kipping|[Ii]gnor(?:ed|ing)|[Rr]etry(?:ing)?)\b"
    r"|\b(?:will be disabled|not critical|non-fatal)\b"
)
_INSTEAD = pattern_of(r"\b[Ff]all(?:ing|s)? ?back (?:on|to)\b|\busing \S{1,60} instead\b")
#: how often two words begin a line until that is what a program prints for each item
_BEATS = 3
_NO_DIGITS = str.maketrans("", "", "0123456789")
_LETTERS = pattern_of(r"[^\W\d_]{3}")
#: how often an engine says that it waits until that is a hang
_OFTEN = 3
_LOW = frozenset(("WARNING", "WARN"))
#: seconds without a line of work after which whoever stops a job may do so because it hangs
_SILENCE = 120.0
_SEVERE = frozenset(("ERROR", "CRITICAL", "FATAL"))
#: an access line of a request that was refused for what it asked
_ASKED_WRONGLY = Pattern(r'"(?P<path>(?:GET|POST|PUT|PATCH|DELETE) \S{1,400}) HTTP/\d(?:\.\d)?" 4\d\d\b')
_SERVED = pattern_of(r'HTTP/\d(?:\.\d)?" 200\b')
#: where a program, a thread or a child process begins
_BEGINS = frozenset(("<module>", "_run_module_as_main", "_run_code", "_bootstrap", "_bootstrap_inner", "run", "_wrap", "_main", "main"))
_MAINS = frozenset(("main", "_main"))
_CALM = frozenset(("INFO", "DEBUG", "NOTICE", "TRACE"))


#: what the clients of torch's store warn of when the process that kept it has left
_STORE_LEFT = pattern_of(
    r"^\W*(?:\[c10d\] )?(?:(?:recv|send)(?:Value|Vector|Bytes)\w{0,12} failed on"
    r"|[Ff]ailed to (?:check the .should dump. flag|recv, got 0 bytes))"
)
_REMOTE = pattern_of(r"\bremote=\[(?:::ffff:)?([^\]\s]{1,200})\]")
_HERE = frozenset(("localhost", "127.0.0.1", "::1"))


def store_left_first(members: Sequence[Sighting], quotes: Quotes) -> bool:
    """True where nothing was said but that torch's store was gone, as a warning, by a job at work whose store was kept on this
    machine: its processes leave one after another at the end, and the keeper left first. A keeper elsewhere may have died."""
    said = [m for m in members if m.weight >= 2]
    if not said or not all(m.level in _LOW and _STORE_LEFT.search(m.message[:300]) for m in said):
        return False
    remotes = {name for m in said for e in m.events for name in _REMOTE.findall(e.message[:400])}
    return bool(remotes) and remotes <= _HERE and worked_before(quotes, said[0].span)


@record
class Aftermath:
    """What stands behind a place in the log. working: lines of a job at work; calm: lines at INFO by the same writer; ended: an
    orderly end; done: a training was brought to its end; first_work: where the first working line stands."""

    working: int = 0
    calm: int = 0
    ended: bool = False
    done: bool = False
    first_work: Span | None = None

    @property
    def went_on(self) -> bool:
        """True where more than a stray line of another process followed."""
        return self.working >= 2 or (self.working >= 1 and (self.ended or self.done))


def is_work(line: LogLine) -> bool:
    """True for a line that shows a job at work."""
    return is_work_text(line.text)


def is_end(line: LogLine) -> bool:
    """True for a line that shows an orderly end."""
    return said_in("ended", "launcher_finished").search(line.text[:2_000]) is not None


def is_harmless(line: LogLine) -> bool:
    """True for an error record in which a compiler tells of a choice that it leaves out."""
    return said_in("harmless").search(line.text[:2_000]) is not None


def is_done(line: LogLine) -> bool:
    """True for a line that says that a training was brought to its end, by the trainer or by the launcher of all of its processes."""
    return said_in("trained", "launcher_finished").search(line.text[:2_000]) is not None


def is_launchers_end(line: LogLine) -> bool:
    """True for a launcher's own word that all of its processes did all of their work."""
    return said_in("launcher_finished").search(line.text[:2_000]) is not None


def aftermath(quotes: Quotes, span: Span, stream: str = "", until: Span | None = None, steady: bool = False) -> Aftermath:
    """What follows a span in its own source (in the other sources nothing says what is later), up to another one. steady: nothing says
    that the job was started again, so that steps which had been done before are another rank's, whose log was put behind this one.
    """
    working = calm = 0
    ended = done = False
    first: Span | None = None
    for line, sign in _signs(quotes, span, stream, until, steady):
        if sign == "before":
            continue
        if sign == "work":
            working += 1
            first = first or Span(line.source, line.number, line.number)
        calm += sign == "calm"
        ended = ended or is_end(line)
        done = done or is_done(line)
    return Aftermath(working, calm, ended, done, first)


def works_on(quotes: Quotes, span: Span, stream: str, until: Span | None) -> bool:
    """True where a steady job works on behind a span, or who wrote it speaks on calmly, before another span."""
    working = calm = 0
    for _, sign in _signs(quotes, span, stream, until, True):
        working += sign == "work"
        calm += sign == "calm"
        if working >= 2 or calm >= 3:
            return True
    return False


def _signs(quotes: Quotes, span: Span, stream: str, until: Span | None, steady: bool) -> Iterator[tuple[LogLine, str]]:
    """The lines behind a span, each with what it shows: "work", work that was done "before", the "calm" of the same writer, or ""."""
    held: _Moment | None = None
    for line in quotes.after(span)[:_MOST_LINES]:
        if until is not None and line.source == until.source and line.number >= until.first_line:
            return
        if is_work(line) and line.level not in ("ERROR", "CRITICAL", "FATAL"):
            held = held or _Moment(quotes, span, steady)
            yield line, "before" if held.is_before(line) else "work"
        else:
            yield line, "calm" if line.level in _CALM and stream and line.stream == stream else ""


class _Moment:
    """When a span stands: the last times above it, by the form that they have, and the last step."""

    def __init__(self, quotes: Quotes, span: Span, steps: bool) -> None:
        self._times: dict[str | None, float] = {}
        self._step: int | None = None
        above = quotes.lines(Span(span.source, 1, max(1, span.last_line)))
        for line in reversed(above[-_ABOVE:]):
            if line.time is not None:
                self._times.setdefault(line.dialect, line.time)
            if steps and self._step is None and is_work(line):
                self._step = step_of(line)

    def is_before(self, line: LogLine) -> bool:
        """True for a line that was written before: by its time, and where that is none or the same by its step."""
        moment = self._times.get(line.dialect)
        if moment is None and line.time is not None:  # another form, but the same clock: time zones differ by more
            moment = next((time for time in self._times.values() if abs(time - line.time) < _ONE_CLOCK), None)
        if moment is not None and line.time is not None and floor(line.time) != floor(moment):
            return line.time < moment
        step = step_of(line) if self._step is not None else None
        return step is not None and self._step is not None and step <= self._step


def step_of(line: LogLine) -> int | None:
    """The step that a line of a job at work tells, None where it tells none."""
    found = pattern_of(r"\b(?:[Ii]ter(?:ation)?|(?:global_|training_)?[Ss]tep)[ :=\[#]{1,12}(\d{1,9})\b").search(line.text[:400])
    return int(found[1]) if found is not None else None


def worked_before(quotes: Quotes, span: Span) -> bool:
    """True where lines of a job at work stand above a span."""
    before = quotes.lines(Span(span.source, 1, max(1, span.first_line - 1)))
    return any(is_work(line) for line in before[-_MOST_LINES:])


def moved_until(quotes: Quotes, span: Span) -> bool:
    """True where a job was at work until a span: less than _SILENCE passed since its last line of work, or no time says how much."""
    above = quotes.lines(Span(span.source, 1, max(1, span.first_line)))[-_ABOVE:]
    now: float | None = None
    for line in reversed(above):
        if is_work(line):
            return now is None or line.time is None or now - line.time < _SILENCE
        now = line.time if now is None else now
    return False


def orderly_end(intake: Intake) -> Span | None:
    """The last line that shows an orderly end, among the last lines of the input."""
    for line in reversed(intake.lines[-_LAST_LINES:]):
        if is_end(line):
            return Span(line.source, line.number, line.number)
    return None


def ends_behind(quotes: Quotes, span: Span) -> Span | None:
    """The first of the next lines that were kept which shows an orderly end."""
    return next((Span(line.source, line.number, line.number) for line in quotes.after(span)[:_LAST_LINES] if is_end(line)), None)


def gave_up(quotes: Quotes, span: Span) -> bool:
    """True where a service says behind a span that it leaves because of what failed: calm lines in which it clears up are no work."""
    return any(said_in("gave_up").search(line.text[:400]) for line in quotes.after(span)[:_MOST_LINES])


def finished_before(quotes: Quotes, span: Span) -> Span | None:
    """The line above a span that says that the job has done all of its work, where no work stands between them."""
    above = quotes.lines(Span(span.source, 1, max(1, span.first_line - 1)))
    for line in reversed(above[-_MOST_LINES:]):
        if said_in("finished", "launcher_finished").search(line.text[:2_000]):
            return Span(line.source, line.number, line.number)
        if is_work(line):
            return None
    return None


def stalled_before(quotes: Quotes, span: Span) -> Span | None:
    """The last of the lines right above a span in which an engine says, time and again, that it waits for its workers."""
    found: list[LogLine] = []
    for line in reversed(quotes.lines(Span(span.source, 1, max(1, span.first_line - 1)))[-_ABOVE:]):
        if said_in("stalled").search(line.text[:2_000]):
            found.append(line)
        elif line.text.strip() and not line.text.startswith("^C"):
            break
    return Span(found[0].source, found[0].number, found[0].number) if len(found) >= _OFTEN else None


def comes_and_goes(live: Sequence[Sighting], quotes: Quotes) -> bool:
    """True for exceptions that somebody inside of the program catches and prints, each of them again and again, while the job works
    on: that nothing stands behind the last one yet says no more than that it was the last. With them go copies whose frames other
    processes' lines took away, and what is only logged."""
    inside = {(m.root_type, m.span.source) for m in live if printed_inside(m)}
    again: dict[tuple[str | None, int], list[Span]] = {}
    for one in live:
        kind, bare = (one.root_type, one.span.source), one.kind in ("python", "message") and not one.frames
        if printed_inside(one) or (bare and (kind in inside or (one.typed and one.weight <= 2))):
            again.setdefault(kind, []).extend(span for span in (one.span, one.last) if span is not None)
        elif one.weight > 2 or one.typed:
            return False
    return bool(inside) and all(_around_work(sorted(places, key=lambda span: span.first_line), quotes) for places in again.values())


def _around_work(places: Sequence[Span], quotes: Quotes) -> bool:
    return len(places) > 1 and aftermath(quotes, places[0], until=places[-1], steady=True).working >= 2


def in_step(live: Sequence[Sighting], last: Sighting, quotes: Quotes) -> bool:
    """True for an exception that a program without named writers caught and printed, where what it prints time and again stood above the
    first of them and stands again below the last: it went on with its next item. An engine or a device that broke stays broken."""
    if any(m.kind != "python" or m.rank or m.stream or not printed_inside(m, _MAINS) or outlasts(m) for m in live):
        return False
    first = min((m.span for m in live), key=lambda span: span.first_line)
    if any(m.span.source != first.source for m in live):
        return False
    before = _beats(quotes.lines(Span(first.source, 1, max(1, first.first_line - 1)))[-_MOST_LINES:])
    after = _beats(quotes.after(last.last or last.span)[:_MOST_LINES])
    return sum(before[beat] >= _BEATS <= times for beat, times in after.items()) >= 2


def _beats(lines: Sequence[LogLine]) -> Counter[str]:
    """How often lines begin with the same two words, numbers aside; requests that a server answers, records of loggers and what a
    traceback consists of are not counted."""
    begins = (line.text.split(None, 2)[:2] for line in lines if not line.level and not line.stream and " HTTP/" not in line.text[:400])
    words = (" ".join(two).translate(_NO_DIGITS)[:60] for two in begins if len(two) == 2)
    return Counter(beat for beat in words if _LETTERS.search(beat) and not beat.startswith(("File ", "Traceback ")))


def only_complains(members: Sequence[Sighting]) -> bool:
    """True where a library only warned, and its words name nothing that failed: a link that is slow, a setting that costs speed."""
    return all(
        m.kind == "message" and m.weight == 2 and m.type is None and m.level in _LOW
        and said_in("failing").search(m.message[:2_000]) is None
        for m in members
    )


def logged_and_went_on(live: Sequence[Sighting], last: Sighting, later: Aftermath, quotes: Quotes) -> bool:
    """True for an exception that somebody inside of the program caught, where the log still holds one line by which the same writer
    goes on before it ends. Where no writer has a name, the exception must have been logged, and by the logger of that line."""
    if any(m.kind != "python" or not printed_inside(m) or outlasts(m) for m in live):
        return False
    behind = next((line for line in quotes.after(last.span)[:4] if line.text.strip()), None)
    work = next(iter(quotes.lines(later.first_work)), None) if later.first_work is not None else None
    line = behind if behind is not None and said_in("answered").search(behind.text[:400]) else work
    if line is None or said_in("checks").search(line.text[:400]):
        return False
    if last.stream or line.stream:
        return last.stream == line.stream
    logger = quotes.lines(last.span, 1)[0].dialect
    return last.level == "ERROR" and last.rank is line.rank is None and (line is behind or line.dialect == logger)


def is_one_requests(seen: Sighting) -> bool:
    """True for an exception that a front end logs while it answers one request with an error: a service that was at work goes on, also
    where the log ends there. That it is a front end, an engine's frame shows: a job's own client says such words, too."""
    if seen.kind != "python" or outlasts(seen) or said_in("for_a_request").search(seen.heading[:500]) is None:
        return False
    return any(owner_of(frame) is Owner.ENGINE for link in seen.chain for frame in link.frames)


def answered(seen: Sighting) -> bool:
    """True for an exception of which a web server's heading says that it broke off one request: the server goes on."""
    return seen.kind == "python" and said_in("for_a_request", "in_a_request").search(seen.heading[:500]) is not None


def outlasts(seen: Sighting) -> bool:
    """True for what stays broken after the exception that tells it."""
    return said_in("lasts").search(" ".join(seen.texts)[:4_000]) is not None


def exhausted(seen: Sighting) -> bool:
    """True for memory of a device that ran out: somebody must work on to show that it was got over."""
    return said_in("exhausted").search(seen.message[:600]) is not None


def printed_inside(seen: Sighting, but: frozenset[str] = frozenset()) -> bool:
    """True for a traceback that does not reach down to where a program, a thread or a remote task begins. but: functions in which
    something may have been caught although programs begin there."""
    remote = "ray::" in seen.heading or (seen.type or "").startswith(("ray.exceptions.", "RayTaskError"))
    outermost = seen.chain[-1].frames[:1] if seen.kind == "python" and seen.chain and not remote else ()
    return bool(outermost) and outermost[0].function not in _BEGINS - but


def refused(seen: Sighting, quotes: Quotes) -> bool:
    """True for the exception of a request that the web server answered with a status of the client's fault, where others of the same
    path were served: its access line stands right below the traceback, or right above the heading of it."""
    if seen.kind != "python":
        return False
    source, first, last = seen.span.source, seen.span.first_line, seen.span.last_line
    above = quotes.lines(Span(source, max(1, first - 2), max(1, first - 1)))
    below = [line for line in quotes.lines(Span(source, last + 1, last + 3)) if line.text.strip()]
    beside = [line for line in (*above, *below[:1]) if line.number < first or line.number > last]
    asked = next((m for line in beside if line.stream == seen.stream and (m := _ASKED_WRONGLY.search(line.text[:600])) is not None), None)
    if asked is None:
        return False
    served = f'"{asked["path"]} HTTP/'
    near = (*quotes.after(seen.span)[:_MOST_LINES], *quotes.lines(Span(source, 1, max(1, first - 1)))[-_MOST_LINES:])
    return any(served in line.text[:600] and _SERVED.search(line.text[:600]) for line in near)


def _told_as_error(seen: Sighting, quotes: Quotes) -> bool:
    """True where the line below a traceback tells the same words as an error."""
    below = quotes.lines(Span(seen.span.source, seen.span.last_line + 1, seen.span.last_line + 1), 1)
    words = seen.message.partition("\n")[0][:60]
    return bool(below) and len(words) > 12 and below[0].level in _SEVERE and words in below[0].text[:1_000]


def caught(seen: Sighting, quotes: Quotes) -> bool:
    """True where the words say that an error was expected and dealt with: logged as a warning, told as a fallback, or known as harmless."""
    if seen.rule == TAUGHT:
        return False
    own = quotes.lines(seen.span, 1)
    if seen.rule in (*QUOTED, "handled", SHOWN) or seen.rule.startswith("harmless."):
        return True
    if seen.level in _LOW or (own and own[0].level in _LOW):
        return True
    if refused(seen, quotes):
        return True
    if seen.kind == "python" and _told_as_error(seen, quotes):
        return False  # the line above it is about something else
    if seen.kind == "python" and own and own[0].dialect == "torch.rank" and "]: Traceback (" in own[0].raw:
        return False  # torch's excepthook prints this: nobody caught it (torch.distributed.distributed_c10d, 2.4)
    if seen.kind == "hardware":
        return False  # no program deals with what the driver reports; a calm line above it is another writer's
    if seen.kind == "message" and seen.weight <= 2:
        # the next line of the same writer says what is done instead
        after = quotes.lines(Span(seen.span.source, seen.span.last_line + 1, seen.span.last_line + 1), 1)
        if after and after[0].level in (_LOW | _CALM) and after[0].stream == seen.stream and _INSTEAD.search(after[0].text[:500]):
            return True
    heading = seen.heading[:500]
    before = quotes.lines(Span(seen.span.source, seen.span.first_line - 1, seen.span.first_line - 1))
    if not heading and before:
        if before[0].level in ("WARNING", "WARN"):
            return True
        heading = before[0].text[:500]
    return bool(pattern_of(r"\W*(?:WARNING|WARN|INFO|DEBUG)\b").match(heading) or _DEALT_WITH.search(heading))
