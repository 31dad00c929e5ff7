"""What a line of a Python traceback looks like, one line at a time. In: a line's text; out: a `Kind`. Sample:

Traceback (most recent call last):                       HEAD
  File "/srv/engine/runner.py", line 151, in capture     FRAME
    self.model.forward(batch)                            CODE
    ~~~~~~~~~~~~~~~~~~^^^^^^^                            CARET
  [Previous line repeated 12 more times]                 REPEATED
torch.OutOfMemoryError: CUDA out of memory. Tried …      RAISED
During handling of the above exception, another …        LINK
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache

from forensics.ingest.compiled import pattern_of
from forensics.ingest.pattern import Pattern

HEADER = "Traceback (most recent call last)"

#: longest part of a line that is looked at; longer lines are data, not tracebacks
LOOK = 4000


class Kind(IntEnum):
    """What a line can be by its own text. RAISED is only a guess outside of a traceback: "Name: text" at the margin."""

    BLANK = 0
    HEAD = 1
    FRAME = 2
    CODE = 3
    CARET = 4
    REPEATED = 5
    RAISED = 6
    LINK = 7
    GROUPED = 8  # "  | …", "  +-+---------------- 1 ----------------" of an exception group
    BOX = 9  # "│ /srv/a.py:12 in main │" of rich
    PLACE = 10  # "File ~/a.py:12, in main(x)", "Cell In[3], line 1" of IPython
    ARROW = 11  # "---> 12     step(x)" of IPython
    TEXT = 12


#: `File "x.py", line 10, in f`, or `File "x.py", line 10` of a SyntaxError; faulthandler's form has no comma (dumps.py)
FRAME = pattern_of(
    r'^[ \t`]*File "(?P<file>[^"\n]{1,1000})", line (?P<line>\d{1,8})'
    r"(?:, in (?P<function><[^>\n]{1,80}>(?:\(\))?|[^\s,]{1,300}))?[ \t`]*$"
)

#: the same with another writer's words torn into its end, or shortened by the person who pasted it: `File "…/moe.py", ...`
TORN_FRAME = Pattern(
    r'^[ \t`]*File "(?P<file>[^"\n]{1,1000})", (?:line (?P<line>\d{1,8}), in (?P<function><[^>\n]{1,80}>|\w{1,300})\b'
    r"|(?:\.{3}|…)[ \t`]*$)"
)

#: the exception line: a dotted name, perhaps Ray's "(Inner)", then ": message" or nothing
RAISED = pattern_of(
    r"^(?P<type>[A-Za-z_]\w{0,120}(?:\.(?:<locals>|\w{1,120})){0,12})(?P<inner>\([\w.]{1,120}\))?"
    r"(?P<colon>:(?: (?P<message>.*))?)?$",
    re.DOTALL,
)

#: names that are exceptions by their own look
EXCEPTION_NAME = pattern_of(
    r"(?:Error|Exception|Interrupt|Exit|Timeout|TimedOut|Failure|Failed|Abort|Aborted|Fault|StopIteration|StopAsyncIteration"
    r"|ExceptionGroup|OutOfResources|OutOfMemory|Warning|NotFound|Unsupported|Invalid|Refused|Disconnected|Denied|Cancelled"
    r"|Empty|Full|Died|Unavailable|Traceback)$"
)

#: words before a colon that no exception class is called
NOT_A_TYPE = frozenset(
    [
        "INFO",
        "WARNING",
        "WARN",
        "DEBUG",
        "ERROR",
        "CRITICAL",
        "FATAL",
        "TRACE",
        "NOTICE",
        "NOTE",
        "Note",
        "Hint",
        "Warning",
        "Process",
        "Killed",
        "Usage",
        "usage",
        "Info",
        "Error",
        "Debug",
        "Fatal",
        "TODO",
        "FIXME",
        "INTERNAL",
        "See",
        "https",
        "http",
        "Explanation",
        "Rank",
        "rank",
        "time",
        "host",
        "exitcode",
        "error_file",
        "traceback",
    ]
)

LINKS = {
    "During handling of the above exception, another exception occurred": "context",
    "The above exception was the direct cause of the following exception": "cause",
}

_GROUPED = pattern_of(r"^ {1,200}(?:\| |\|$|\+-)")
#: what may stand behind the header in its line
_ENDS_HEADER = pattern_of(r":?[ \t`│┃|]*(?:\[repeated \d.*|\(in .*|\(RANK \d{1,6}\)[ \t]*)?$")
#: rich: `/srv/a.py:12 in main`, and the marked source line
BOX_FRAME = Pattern(r"^(?P<file>[^\s:][^:\n]{0,500}):(?P<line>\d{1,8}) in ?(?P<function>\S{0,200})$")
BOX_CODE = Pattern(r"^[❱>] *\d{1,8} ?(?P<code>.*)$")
#: the place where the box is too narrow for it: the file, and its end in the next line
BOX_FILE = Pattern(r"^(?P<file>[^\s:][^:\n]{0,500}\.\w{1,5}): ?$")
BOX_REST = Pattern(r"^(?P<line>\d{1,8}) in ?(?P<function>\S{0,200})$")
_BORDER = " \t│┃╭╰╮╯┏┗┓┛"
#: IPython, new and old
PLACE = Pattern(
    r"^(?:File (?P<file>[^\s:][^:\n]{0,500}):(?P<line>\d{1,8})(?:, in (?P<function>[^(\n]{1,200}).*)?"
    r"|(?:Cell|Input) In ?\[(?P<cell>\d{1,6})\],? (?:line (?P<cell_line>\d{1,6})|in (?P<cell_function><[^>\n]{1,60}>|\w{1,100}).*)"
    r"|(?P<old_file>[~/<][^\s]{1,500}) in (?P<old_function><cell line: \d{1,6}>|<?[\w.]{1,200}>?)(?:\(.*)?)$"
)
#: Ray's header of remote frames
RAY_HEADER = Pattern(r"^ray::[\w.<>]{1,200}(?:\(\))? \(pid=\d{1,9},.{0,600}\)$")
ARROW = Pattern(r"^-{1,6}> ?(?P<line>\d{1,8})(?P<code>.*)$")
_CARETS = frozenset("^~ \t")
_REPEATED = Pattern(r"^\s*\[Previous line repeated (\d{1,9}) more times?\]\s*$")


#: frames as tvm prints them below a header of its own
_NATIVE_FRAME = Pattern(
    r"^ {1,6}\d{1,4}: (?:(?:void|bool|int|long|float|double|auto|unsigned|const|static) ){0,3}"
    r"(?:0x[0-9a-f]{6}|_Z\w|~?[A-Za-z_]\w{0,80}(?:::|\(|<|$))|^ {6,12}at [^\s:]{1,300}:\d{1,7}$"
)


def kind_of(text: str) -> Kind:
    """The kind of one line without its prefix. Looks at the first `LOOK` characters only."""
    if len(text) > LOOK:
        text = text[:LOOK]
    stripped = text.lstrip(" \t`")
    if not stripped or stripped.isspace():
        return Kind.BLANK
    first = stripped[0]
    indent = len(text) - len(stripped)
    if first in "|+" and indent and _GROUPED.match(text):
        return Kind.GROUPED
    if first == "F" and stripped.startswith('File "') and (FRAME.match(text) or TORN_FRAME.match(text)):
        return Kind.FRAME
    if first in "│╭╰┃┏┗":
        return Kind.HEAD if HEADER in text else Kind.BOX
    if HEADER in text:
        return Kind.HEAD if _ENDS_HEADER.match(text, text.find(HEADER) + len(HEADER)) else Kind.TEXT
    if first in "DT" and link_of(stripped):
        return Kind.LINK
    if first in "^~" and _CARETS.issuperset(stripped):
        return Kind.CARET
    if first == "[" and _REPEATED.match(text):
        return Kind.REPEATED
    if first == "-" and ARROW.match(stripped):
        return Kind.ARROW
    if indent:
        return Kind.CODE
    if first == "r" and RAY_HEADER.match(text):
        return Kind.HEAD
    if first in "FCI~/<" and PLACE.match(text):
        return Kind.PLACE
    if text.endswith(" frames") and text[:-7].isdigit():
        return Kind.BLANK  # "22 frames": where Colab folds a stack
    return Kind.RAISED if raised(text) else Kind.TEXT


def in_box(text: str) -> str:
    """What stands between the borders of a line of rich's box."""
    return text.strip(_BORDER)


