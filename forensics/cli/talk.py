"""What is said on standard error: errors and nothing else that a pipe would have to filter. In: words; out: none. Sample:

complain("cannot read a.log: permission denied\\n  help:  …") -> "error: cannot read a.log: …" on standard error
"""

from __future__ import annotations

import sys

#: everything that moves a terminal's cursor, except the line end, and what hides or turns text
_UNSAFE = {code: f"\\x{code:02x}" for code in [*range(0x20), *range(0x7F, 0xA0), 0xAD] if code != 0x0A} | {
    code: f"\\u{code:04x}"
    for code in [0x61C, *range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x206A), 0x3164, 0xFEFF]
}

_LONGEST = 1_000


def say(text: str) -> None:
    """One message on standard error; never an exception, since there may be nobody to read it."""
    try:
        print(text.translate(_UNSAFE), file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):
        pass


def complain(text: str) -> None:
    """An error in four parts (see `ForensicsError`); what a user gave is said back, but not all of a very long word."""
    lines = [line if len(line) <= _LONGEST else line[:_LONGEST] + "…" for line in text.split("\n")]
    say("error: " + "\n".join(lines))


def tell_interrupted() -> None:
    """The last word after Ctrl-C."""
    say("interrupted")
