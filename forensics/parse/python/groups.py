"""Exception groups: the margin taken off, the parts read. In: the texts of a block; out: `Raised` records, innermost first. Sample:

  + Exception Group Traceback (most recent call last):
  |   File "/srv/app.py", line 7, in main
  |     async with asyncio.TaskGroup() as group:
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/srv/app.py", line 3, in work
    |     raise ValueError("bad shard")
    | ValueError: bad shard
    +------------------------------------
-> [ValueError (frames of work), ExceptionGroup (link="group")]
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.ingest.compiled import pattern_of
from forensics.model.record import draft, field, replace
from forensics.parse.python.body import Raised, read_body
from forensics.parse.python.shapes import Kind, kind_of, link_of
from forensics.parse.python.shapes import raised as raised_line

_OPENS = pattern_of(r"^(?P<margin> {0,200})\+ Exception Group Traceback")
_PART = pattern_of(r"^ {0,200}\+(?P<first>-\+)?-{6,40} (?:\d{1,6}|\.\.\.) -{6,40}$")
_CLOSES = pattern_of(r"^ {0,200}\+-{10,80}$")
_LINE = pattern_of(r"^ {0,200}[|+] ?")

#: groups inside groups that are followed
DEEPEST = 40


@draft
class _Part:
    """own: (index, text without margin) of the exception itself; parts: its sub-exceptions."""

    own: list[tuple[int, str]] = field(default_factory=list)
    parts: list[_Part] = field(default_factory=list)


def read_grouped(texts: Sequence[str]) -> list[Raised]:
    """All exceptions of a block that holds exception groups."""
    found: list[Raised] = []
    plain: list[tuple[int, str]] = []
    link: str | None = None
    at = 0
    while at < len(texts):
        if _OPENS.match(texts[at]):
            found += _read_plain(plain, found)
            link, plain = _pending_link(plain), []
            part, at = _tree(texts, at)
            for raised in _flatten(part):
                found.append(raised)
            if found and link and found[-1].link != "group":
                found[-1].link = link
            continue
        plain.append((at, texts[at]))
        at += 1
    return found + _read_plain(plain, found)


def _read_plain(lines: list[tuple[int, str]], before: list[Raised]) -> list[Raised]:
    exceptions = _read(lines)
    if before and exceptions:
        exceptions[0].link = next((link for _, text in lines if (link := link_of(text))), exceptions[0].link)
    return exceptions


def _pending_link(lines: list[tuple[int, str]]) -> str | None:
    return next((link for _, text in reversed(lines) if (link := link_of(text))), None)


def _tree(texts: Sequence[str], at: int) -> tuple[_Part, int]:
    """The group that starts at line `at`, and the index after its last line."""
    root = _Part()
    path = [root]
    while at < len(texts):
        text = texts[at]
        if at and len(path) == 1 and root.own and _OPENS.match(text):
            break
        part = _PART.match(text)
        if part:
            if not part["first"] and len(path) > 1:
                path.pop()
            child = _Part()
            path[-1].parts.append(child)
            if len(path) < DEEPEST:
                path.append(child)
        elif _CLOSES.match(text):
            if len(path) > 1:
                path.pop()
        elif kind_of(text) is Kind.GROUPED or _OPENS.match(text):
            path[-1].own.append((at, _LINE.sub("", text, count=1)))
        elif text.strip():
            break
        at += 1
    return root, at


def _flatten(part: _Part) -> list[Raised]:
    inner = [raised for child in part.parts for raised in _flatten(child)]
    own = _read(part.own)
    if inner and own:
        own[-1].link = "group"
    return inner + own


def _read(lines: list[tuple[int, str]]) -> list[Raised]:
    """Exceptions of lines without margin, indices put back to those of the block."""
    places = [at for at, _ in lines]
    exceptions = []
    for raised in read_body(tuple(text for _, text in lines)) or _bare(lines):
        exceptions.append(
            replace(
                raised,
                frames=[
                    replace(f, log_line=places[f.log_line]) if f.log_line is not None else f for f in raised.frames
                ],
                first=places[min(raised.first, len(places) - 1)],
                last=places[min(raised.last, len(places) - 1)],
            )
        )
    return exceptions


def _bare(lines: list[tuple[int, str]]) -> tuple[Raised, ...]:
    """A sub-exception that was never raised has no traceback: its line alone."""
    texts = [text for _, text in lines if text.strip()]
    found = raised_line(texts[0]) if texts else None
    return (Raised(found[0], [found[1], *texts[1:]]),) if found else ()
