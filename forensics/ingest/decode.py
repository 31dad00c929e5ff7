"""Bytes of one line to the text a person saw. In: bytes between two line feeds; out: visible lines. Sample:

visible("\\x1b[31mERROR\\x1b[0m x\\r\\n")             -> ["ERROR x"]
visible("ValueError: x^M")                          -> ["ValueError: x"]
visible(" 10%|#   | 1/9\\r 20%|##  | 2/9\\rboom")     -> [" 20%|##  | 2/9", "boom"]
"""

from __future__ import annotations

import codecs

from forensics.ingest.pattern import Pattern

#: CSI, OSC (titles, links), APC (Buildkite's times) and two-byte escapes; the same with a lost or a spelled-out ESC
#: ("^[" of cat -v, "#033" of rsyslog, "\u001b" of JSON, also of JSON within JSON, "\x1b" of Python's repr)
_ESCAPES = Pattern(
    r"(?:\x1b|\^\[|\u241b|\\{1,4}(?:u00|x)1[bB])\[[0-9;:?]{0,32}[ -/]?[@-~]"
    r"|#033\[[0-9;]{0,32}[mK]"
    r"|\x1b[\]_P^X][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)"
    r"|\x1b[ -/]?[0-~]"
    r"|\x9b[0-9;]{0,32}[@-~]"
    r"|\[(?:0|1|0;0|[0-9];[39][0-7]|[39][0-7]|[0-9];[0-9];[39][0-7])m(?!\])"
)
#: a progress bar's end with something glued behind it: "…3/9 [00:01<00:03, 1.2it/s]Traceback"
_GLUED = Pattern(r"(?:(?<=it/s\])|(?<=s/it\]))(?:(?=[^\s,|\]])|(?= {0,8}(?:Traceback \(|\[rank\d)))")
_BAR = Pattern(r"\d{1,3}%\|| \d{1,9}/\d{1,9} \[|\d{1,3}% Completed")
#: of a line with very many carriage returns only so many visible lines are kept (the first and the last ones)
_MOST_SEGMENTS = 40


#: what hints at an escape whose ESC is there, or was spelled out, or was lost
_HINTS = ("\x1b", "1b[", "1B[", "^[[", "#033[", "\u241b", "\x9b", "[0m", "[1m", "[0;", "[1;", "[3", "[9")


def plain(text: str) -> str:
    """Without terminal escapes and NULs."""
    for hint in _HINTS:
        if hint in text:
            text = _ESCAPES.sub("", text)
            break
    return text.replace("\0", "") if "\0" in text else text


def visible(text: str) -> list[str]:
    """The lines a reader sees in one \\n-line: split at carriage returns; of a progress bar's redraws only the last."""
    text = plain(text)
    if text.endswith("^M"):  # a carriage return that "cat -v" or a pager spelled out
        text = text[:-2]
    if "\r" in text:
        segments = [part for part in text.rstrip("\r").split("\r") if part] or [""]
        if len(segments) > 1:
            bars = [_BAR.search(segment[:400]) is not None for segment in segments] + [False]
            segments = [segment for i, segment in enumerate(segments) if not (bars[i] and bars[i + 1])]
        if len(segments) > _MOST_SEGMENTS:
            segments = segments[: _MOST_SEGMENTS // 2] + segments[-_MOST_SEGMENTS // 2 :]
    else:
        segments = [text]
    if "/s]" in text or "/it]" in text:
        segments = [piece for s in segments for piece in (_GLUED.split(s) if len(s) < 20_000 else [s])]
    return segments


def guess_encoding(head: bytes) -> str:
    """The encoding of a source by its first bytes: a byte order mark, or every second byte zero; else "utf-8"."""
    if head.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if head.startswith(codecs.BOM_UTF16_LE):
        return "utf-16-le"
    if head.startswith(codecs.BOM_UTF16_BE):
        return "utf-16-be"
    sample = head[:4096]
    if len(sample) >= 8:
        even, odd = sample[::2], sample[1::2]
        if odd.count(0) > len(odd) * 0.7 and even.count(0) < len(even) * 0.1:
            return "utf-16-le"
        if even.count(0) > len(even) * 0.7 and odd.count(0) < len(odd) * 0.1:
            return "utf-16-be"
    return "utf-8"


def text_of(raw: bytes) -> str:
    """Text of a line that is UTF-8, damaged UTF-8 (U+FFFD for what is broken) or, where most of it would break, Latin-1."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        mended = raw.decode("utf-8", "replace")
        broken = mended.count("\ufffd")
        high = len(raw) - len(raw.translate(None, bytes(range(128, 256))))
        # every byte above 127 alone: no UTF-8 at all, so one byte is one letter
        control = any(128 <= byte < 160 for byte in raw[:4096])
        return raw.decode("latin-1") if broken == high < len(raw) // 2 and not control else mended
