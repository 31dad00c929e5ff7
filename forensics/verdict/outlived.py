"""What a job had got over before it died of something else. In: the groups of a run, in causal order; out: those of its start. Sample:

    ERROR … the cached table is not readable · step 1, step 2, step 3 · "Worker proc W-1 died unexpectedly"   -> the ERROR line

Who complains before the work begins, and works afterwards, did not end by that complaint; only where what is told of the end names it,
the two belong together.
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.ingest.pattern import Pattern
from forensics.model.source import Span
from forensics.model.verdict import CausalRole
from forensics.verdict.fold import Group
from forensics.verdict.incidents import came_up
from forensics.verdict.outcome import caught, is_work, printed_inside, worked_before
from forensics.verdict.quotes import Quotes
from forensics.verdict.sighting import Sighting

#: lines that are asked whether an engine worked again
_MOST_LINES = 5_000
#: characters of a complaint by which the report of an end names it
_WORDS = 40
#: how a process ends that had no say in it
DEADLY = Pattern(r"SIG(?:KILL|SEGV|BUS|ABRT|FPE|ILL)|exit (?:-9|137|-11|139|-6|134|-7|135)$")
#: a module of a library, which is no program
_LIBRARY = Pattern(r"(?:site|dist)-packages/(?!.{0,300}__main__\.py$)")


def of_the_start(ordered: Sequence[Group], hard: Pattern[str], quotes: Quotes) -> list[Group]:
    """The complaints of a job's start that it outlived. hard: errors that break a device for good, which nobody outlives."""
    end = _end_of(ordered)
    if end is None:
        return []
    before = _of_earlier_attempts(ordered, hard, quotes)
    dead = _is_death(end) or end.outside
    said = [g for g in ordered if (g.first.kind == "message" or (dead and _may_go_on(g, quotes))) and _is_early(g, end, hard, quotes)]
    return [g for g in ordered if g in before or g in said]


def _of_earlier_attempts(ordered: Sequence[Group], hard: Pattern[str], quotes: Quotes) -> list[Group]:
    """A broken device behind which the launcher started the workers again, and they worked until something else failed: the agent may have
    found the device well again, or another one."""
    firsts = [g.first for g in ordered]
    again = [s.span for s in firsts if s.kind == "exit" and s.events[0].fields.get("what") == "restart"]
    broken = [g for g in ordered if g.first.role is None and any(hard.search(text) for text in g.first.texts)]
    others = [s for s in firsts if s.role is None and (s.weight >= 3 or s.typed) and not any(s is g.first for g in broken)]
    if not again or not broken or not others:
        return []
    end, start = max(others, key=lambda s: s.place), again[-1]
    behind = all(max(m.span.last_line for m in g.members) < start.first_line for g in broken)
    here = all(s.span.source == start.source for s in (end, *(m for g in broken for m in g.members)))
    return broken if here and behind and end.span.first_line > start.last_line and worked_between(start, end, quotes) else []


def _end_of(ordered: Sequence[Group]) -> Sighting | None:
    """The first sign of a process's end: its exit, or the word of those who saw it dead."""
    firsts = (g.first for g in ordered if g.first.role in (None, CausalRole.CASCADE) and not g.first.torn)
    return next((s for s in firsts if (s.kind == "exit" and s.weight) or (s.outside and s.role is not None and not s.handled)), None)


def _is_death(end: Sighting) -> bool:
    """True for the end of a process that could not say why; one that leaves with a code of its own may have said it long before."""
    return DEADLY.search(end.type or "") is not None or "died unexpectedly" in end.message[:1_000]


def _may_go_on(group: Group, quotes: Quotes) -> bool:
    """True for an exception that did not reach the end of its program, as far as its frames show: it was caught and printed."""
    first = group.first
    if first.kind != "python" or not first.chain or first.torn:
        return False
    top = first.chain[-1].frames[0] if first.chain[-1].frames else None
    imported = top is not None and top.function == "<module>" and _LIBRARY.search(top.file or "") is not None
    return imported or all(printed_inside(m) or caught(m, quotes) for m in group.members)


def _is_early(group: Group, end: Sighting, hard: Pattern[str], quotes: Quotes) -> bool:
    """True for what was said before the job was at work and no more once it was: the job that ended later had got over it."""
    first, last = group.first, max((m.last or m.span for m in group.members), key=lambda span: (span.source, span.last_line))
    if any(hard.search(text) for text in first.texts) or last.source != end.span.source or last.first_line >= end.span.first_line:
        return False
    if _names(end, first) or worked_before(quotes, last):
        return False
    return worked_between(last, end, quotes) or (_is_death(end) and _before_the_job(last, end, quotes))


def _names(end: Sighting, first: Sighting) -> bool:
    """True where the report of an end speaks of the complaint."""
    told = "\n".join((*end.texts, *(event.message for event in end.events[:8])))
    words = first.message.partition("\n")[0][:_WORDS].strip()
    name = (first.type or "").rpartition(".")[2]
    return (len(words) > 8 and words in told) or (bool(name) and name in told)


def _before_the_job(last: Span, end: Sighting, quotes: Quotes) -> bool:
    """True where the process of the job began only behind the complaint."""
    above = quotes.lines(Span(last.source, 1, last.first_line))
    between = quotes.lines(Span(last.source, last.last_line + 1, max(last.last_line + 1, end.span.first_line - 1)), _MOST_LINES)
    return came_up(above[-_MOST_LINES:]) is None and came_up(between) is not None


def stopped_at_work(certain: Sequence[Group], ordered: Sequence[Group], quotes: Quotes) -> Group | None:
    """The Ctrl-C that ended a program which had got over all that was raised, or had begun after it: work stands between the two. None
    where somebody stopped what no longer moved: then what was raised before is why."""
    if any(g.first.kind != "python" for g in certain):
        return None
    last = max((m.last or m.span for g in certain for m in g.members), key=lambda span: (span.source, span.last_line))
    for group in ordered:
        first = group.first
        if (first.type or "").rpartition(".")[2] != "KeyboardInterrupt" or not first.conditional or not first.chain:
            continue
        top = first.chain[-1].frames[:1]
        same = all(m.span.source == first.span.source for g in certain for m in g.members)
        if same and top and top[0].function == "<module>" and first.span.first_line > last.last_line:
            return group if worked_between(last, first, quotes) else None
    return None


def worked_between(span: Span, end: Sighting, quotes: Quotes) -> bool:
    """True where an engine worked again before it ended; a front end answers health checks also while its engine hangs."""
    later = [line for line in quotes.after(span)[:_MOST_LINES] if line.source != end.span.source or line.number < end.span.first_line]
    return sum(is_work(line) and '" 200' not in line.text[:2_000] for line in later) >= 2
