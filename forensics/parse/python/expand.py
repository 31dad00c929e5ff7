"""Tracebacks squeezed into one line -> their lines. In: a text; out: the lines it stands for. Samples:

{"level": "error", "exc": "Traceback (most recent call last):\\n  File \\"a.py\\", line 3, in f\\n    g()\\nValueError: bad\\n"}
worker died: Traceback (most recent call last): File "a.py", line 3, in f g() ValueError: bad
RuntimeError: rank 3 failed with 'Traceback (most recent call last):#012  File "a.py", line 3, in f#012ValueError: bad'
[rank3]: Traceback (most recent call last): | [rank3]:   File "a.py", line 3, in f | [rank3]: ValueError: bad
File "a.py", line 3, in f g() File "b.py", line 9, in g raise ValueError("bad")              (its head torn off, its end in the next line)
"""

from __future__ import annotations

import re

from forensics.ingest.pattern import Pattern
from forensics.parse.python.shapes import HEADER, looks_raised

#: characters of a line that are expanded
LIMIT = 200_000

_ESCAPED_BREAK = Pattern(r"\\{1,8}r?\\{0,8}n|#012|\\x0a|\\u000a")
_AFTER_HEADER = Pattern(r":?(?P<break>\\{1,8}r?\\{0,8}n|#012|\\x0a|\\u000a|\s{1,8}(?=File \\{0,4}\"))")
#: what stands between the header and the first frame: what a collector joined the lines with, and perhaps their prefix once more
_JOINED = Pattern(r":?(?P<gap>[^\n\"']{1,200}?)(?=File \\{0,4}\")")
#: how often it must stand there at least: before the first frame, and before the exception
_JOINTS = 2
_FLAT_FRAME = Pattern(r'\s{1,8}(File "[^"\n]{1,1000}", line \d{1,8}(?:, in (?:<[^>\n]{1,80}>|[^\s,]{1,300}))?)(?=\s|$)')
_FLAT_RAISED = Pattern(
    r"\s(?P<line>(?:[A-Za-z_]\w{0,80}\.){0,10}[A-Z]\w{0,80}(?:Error|Exception|Interrupt|Exit|Timeout|ExceptionGroup|Iteration)(?::|\s*$))"
)
_FLAT_LINK = Pattern(
    r"\s{1,8}((?:During handling of the above exception, another exception occurred"
    r"|The above exception was the direct cause of the following exception):)\s{1,8}"
)


def expanded(text: str) -> list[str] | None:
    """The lines of a squeezed traceback, the text before it as first line; None where the text holds none."""
    at = text.find(HEADER)
    if at < 0:
        return None
    if "\n" in text:
        return text[:LIMIT].split("\n")
    text = text[: at + LIMIT]
    joined = _JOINED.match(text, at + len(HEADER))
    joint = joined["gap"].rstrip() if joined else ""
    if joint.strip() and not _ESCAPED_BREAK.fullmatch(joint.strip()):
        return _parted(text, at, joint) if text.count(joint, at) >= _JOINTS else None
    after = _AFTER_HEADER.match(text, at + len(HEADER))
    if not after:
        return None
    if after["break"].strip():
        return _unescaped(text, at)
    return _spread(text)


def _parted(text: str, at: int, joint: str) -> list[str]:
    """A traceback whose lines stand behind each other with the same words between them; joint: those, without the blanks at their end."""
    first, *rest = text[at:].split(joint)
    lines = [text[:at] + first.rstrip()]
    for line in rest:
        line = line.replace('\\"', '"').rstrip().removeprefix(" ")
        if line.lstrip().startswith('File "'):
            line = f"  {line.lstrip()}"
        elif lines[-1].startswith("  File ") and line is not rest[-1]:
            line = f"    {line.lstrip()}"
        lines.append(line)
    return lines


def _unescaped(text: str, at: int) -> list[str]:
    """A traceback with written-out line breaks; what follows the closing quote is left out."""
    start, end = 0, len(text)
    quote = max(text.rfind('"', 0, at), text.rfind("'", 0, at))
    if quote >= 0:
        closing = (
            re.compile(r"(?<!\\)" + text[quote])
            if text[quote - 1 : quote] != "\\"
            else re.compile(r"\\+" + text[quote])
        )
        start = quote + 1
        for found in closing.finditer(text, at):
            # quotes of `File "x.py"` are not the end
            if text[quote] != '"' or not re.search(
                r'File "[^"\n]{0,1000}$', text[max(0, found.start() - 1010) : found.start()]
            ):
                if not re.match(r'", line \d|[^"\n]{1,400}", line \d', text[found.start() : found.start() + 420]):
                    end = found.start()
                    break
    body = _ESCAPED_BREAK.sub("\n", text[start:end])
    body = re.sub(r"\\{1,8}([\"'])", r"\1", body)
    lines = body.split("\n")
    heading = text[:start].strip(" '\"")
    return [heading, *lines] if heading else lines


def unfolded(text: str) -> list[str] | None:
    """The lines of several frames that stand in one line without a header, or with one and without their exception, which then is
    in the next line. None where the line holds no two frames, or all of a traceback (`expanded`)."""
    lines = _spread(f" {text[:LIMIT]}")
    frames = sum(line.startswith('  File "') for line in lines)
    whole = HEADER in text and (any(map(looks_raised, lines)) or _ESCAPED_BREAK.search(text) is not None)
    return lines if frames > 1 and not whole else None


def _spread(text: str) -> list[str]:
    """A traceback whose line breaks became spaces."""
    body = _FLAT_LINK.sub(r"\n\n\1\n\n", text)
    body = body.replace(HEADER + ": ", HEADER + ":\n ").replace(HEADER + " File", HEADER + ":\n File")
    body = _FLAT_FRAME.sub(r"\n  \1\n    ", body)
    lines: list[str] = []
    for line in body.split("\n"):
        raised = None
        if lines and lines[-1].startswith("  File ") and line.startswith("    "):
            for raised in _FLAT_RAISED.finditer(line):
                if not re.search(r"(?:raise|except|\()\s*$", line[: raised.start() + 1]):
                    break
            else:
                raised = None
        if raised:
            code = line[: raised.start()]
            lines += [code, line[raised.start("line") :]] if code.strip() else [line[raised.start("line") :]]
        elif line.strip() or not lines:
            lines.append(line.rstrip() if line.strip() else "")
    return lines
