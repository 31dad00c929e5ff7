"""Words that passed through the job: a prompt, a request body, a line at INFO that holds them. In: a sighting and the lines around it;
out: the rule that says so. Sample:

INFO … Received request cmpl-1: prompt: 'Why does this fail?
Traceback (most recent call last): …                               -> "quoted": nobody's failure
', params: SamplingParams(n=1)
(the log ends without that line)                                   -> "perhaps-quoted": nothing shows where the prompt ends
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from forensics.ingest.asked import begins, closing, may_quote, written
from forensics.ingest.compiled import pattern_of
from forensics.ingest.pattern import Pattern
from forensics.model.source import LogLine, Span
from forensics.parse.quotation import waits_for
from forensics.verdict.quotes import Quotes
from forensics.verdict.samples import holds
from forensics.verdict.sighting import Sighting

#: the rules: for certain, and where the log does not show the end of what was quoted
SURE, PERHAPS = "quoted", "perhaps-quoted"
QUOTED = (SURE, PERHAPS)
_OPENING = b"'\"[{("
_COMPLAINS = Pattern(rb"(?i)error|exception|fail|fault|abort|crash|killed|timed out|timeout|out of memory|\bdied\b|assert")
#: bytes of a line that are looked at, quotations in it, bytes of a failure's words and fewest of them
_LOOKED_AT, _MOST, _WORDS, _FEWEST = 20_000, 16, 40, 6
#: lines of a pasted text that are looked through, above a failure in it and below
_PASTED, _BELOW = 60, 200
_HEADER = "Traceback (most recent call last)"
_SEVERE = frozenset(("ERROR", "CRITICAL", "FATAL"))


def _begins(severe: bool = False) -> re.Pattern[bytes]:
    return pattern_of(begins(severe).encode())


def quoted(seen: Sighting, quotes: Quotes) -> str:
    """The rule by which the words are not the job's own, "" where they are."""
    lines = quotes.lines(seen.span, 1)
    if lines and (inside := holds(lines[0], seen.span, quotes)) is not False:
        return SURE if inside else PERHAPS
    if lines and (rule := _inside_a_request(lines[0], seen.span, quotes)):
        return rule
    if not lines or seen.kind == "exit":
        return ""
    if seen.span.first_line == seen.span.last_line and _is_inside(seen, quotes.lines(seen.span, _PASTED)):
        return SURE
    if lines[0].level not in ("INFO", "DEBUG") or seen.span.first_line != seen.span.last_line:
        return ""
    # A line that begins with the error is the error itself, whatever level a wrapper gave it.
    start = lines[0].text.lstrip()[:200]
    own = [said for said in (seen.type, seen.message.split("\n", 1)[0][:60]) if said]
    return "" if any(start.startswith(said) for said in own) else SURE


def _is_inside(seen: Sighting, lines: Sequence[LogLine]) -> bool:
    """Whether a line that quotes a request tells of the failure there only. Where its words are not found, or are all of the line, it does
    if the line complains of nothing outside of the quotations. lines: what one line of the file has become."""
    line = lines[0]
    text = written(lines)
    if text is not line.raw and seen.message.partition("\n")[0][:_WORDS] not in text:
        text = line.raw  # it stands in another field of the record
    if not may_quote(text := text[:_LOOKED_AT]):
        return False
    raw = text.encode("latin-1", "replace")
    quotes = _texts_in(raw, line.level in _SEVERE)
    if not quotes:
        return False
    for said in (seen.message, seen.root_message, seen.type or ""):
        words = said.encode("latin-1", "replace").partition(b"\n")[0].partition(b'"')[0].strip()
        places = _places(words[:_WORDS], raw)
        own = [place for place in places if not any(begin <= place < end for begin, end in quotes)]
        if places and not own:
            return True
        if any(not any(place < begin < place + len(said) for begin, _ in quotes) for place in own):
            return False
    kept = [begin for begin, _ in quotes]
    rest = b"".join(raw[end:begin] for end, begin in zip([0, *(end for _, end in quotes)], [*kept, len(raw)], strict=True))
    return _COMPLAINS.search(rest) is None


def _texts_in(raw: bytes, severe: bool) -> list[tuple[int, int]]:
    """(begin, end) of what a line quotes of a request; severe: a line that complains quotes no further than the quotation reaches."""
    found: list[tuple[int, int]] = []
    at = 0
    while len(found) < _MOST and (opened := _begins(severe).search(raw, at)) is not None:
        begin = at = opened.end()
        if raw[begin - 1] in _OPENING:
            at = closing(raw, begin, len(raw))
        elif not severe:
            at = len(raw)
        found.append((begin, at))
    return found


def _places(words: bytes, raw: bytes) -> list[int]:
    """Where the words of a failure stand in a line."""
    places: list[int] = []
    at = raw.find(words) if len(words) >= _FEWEST else -1
    while at >= 0 and len(places) < _MOST:
        places.append(at)
        at = raw.find(words, at + 1)
    return places


def _inside_a_request(line: LogLine, span: Span, quotes: Quotes) -> str:
    """The rule for a line of a pasted text: a log record above it, or its own beginning, quotes a request which is not closed yet."""
    if _is_record(line):
        own, header, _ = line.text.partition(_HEADER)
        return _by_end([own] if header else [], span, quotes)
    above = quotes.lines(Span(line.source, max(1, line.number - _PASTED), max(1, line.number - 1)))
    opened = 0
    for place in range(len(above) - 1, -1, -1):
        other = above[place]
        text = other.text[:20_000]
        opened += text.count("(") + text.count("{") + text.count("[") - text.count(")") - text.count("}") - text.count("]")
        if not _is_record(other):
            continue
        if other.level in _SEVERE:
            return ""
        if rule := _by_end([one.text for one in above[place:]], span, quotes):
            return rule
        return SURE if opened > 0 and _begins().search(other.raw[:_LOOKED_AT].encode("latin-1", "replace")) is not None else ""
    return ""


def _by_end(begun: Sequence[str], span: Span, quotes: Quotes) -> str:
    """The rule where a quotation is open behind the lines that a record began with: by whether it ends in what follows, before the next
    record."""
    waits = waits_for(begun)
    if not waits:
        return ""
    if waits in "[{":  # the layout of a body may be cut; that it was open is telling enough
        return SURE
    lines = list(begun)
    for line in quotes.lines(Span(span.source, span.first_line, span.last_line + _BELOW)):
        if _is_record(line) and line.number > span.first_line:
            break
        lines.append(line.text if line.number > span.first_line or not _is_record(line) else "")
    return PERHAPS if waits_for(lines) else SURE


def _is_record(line: LogLine) -> bool:
    """True for a line that a logger began: its prefix says when, who or how grave."""
    return line.time is not None or bool(line.stream) or line.level is not None
