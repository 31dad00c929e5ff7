"""Lines -> lanes: what one writer wrote with one prefix. In: retained lines; out: `Lane`s. Sample (two lanes of one region):

    (Worker_TP1 pid=71) ERROR 11-29 20:15:20 [executor.py:527] Traceback (most recent call last):   lane A
    (Worker_TP0 pid=70) ERROR 11-29 20:15:20 [executor.py:527] Traceback (most recent call last):   lane B
    (Worker_TP1 pid=71) ERROR 11-29 20:15:20 [executor.py:527]   File "/srv/a.py", line 3, in f     lane A

A lane is named by the line's own prefix with its times taken out. A header whose prefix only its first line carries
(`[2026-11-29 20:15:20 TP1] Scheduler hit an exception: Traceback …`, then bare lines) goes to the lane of its first frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from forensics.ingest.compiled import pattern_of
from forensics.ingest.unwrap import rejoin
from forensics.model.record import draft, field
from forensics.model.source import LogLine
from forensics.parse.python.shapes import ARROW, HEADER, LOOK, Kind, kind_of
from forensics.parse.quotation import waits_for

#: lines around a hit that are looked at: a heading before, a message after; of a big log as many are kept
BEFORE, AFTER = 3, 80
#: what leads to a report that a program writes for its users (reports.py)
REPORT = "**Exception Type:** "

#: lines of a request above a traceback in it
REQUEST_LINES = 12

#: levels that mean a failure
SEVERE = frozenset(("ERROR", "CRITICAL", "FATAL"))

#: widths at which terminals and tickets wrap
NARROWEST, WIDEST = 60, 500

#: lines above a region that are looked at where the log runs backwards
REVERSED_AFTER = 40

#: lines of a test's source that pytest shows above its error
TEST_BEFORE = 150

#: what a terminal's panes and a ticket's quotes put before lines; a selection often begins behind it
_FRAMING = "│┃|> "

#: how far from its header a first frame may be when other ranks write in between
FIRST_FRAME_WITHIN = 400

_TIMES = pattern_of(
    r"\[ *\d{1,9}\.\d{1,9}\]|\d{1,4}[-/]\d{1,2}(?:[-/]\d{1,4})?[T_ ]?(?:\d\d:\d\d[\d:.,]*)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|\d\d:\d\d:\d\d[\d:.,]*Z?"
)


@draft
class Item:
    """One line of a lane. index: into Intake.lines, so that neighbours can be told from far lines; repeated: how many workers
    wrote it, as Ray says; asked: a header that stands in a request to a model; above: for a header the line
    right above it where another prefix or an error level made that another lane."""

    index: int
    line: LogLine
    kind: Kind
    repeated: int = 1
    asked: bool = False
    above: Item | None = None


@draft
class Lane:
    """bare: the prefix names no writer (nothing at all, or only a time and a level), so anything may have written its lines."""

    prefix: str
    bare: bool
    items: list[Item] = field(default_factory=list)


#: what `cat -n` and its like put before a line: no two lines have the same
_NUMBERED = pattern_of(r"^ {0,7}\d{1,7}(?:\t|  )")


#: how rich marks the line of the source that a box is about
MARKED = ("│ ❱", "┃ ❱")


def prefix_of(line: LogLine) -> str:
    """The part of the line before its text, times as "#", ends trimmed, without the number that a pager gave the line."""
    raw, text = line.raw, line.text
    if len(raw) == len(text):
        return ""
    body = text.strip()
    if body and not raw.rstrip().endswith(body):
        return f"{line.stream}|{line.origin or ''}|{line.level or ''}"
    head = raw[: raw.rindex(text)] if text and text in raw else raw[: len(raw) - len(text)]
    head = _NUMBERED.sub("", head[:400], 1)
    own = " ".join(_TIMES.sub("#", head).split())
    own = own.removeprefix("**").removesuffix(" **")  # of a line that its poster set in bold, or what stands behind the prefix
    return own.lstrip("` ")  # of the first line of what its poster marked as code


_CLUSTER = pattern_of(r"[ \t]*\[repeated (?P<count>\d{1,6})x across cluster\](?: \(Ray .{0,400})?\s*$")
_SPY_THREAD = pattern_of(r"Thread (?:0x[0-9a-fA-F]{1,16}|\d{1,20}) \([a-z+ ]{3,30}\)")


def is_dump_line(text: str) -> bool:
    """True for lines that open a dump of threads (dumps.py) and do not hold `", line `."""
    return "(most recent call first)" in text or "Fatal Python error: " in text or bool(_SPY_THREAD.match(text))


def is_test_line(text: str) -> bool:
    """True for lines of a pytest failure (pytest_style.py)."""
    return text.startswith(("E   ", "!!!!! ", "!!!!!!")) and (text[0] == "E" or text.rstrip().endswith("!!!!!"))


def regions(lines: Sequence[LogLine]) -> Iterator[tuple[int, int]]:
    """Index ranges [first, end) around lines that hold frames or headers, overlapping ones joined, sources kept apart."""
    first = end = -1
    for at, line in enumerate(lines):
        text = line.text
        if (
            '", line ' not in text
            and HEADER not in text
            and not is_dump_line(text)
            and not is_test_line(text)
            and text.strip() != "At:"
            and REPORT not in text
            and not text.startswith(MARKED)
        ):
            if at < end and text.startswith("-") and ARROW.match(text) is not None:
                end = at + AFTER  # IPython shows several lines of the source to each frame
            continue
        before = TEST_BEFORE if text.startswith("E   ") else BEFORE
        if end >= 0 and at - before <= end and lines[first].source == line.source:
            end = at + AFTER
            continue
        if end >= 0:
            yield first, _stop(lines, first, end)
        first, end = max(at - before, 0), at + AFTER
        while lines[first].source != line.source:
            first += 1
    if end >= 0:
        yield first, _stop(lines, first, end)


def _stop(lines: Sequence[LogLine], first: int, end: int) -> int:
    end = min(end, len(lines))
    while lines[end - 1].source != lines[first].source:
        end -= 1
    return end


def lanes_of(lines: Sequence[LogLine], first: int, end: int) -> list[Lane]:
    """The lanes of one region, in the order of their first lines."""
    part = _unwrapped(lines[first:end])
    items = [entry for n, line in enumerate(part) for entry in _items(line, first + n, part[n + 1 : n + 2])]
    if _newest_first(items):
        above = max(0, first - REVERSED_AFTER)  # where messages stand in such a log
        early = [_item(lines[at], at) for at in range(above, first) if lines[at].source == lines[first].source]
        items = [*early, *items]
        items.reverse()
        for n, (_, item) in enumerate(items):
            item.index = first + n
    lanes: dict[str, Lane] = {}
    unnamed: set[str] = set()  # lanes that so far hold headers of longer prefixes only
    heads_end = 0
    for n, (prefix, item) in enumerate(items):
        own = prefix
        if item.kind is Kind.HEAD:
            item.above = _announcing(items, n)
            item.asked = _is_request(items, n)
            if prefix:
                if n >= heads_end:  # the headers of a great many ranks stand one below the other
                    heads_end = next((at for at in range(n + 1, len(items)) if items[at][1].kind is not Kind.HEAD), len(items))
                prefix = _body_prefix(items, n, heads_end, prefix)
        lane = lanes.get(prefix)
        if lane is None:
            lane = lanes[prefix] = Lane(prefix, True)
            unnamed.add(prefix)
        if prefix in unnamed and own == prefix:
            lane.bare = not prefix or not (item.line.stream or item.line.origin)
            unnamed.discard(prefix)
        lane.items.append(item)
    return list(lanes.values())


def _unwrapped(lines: Sequence[LogLine]) -> Sequence[LogLine]:
    """The lines with hard wraps undone, where that makes the tracebacks among them whole: frame lines and source lines gain
    their ends, and stray ends are gone."""
    lengths = [len(line.raw) for line in lines]
    widest = max(lengths, default=0)
    if not NARROWEST <= widest <= WIDEST or lengths.count(widest) < 2:
        return lines
    joined = rejoin(lines, widest)
    wrapped = [line for line in joined if line.joined]
    torn = sum('File "' in line.text or kind_of(line.text) in (Kind.RAISED, Kind.CODE) for line in wrapped)
    if not wrapped or torn * 10 < len(wrapped) * 7:
        return lines
    frames, strays = _shape(lines)
    whole_frames, fewer_strays = _shape(joined)
    return joined if whole_frames >= frames and fewer_strays < strays else lines


def _shape(lines: Sequence[LogLine]) -> tuple[int, int]:
    """(frame lines, lines that say nothing by their form)"""
    kinds = [kind_of(line.text) for line in lines]
    return kinds.count(Kind.FRAME), kinds.count(Kind.TEXT)


def _items(line: LogLine, at: int, below: Sequence[LogLine]) -> list[tuple[str, Item]]:
    """The line's item, or one for each frame and source line where a paste had folded several of them into one line. below: the
    line that its exception may stand in: what is behind a folded header is in the same lane."""
    prefix, item = _item(line, at)
    text = item.line.text
    if item.kind in (Kind.FRAME, Kind.TEXT) and text.find('File "', text.find('File "') + 6) > 0 and "\n" not in text:
        from forensics.parse.python.expand import unfolded

        texts = unfolded(text)
        if texts:
            body = prefix_of(below[0]) if below and HEADER in text else prefix
            parts = [Item(at, item.line._replace(text=part), kind_of(part), item.repeated) for part in texts]
            return [(body if n and prefix.startswith(body) else prefix, part) for n, part in enumerate(parts)]
    return [(prefix, item)]


def _item(line: LogLine, at: int) -> tuple[str, Item]:
    """(prefix, item) of a line; what Ray says about its repetition is taken off."""
    prefix, repeated = prefix_of(line), 1
    if "across cluster]" in line.text:
        found = _CLUSTER.search(line.text[-600:])
        if found:
            repeated = int(found["count"])
            line = line._replace(text=line.text[: -len(found[0])])
    if line.text.endswith("**") and _is_bold(line):
        line = line._replace(text=line.text[:-2].removeprefix("**"))
    if line.text.startswith("[") and "](http" in line.text and (linked := _LINKED.match(line.text[:LOOK])) is not None:
        line = line._replace(text=f"{linked['file']}{linked['rest']}")
    if line.text.startswith('> File "'):  # loguru marks the frame that caught the exception
        line = line._replace(text=f"  {line.text[2:]}")
    if 'File \\"' in line.text:  # a logger that quotes its message (Triton Inference Server) escapes what stands in it
        line = line._replace(text=line.text.replace('\\"', '"'))
    return prefix, Item(at, line, kind_of(line.text), repeated)


def _is_bold(line: LogLine) -> bool:
    """True for a line that its poster set in bold (Markdown), all of it or what stands behind its prefix."""
    own = line.text.removeprefix("**")[:40]
    return line.raw.lstrip().startswith("**") or f"**{own}" in line.raw


#: a notebook's frame whose file is a link: "[/usr/lib/a.py](https://localhost:8080/#) in run(self)" (Colab, copied)
_LINKED = pattern_of(r"\[(?P<file>[/~<][^\]\n]{1,500})\]\(https?://[^)\s]{0,300}\)(?P<rest> in [<\w].{0,3000})$")
_ANNOUNCES = pattern_of(r"(?:[Ee]xception|[Ee]rror|[Cc]rash|[Ff]ail)\w{0,10}\b.{0,80}:\s*$")

#: a rank in the prefix (`prefix_of`) of a program's own logger: "# [rank3] ERROR", "# | rank=3 | ERROR |"
_OWN_RANK = pattern_of(r"\[[Rr]ank[ =:]{0,2}[\d#/]{1,13}\](?!:)|\b[Rr]ank[ =]\d{1,6} \|")


def _announcing(items: Sequence[tuple[str, Item]], at: int) -> Item | None:
    """The log line right above a header, where it announces an error and no other writer is named."""
    if not at:
        return None
    above, line = items[at - 1][1], items[at][1].line
    if not items[at][0] and items[at - 1][0] and _ANNOUNCES.search(above.line.text[-200:]):
        return above  # a record of several lines: the prefix stands before the first
    if above.line.level not in SEVERE:
        return None
    # a launcher puts a rank before every line, a program's logger before the first one of a record
    lead, longer = items[at][0], items[at - 1][0]
    own = line.rank is None and longer.startswith(lead) and _OWN_RANK.search(longer[len(lead) :][-200:]) is not None
    return above if own or above.line.stream in ("", line.stream) else None


def _is_request(items: Sequence[tuple[str, Item]], at: int) -> bool:
    """True where the log line that a bare header goes on with quotes a request: `prompt: 'Why does this fail?`, then the paste."""
    text = items[at][1].line.text
    if items[at][0]:
        return bool(waits_for([text[: text.find(HEADER)]]))
    start = next((n for n in range(at - 1, max(-1, at - 1 - REQUEST_LINES), -1) if items[n][0]), None)
    if start is None or items[start][1].line.level in SEVERE:
        return False
    return bool(waits_for(item.line.text for _, item in items[start:at]))


def squeezed(line: LogLine, at: int) -> Lane | None:
    """The lane of a traceback that stands in one line (expand.py), None where the line holds none."""
    at_header = line.text.find(HEADER)
    if at_header < 0 or (line.level not in SEVERE and waits_for([line.text[:at_header]])):
        return None
    from forensics.parse.python.expand import expanded

    texts = expanded(line.text)
    if not texts:
        return None
    items = [Item(at + n, line._replace(text=text), kind_of(text)) for n, text in enumerate(texts)]
    return Lane("", True, items)


def _body_prefix(items: Sequence[tuple[str, Item]], at: int, heads_end: int, prefix: str) -> str:
    """Which prefix the lines below a header carry: its own, or a leading part of it. heads_end: behind the headers below it."""
    own_seen = False
    reach = at + 1 + FIRST_FRAME_WITHIN
    for other, item in chain(items[at + 1 : reach], items[heads_end : heads_end + FIRST_FRAME_WITHIN] if heads_end >= reach else ()):
        if other == prefix:
            if item.kind is Kind.FRAME:
                return prefix
            own_seen = own_seen or item.kind is not Kind.BLANK
        elif item.kind is Kind.FRAME and not own_seen and (prefix.startswith(other) or not other.strip(_FRAMING)):
            return other
        elif item.kind is Kind.HEAD and prefix.startswith(other) and own_seen:
            break
    return prefix


def _newest_first(items: Sequence[tuple[str, Item]]) -> bool:
    """True where the log runs backwards: every header stands right below its first frame, and no stamp says otherwise."""
    heads = above = 0
    for n, (prefix, item) in enumerate(items):
        if item.kind is not Kind.HEAD:
            continue
        heads += 1
        if n and items[n - 1][1].kind is Kind.FRAME and prefix.startswith(items[n - 1][0]):
            above += 1
        if n + 1 < len(items) and items[n + 1][1].kind is Kind.FRAME:
            return False
    if not heads or above < heads:
        return False
    times = [item.line.time for _, item in items if item.line.time is not None]
    return not times or times[0] >= times[-1]
