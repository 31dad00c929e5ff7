"""Where in a line the text of a user or a model stands, and where it ends. In: bytes; out: pairs of offsets. Sample:

    b"INFO … Received request cmpl-7: prompt: 'what is a CUDA error', params: …"    -> [(41, 61)]: a user's words
    b"WARN … request (prompt: 'hello') failed: CUDA error: out of memory"           -> [(25, 30)]: what follows is the engine's own

A text that is not closed goes on to the end of the line.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from forensics import data
from forensics.ingest.pattern import Pattern

#: words of a line that complains itself; what it shows of a request is no excuse for it
_COMPLAINTS = (b"ERROR", b"CRITICAL", b"FATAL", b"EXCEPTION")
_QUOTES = b"'\""
_BACKSLASH = 92
_TOKEN = Pattern(rb"""['"()\[\]{}]""")
_OPENING = b"([{"
#: of a conversation the next message
_NEXT = Pattern(rb"\s{0,80},\s{0,80}\{")
#: texts of one line
_MOST = 16


class _Request(NamedTuple):
    """A row of signatures/dialects/requests.toml. inside: the literal stands among the fields of a message, which its brace ends."""

    literal: bytes
    inside: bool


@lru_cache(maxsize=1)
def _requests() -> tuple[_Request, ...]:
    rows = [row for _, content in data.folder("dialects") for row in content.get("request", ())]
    return tuple(_Request(row["literal"].encode(), row.get("inside", False)) for row in rows)


@lru_cache(maxsize=1)
def _literals() -> tuple[bytes, ...]:
    return tuple(row.literal for row in _requests())


def is_begun(line: bytes | bytearray, start: int, stop: int) -> bool:
    """Whether such a text begins in line[start:stop], of a line that does not complain itself. Where it ends is not asked: a tenth of the
    cost of `asked_in`, for what was seen often."""
    find = line.find
    for literal in _literals():
        at = find(literal, start, stop)
        if at >= 0:
            before = bytes(line[start:at]).upper()
            return not (b"ERROR" in before or b"CRITICAL" in before or b"FATAL" in before or b"EXCEPTION" in before)
    return False


def asked_in(line: bytes | bytearray, start: int, stop: int) -> list[tuple[int, int]]:
    """(begin, end) of the texts in line[start:stop] that are not the writer's own, ascending; none where the line complains itself. The
    last ends at `stop` where nothing closes it before."""
    found: list[tuple[int, int]] = []
    at = start
    while len(found) < _MOST:
        first, request = stop, None
        for row in _requests():
            place = line.find(row.literal, at, min(stop, first + len(row.literal)))
            if 0 <= place < first:
                first, request = place, row
        if request is None:
            break
        if not found:
            before = bytes(line[start:first]).upper()
            if any(word in before for word in _COMPLAINTS):
                break
        begin = first + len(request.literal)
        at = _messages_end(line, begin, stop) if request.inside else closing(line, begin, stop)
        found.append((begin, at))
    return found


def closing(line: bytes | bytearray, at: int, stop: int) -> int:
    """Where what line[at - 1], a quote or a bracket, opens is closed again; `stop` where it is not before."""
    return _quote_end(line, at, stop) if line[at - 1] in _QUOTES else _bracket_end(line, at, stop)


def _bracket_end(line: bytes | bytearray, at: int, stop: int) -> int:
    """The bracket that closes what is open at `at`; those in quotes do not count."""
    depth = 1
    while (found := _TOKEN.search(line, at, stop)) is not None:
        token, at = found[0], found.end()
        if token in _OPENING:
            depth += 1
        elif token not in _QUOTES:
            depth -= 1
            if not depth:
                return at - 1
        else:
            at = min(_quote_end(line, at, stop) + 1, stop)
    return stop


def _messages_end(line: bytes | bytearray, at: int, stop: int) -> int:
    """The brace that ends the message around `at`, or the last of those that follow it."""
    while True:
        end = _bracket_end(line, at, stop)
        following = _NEXT.match(line, end + 1, stop)
        if following is None:
            return end
        at = following.end()


def _quote_end(line: bytes | bytearray, at: int, stop: int) -> int:
    """The quote that ends a text which line[at - 1] opens: not an escaped one, and no apostrophe amid a word."""
    quote = bytes(line[at - 1 : at])
    start = at
    while (at := line.find(quote, at, stop)) >= 0:
        back = at
        while back > start and line[back - 1] == _BACKSLASH:
            back -= 1
        is_amid = start < at < stop - 1 and _is_letter(line[at - 1]) and _is_letter(line[at + 1])
        if (at - back) % 2 == 0 and not is_amid:
            return at
        at += 1
    return stop


def _is_letter(byte: int) -> bool:
    return byte >= 128 or bytes((byte,)).isalpha()
