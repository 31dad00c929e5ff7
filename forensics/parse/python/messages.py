"""Error lines that are no traceback -> events of kind message, alike ones folded. In: lines that no traceback claimed. Samples:

    torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.      type, message
    ERROR 11-29 20:15:20 [api_server.py:71] Prefill failed: ValueError: bad length    type ValueError, fields["heading"]
    launch_server.py: error: argument --tp-size: invalid int value: 'four'            message only
    [2026-11-29 20:15:20 TP4] Watchdog timeout (self.watchdog_timeout=300)            message only

Event.type is the exception's name where the text shows one; fields: heading (the words before it); count: how many alike (numbers
and addresses apart, same rank); span: the first of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from forensics.ingest.compiled import pattern_of
from forensics.ingest.pattern import Pattern
from forensics.model.event import Event, EventKind
from forensics.model.record import draft, replace
from forensics.model.source import LogLine, Span
from forensics.parse.python.blocks import starts_anew
from forensics.parse.python.lanes import prefix_of
from forensics.parse.python.shapes import Kind, is_whole, kind_of, looks_raised, raised
from forensics.parse.quotation import waits_for

#: distinct messages kept, and lines one message may have
MOST, LINES = 300, 12
#: beyond those exceptions are kept, and words that were hardly kept before: what very many files complain of must not hide one's failure
_IN_ALL, _COPIES = 4_000, 4

_SEVERE = frozenset(("ERROR", "CRITICAL", "FATAL", "SEVERE", "E", "F", "C", "EMERG", "ALERT", "CRIT", "ERR", "PANIC"))
_QUIET = frozenset(("INFO", "DEBUG", "WARNING", "WARN", "TRACE", "NOTICE", "I", "W", "D", "V"))

#: words one of which a line without a severe level must hold to be looked at
_HINTS = (
    "Error",
    "Exception",
    "rror: ",
    "KeyboardInterrupt",
    "ERROR",
    "FATAL",
    "CRITICAL",
    "atchdog timeout",
    "atal: ",
    "SystemExit",
)

#: an exception named inside a line: `failed: ValueError: …`, `with exception KVTransferError(room=7): …`
_INLINE = Pattern(
    r"(?<![\w.])(?P<type>(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,80}(?:Error|Exception|Interrupt|Exit|OutOfResources|Timeout|ExceptionGroup))"
    r"(?:\((?P<arguments>[^()\n]{0,300})\))?: (?P<message>.+)",
    re.DOTALL,
)
#: the same as its repr: `ValueError('bad length')`; NIXL's Python bindings give their classes names like nixlBackendError
_REPR = Pattern(
    r"(?<![\w.])(?P<type>(?:[A-Za-z_]\w{0,60}\.){0,8}(?:nixl)?[A-Z]\w{0,80}(?:Error|Exception))\((?P<quote>['\"])(?P<message>.{1,4000}?)(?P=quote),?\)"
)
#: the same as its class and its words, as `sys.excepthook` functions log them: `<class 'lib.BadSetting'> --> no such layer`
_CLASS = Pattern(
    r"<class '(?P<type>(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,80}(?:Error|Exception|Interrupt|Exit))'>"
    r"\s{0,4}(?:-->|->|=>|[:,|-])\s{1,4}(?P<message>\S.*)",
    re.DOTALL,
)
#: an OSError as its str(), which is all that some loggers print
_ERRNO = Pattern(r"(\[Errno \d{1,4}\] .+)", re.DOTALL)
#: words right before an inline exception that tell it was raised, not described
_TOLD = Pattern(
    r"(?:exception|failed|failure|error|raised|caused by|because of|due to|fatal|crash\w*|reason|abort\w*|died)\b[^.]{0,120}$",
    re.IGNORECASE,
)

#: lines that say by their own words that something failed, whatever their level
#: exceptions that end a job even where a report indents them
_BROKEN = Pattern(r"^[\w.]{0,80}(?:Error|Exception): (?:CUDA|HIP) (?:out of memory\. Tried|error: )")
_PHRASES = Pattern(
    r"^(?:[\w./-]{1,120}: )?(?:fatal )?error: (?!0\b)\S|^(?:FATAL|CRITICAL)\b(?: ERROR)?[: ]|^ERROR\b[: ]"
    r"|^\[(?:ERROR|FATAL|CRITICAL)\] [^\W\d]"
    r"|^fatal: \S|^Error: \S|^(?:Scheduler |Detokenizer )?Watchdog timeout\b|^\w{1,40} watchdog timeout \(self\."
    r"|^[\w./-]{1,200}\(\d{1,7}\): (?:fatal )?error(?: #\d+)?: ",
)

#: NCCL's explanations, and torch_npu's with the codes of CANN
_PART = pattern_of(
    r"nccl[A-Z]\w{3,40}: |Last error:\s*$|(?:socket|nccl|boot|net)\w{2,40}: "
    r"|\[ERROR\] \d{4}-\d\d-\d\d-\d\d:\d\d:\d\d \(PID:|E[A-Z][A-Z0-9]\d{3}: "
)
#: lines that the launchers' parser reads
_OTHERS = ("srun: ", "slurmstepd: ", "mpirun ", "prterun ")

#: torch/distributed/elastic/multiprocessing/errors/error_handler.py: {"message": {"message": "…", "extraInfo": {…}}}
_ERROR_FILE = Pattern(r'^\{\s*"message": \{\s*"message": "(?P<message>(?:[^"\\]|\\.){1,4000})",\s*"(?:extraInfo|errorCode)"')

#: a record's head that the log ends in: "ERROR 11-29 18:54:30 [v1/exec"
_HEAD_ONLY = Pattern(r"^(?:ERROR|CRITICAL|FATAL) (?:\d{4}-)?\d\d-\d\d(?: \d[\d:.,]{0,14}(?: \[[^\]\n]{0,120})?)?$")

#: how a line ends that goes on in the next one
_UNFINISHED = (":", ",", ";", "(", "[", "{", "\\", " -", "...", "…")

_NUMBERS = pattern_of(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?")


#: the dialect of records that a collector wraps around printed lines
_COLLECTED = "json"

_NOTHING: Mapping[tuple[int, int], int] = {}


@draft
class _Folded:
    event: Event
    count: int = 1
    last: Span | None = None


#: words that say that the program goes on without what it could not have
_GOES_ON = Pattern(
    r"\bimport\b|fall(?:s|ing)? ?back|skipp|ignor|optional|disabl|not available|unavailable|will be|retry|warning",
    re.IGNORECASE,
)


def messages_of(
    lines: Sequence[LogLine], claimed: set[tuple[int, int]], repeats: Mapping[tuple[int, int], int] = _NOTHING
) -> list[Event]:
    """Error lines outside of the claimed ones ((source, number) pairs). repeats: as in `Intake`."""
    kept: dict[tuple[object, ...], _Folded] = {}
    texts: Counter[tuple[object, ...]] = Counter()
    loud = _loud_sources(lines)
    at, size = 0, len(lines)
    while at < size:
        line = lines[at]
        at += 1
        text = line.text
        severe = line.level in _SEVERE and line.source not in loud
        if not severe and ((line.level in _QUIET and not _is_relayed(line)) or not any(hint in text for hint in _HINTS)):
            continue
        if (line.source, line.number) in claimed or not text.strip("{}[](), \t") or text.startswith(_OTHERS):
            continue
        found = _read(text[:6000], severe)
        if found is None or _HEAD_ONLY.match(text[:200]):
            continue
        name, message, heading = found
        goes_on = (not line.joined or name) and not is_whole(name or "", message)
        more = _continued(lines, at, line, claimed, name is not None) if goes_on else []
        at += len(more)
        key = (line.source, line.rank.key if line.rank else line.stream, name, _NUMBERS.sub("#", message[:300]))
        folded = kept.get(key)
        times = 1 + repeats.get((line.source, line.number), 0)
        if folded:
            folded.count += times
            folded.last = Span(line.source, line.number, line.number + len(more))
        elif len(kept) < MOST or (len(kept) < _IN_ALL and (name or texts[key[2:]] < _COPIES)):
            texts[key[2:]] += 1
            whole = "\n".join((message, *more)).rstrip()
            name, whole = _of_error_file(name, whole)
            kept[key] = _Folded(_event(line, len(more), name, whole, heading), times)
    return [replace(f.event, count=f.count, last=f.last) if f.count > 1 else f.event for f in kept.values()]


def _is_relayed(line: LogLine) -> bool:
    """True for a collector's record whose message is an exception that ends a job: the level is the collector's, of all that a program
    prints."""
    return line.dialect == _COLLECTED and _BROKEN.match(line.text[:400]) is not None


def _loud_sources(lines: Sequence[LogLine]) -> set[int]:
    """Sources that call most lines an error, as log collectors do with everything on stderr: their level says nothing."""
    counts: dict[int, list[int]] = {}
    for line in lines:
        count = counts.setdefault(line.source, [0, 0])
        count[0] += 1
        count[1] += line.level in _SEVERE and line.origin is None
    return {source for source, (total, severe) in counts.items() if severe >= 10 and severe * 2 > total}


def _read(text: str, severe: bool) -> tuple[str | None, str, str] | None:
    """(type, message, heading) of an error line, None where it is none."""
    if text.startswith("> ") and looks_raised(text[2:].strip()):
        text = text[2:]  # one quoted line of an answer in a thread
    stripped = text.strip()
    if stripped == "NoneType: None":
        return None  # what logging.exception prints where nothing was raised
    if looks_raised(stripped) and (text[:1] not in " \t" or _BROKEN.search(stripped[:400])):
        found = raised(stripped)
        if found and (found[1] or severe or found[0] in ("KeyboardInterrupt", "EOFError")):
            return found[0], found[1], ""
    if severe and (number := _ERRNO.match(stripped)):
        return "OSError", number[1], ""
    if text[:1] in " \t" or kind_of(text) in (Kind.FRAME, Kind.CARET, Kind.HEAD, Kind.LINK):
        return None  # what goes on from another line
    inline = _INLINE.search(text) or _REPR.search(text) or _CLASS.search(text)
    if inline:
        heading = text[: inline.start()].strip()
        if not severe and waits_for([heading]):
            return None
        if severe or _PHRASES.match(text) or (_TOLD.search(heading[-160:]) and not _GOES_ON.search(heading)):
            if heading.endswith("(Caused by"):
                return inline["type"], stripped, ""  # the cause is named inside of what was said
            arguments = inline.groupdict().get("arguments")
            heading = f"{heading} ({arguments})" if arguments else heading
            return inline["type"], inline["message"], heading[:500]
    if severe or _PHRASES.match(text):
        return (None, stripped, "")
    return None


def named_in(heading: str) -> tuple[str, str] | None:
    """(type, message) of the exception that a log record names before it prints the traceback; None where it names none."""
    found = _INLINE.search(heading[:6000]) or _REPR.search(heading[:6000]) or _CLASS.search(heading[:6000])
    return (found["type"], found["message"]) if found else None


def _continued(lines: Sequence[LogLine], at: int, first: LogLine, claimed: set[tuple[int, int]], raised: bool) -> list[str]:
    """Texts of the lines that go on with the message of `first`. raised: it is an exception's, which may have any lines; a complaint
    goes on where it says so, or where a line is indented."""
    prefix = prefix_of(first)
    bare = not prefix or not (first.stream or first.level or first.origin)
    more: list[str] = []
    for line in lines[at : at + LINES]:
        text = line.text
        if not text.strip() or line.number != first.number + len(more) + 1 or line.source != first.source:
            break
        if (line.source, line.number) in claimed or kind_of(text) in (Kind.HEAD, Kind.FRAME, Kind.LINK):
            break
        if first.text.startswith("> ") and not text.startswith("> "):
            break  # what somebody quotes ends where the quotation marks end
        told = (more[-1] if more else first.text).rstrip()
        if not (raised or text[:1] in " \t" or told.endswith(_UNFINISHED) or _is_part(text)):
            break
        own = prefix_of(line)
        if (bare and own == prefix and not starts_anew(text) and (not looks_raised(text) or _is_part(text))) or (
            not bare
            and (text[:1] in " \t" or (own == prefix and (_is_part(text) or (more and more[-1].strip() == "Last error:"))))
            and (own == prefix or (not own and not starts_anew(text)))
        ):
            more.append(text[:4000])
        else:
            break
    return more


def _of_error_file(name: str | None, message: str) -> tuple[str | None, str]:
    """(type, message) out of the JSON in which torch's elastic agent keeps a worker's error, whole or torn."""
    found = _ERROR_FILE.match(message[:6000]) if name is None and message.startswith("{") else None
    if found is None:
        return name, message
    said = found["message"].replace("\\n", "\n").replace('\\"', '"')
    inner = raised(said) if looks_raised(said) else None
    return (inner[0], inner[1]) if inner else (None, said)


def _is_part(text: str) -> bool:
    """True for lines like `ncclSystemError: …` that look like an exception and explain the one above, and for those of CANN."""
    return _PART.match(text) is not None


def _event(line: LogLine, more: int, name: str | None, message: str, heading: str) -> Event:
    return Event(
        EventKind.MESSAGE,
        Span(line.source, line.number, line.number + more),
        rank=line.rank,
        time=line.time,
        type=name,
        message=message,
        level=line.level,
        parser="python",
        stream=line.stream,
        fields={"heading": heading} if heading else {},
    )
