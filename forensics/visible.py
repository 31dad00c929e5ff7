"""Text that cannot hurt a terminal or a page, nor mislead a reader. In: any string; out: a printable one. Sample:

visible("\\x1b[31mred\\u202e") -> "␛[31mred<U+202E>"
"""

from __future__ import annotations

import re

#: letters that draw nothing and are no format characters by their Unicode category
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5")
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~$#])")
_MENTION = re.compile(r"@(?=\w)")


def visible(text: str) -> str:
    """The same text with control characters as pictures (␛), tabs as spaces, and bidi, zero-width, private and broken
    characters spelled out (<U+202E>). Line ends stay; carriage returns before them go."""
    if text.isascii() and text.isprintable():
        return text
    if "\r" in text or "\t" in text:
        text = text.replace("\r\n", "\n").expandtabs(4)
    if text.replace("\n", "").isprintable() and _BLANK_LETTERS.isdisjoint(text):
        return text
    return "".join(map(_shown, text))


def markdown(text: str) -> str:
    """Text that Markdown shows as it is: no markup, no mention, no link, on one line."""
    flat = _SPECIAL.sub(r"\\\1", " ".join(text.split()))
    return _MENTION.sub("@\u200b", flat).replace("://", ":\u200b//").replace("www.", "www\u200b.")


def _shown(char: str) -> str:
    if char == "\n" or (char.isprintable() and char not in _BLANK_LETTERS):
        return char
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    import unicodedata

    if unicodedata.category(char) == "Zs":
        return " "
    return f"<U+{code:04X}>"
