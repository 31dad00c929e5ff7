"""What a user taught: lines that a signature of one's own calls a cause, whatever they look like. In: a run's sightings and
findings; out: more sightings, or stronger ones. Sample:

--signatures DIR with a root signature on "lease lost"; the line "… TP0] gateway lease lost, draining" is no event
-> Sighting(kind="message", message="gateway lease lost, draining", rank=TP0, weight=3)
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.ingest.pattern import Pattern
from forensics.model.event import Event, EventKind
from forensics.model.source import Evidence, Span
from forensics.model.verdict import Confidence, Finding, SignatureRole
from forensics.parse.python.messages import named_in
from forensics.verdict.outcome import aftermath, caught, worked_before
from forensics.verdict.quotes import Quotes
from forensics.verdict.requests import QUOTED, quoted
from forensics.verdict.sighting import TAUGHT, Sighting, sight

#: so many lines of one signature become failures
_MOST = 256
#: a shipped signature that proves its claim with a message that only one cause prints speaks for a line that no parser took
_TELLING = 60
#: so many calm lines of the same writer show that it went on
_GOES_ON = 3
_CALM = frozenset(("DEBUG", "INFO", "NOTICE", "TRACE", "WARN", "WARNING"))
#: the same told inside the line: by NCCL and its kin (INFO), by Python's warnings, or by words that the program did without
_CALM_TEXT = Pattern(
    r"\b[NR]CCL (?:INFO|TRACE)\b|\b[A-Z]\w{0,60}Warning: |\b(?:WARN(?:ING)?|INFO|DEBUG)\b ?[:\]|]"
    r"|\b(?:[Dd]isabl(?:ing|ed)|[Ff]all(?:ing|s)? ?back|[Ss]kipping|[Ii]gnor(?:ed|ing))\b"
)
#: what torch's compiler says below a kernel that it tried and could not run
_LEFT_OUT = Pattern(r"\bIgnoring this choice\b")


def teach(seen: Sequence[Sighting], findings: Sequence[Finding], quotes: Quotes) -> list[Sighting]:
    """All sightings in log order; each place that a user's own root signature names is a failure for certain. Where nothing else
    failed, a line that a shipped one proves is a printed error."""
    roots = [f for f in findings if f.role is SignatureRole.ROOT and f.category is not None]
    added = _own([f for f in roots if f.own], seen, quotes)
    if not added and not any(s.role is None for s in seen):
        telling = [f for f in roots if f.confidence is Confidence.ESTABLISHED and f.specificity >= _TELLING]
        added = [s for f in telling for s in _shipped(f, seen, quotes)]
    return sorted([*seen, *added], key=lambda s: s.place) if added else list(seen)


def _own(taught: Sequence[Finding], seen: Sequence[Sighting], quotes: Quotes) -> list[Sighting]:
    added: dict[tuple[int, int], Sighting] = {}
    for finding in taught:
        for span in finding.spans[:_MOST]:
            known = [s for s in seen if s.rule not in QUOTED and any(span.overlaps(own) for own in s.spans)]
            for sighting in known:
                _strengthen(sighting)
            line = None if known else _of_line(span, quotes)
            if line is not None:
                added.setdefault(line.place, line)
                _strengthen(line)
    return list(added.values())


def _shipped(finding: Finding, seen: Sequence[Sighting], quotes: Quotes) -> list[Sighting]:
    lines = (_of_line(s, quotes) for s in finding.spans[:_MOST] if not any(s.overlaps(own) for one in seen for own in one.spans))
    told = [line for line in lines if line is not None and line.level not in _CALM]
    return [line for line in told if not _CALM_TEXT.search(line.events[0].message[:1_000]) and not _left_out(line.span, quotes)]


def _left_out(span: Span, quotes: Quotes) -> bool:
    """True where the next line says that what failed was one of several choices, of which another one is taken."""
    below = quotes.lines(Span(span.source, span.last_line + 1, span.last_line + 1), 1)
    return bool(below) and _LEFT_OUT.search(below[0].text[:400]) is not None


def overlooked(findings: Sequence[Finding], seen: Sequence[Sighting], quotes: Quotes) -> tuple[Finding, Evidence] | None:
    """The first line that a signature proves to be a cause and that became no failure, with that signature. Where the log shows that it
    was none, it does not count: a user's words, a calm line, one behind a request to stop, and one behind which the job worked on."""
    found: list[tuple[Finding, Span]] = []
    for finding in findings:
        if finding.role is SignatureRole.ROOT and finding.category is not None and finding.confidence is Confidence.ESTABLISHED:
            found += [(finding, span) for span in finding.spans[:_MOST] if not _is_excused(span, seen, quotes)]
    if not found:
        return None
    finding, span = min(found, key=lambda one: (one[1].source, one[1].first_line, -one[0].specificity))
    return finding, quotes.of(span, finding.title)


def _is_excused(span: Span, seen: Sequence[Sighting], quotes: Quotes) -> bool:
    for sighting in seen:
        asked = sighting.weight == 0 and sighting.span.source == span.source and sighting.span.first_line <= span.first_line
        if asked or any(span.overlaps(own) for own in sighting.spans):  # what was seen is judged by what it is
            return True
    line = _of_line(span, quotes)
    if line is None or line.level in _CALM or _left_out(span, quotes) or _CALM_TEXT.search(line.events[0].message[:1_000]):
        return True
    later = aftermath(quotes, span, line.stream, steady=True)
    if caught(line, quotes):
        return bool(later.working or later.calm or later.ended)
    return bool(later.working or later.calm >= _GOES_ON or (later.ended and worked_before(quotes, span)))


def _strengthen(sighting: Sighting) -> None:
    """A printed error, or one that the shipped tables call a consequence, is the cause that its user says it is."""
    if sighting.handled:
        return
    sighting.weight = max(sighting.weight, 3)
    sighting.role, sighting.role_why, sighting.rule = None, "", TAUGHT
    sighting.conditional = sighting.outside = False


def _of_line(span: Span, quotes: Quotes) -> Sighting | None:
    """A line that no parser took, as a printed error; None where it was not kept, or where a user of the service wrote it."""
    line = next(iter(quotes.lines(span, 1)), None)
    if line is None:
        return None
    said = line.text.strip()
    seen = sight(Event(EventKind.MESSAGE, span, line.rank, line.time, None, said, level=line.level, parser="signature", stream=line.stream))
    if seen is None or quoted(seen, quotes):
        return None
    if (named := named_in(said)) is not None:
        seen.type, seen.message = seen.root_type, seen.root_message = named
    return seen