def opens_box(text: str) -> bool:
    """True for the first line of a box without its head that shows a stack: a place, or the marked source line with its number."""
    content = in_box(text[:LOOK])
    return content.startswith("❱") or BOX_FRAME.match(content) is not None


def is_native_frame(text: str) -> bool:
    """True for a frame of a C++ library inside a Python traceback: `  3: tvm::runtime::Foo(int)`, `        at /src/a.cc:156`."""
    return bool(_NATIVE_FRAME.match(text[:LOOK]))


def link_of(text: str) -> str | None:
    """ "cause" or "context" where the line says how two exceptions hang together."""
    body = text.strip().rstrip(":")
    return LINKS.get(body)


#: what several processes wrote over each other: `ValueErrorValueError: : no such axis`, names, colons and one message
_DOUBLED = pattern_of(
    r"(?P<type>[A-Za-z_][\w.]{0,120}(?:Error|Exception|Interrupt))(?P=type){1,15}(?:: ?){1,16}(?P<message>[^:\s].*)$", re.DOTALL
)


def raised(text: str, awaited: str | None = None) -> tuple[str, str] | None:
    """(type, message) of an exception line, or None. awaited: the name that the code line above raises, if it shows one."""
    found = RAISED.match(text)
    if not found:
        return None
    name = found["type"] + (found["inner"] or "")
    if found["type"] in NOT_A_TYPE:
        return None
    if (doubled := _DOUBLED.match(text)) is not None:
        return doubled["type"], doubled["message"]
    last = found["type"].rsplit(".", 1)[-1]
    if not found["colon"]:
        fits = bool(EXCEPTION_NAME.search(last)) or last == awaited
        return (name, "") if fits else None
    dotted = "." in found["type"]
    if not (last == awaited or EXCEPTION_NAME.search(last) or dotted or (last[:1].isupper() and not last.isupper())):
        return None
    if dotted and pattern_of(r"\.(?:py|cc|cpp|cu|cuh|h|hpp|c|so|json|txt|sh|yaml|log)$").search(found["type"]):
        return None
    return name, found["message"] or ""


