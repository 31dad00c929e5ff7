"""Words that passed through the job: a prompt, a request body, a line at INFO that holds them. In: a sighting and the lines around it;
out: the rule that says so. Sample:

INFO … Received request cmpl-1: prompt: 'Why does this fail?
Traceback (most recent call last): …                               -> "quoted": nobody's failure
', params: SamplingParams(n=1)
(the log ends without that line)                                   -> "perhaps-quoted": nothing shows where the prompt ends
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.ingest.pattern import Pattern
from forensics.model.source import LogLine, Span
from forensics.parse.quotation import waits_for
from forensics.verdict.quotes import Quotes
from forensics.verdict.samples import holds
from forensics.verdict.sighting import Sighting

#: the rules: for certain, and where the log does not show the end of what was quoted
SURE, PERHAPS = "quoted", "perhaps-quoted"
QUOTED = (SURE, PERHAPS)
#: request bodies and prompts that engines log, in their own words
_QUOTES = Pattern(
    r"""["'](?:content|prompt|messages|text|inputs?|body)["']\s*:\s*["'\[{]|\bprompt: ["']|<\|im_start\||\[INST\]|<\|user\|>"""
    r"""|\w*Req(?:uest)?Input\(|<\|start_header_id\|>|<start_of_turn>|\bReceived request\b"""
)
#: lines of a pasted text that are looked through, above a failure in it and below
_PASTED, _BELOW = 60, 200
_HEADER = "Traceback (most recent call last)"
_SEVERE = frozenset(("ERROR", "CRITICAL", "FATAL"))


def quoted(seen: Sighting, quotes: Quotes) -> str:
    """The rule by which the words are not the job's own, "" where they are."""
    lines = quotes.lines(seen.span, 1)
    if lines and (inside := holds(lines[0], seen.span, quotes)) is not False:
        return SURE if inside else PERHAPS
    if lines and (rule := _inside_a_request(lines[0], seen.span, quotes)):
        return rule
    if not lines or seen.kind == "exit":
        return ""
    if seen.span.first_line == seen.span.last_line and _QUOTES.search(lines[0].raw[:20_000]):
        return SURE
    if lines[0].level not in ("INFO", "DEBUG") or seen.span.first_line != seen.span.last_line:
        return ""
    # A line that begins with the error is the error itself, whatever level a wrapper gave it.
    start = lines[0].text.lstrip()[:200]
    own = [said for said in (seen.type, seen.message.split("\n", 1)[0][:60]) if said]
    return "" if any(start.startswith(said) for said in own) else SURE


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
        return SURE if opened > 0 and _QUOTES.search(other.raw[:20_000]) is not None else ""
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
