"""Raw lines to `LogLine`s. In: numbers and texts of one source; out: lines that know rank, time, level. Sample:

maker.add(812, "[2026-11-29 20:15:20 TP1] boom")
-> LogLine(0, 812, "boom", "[2026-11-29 20:15:20 TP1] boom", stream="TP1", rank=Rank("TP1", …), time=1795983320.0)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from forensics.ingest.clock import ClockWatch, moment, with_year
from forensics.ingest.decode import plain, visible
from forensics.ingest.dialects import Peeled, table_of, votes
from forensics.ingest.learned import learn
from forensics.ingest.pattern import Pattern
from forensics.ingest.pods import with_pods_ranks
from forensics.ingest.ranks import global_numbers, numbered_alone, rank_of, stream_of
from forensics.model.source import LogLine, Rank

_LEVELS = {
    "D": "DEBUG", "I": "INFO", "W": "WARNING", "E": "ERROR", "F": "FATAL", "C": "CRITICAL", "WARN": "WARNING", "ERR": "ERROR",
    "CRIT": "CRITICAL", "EMERG": "FATAL", "ALERT": "FATAL", "EMERGENCY": "FATAL", "NOTICE": "INFO",
    "0": "FATAL", "1": "FATAL", "2": "CRITICAL", "3": "ERROR", "4": "WARNING", "5": "INFO", "6": "INFO", "7": "DEBUG",
    "10": "DEBUG", "20": "INFO", "30": "WARNING", "40": "ERROR", "50": "CRITICAL",
}  # fmt: skip
#: Cloud Logging's word for an entry whose severity nobody gave; and what a collector's level is not believed below
_NO_LEVEL, _GRAVE = "DEFAULT", frozenset(("ERROR", "CRITICAL", "FATAL"))
#: prefixes are looked for in this much of a line
_PREFIX_REACH = 2_000
#: lines that vote on the weak prefixes: no more, and no fewer
_SAMPLE, _LEAST = 400, 3
#: how Markdown and forums mark a block of code, and how many of its lines are asked whether that hides a prefix
_BLOCK, _ASKED = " " * 4, 60
#: a worker that has no rank in its name yet says which one it is
_IS_RANK = Pattern(r"\bworld_size=\d{1,6} rank=(\d{1,6}) local_rank=")
#: Ray Train's controller names the ranks of the processes that it started (ray 2.60; some versions with their nodes)
_HAS_RANK = Pattern(r"\((?:node_id=\w{1,80}, )?ip=(?P<ip>[\w.:]{2,60}), pid=(?P<pid>\d{1,10})\) world_rank=(?P<rank>\d{1,6}), local_rank=")


class LineMaker:
    """Makes the lines of one source. default_rank: what the file's name says, for lines that say nothing; sample: texts
    of the source, in order, that tell its prefixes."""

    __slots__ = ("_bare", "_default", "_learned", "_relayed", "_source", "_table", "lines", "watch")

    def __init__(self, source: int, default_rank: Rank | None = None, sample: Iterable[str] = ()) -> None:
        self._source = source
        self._default = default_rank
        self.watch = ClockWatch()
        self.lines: list[LogLine] = []
        self._bare: Callable[[str], str] | None = None
        self._learned = None
        self._relayed = False
        raws = list(sample)
        if len(raws) < _LEAST and not any(map(_is_framed, raws)):
            self._table = table_of()
            return
        # what a progress bar draws anew stands behind no prefix: each line votes once, by how it begins
        head = [plain(raw).lstrip("\r").partition("\r")[0] for raw in raws[:_SAMPLE]]
        # a crash mostly stands at the end, and its tracebacks show a prefix that nothing else does
        later = [text for raw in raws[_SAMPLE:] if _is_framed(raw) for text in visible(raw)][:_SAMPLE]
        drawn = [text for raw in raws[:_SAMPLE] if "\r" in raw and _is_framed(raw) for text in visible(raw)][:_SAMPLE]
        bare = self._bare = _unquote if _is_quoted(head) else _undented(head)
        if bare is not None:
            head, later, drawn = ([bare(text) for text in texts] for texts in (head, later, drawn))
        # the head may be what the job's script printed before the launcher that labels its lines was started
        self._table = table_of(votes(head) | votes([*filter(_is_framed, head), *later]))
        self._relayed = any(map(_is_relayed, map(self._table.peel, (*head[:_ASKED], *later[:_ASKED]))))
        framed = [text for text in (*head, *drawn, *later) if _is_framed(text)]
        self._learned = learn(self._table.peel(text).text for text in framed) if framed else None

    def add(self, number: int, text: str) -> None:
        """Appends the visible lines of one \\n-line."""
        self.lines.extend(self.take(number, text))

    def take(self, number: int, text: str) -> list[LogLine]:
        """The visible lines of one \\n-line."""
        seen = visible(text)
        return self.parse(number, seen[0]) if len(seen) == 1 else [line for raw in seen for line in self.parse(number, raw)]

    def parse(self, number: int, raw: str) -> list[LogLine]:
        """One visible line; several where a JSON message holds line feeds."""
        line = raw if self._bare is None else self._bare(raw)
        if len(line) > _PREFIX_REACH and line[0] != "{":
            head = self._table.peel(line[:_PREFIX_REACH])
            body = head.text + line[_PREFIX_REACH:]
        else:
            head = self._table.peel(line)
            body = head.text
        captures = head.captures
        if self._learned is not None and (prefix := self._learned.match(body)) is not None:
            body = body[prefix.end() :]
            if body.startswith("[rank"):
                inner = table_of().peel(body[:_PREFIX_REACH])
                body = inner.text + body[_PREFIX_REACH:]
                captures = captures | inner.captures
        if not captures and not head.axes:
            rank = self._default
            return [LogLine(self._source, number, body, raw, rank.label if rank else "", rank)]
        rank = rank_of(captures, head.axes) or None
        stream = stream_of(captures, rank)
        if rank is None and not stream and self._default is not None:
            rank, stream = self._default, self._default.label
        elif rank is None and stream == f"pid={captures.get('pid')}":
            rank = self._default  # a process of the one whose file this is
        seconds = None
        stamp = captures.get("time")
        if stamp:
            when = moment(stamp)
            if when is not None:
                seconds = when[0]
                self.watch.saw(when[1], when[2])
        level = captures.get("level")
        if level:
            level = level.upper()
            level = _LEVELS.get(level, level)
            if head.given and (level == _NO_LEVEL or (level not in _GRAVE and (self._relayed or _is_relayed(head)))):
                level = None  # the collector's, which knows less of the line than its own words say
        origin = captures.get("origin")
        dialect = head.dialects[-1] if head.dialects else None
        if "\n" not in body:
            return [LogLine(self._source, number, body, raw, stream, rank, seconds, level, origin, dialect)]
        return [LogLine(self._source, number, part, raw, stream, rank, seconds, level, origin, dialect) for part in body.split("\n")]


def _is_relayed(head: Peeled) -> bool:
    """A collector's record around what somebody else printed: that has a prefix of its own, or is one line of a traceback, which a logger
    writes as a whole."""
    return head.relayed or (head.given and "\n" not in head.text and head.text.startswith(("Traceback (most recent", "  File \"")))


def _is_framed(text: str) -> bool:
    return 'File "' in text or "Traceback" in text


def _is_quoted(head: list[str]) -> bool:
    """A source whose lines were quoted in an e-mail or an issue: nearly all begin with "> "."""
    filled = [text for text in head if text.strip()]
    return len(filled) >= _LEAST and sum(text.startswith(">") for text in filled) >= 0.9 * len(filled)


def _unquote(text: str) -> str:
    if text.startswith("> "):
        return text[2:]
    return text[1:] if text.startswith(">") else text


def _undented(head: list[str]) -> Callable[[str], str] | None:
    """What takes the indentation off a source that was pasted as a block of code, or None: nearly all lines share it, and it hides a
    prefix. Without one there is nothing to gain: a parser takes an indented line, and frames of a torn traceback belong where they are."""
    filled = [text for text in head if text.strip()]
    if len(filled) < _LEAST or sum(text.startswith(_BLOCK) for text in filled) < 0.9 * len(filled):
        return None
    width = min(len(text) - len(text.lstrip(" ")) for text in filled if text.startswith(_BLOCK))
    margin = " " * width
    if not any(table_of().peel(text[width : _PREFIX_REACH]).captures for text in filled[:_ASKED] if text.startswith(margin)):
        return None
    return lambda text: text[width:] if text.startswith(margin) else text


def settle(lines: list[LogLine], watch: ClockWatch) -> list[LogLine]:
    """Second look at the lines of one source, when all are known: global rank numbers; ranks for pids seen with a rank
    elsewhere; years from dated neighbours."""
    if len(lines) == 1:
        return _settled_alone(lines)
    lines = with_pods_ranks(lines)
    numbers = global_numbers(lines)
    by_pid: dict[str, Rank | None] = {}
    for line in lines:
        rank = line.rank
        if rank is not None and rank.pid is not None:
            key = str(rank.pid)
            if key not in by_pid:
                by_pid[key] = rank
            elif by_pid[key] is not None and by_pid[key].label != rank.label:  # type: ignore[union-attr]
                by_pid[key] = None
    for pid, rank in _told(lines).items():
        by_pid.setdefault(pid, rank)
    mixed = len(watch.counts) > 1 and "wall" in watch.counts
    if not numbers and not by_pid and not mixed:
        return lines
    settled = []
    known: dict[int, Rank] = {}  # by the identity of the lines' `Rank` objects, which live as long as the lines
    dated: float | None = None
    if mixed:
        dated = next((x.time for x in lines if x.time is not None and x.time > 9e8), None)
    for line in lines:
        rank, time = line.rank, line.time
        if rank is None and by_pid and "pid=" in line.stream:
            rank = _named(line.stream, by_pid)
        if rank is not None:
            final = known.get(id(rank))
            if final is None:
                final = known[id(rank)] = numbers.get(rank, rank)
            rank = final
        if mixed and time is not None and dated is not None:
            if 86400 * 2 < time < 7e7:
                time = with_year(time, dated)
            elif time > 9e8:
                dated = time
        if rank is not line.rank or time is not line.time:
            line = LogLine(*line[:5], rank, time, *line[7:])
        settled.append(line)
    return settled


def _settled_alone(lines: list[LogLine]) -> list[LogLine]:
    """`settle` of a single line: nobody else speaks of its writer, and no other stamp tells its year."""
    line = lines[0]
    rank = line.rank
    final: Rank | None
    if rank is not None:
        final = numbered_alone(rank) or global_numbers(lines).get(rank, rank)
    else:
        final = _named(line.stream, _told(lines))
    return lines if final is rank else [LogLine(*line[:5], final, *line[6:])]


def _named(stream: str, ranks: dict[str, Rank | None]) -> Rank | None:
    """The rank of the process that writes a stream, "10.0.0.2/Worker pid=71": by its host, too, where the stream names one."""
    pid = stream.rsplit("pid=", 1)[-1]
    host, slash, _ = stream.partition("/")
    return (ranks.get(f"{host}/{pid}") if slash else None) or ranks.get(pid)


def _told(lines: list[LogLine]) -> dict[str, Rank | None]:
    """pid -> rank, from what processes say of themselves, "(Worker pid=71) … world_size=8 rank=3 local_rank=3", or of those that they
    started, "(ip=10.0.0.2, pid=71) world_rank=3, local_rank=3"; None where several hosts have a process of that number. Those that were
    started stand there as host/pid, too."""
    found: dict[str, Rank | None] = {}
    for line in lines:
        if line.rank is not None or " local_rank=" not in line.text:
            continue
        if (of_another := _HAS_RANK.search(line.text[:400])) is not None:
            pid, number = of_another["pid"], int(of_another["rank"])
        elif "pid=" in line.stream and (said := _IS_RANK.search(line.text[:400])) is not None:
            pid, number = line.stream.rsplit("pid=", 1)[1], int(said[1])
        else:
            continue
        if pid.isdigit():
            rank = Rank(f"rank {number}", number, (), None, int(pid))
            for key in (pid, f"{of_another['ip']}/{pid}") if of_another is not None else (pid,):
                found[key] = rank if found.get(key, rank) == rank else None
    return found