def looks_raised(text: str) -> bool:
    """True where the line is an exception line whatever stands around it (`ValueError: …`, `torch.AcceleratorError: …`)."""
    found = RAISED.match(text[:LOOK])
    if not found or found["type"] in NOT_A_TYPE:
        return False
    return bool(EXCEPTION_NAME.search(found["type"].rsplit(".", 1)[-1]))


#: what the operating system says, to its end; and the key that was not there
_SAID_BY_SYSTEM = Pattern(
    r"^(?:.{0,600}[ :(])?\[Errno -?\d{1,5}\] [A-Z][\w ,/-]{3,100}"
    r"(?:: (?:b?'[^'\n]{0,1000}'(?: -> b?'[^'\n]{0,1000}')?|\(.{1,200}\)))?[\"')]{0,6}$"
)
_KEY = Pattern(r"^(?:'[^'\n]{0,400}'|\"[^\"\n]{0,400}\"|-?\d{1,40}|\([^()\n]{1,400}\))$")


def is_whole(name: str, message: str) -> bool:
    """True for a message of one line that nothing goes on with: below it stands what somebody else printed. name: the exception's."""
    text = message[:LOOK].strip()
    return _SAID_BY_SYSTEM.match(text) is not None or (name == "KeyError" and _KEY.match(text) is not None)


_RAISE = Pattern(r"^\s*raise\s+(?:[\w]+\.){0,8}(?P<name>[A-Za-z_]\w*)")


def raised_name(code: str) -> str | None:
    """The class that a code line raises (`raise RuntimeError(…` -> "RuntimeError"), None where it shows none."""
    found = _RAISE.match(code)
    return found["name"] if found and found["name"][:1].isupper() else None


def indented_raise(code: str, text: str) -> tuple[str, str] | None:
    """(type, message) of an indented line that is what the code line above raises: text pasted into an editor that indents."""
    awaited = raised_name(code) if text[:1] in " \t" else None
    found = raised(text.strip(), awaited) if awaited else None
    return found if found and found[0].rsplit(".", 1)[-1] == awaited else None


def shifted_raise(column: int, text: str) -> tuple[str, str] | None:
    """(type, message) of an exception line that is indented as far as its whole traceback: four columns left of the source line
    above it, which stands in `column`."""
    indent = len(text) - len(text.lstrip())
    return raised(text.strip()) if 0 < indent == column - 4 and looks_raised(text.strip()) else None


def repeats(text: str) -> int:
    """N of `[Previous line repeated N more times]`, 0 for other lines."""
    found = _REPEATED.match(text)
    return int(found[1]) if found else 0


@lru_cache(maxsize=4096)
def frame_function(text: str) -> str:
    """The function that a frame line names, "" where it names none."""
    found = FRAME.match(text)
    return (found["function"] or "") if found else ""


@lru_cache(maxsize=4096)
def frame_file(text: str) -> str:
    """The file of a frame line, "" for other lines."""
    found = FRAME.match(text)
    return found["file"] if found else ""
