"""Where in a line the text of a user or a model stands, and where it ends. In: bytes; out: pairs of offsets. Sample:

    b"INFO … Received request cmpl-7: prompt: 'what is a CUDA error', params: …"    -> [(41, 61)]: a user's words
    b"WARN … request (prompt: 'hello') failed: CUDA error: out of memory"           -> [(25, 30)]: what follows is the engine's own

A text that is not closed goes on to the end of the line.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from forensics import data
from forensics.ingest.needles import needles_of_folder
from forensics.ingest.pattern import Pattern
from forensics.model.source import LogLine

_CLOSERS = {opener: bytes((closer,)) for opener, closer in zip(b"'\"([{", b"'\")]}", strict=True)}
_BACKSLASH = 92
_NUMBERS = b"0123456789"
#: by its number a quote that may end a text: no backslash before it, or several, and not both a letter before and one behind it (a byte
#: from 128 on is of one)
_ENDS = {
    quote[0]: Pattern(rb"%b(?:(?<!\\%b)(?:(?<![A-Za-z\x80-\xff]%b)|(?![A-Za-z\x80-\xff]))|(?<=\\\\%b))" % (quote, quote, quote, quote))
    for quote in (b"'", b'"')
}
_TOKEN = Pattern(rb"""['"()\[\]{}]""")
_QUOTES = b"'\""
_OPENING = b"([{"
#: of a conversation the next message
_NEXT = Pattern(rb"\s{0,80},\s{0,80}\{")
#: how lines begin before a text, by their size, digits and hexadecimal letters aside: so many sizes, so many of one, none longer
_BEGINNINGS: list[tuple[int, set[bytes]]] = []
_MOST_SIZES, _MOST_ALIKE, _LONGEST = 4, 64, 256
_ALIKE = bytes(48 if bytes((byte,)) in b"0123456789abcdef" else byte for byte in range(256))
#: texts of one line
_MOST = 16


@lru_cache(maxsize=1)
def _requests() -> tuple[tuple[bytes, int, bool], ...]:
    """What the scan looks for: literal, its size, whether it stands among the fields of a message, which its brace ends."""
    return tuple((row["literal"].encode(), len(row["literal"].encode()), row.get("inside", False)) for row in _rows("request"))


@lru_cache(maxsize=2)
def begins(severe: bool = False) -> str:
    """A pattern for what stands before a text that somebody wrote, its quote or bracket with it: the marks and fields of requests.toml;
    severe: in a line that complains those that nothing else can follow."""
    found = [row["pattern"] for row in _rows("mark")]
    return "|".join([*found, rf"""\b(?:{names(not severe)})["']?\s{{0,8}}[=:]\s{{0,8}}["'\[{{(]"""])


@lru_cache(maxsize=1)
def _words() -> list[str] | None:
    return needles_of_folder("dialects", "begins", begins)


def may_quote(text: str) -> bool:
    """False for a line in which `begins`, whose pattern is slow to look for, finds nothing: it holds none of the words."""
    words, low = _words(), text.lower()
    return words is None or any(word in low for word in words)


@lru_cache(maxsize=2)
def names(weak: bool = True) -> str:
    """Names of arguments and keys whose value somebody wrote, as alternatives of a pattern; weak: those, too, that others use as well."""
    return "|".join(name for row in _rows("field") if weak or not row.get("weak") for name in row["names"])


def complains(text: str) -> bool:
    """True for the beginning of a line that says it is severe."""
    return _is_severe(text.encode("latin-1", "replace"))


def _rows(kind: str) -> list[dict[str, Any]]:
    return [row for _, content in data.folder("dialects") for row in content.get(kind, ())]


def written(lines: Sequence[LogLine]) -> str:
    """Of the lines that one line of the file has become the text in which a quotation is looked for: the whole line; of a collector's
    record that tells how grave it is, or when it was written, the message in it, whatever the field is called that holds it."""
    raw, text = lines[0].raw, "\n".join(line.text for line in lines)
    told = raw.startswith("{") and (lines[0].level is not None or lines[0].time is not None) and bool(text)
    return text if told and not raw.rstrip().endswith(text) else raw


def is_asked(line: bytes | bytearray, start: int, stop: int) -> bool:
    """Whether `stop` lies in a text of line[start:] that is not the writer's own; never where the line complains before it."""
    for size, known in _BEGINNINGS:
        at = start + size
        if at <= stop and bytes(line[start:at]).translate(_ALIKE) in known and _quote_end(line, at, stop) >= stop:
            return True
    find = line.find
    for literal, size, inside in _requests():
        place = find(literal, start, stop)
        if place >= 0 and _is_severe(bytes(line[start:place]).translate(None, _NUMBERS)):
            return False
        while place >= 0:
            end = _messages_end(line, place + size, stop) if inside else closing(line, place + size, stop)
            if end >= stop:
                _remember(line, start, place + size, stop, inside)
                return True
            place = find(literal, end, stop)
    return False


def _remember(line: bytes | bytearray, start: int, at: int, stop: int, inside: bool) -> None:
    """Of a line that shows a request, and in it from `at` on a text which is open at `stop`, all before that text: an engine's lines begin
    alike, and are not read as far again."""
    begin = at if not inside and line[at - 1] in _QUOTES else _bracket(line, at, stop)[1]
    if not begin or begin - start > _LONGEST:
        return
    known = next((known for size, known in _BEGINNINGS if size == begin - start), None)
    if known is None and len(_BEGINNINGS) < _MOST_SIZES:
        known = set()
        _BEGINNINGS.append((begin - start, known))
    if known is not None and len(known) < _MOST_ALIKE:
        known.add(bytes(line[start:begin]).translate(_ALIKE))


def asked_in(line: bytes, stop: int) -> list[tuple[int, int]]:
    """(begin, end) of all those texts in line[:stop], ascending; the last ends at `stop` where nothing closes it before."""
    found: list[tuple[int, int]] = []
    at = 0
    while len(found) < _MOST:
        first, begin, is_inside = stop, 0, False
        for literal, size, inside in _requests():
            place = line.find(literal, at, min(stop, first + size))
            if 0 <= place < first:
                first, begin, is_inside = place, place + size, inside
        if not begin or (not found and _is_severe(line[:first].translate(None, _NUMBERS))):
            break
        at = _messages_end(line, begin, stop) if is_inside else closing(line, begin, stop)
        found.append((begin, at))
    return found


def _is_severe(before: bytes) -> bool:
    """Of what stands before a text: without its numbers the lines of an engine begin alike."""
    return _severe(before) if len(before) <= _LONGEST else _severe.__wrapped__(before)


@lru_cache(maxsize=512)
def _severe(before: bytes) -> bool:
    before = before.upper()
    return b"ERROR" in before or b"CRITICAL" in before or b"FATAL" in before or b"EXCEPTION" in before


def closing(line: bytes | bytearray, at: int, stop: int) -> int:
    """Where what line[at - 1], a quote or a bracket, opens is closed again; `stop` where it is not before."""
    opener = line[at - 1]
    if line.find(_CLOSERS[opener], at, stop) < 0:
        return stop  # the commonest case by far where something is found in what a user wrote
    return _quote_end(line, at, stop) if opener in _QUOTES else _bracket(line, at, stop)[0]


def _bracket(line: bytes | bytearray, at: int, stop: int) -> tuple[int, int]:
    """(the bracket that closes what is open at `at`, or `stop`; where a text in quotes, whose brackets do not count, begins that is open
    there, or 0)."""
    depth = 1
    search = _TOKEN.search
    while (found := search(line, at, stop)) is not None:
        at = found.end()
        token = line[at - 1]
        if token in _QUOTES:
            begin, at = at, _quote_end(line, at, stop) + 1
            if at >= stop:
                return stop, begin if at > stop else 0
        elif token in _OPENING:
            depth += 1
        else:
            depth -= 1
            if not depth:
                return at - 1, 0
    return stop, 0


def _messages_end(line: bytes | bytearray, at: int, stop: int) -> int:
    """The brace that ends the message around `at`, or the last of those that follow it."""
    while True:
        end = _bracket(line, at, stop)[0]
        following = _NEXT.match(line, end + 1, stop)
        if following is None:
            return end
        at = following.end()


def _quote_end(line: bytes | bytearray, at: int, stop: int) -> int:
    """The quote that ends a text which line[at - 1] opens: not an escaped one, and no apostrophe amid a word."""
    search = _ENDS[line[at - 1]].search
    start = at
    while (found := search(line, at, stop)) is not None:
        at = found.start()
        back = at
        while back > start and line[back - 1] == _BACKSLASH:
            back -= 1
        if (at - back) % 2 == 0:
            return at
        at += 1
    return stop
